//! The victim whose room is worth what moving it costs (Rosenblum and Ousterhout, 1992, section 3.6).
//!
//! ```text
//!   benefit / cost = (1 - u) * age / (1 + u)      u: the share that is kept; age: since it was full
//! ```
//!
//! What has been cold for long is collected while it still holds much, for its room stays free for long. What is hot is left alone: it
//! will be emptier soon.

use crate::space::victims::{Candidate, VictimPolicy};

/// The bits of a cost behind its point.
const FRACTION_BITS: u32 = 32;

/// Weighs what a superblock gives, and how long it has been full, against what it keeps.
#[derive(Clone, Copy, Debug)]
pub struct CostBenefit;

impl VictimPolicy for CostBenefit {
    fn name(&self) -> &'static str {
        "cost-benefit"
    }

    fn cost(&self, candidate: &Candidate) -> u64 {
        let kept_grains = candidate.kept_grains();
        if kept_grains == 0 {
            return 0;
        }
        let cost = u128::from(candidate.grains + candidate.kept_weight * kept_grains) << FRACTION_BITS;
        let benefit = u128::from(candidate.given_grains()) * u128::from(candidate.age_pages.max(1));
        u64::try_from(cost / benefit.max(1)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(live_grains: u64, age_pages: u64) -> u64 {
        CostBenefit.cost(&Candidate { grains: 1000, live_grains, kept_weight: 1, age_pages, ..Candidate::default() })
    }

    #[test]
    fn what_has_been_cold_for_long_goes_before_what_is_emptier_and_hot() {
        assert!(cost(500, 100) < cost(501, 100) && cost(500, 101) < cost(500, 100));
        // (1 - 0.75) / 1.75 is a third of (1 - 0.4) / 1.4.
        assert!(cost(750, 301) < cost(400, 100) && cost(750, 299) > cost(400, 100));
        assert!(cost(0, 1) < cost(1, u64::from(u32::MAX)), "what is empty costs nothing");
    }
}
