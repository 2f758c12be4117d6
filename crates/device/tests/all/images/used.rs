//! A drive that was used, what it was at several moments, and which of its pages it needs.

use super::script::{self, Change, Step, bytes, expected, get, take};
use super::traced::Traced;
use kvssd_device::{Drive, DriveError, image_design};
use kvssd_flash::{Backing, BlockAddress, Files, Geometry, ImageBacking, OpenOptions, PageAddress};
use kvssd_types::KvError;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::ops::{AddAssign, Range};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

const WRITE: OpenOptions = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };
const READ: OpenOptions = OpenOptions { sync: false, read_only: true, cache_bytes: 0 };

/// Steps after which older copies are made.
pub const MOMENTS: [usize; 4] = [1500, 2500, 3500, 4500];
/// All steps: so many that what each design needs lies in part where something else was at one of the moments.
const STEPS: usize = 7300;
/// Keys of each namespace.
const KEYS: u64 = 3000;
/// What a drive of each design has of DRAM: too little for its index, so that parts of it are needed from flash.
const DRAM_BYTES: [(&str, u64); 8] = [
    ("original", 1 << 20),
    ("plus", 1_550_000),
    ("rhik", 800_000),
    ("multilevel", 1 << 18),
    ("pink", 700_000),
    ("iter", 700_000),
    ("kaml", 800_000),
    ("tessera", 730_000),
];
/// Bytes of an entry of the table of blocks.
const ENTRY_BYTES: u64 = 16;
/// Where the header says that the table begins.
const TABLE_OFFSET_AT: usize = 104;
/// Where the firmware's bytes begin in an out-of-band area: what the page holds u8, sequence u48.
const FIRMWARE_AT: usize = 6;
/// What the first page of a checkpoint begins with.
const CHECKPOINT_MAGIC: &[u8] = b"KVcp";

/// What a page holds, as its out-of-band area says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Pairs,
    Index,
    InvalidMappings,
    Padding,
    Journal,
    Checkpoint,
}

/// In the order of their numbers.
const KINDS: [Kind; 6] =
    [Kind::Pairs, Kind::Index, Kind::InvalidMappings, Kind::Padding, Kind::Journal, Kind::Checkpoint];

/// A drive that was used, and what it once was.
pub struct Used {
    pub name: &'static str,
    _folder: TempDir,
    path: PathBuf,
    /// Its keys, and what must be there.
    expected: Vec<Change>,
    /// What it was at each of the moments.
    pub before: Vec<Vec<u8>>,
    pub now: Vec<u8>,
    pub geometry: Geometry,
    /// The pages that are programmed, now.
    pub pages: Vec<PageAddress>,
    /// Those of them without which it could not give all its keys.
    pub needed: Vec<PageAddress>,
    page_bytes: u64,
    pages_offset: u64,
}

/// What a drive said of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub refused: u64,
    pub unreadable: u64,
    pub right: u64,
}

/// How a drive is looked at.
pub type Look = fn(&Used, &Path, &mut Told);

impl AddAssign for Told {
    fn add_assign(&mut self, other: Told) {
        self.refused += other.refused;
        self.unreadable += other.unreadable;
        self.right += other.right;
    }
}

impl Told {
    /// Something was told that is not as it should be.
    pub fn is_seen(self) -> bool {
        self.refused + self.unreadable > 0
    }
}

impl Used {
    pub fn new(name: &'static str, is_closed: bool) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("drive.kv");
        let all = script::steps(name.len() as u64 + 7, STEPS, KEYS);
        let design = image_design(name).unwrap();
        let dram_bytes = DRAM_BYTES.iter().find(|(of, _)| *of == name).expect("each design has some").1;
        let mut drive = script::create(&path, &design, &script::small_profile(&design, dram_bytes));
        let (mut before, mut steps) = (Vec::new(), Vec::new());
        for (number, step) in all.into_iter().enumerate() {
            if MOMENTS.contains(&number) {
                drop(drive);
                before.push(fs::read(&path).unwrap());
                drive = Drive::open(&path, WRITE).unwrap();
            }
            match take(&mut drive, &step) {
                Ok(()) => steps.push(step),
                // A batch may want more DRAM than is left: it is not done.
                Err(KvError::CapacityExceeded) => {}
                Err(error) => panic!("{name}, step {number}: {error}"),
            }
        }
        assert!(drive.engine().flash_counters().erases > 0, "{name}: nothing was erased");
        let geometry = drive.profile().geometry;
        if is_closed {
            drive.close().unwrap();
        } else {
            drop(drive);
        }
        assert!(steps.len() > STEPS - 100, "{name}: {} steps were refused", STEPS - steps.len());
        let now = fs::read(&path).unwrap();
        let image = ImageBacking::open(&path, READ).unwrap().0;
        let is_programmed = |page: &PageAddress| {
            let (block, row) = geometry.block_of(geometry.unit_of(*page));
            row < image.block(block).units_programmed
        };
        let pages = (0..geometry.pages() as u32).map(PageAddress).filter(is_programmed).collect();
        let pages_offset = image.offset_of(PageAddress(0));
        let page_bytes = image.offset_of(PageAddress(1)) - pages_offset;
        let (needed, expected) = (Vec::new(), expected(&steps));
        let mut used = Used {
            name,
            _folder: folder,
            path,
            expected,
            before,
            now,
            geometry,
            pages,
            needed,
            page_bytes,
            pages_offset,
        };
        used.needed = used.find_needed();
        used
    }

