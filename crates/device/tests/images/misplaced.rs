//! Pages in wrong places, and pages that are as they were once: each key that they held has its value, or its read is an error, or the
//! drive cannot be mounted and says so. Never another value, and never that there is no such key.

use crate::script::{self, Step, bytes, expected, get, steps, take};
use kvssd_device::{Drive, DriveError};
use kvssd_flash::{Backing, BlockAddress, Geometry, ImageBacking, OpenOptions, PageAddress, SuperblockId};
use kvssd_ftl::DESIGNS;
use kvssd_types::{KvError, Random};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const WRITE: OpenOptions = OpenOptions { sync: false, read_only: false };
const READ: OpenOptions = OpenOptions { sync: false, read_only: true };

/// Steps until the older copy is made, and all.
const STEPS: [usize; 2] = [1500, 4000];
/// Bytes of an entry of the table of blocks.
const ENTRY_BYTES: u64 = 16;
/// Where the header says that the table begins.
const TABLE_OFFSET_AT: usize = 104;

/// A drive that was used, and what it once was.
struct Used {
    name: &'static str,
    _folder: TempDir,
    path: PathBuf,
    steps: Vec<Step>,
    before: Vec<u8>,
    now: Vec<u8>,
    geometry: Geometry,
    /// The pages that are programmed, now.
    pages: Vec<PageAddress>,
    page_bytes: u64,
    pages_offset: u64,
}

/// What a drive said of itself.
#[derive(Debug, Default)]
struct Told {
    refused: u64,
    unreadable: u64,
    right: u64,
}

impl Used {
    fn new(name: &'static str, is_closed: bool) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("drive.kv");
        let steps = steps(name.len() as u64 + 7, STEPS[1]);
        let mut drive = script::create(&path, name, true);
        let mut before = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            if number == STEPS[0] {
                drop(drive);
                before = fs::read(&path).unwrap();
                drive = Drive::open(&path, WRITE).unwrap();
            }
            take(&mut drive, step).unwrap();
        }
        assert!(drive.engine().flash_counters().erases > 0, "{name}: nothing was erased");
        let geometry = drive.profile().geometry;
        if is_closed {
            drive.close().unwrap();
        } else {
            drop(drive);
        }
        let now = fs::read(&path).unwrap();
        let image = ImageBacking::open(&path, READ).unwrap().0;
        let is_programmed = |page: &PageAddress| {
            let (block, row) = geometry.block_of(geometry.unit_of(*page));
            row < image.block(block).units_programmed
        };
        let pages = (0..geometry.pages() as u32).map(PageAddress).filter(is_programmed).collect();
        let pages_offset = image.offset_of(PageAddress(0));
        let page_bytes = image.offset_of(PageAddress(1)) - pages_offset;
        Used { name, _folder: folder, path, steps, before, now, geometry, pages, page_bytes, pages_offset }
    }

    /// Where a page's bytes lie.
    fn range(&self, page: PageAddress) -> std::ops::Range<usize> {
        let start = (self.pages_offset + u64::from(page.0) * self.page_bytes) as usize;
        start..start + self.page_bytes as usize
    }

    fn entry(&self, block: BlockAddress) -> std::ops::Range<usize> {
        let table = u64::from_le_bytes(self.now[TABLE_OFFSET_AT..TABLE_OFFSET_AT + 8].try_into().unwrap());
        let start = (table + self.geometry.block_index(block) as u64 * ENTRY_BYTES) as usize;
        start..start + ENTRY_BYTES as usize
    }

    /// Puts other bytes there, looks at the drive, and puts back what was there.
    fn with(&self, changes: &[(usize, &[u8])], told: &mut Told, look: impl Fn(&Used, &Path, &mut Told)) {
        let file = File::options().write(true).open(&self.path).unwrap();
        changes.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at as u64).unwrap());
        look(self, &self.path, told);
        for (at, bytes) in changes {
            file.write_all_at(&self.now[*at..*at + bytes.len()], *at as u64).unwrap();
        }
    }

    /// Mounts the drive without writing to it and reads every key.
    fn read_all(&self, path: &Path, told: &mut Told) {
        match Drive::open(path, READ) {
            Ok(mut drive) => self.verify(&mut drive, told),
            Err(DriveError::Mount { .. } | DriveError::Failed { .. }) => told.refused += 1,
            Err(error) => panic!("{}: {error}", self.name),
        }
    }

    fn verify(&self, drive: &mut Drive, told: &mut Told) {
        for (key, value) in expected(&self.steps) {
            match get(drive, &key) {
                Ok(found) => {
                    assert!(
                        found == value.map(bytes),
                        "{}: {key:?} is {:?}",
                        self.name,
                        found.map(|found| found.len())
                    );
                    told.right += 1;
                }
                Err(KvError::Unrecovered(_)) => told.unreadable += 1,
                Err(other) => panic!("{}: {key:?}: {other}", self.name),
            }
        }
    }

    /// The same with a copy of the drive that is written to, so that garbage collection comes by, and opened again. Keys that are written
    /// are others than those that are read.
    fn use_and_read_all(&self, path: &Path, told: &mut Told) {
        let copy = path.with_extension("copy");
        fs::copy(path, &copy).unwrap();
        for end in 0..2 {
            let mut drive = match Drive::open(&copy, WRITE) {
                Ok(drive) => drive,
                Err(DriveError::Mount { .. } | DriveError::Failed { .. }) => {
                    told.refused += 1;
                    break;
                }
                Err(error) => panic!("{}: {error}", self.name),
            };
            for number in 0..1500u64 {
                let key = format!("new {}", number % 60).into_bytes();
                match take(&mut drive, &Step::Put(((0, key), Some((number, 6000))))) {
                    Ok(()) | Err(KvError::Unrecovered(_) | KvError::CapacityExceeded) => {}
                    Err(other) => panic!("{}: {other}", self.name),
                }
            }
            self.verify(&mut drive, told);
            // What cannot be read may be in the way of an orderly end.
            if end == 0 { drop(drive) } else { drop(drive.close()) }
        }
        fs::remove_file(copy).unwrap();
    }
}

