//! Bugs that are built in on purpose, to prove that a test would find them.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// The journal is not told where garbage collection moved pairs.
    LostRelocation,
    /// The write buffer's memory says that the journal had come less far than it had.
    StaleSequence,
    /// A mount takes what it finds free for erased.
    ReusedBlock,
    /// The journal is not told where a batch begins.
    TornBatch,
    /// A mount takes a share of a batch over several drives for made, whoever has decided it. No drive by itself has such.
    UndecidedBatch,
}

impl PlantedBug {
    /// All that a drive by itself can have.
    pub const ALL: [PlantedBug; 4] =
        [PlantedBug::LostRelocation, PlantedBug::StaleSequence, PlantedBug::ReusedBlock, PlantedBug::TornBatch];
}
