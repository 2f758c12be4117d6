//! Which superblock is collected: pure choices over the table of superblocks. The collector acts.

mod erase_counts;
mod greedy;

pub use self::erase_counts::EraseCounts;
pub use self::greedy::{MAP_KEPT_WEIGHT, greedy};
pub(crate) use self::greedy::{can_be_collected, gives_grains};

/// How garbage collection chooses a victim, and how streams choose the next superblock to write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimPolicy {
    /// The victim that frees the most (`greedy`), and the superblock that has been free for longest.
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
