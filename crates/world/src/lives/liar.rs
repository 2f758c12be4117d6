//! A disk that lies: it swaps pages, or gives back what a page or a whole superblock once was, and the drive over it serves none of it.
//!
//! ```text
//!   live, live ...   what the image is now: once    live, live ...   the image: now
//!   trial            now, with a lie in it   ->   open, ask for every key   ->   now again
//! ```
//!
//! What is given is right, and what cannot be given is told: no other value, and no key that is missing and nobody says so.

use super::act::{Act, Acts, Writing};
use super::caught;
use super::hardware::Hardware;
use super::history::History;
use super::image::PATH;
use super::program::{End, Program};
use super::report::{Loss, Report};
use kvssd_flash::{
    Backing, BlockAddress, Geometry, ImageBacking, OpenOptions, PageAddress, SimulatedDisk, SuperblockId,
};
use kvssd_ftl::Design;
use kvssd_types::Random;
use std::ops::Range;
use std::path::Path;

/// Lives before the image is remembered, and behind that.
const LIVES: [u64; 2] = [6, 6];
/// Steps of a life at the most: enough that superblocks are erased and used again.
const ACTS: u64 = 160;
/// Where the header says that the table of blocks begins, and the bytes of an entry.
const TABLE_OFFSET_AT: usize = 104;
const ENTRY_BYTES: u64 = 16;
/// Lies about one image.
const TRIALS: u64 = 8;

/// Lets a drive live, and its disk lie about it.
///
/// # Errors
/// What was served that is wrong.
pub fn run(design: &Design, seed: u64, report: &mut Report) -> Result<(), Loss> {
    let mut random = Random::new(seed);
    let hardware = Hardware::tiny(design, false, false, true);
    let mut program = Program::new(&hardware, SimulatedDisk::new(random.bits()));
    let seed_of_acts = random.bits() >> 24;
    let writing = if seed_of_acts.is_multiple_of(2) { Writing::Much } else { Writing::Little };
    let mut acts = Acts::new(seed_of_acts, writing);
    let mut history = History::default();
    let lived = caught(|| {
        let before = live(&mut program, &mut acts, &mut random, LIVES[0], report)?;
        let now = live(&mut program, &mut acts, &mut random, LIVES[1], report)?;
        let places = Places::of(&program, &now)?;
        for _ in 0..TRIALS {
            let lie = places.lie(&before, &now, &mut random);
            history.push(&lie.words);
            report.acts += 1;
            try_lie(&mut program, &now, &lie, report)?;
        }
        Ok(())
    });
    lived.map_err(|what| Loss { seed, life: report.lives, what, history: history.lines() })?;
    report.drives += 1;
    report.calls += program.disk().calls();
    Ok(())
}

/// Some lives, of which the last is closed or not; gives the bytes of the image then.
fn live(
    program: &mut Program<'_>,
    acts: &mut Acts,
    random: &mut Random,
    lives: u64,
    report: &mut Report,
) -> Result<Vec<u8>, String> {
    for _ in 0..lives {
        program.begin_process();
        program.disk().kill();
        let lived = program.open().and_then(|()| {
            (0..random.below(ACTS)).try_for_each(|_| match acts.next_act() {
                // There are enough of them without.
                Act::Close | Act::Drop | Act::DeleteSpace(_) => Ok(()),
                act => program.act(&act),
            })?;
            if random.below(2) == 0 { program.close() } else { Ok(()) }
        });
        lived.map_err(|end| format!("before any lie: {end:?}"))?;
        report.lives += 1;
    }
    program.begin_process();
    program.disk().kill();
    program.disk().read(Path::new(PATH)).ok_or_else(|| "the image is gone".to_owned())
}

/// Puts the lie under the drive, looks at all of it, and takes the lie back.
fn try_lie(program: &mut Program<'_>, now: &[u8], lie: &Lie, report: &mut Report) -> Result<(), String> {
    let mut bytes = now.to_owned();
    for (at, other) in &lie.changes {
        bytes[*at..*at + other.len()].copy_from_slice(other);
    }
    put(program, &bytes);
    program.expect_failure();
    let looked = program.look_for_lies();
    program.begin_process();
    program.disk().kill();
    put(program, now);
    match looked {
        Ok(()) => Ok(()),
        Err(End::Wrong(what)) => Err(what),
        Err(End::Failed(_) | End::Killed) => {
            report.told += 1;
            Ok(())
        }
    }
}

