//! Processes of a world.

/// The number of a process: what is killed together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process(pub u32);

impl Process {
    /// That of the main actor.
    pub const MAIN: Process = Process(0);
}
