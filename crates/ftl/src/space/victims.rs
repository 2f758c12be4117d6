//! Which superblock is collected: pure choices over the table of superblocks. The collector acts.

mod erase_counts;
mod greedy;

pub use self::erase_counts::EraseCounts;
pub use self::greedy::{MAP_KEPT_WEIGHT, greedy};
pub(crate) use self::greedy::{can_be_collected, gives_grains};

/// How garbage collection chooses a victim, and streams what they write to next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimPolicy {
    /// What gives the most (`greedy`), and what has been free for longest.
    Greedy,
    /// By erase counts as well.
    EraseCounts(EraseCounts),
}

impl VictimPolicy {
    /// The name in descriptions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            VictimPolicy::Greedy => "greedy",
            VictimPolicy::EraseCounts(_) => "erase-counts",
        }
    }
}
