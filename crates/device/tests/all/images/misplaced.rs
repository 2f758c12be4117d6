//! Pages in wrong places, and pages that are as they were once: each key that they held has its value, or its read is an error, or the
//! drive cannot be mounted and says so. Never another value, and never that there is no such key.

use super::used::{Kind, Look, MOMENTS, Told, Used};
use kvssd_designs::DESIGNS;
use kvssd_flash::{BlockAddress, PageAddress, SuperblockId};
use kvssd_types::Random;
use std::collections::BTreeMap;

/// What is made stale or swapped in turn.
const TRIED: [Kind; 4] = [Kind::Pairs, Kind::Index, Kind::Journal, Kind::Checkpoint];

/// Of a kind of page: trials, those of which something was told, and what.
type Counts = BTreeMap<(&'static str, Kind), (u64, u64, Told)>;

/// A page, and the moment at which it held something else.
type Older = (PageAddress, usize);

/// Those of a kind that are tried, with what is chosen from when there is none of it.
fn of_kind<T: Copy>(all: &[T], kind: Kind, kind_of: impl Fn(&T) -> Kind) -> Vec<T> {
    let found: Vec<T> = all.iter().filter(|one| kind_of(one) == kind).copied().collect();
    if found.is_empty() { all.to_vec() } else { found }
}

fn note(counts: &mut Counts, what: &'static str, kind: Kind, told: Told) {
    let (trials, seen, sum) = counts.entry((what, kind)).or_default();
    (*trials, *seen) = (*trials + 1, *seen + u64::from(told.is_seen()));
    *sum += told;
}

/// Swaps so many pairs of pages, of which the drive needs one at the least, and puts back so many that it needs to what they once were.
fn misplace_in(used: &Used, trials: u64, random: &mut Random, counts: &mut Counts) {
    let older: Vec<Older> = (0..MOMENTS.len())
        .flat_map(|moment| used.needed.iter().map(move |page| (*page, moment)))
        .filter(|(page, moment)| used.was_another(*page, *moment))
        .collect();
    let mut pick = |count: usize| random.below(count as u64) as usize;
    for trial in 0..trials {
        let kind = TRIED[(trial % 4) as usize];
        let look: Look = if trial % 9 == 8 { Used::use_and_read_all } else { Used::read_all };
        let needed = of_kind(&used.needed, kind, |page| used.kind(*page));
        let one = needed[pick(needed.len())];
        let other = loop {
            let other = used.pages[pick(used.pages.len())];
            if used.now[used.range(other)] != used.now[used.range(one)] {
                break other;
            }
        };
        let (here, there) = (used.range(one), used.range(other));
        let swapped = [(here.start, &used.now[there.clone()]), (there.start, &used.now[here])];
        note(counts, "swapped", used.kind(one), used.with(&swapped, look));

        let stale = of_kind(&older, kind, |(page, _)| used.kind(*page));
        let (page, moment) = stale[pick(stale.len())];
        let old = used.range(page);
        note(counts, "stale", used.kind(page), used.with(&[(old.start, &used.before[moment][old])], look));
    }
}

/// So many of both, of each design and each end of its life.
fn misplace(trials: u64, seed: u64) {
    for design in DESIGNS {
        let (mut counts, mut random) = (Counts::new(), Random::new(seed));
        for is_closed in [false, true] {
            let used = Used::new(design.name, is_closed);
            misplace_in(&used, trials, &mut random, &mut counts);
        }
        for ((what, kind), count) in &counts {
            println!("{}, {what}, {kind:?}: trials, those that were seen, what was told: {count:?}", design.name);
        }
        for (what, kind) in ["swapped", "stale"].into_iter().flat_map(|what| TRIED.map(|kind| (what, kind))) {
            let (trials, seen, _) = counts.get(&(what, kind)).copied().unwrap_or_default();
            // Background work reads as well: the notes for iterators of `multilevel`, which no key is found by.
            assert!(trials > 0 && 2 * seen >= trials, "{}: {kind:?} {what}: {seen} of {trials}", design.name);
        }
        let (trials, seen) = counts.values().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
        assert!(seen * 10 >= trials * 9, "{}: {seen} of {trials}", design.name);
    }
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
        let before = &used.before[0];
        for past in [Past::Superblock, Past::Block, Past::Entry] {
            let (mut told, mut changed) = (Told::default(), 0);
            for superblock in (1..used.geometry.superblocks()).map(SuperblockId) {
                let mut blocks: Vec<_> =
                    used.geometry.dies_of(superblock).map(|die| BlockAddress { superblock, die }).collect();
                if !matches!(past, Past::Superblock) {
                    blocks = vec![blocks[superblock.0 as usize % blocks.len()]];
                }
                let mut ranges: Vec<_> = blocks.iter().map(|block| used.entry(*block)).collect();
                if ranges.iter().all(|entry| before[entry.clone()] == used.now[entry.clone()]) {
                    continue;
                }
                if !matches!(past, Past::Entry) {
                    let pages = blocks.iter().flat_map(|block| used.geometry.pages_of(*block));
                    ranges.extend(pages.map(|page| used.range(page)));
                }
                changed += 1;
                if changed % stride == 0 {
                    let old: Vec<_> = ranges.into_iter().map(|range| (range.start, &before[range])).collect();
                    let look: Look = if changed / stride % 8 == 1 { Used::use_and_read_all } else { Used::read_all };
                    told += used.with(&old, look);
                }
            }
            println!("{name}, closed {is_closed}: {} times {past:?}, {told:?}", changed / stride);
            assert!(changed > 10 && told.refused > 0, "{name}: {past:?}");
        }
    }
}

#[test]
#[ignore = "minutes; every block and superblock of all designs"]
fn every_block_that_went_back_in_time_is_told() {
    go_back(1);
}

mod campaigns {
    use super::{go_back, misplace};

    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn a_misplaced_or_stale_page_is_told_and_never_served() {
        misplace(16, 1);
    }

    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn a_block_that_went_back_in_time_is_told() {
        go_back(9);
    }
}