/// Swaps so many pairs of pages, and puts back so many to what they once were, of each design.
fn misplace(trials: u64, seed: u64) {
    for (name, is_closed) in DESIGNS.iter().flat_map(|design| [(design.name, false), (design.name, true)]) {
        let used = Used::new(name, is_closed);
        let mut random = Random::new(seed);
        let mut pick = |pages: &[PageAddress]| pages[random.below(pages.len() as u64) as usize];
        let is_older = |page: &&PageAddress| {
            let range = used.range(**page);
            used.before[range.clone()] != used.now[range.clone()] && used.before[range].iter().any(|&byte| byte > 0)
        };
        let stale: Vec<PageAddress> = used.pages.iter().filter(is_older).copied().collect();
        assert!(stale.len() > 20, "{name}: {} pages were written twice", stale.len());
        let mut told = [Told::default(), Told::default()];
        for trial in 0..trials {
            let look = if trial % 8 == 7 { Used::use_and_read_all } else { Used::read_all };
            let (one, other) = (used.range(pick(&used.pages)), used.range(pick(&used.pages)));
            let swapped = [(one.start, &used.now[other.clone()]), (other.start, &used.now[one])];
            used.with(&swapped, &mut told[0], look);
            let old = used.range(pick(&stale));
            used.with(&[(old.start, &used.before[old])], &mut told[1], look);
        }
        let ranges = stale.iter().map(|page| used.range(*page));
        let all: Vec<_> = ranges.map(|range| (range.start, &used.before[range])).collect();
        let mut of_all = Told::default();
        used.with(&all, &mut of_all, Used::read_all);
        used.with(&all, &mut of_all, Used::use_and_read_all);
        // On the trees everything that was written twice here is dead.
        let is_tree = matches!(name, "pink" | "iter");
        assert!(is_tree || of_all.refused + of_all.unreadable > 0, "{name}: {of_all:?}");
        println!("{name}, closed {is_closed}: {trials} swapped {:?}, {trials} stale {:?}", told[0], told[1]);
    }
}

#[test]
fn a_misplaced_or_stale_page_is_told_and_never_served() {
    misplace(8, 1);
}

#[test]
#[ignore = "minutes; 1008 pairs of pages swapped and 1008 pages made stale"]
fn a_thousand_misplaced_and_a_thousand_stale_pages_are_told() {
    misplace(72, 2);
}

/// What goes back to what it once was.
#[derive(Clone, Copy, Debug)]
enum Past {
    /// A superblock, and the table of blocks with it, which agrees: only what opened it knows better.
    Superblock,
    /// A block, and its entry.
    Block,
    /// The entry alone.
    Entry,
}

/// Puts back in time every `stride`th that was changed since.
fn go_back(stride: usize) {
    for (name, is_closed) in DESIGNS.iter().flat_map(|design| [(design.name, false), (design.name, true)]) {
        let used = Used::new(name, is_closed);
        for past in [Past::Superblock, Past::Block, Past::Entry] {
            let (mut told, mut changed) = (Told::default(), 0);
            for superblock in (1..used.geometry.superblocks()).map(SuperblockId) {
                let mut blocks: Vec<_> =
                    used.geometry.dies_of(superblock).map(|die| BlockAddress { superblock, die }).collect();
                if !matches!(past, Past::Superblock) {
                    blocks = vec![blocks[superblock.0 as usize % blocks.len()]];
                }
                let mut ranges: Vec<_> = blocks.iter().map(|block| used.entry(*block)).collect();
                if ranges.iter().all(|entry| used.before[entry.clone()] == used.now[entry.clone()]) {
                    continue;
                }
                if !matches!(past, Past::Entry) {
                    let pages = blocks.iter().flat_map(|block| used.geometry.pages_of(*block));
                    ranges.extend(pages.map(|page| used.range(page)));
                }
                changed += 1;
                if changed % stride == 0 {
                    let old: Vec<_> = ranges.into_iter().map(|range| (range.start, &used.before[range])).collect();
                    let look = if changed / stride % 8 == 1 { Used::use_and_read_all } else { Used::read_all };
                    used.with(&old, &mut told, look);
                }
            }
            println!("{name}, closed {is_closed}: {} times {past:?}, {told:?}", changed / stride);
            assert!(changed > 10 && told.refused > 0, "{name}: {past:?} {told:?}");
        }
    }
}

#[test]
fn a_block_that_went_back_in_time_is_told() {
    go_back(6);
}

#[test]
#[ignore = "minutes; every block and superblock of all designs"]
fn every_block_that_went_back_in_time_is_told() {
    go_back(1);
}
