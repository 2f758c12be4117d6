//! Bugs that are built in on purpose, to prove that a check of histories would find them.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// With two-phase locking, reads are not locked: updates that rest on them get lost.
    UnlockedRead,
    /// An optimistic transaction commits whatever it has read.
    UncheckedRead,
    /// A snapshot reads what the cache has, however new.
    NewerSnapshot,
}
