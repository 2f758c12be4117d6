//! The victim that gives the most.

use crate::space::victims::{Candidate, VictimPolicy};

/// Takes the superblock that keeps the least.
#[derive(Clone, Copy, Debug)]
pub struct Greedy;

impl VictimPolicy for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn cost(&self, candidate: &Candidate) -> u64 {
        candidate.kept_weight * candidate.kept_grains()
    }
}
