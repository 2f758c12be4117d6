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

use crate::parameters::Parameters;
use crate::space::victims::{Candidate, VictimPolicy};

/// Erase counts that stay close to one another.
#[derive(Clone, Copy, Debug)]
pub struct EraseCounts {
    /// The spread between the least and the most worn superblock from which on data that does not die is moved.
    pub erase_spread_max: u32,
}

impl VictimPolicy for EraseCounts {
    fn name(&self) -> &'static str {
        "erase-counts"
    }

    fn parameters(&mut self) -> Parameters<'_> {
        vec![("erase_spread_max", &mut self.erase_spread_max)]
    }

    fn check(&self) -> Result<(), String> {
        let is_possible = self.erase_spread_max > 0;
        is_possible.then_some(()).ok_or_else(|| "design.erase_spread_max must be at least 1".to_owned())
    }

    fn cost(&self, candidate: &Candidate) -> u64 {
        let kept_grains = candidate.live_grains + candidate.padding_grains;
        kept_grains * u64::from(self.erase_spread_max) + u64::from(candidate.wear) * candidate.grains
    }

    fn erase_spread_max(&self) -> Option<u32> {
        Some(self.erase_spread_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::victims::candidate::tests;

    fn victim(superblocks: &[(u64, u32)], may_level: bool) -> Option<u32> {
        tests::victim(&EraseCounts { erase_spread_max: 4 }, superblocks, may_level)
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
