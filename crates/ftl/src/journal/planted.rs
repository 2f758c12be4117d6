//! Bugs that are built in on purpose, to prove that a test would find them.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// The journal is not told where garbage collection moved pairs.
    LostRelocation,
    /// The write buffer's memory names a position of the journal that is too low.
    StaleSequence,
    /// A mount takes free superblocks for erased ones.
    ReusedBlock,
    /// The journal is not told where a batch begins.
    TornBatch,
    /// A mount counts a share of a batch over several drives even if no coordinator has decided it. A single drive has no shares.
    UndecidedBatch,
}

impl PlantedBug {
    /// All that a drive by itself can have.
    pub const ALL: [PlantedBug; 4] =
        [PlantedBug::LostRelocation, PlantedBug::StaleSequence, PlantedBug::ReusedBlock, PlantedBug::TornBatch];
}