    /// Pages of pairs and of indexes that are read to give all keys, and what a mount reads of the journal from the last checkpoint on.
    fn find_needed(&self) -> Vec<PageAddress> {
        let traced = Traced::default();
        let files: Arc<dyn Files> = Arc::new(traced.clone());
        let mut drive = Drive::open_in(&files, &self.path, READ).unwrap();
        let of_mount = self.pages_of(traced.take());
        let mut told = Told::default();
        self.verify(&mut drive, &mut told);
        assert!(!told.is_seen(), "{}: {told:?}", self.name);
        let of_keys = self.pages_of(traced.take());
        let begins = |page: &PageAddress| {
            self.kind(*page) == Kind::Checkpoint && self.now[self.range(*page)].starts_with(CHECKPOINT_MAGIC)
        };
        let checkpoints = self.pages.iter().filter(|page| begins(page));
        let last = checkpoints.map(|page| self.sequence(*page)).max().unwrap();
        let is_needed = |page: &PageAddress| match self.kind(*page) {
            Kind::Pairs | Kind::Index => of_keys.contains(page),
            Kind::Journal | Kind::Checkpoint => of_mount.contains(page) && self.sequence(*page) >= last,
            Kind::InvalidMappings | Kind::Padding => false,
        };
        self.pages.iter().filter(|page| is_needed(page)).copied().collect()
    }

    /// The pages that were read, without the second of two: that one may have been read ahead.
    fn pages_of(&self, reads: Vec<Range<u64>>) -> BTreeSet<PageAddress> {
        let number_of = |at: u64| ((at - self.pages_offset) / self.page_bytes) as u32;
        let of_pages = reads.into_iter().filter(|read| read.start >= self.pages_offset);
        let numbers = of_pages.flat_map(|read| {
            let (first, end) = (number_of(read.start), number_of(read.end));
            first..if end - first == 2 { first + 1 } else { end }
        });
        numbers.map(PageAddress).collect()
    }

    /// The bytes of a page's out-of-band area that are the firmware's, now.
    fn firmware_bytes(&self, page: PageAddress) -> &[u8] {
        &self.now[self.range(page)][self.geometry.page_bytes as usize + FIRMWARE_AT..]
    }

    /// Pages have them in the order in which they were opened.
    fn sequence(&self, page: PageAddress) -> u64 {
        let bytes = &self.firmware_bytes(page)[1..7];
        bytes.iter().rev().fold(0, |sequence, &byte| sequence << 8 | u64::from(byte))
    }

    /// What a page holds, now.
    pub fn kind(&self, page: PageAddress) -> Kind {
        KINDS[usize::from(self.firmware_bytes(page)[0] & 0xf)]
    }

    /// Where a page's bytes lie.
    pub fn range(&self, page: PageAddress) -> Range<usize> {
        let start = (self.pages_offset + u64::from(page.0) * self.page_bytes) as usize;
        start..start + self.page_bytes as usize
    }

    /// Whether a page held something else at that moment.
    pub fn was_another(&self, page: PageAddress, moment: usize) -> bool {
        let (before, range) = (&self.before[moment], self.range(page));
        before[range.clone()] != self.now[range.clone()] && before[range].iter().any(|&byte| byte > 0)
    }

    /// Where the entry of a block lies.
    pub fn entry(&self, block: BlockAddress) -> Range<usize> {
        let table = u64::from_le_bytes(self.now[TABLE_OFFSET_AT..TABLE_OFFSET_AT + 8].try_into().unwrap());
        let start = (table + self.geometry.block_index(block) as u64 * ENTRY_BYTES) as usize;
        start..start + ENTRY_BYTES as usize
    }

    /// Puts other bytes there, looks at the drive, and puts back what was there.
    pub fn with(&self, changes: &[(usize, &[u8])], look: Look) -> Told {
        let file = File::options().write(true).open(&self.path).unwrap();
        changes.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at as u64).unwrap());
        let mut told = Told::default();
        look(self, &self.path, &mut told);
        for (at, bytes) in changes {
            file.write_all_at(&self.now[*at..*at + bytes.len()], *at as u64).unwrap();
        }
        told
    }

    /// Mounts the drive without writing to it and reads every key.
    pub fn read_all(&self, path: &Path, told: &mut Told) {
        match Drive::open(path, READ) {
            Ok(mut drive) => self.verify(&mut drive, told),
            Err(DriveError::Mount { .. } | DriveError::Failed { .. }) => told.refused += 1,
            Err(error) => panic!("{}: {error}", self.name),
        }
    }

    fn verify(&self, drive: &mut Drive, told: &mut Told) {
        for (key, value) in &self.expected {
            match get(drive, key) {
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
    pub fn use_and_read_all(&self, path: &Path, told: &mut Told) {
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