fn put(program: &Program<'_>, bytes: &[u8]) {
    program.disk().put(Path::new(PATH), bytes.len() as u64, [(0, bytes)]);
}

/// Other bytes at some places.
struct Lie {
    words: String,
    changes: Vec<(usize, Vec<u8>)>,
}

/// Where an image has what is lied about.
struct Places {
    geometry: Geometry,
    /// The pages that are programmed.
    programmed: Vec<PageAddress>,
    table_offset: u64,
    pages_offset: u64,
    page_bytes: u64,
}

impl Places {
    fn of(program: &Program<'_>, now: &[u8]) -> Result<Places, String> {
        let options = OpenOptions { sync: false, read_only: true, cache_bytes: 0 };
        let opened = ImageBacking::open_in(&program.disk().files(), Path::new(PATH), options);
        let (image, _) = opened.map_err(|error| error.to_string())?;
        let geometry = *image.geometry();
        let is_programmed = |page: &PageAddress| {
            let (block, row) = geometry.block_of(geometry.unit_of(*page));
            row < image.block(block).units_programmed
        };
        let programmed = (0..geometry.pages() as u32).map(PageAddress).filter(is_programmed).collect();
        let pages_offset = image.offset_of(PageAddress(0));
        let page_bytes = image.offset_of(PageAddress(1)) - pages_offset;
        let table_offset = now[TABLE_OFFSET_AT..TABLE_OFFSET_AT + 8].try_into().map_or(0, u64::from_le_bytes);
        Ok(Places { geometry, programmed, table_offset, pages_offset, page_bytes })
    }

    fn page(&self, page: PageAddress) -> Range<usize> {
        let start = (self.pages_offset + u64::from(page.0) * self.page_bytes) as usize;
        start..start + self.page_bytes as usize
    }

    /// What there is of a superblock: the entries of its blocks, and their pages.
    fn superblock(&self, superblock: SuperblockId) -> Vec<Range<usize>> {
        let blocks = || self.geometry.dies_of(superblock).map(move |die| BlockAddress { superblock, die });
        let entry = |block: BlockAddress| {
            let start = (self.table_offset + self.geometry.block_index(block) as u64 * ENTRY_BYTES) as usize;
            start..start + ENTRY_BYTES as usize
        };
        let pages = blocks().flat_map(|block| self.geometry.pages_of(block)).map(|page| self.page(page));
        blocks().map(entry).chain(pages).collect()
    }

    /// Two pages in each other's places, or what was written anew as it once was: a page, or a superblock.
    fn lie(&self, before: &[u8], now: &[u8], random: &mut Random) -> Lie {
        let is_older = |range: &Range<usize>| {
            before[range.clone()] != now[range.clone()] && before[range.clone()].iter().any(|&byte| byte > 0)
        };
        let back = |ranges: Vec<Range<usize>>| ranges.into_iter().map(|range| (range.start, before[range].to_owned()));
        match random.below(3) {
            0 => {
                let pages: Vec<PageAddress> =
                    self.programmed.iter().filter(|page| is_older(&self.page(**page))).copied().collect();
                if let Some(&page) = pick(&pages, random) {
                    let changes = back(vec![self.page(page)]).collect();
                    return Lie { words: format!("page {} is as it once was", page.0), changes };
                }
            }
            1 => {
                let superblocks = (1..self.geometry.superblocks()).map(SuperblockId);
                let has_older = |superblock: &SuperblockId| is_older(&self.superblock(*superblock)[0]);
                let superblocks: Vec<SuperblockId> = superblocks.filter(has_older).collect();
                if let Some(&superblock) = pick(&superblocks, random) {
                    let changes = back(self.superblock(superblock)).collect();
                    return Lie { words: format!("superblock {} is as it once was", superblock.0), changes };
                }
            }
            _ => {}
        }
        let [one, other] = [(); 2].map(|()| pick(&self.programmed, random).copied().unwrap_or(PageAddress(0)));
        let (first, second) = (self.page(one), self.page(other));
        let changes = vec![(first.start, now[second.clone()].to_owned()), (second.start, now[first].to_owned())];
        Lie { words: format!("pages {} and {} are swapped", one.0, other.0), changes }
    }
}

fn pick<'a, T>(all: &'a [T], random: &mut Random) -> Option<&'a T> {
    all.get(random.below(all.len().max(1) as u64) as usize)
}
