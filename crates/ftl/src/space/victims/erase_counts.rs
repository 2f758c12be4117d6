//! Which superblock is collected, and which is written next, where erases are to be spread (KAML, section IV-E).
//!
//! ```text
//!   closed   | worn, little lives | worn, much lives | fresh, little lives | fresh, all lives |
//!                                                      ^ collected first     ^ collected in turn with the others
//!   free     the least worn is opened next                                     when the spread is beyond its bound
//! ```
//!
//! The paper orders blocks "by their erase count and the amount of valid data" and takes those with little of both.
//! Here an erase more than the least worn counts as much as a part of a superblock of living data, so that a spread of
//! the bound outweighs all of it. Data that never dies makes a superblock that is never chosen for what it gives: when
//! the spread is beyond the bound, the least worn is collected though it gives nothing, its data comes to lie in one
//! that is worn more, and it is written with what comes.

use crate::layout::packing::Packing;
use crate::space::superblock::{State, Superblock};
use crate::space::victims::greedy::{can_be_collected, candidates, gives_grains, kept_grains};
use kvssd_flash::SuperblockId;

/// Erase counts that stay close to one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EraseCounts {
    /// The spread between the least and the most worn superblock from which on data that does not die is moved.
    pub erase_spread_max: u32,
}

impl EraseCounts {
    /// The victim among those that `can` be it, `erases` being those of each superblock. None when none gives more than
    /// a page.
    #[must_use]
    pub fn victim(
        &self,
        superblocks: &[Superblock],
        erases: &[u32],
        packing: &Packing,
        can: impl Fn(SuperblockId, &Superblock) -> bool,
    ) -> Option<SuperblockId> {
        let least = *erases.iter().min()?;
        let rank = |(id, superblock): &(SuperblockId, &Superblock)| {
            let wear = u64::from(erases[id.0 as usize] - least) * packing.grains_per_superblock;
            kept_grains(superblock, packing) * u64::from(self.erase_spread_max) + wear
        };
        let gives = |(_, superblock): &(SuperblockId, &Superblock)| gives_grains(superblock, packing).is_some();
        candidates(superblocks, can).filter(gives).min_by_key(rank).map(|(id, _)| id)
    }

    /// What is collected for its erases alone, though it gives nothing: the least worn, when the spread is beyond its
    /// bound.
    #[must_use]
    pub fn to_level(&self, superblocks: &[Superblock], erases: &[u32], packing: &Packing) -> Option<SuperblockId> {
        let erases_of = |id: SuperblockId| erases[id.0 as usize];
        let collectable = |_: SuperblockId, superblock: &Superblock| can_be_collected(superblock, false);
        let (coldest, _) = candidates(superblocks, collectable)
            .min_by_key(|(id, superblock)| (erases_of(*id), kept_grains(superblock, packing)))?;
        let worn = superblocks.iter().zip(erases).filter(|(superblock, _)| superblock.state != State::System);
        let most = worn.map(|(_, &erases)| erases).max().unwrap_or_default();
        (most - erases_of(coldest) > self.erase_spread_max).then_some(coldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::oob::Stream;
    use crate::layout::packing::RecordLayout;

    const POLICY: EraseCounts = EraseCounts { erase_spread_max: 4 };

    /// The victim among closed superblocks with these living grains, of ten, and these erases.
    fn victim(superblocks: &[(u64, u32)], may_level: bool) -> Option<u32> {
        let packing =
            Packing { grain_bytes: 64, grains_per_page: 1, grains_per_superblock: 10, layout: RecordLayout::Grains };
        let closed = |&(live_grains, _): &(u64, u32)| Superblock {
            live_grains,
            appended_grains: 10,
            ..Superblock::new(State::Closed, Stream::User)
        };
        let all: Vec<Superblock> = superblocks.iter().map(closed).collect();
        let erases: Vec<u32> = superblocks.iter().map(|&(_, erases)| erases).collect();
        let leveled = POLICY.to_level(&all, &erases, &packing).filter(|_| may_level);
        leveled.or_else(|| POLICY.victim(&all, &erases, &packing, |_, _| true)).map(|victim| victim.0)
    }

    #[test]
    fn little_life_and_few_erases_are_chosen() {
        assert_eq!(victim(&[(5, 3), (2, 3), (6, 3)], true), Some(1));
        assert_eq!(victim(&[(5, 4), (5, 3), (5, 6)], true), Some(1));
        // Two erases are half of the bound, and count as half of a superblock.
        assert_eq!(victim(&[(1, 2), (5, 0)], true), Some(1));
        assert_eq!(victim(&[(0, 1), (5, 0)], true), Some(0));
        assert_eq!(victim(&[(10, 3), (10, 0)], true), None);
    }

    #[test]
    fn data_that_does_not_die_is_moved_when_the_spread_is_beyond_its_bound() {
        assert_eq!(victim(&[(0, 4), (10, 0), (10, 0)], true), Some(0));
        assert_eq!(victim(&[(0, 5), (10, 0), (10, 0)], true), Some(1));
        assert_eq!(victim(&[(0, 5), (10, 0), (9, 0)], true), Some(2));
        assert_eq!(victim(&[(0, 5), (10, 0), (9, 0)], false), Some(2), "which gives a page");
        assert_eq!(
            victim(&[(0, 5), (10, 0), (10, 0)], false),
            Some(0),
            "what gives nothing is not collected twice in a row"
        );
    }
}
