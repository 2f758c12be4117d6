//! The victim that gives the most, and what can be one.
//!
//! ```text
//!   superblock   | appended and alive | appended and dead | padding |
//!                 <---- kept --------> <----- given -----> <- kept ->      without life nothing is kept
//! ```

use crate::layout::oob::Stream;
use crate::layout::packing::Packing;
use crate::space::superblock::{State, Superblock};
use kvssd_flash::SuperblockId;

/// How often a grain of the map counts that a victim keeps. The index writes its sections again and again, each time
/// somewhere else: what of them is moved dies soon after, where it was or where it is. An estimate.
pub const MAP_KEPT_WEIGHT: u64 = 8;

/// The best victim of those that `can` be collected: the closed superblock with the most grains that neither live nor
/// are padding, where what a superblock of the map keeps counts `map_weight` times. None when none gives more than a
/// page.
#[must_use]
pub fn greedy(
    superblocks: &[Superblock],
    packing: &Packing,
    map_weight: u64,
    can: impl Fn(SuperblockId, &Superblock) -> bool,
) -> Option<SuperblockId> {
    let given = candidates(superblocks, can).filter(|(_, best)| gives_grains(best, packing).is_some());
    // Of several that keep the same, the first.
    let weighed = |best: &Superblock| {
        let weight = if best.stream == Stream::Map { map_weight } else { 1 };
        weight * (packing.grains_per_superblock - gives_grains(best, packing).unwrap_or_default())
    };
    given.min_by_key(|(_, best)| weighed(best)).map(|(id, _)| id)
}

/// The superblocks that `can` be a victim.
pub(crate) fn candidates(
    superblocks: &[Superblock],
    can: impl Fn(SuperblockId, &Superblock) -> bool,
) -> impl Iterator<Item = (SuperblockId, &Superblock)> {
    let numbered = superblocks.iter().enumerate().map(|(number, superblock)| (SuperblockId(number as u32), superblock));
    numbered.filter(move |&(id, superblock)| can(id, superblock))
}

/// Whether a superblock can be a victim.
pub(crate) fn can_be_collected(superblock: &Superblock, map_only: bool) -> bool {
    superblock.state == State::Closed
        && match superblock.stream {
            Stream::Map => true,
            Stream::User | Stream::Gc => !map_only,
            Stream::Journal => false,
        }
}

/// The grains of a superblock that collecting it does not free: what lives, and what was padding.
pub(crate) fn kept_grains(superblock: &Superblock, packing: &Packing) -> u64 {
    packing.grains_per_superblock - superblock.appended_grains + superblock.live_grains
}

/// The grains that collecting a superblock frees; none when it is not worth it.
pub(crate) fn gives_grains(superblock: &Superblock, packing: &Packing) -> Option<u64> {
    // A superblock in which nothing lives is free at once, however much of it is padding.
    let kept = if superblock.live_grains == 0 { 0 } else { kept_grains(superblock, packing) };
    let gives = packing.grains_per_superblock - kept;
    (gives >= u64::from(packing.grains_per_page)).then_some(gives)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_takes_the_closed_superblock_with_the_fewest_living_grains() {
        let packing = Packing {
            grain_bytes: 64,
            grains_per_page: 1,
            grains_per_superblock: 10,
            layout: crate::layout::packing::RecordLayout::Grains,
        };
        let all = [
            (State::System, Stream::User, 0),
            (State::Free, Stream::User, 0),
            (State::Open, Stream::Map, 1),
            (State::Victim, Stream::Map, 2),
            (State::Closed, Stream::Journal, 3),
            (State::Closed, Stream::User, 5),
            (State::Closed, Stream::Map, 6),
        ]
        .map(|(state, stream, live_grains)| Superblock {
            live_grains,
            appended_grains: 10,
            ..Superblock::new(state, stream)
        });
        let best = |all: &[Superblock], map_only| {
            greedy(all, &packing, MAP_KEPT_WEIGHT, |_, one| can_be_collected(one, map_only))
        };
        assert_eq!(best(&all, false), Some(SuperblockId(5)));
        assert_eq!(best(&all, true), Some(SuperblockId(6)));
        assert_eq!(best(&all[..5], false), None);
        // What the map keeps dies by itself.
        let mut all = all;
        all[6].live_grains = 1;
        assert_eq!(best(&all, false), Some(SuperblockId(5)));
        all[6].live_grains = 0;
        assert_eq!(best(&all, false), Some(SuperblockId(6)));
    }
}
