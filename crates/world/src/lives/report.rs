//! What the lives of a drive have shown.

use serde::Serialize;
use std::ops::AddAssign;

/// What was seen. Of what a scenario has not, there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Drives that came to their end.
    pub drives: u64,
    /// Processes that lived.
    pub lives: u64,
    /// Processes that were killed, and those within an open or a close.
    pub kills: u64,
    /// Kills before the store was open.
    pub kills_in_open: u64,
    /// Kills in an orderly close.
    pub kills_in_close: u64,
    /// Machines that stopped.
    pub power_losses: u64,
    /// Calls of the disk that failed, or took a part.
    pub failures: u64,
    /// Stores that were closed in order.
    pub closes: u64,
    /// Drives that were checked as a whole.
    pub checks: u64,
    /// Steps that were taken: calls of a store.
    pub acts: u64,
    /// Changes of which it is not known whether they were made.
    pub doubts: u64,
    /// Changes that came again and had been made.
    pub recognized: u64,
    /// Opens that were refused, because another process had the image.
    pub refusals: u64,
    /// Images that were not opened any more, values that were not read, or calls that were not answered, because the disk had failed, lost or
    /// misplaced something.
    pub told: u64,
    /// Changes in doubt because the drive had forgotten their client for others.
    pub forgotten: u64,
    /// Lives in which garbage collection moved pairs.
    pub collections: u64,
    /// Transactions that were committed.
    pub commits: u64,
    /// Transactions that were aborted.
    pub aborts: u64,
    /// Calls of the disk.
    pub calls: u64,
    /// The traces of the worlds, added up: the same seeds give the same.
    pub trace: u64,
}

impl AddAssign for Report {
    fn add_assign(&mut self, other: Report) {
        self.drives += other.drives;
        self.lives += other.lives;
        self.kills += other.kills;
        self.kills_in_open += other.kills_in_open;
        self.kills_in_close += other.kills_in_close;
        self.power_losses += other.power_losses;
        self.failures += other.failures;
        self.closes += other.closes;
        self.checks += other.checks;
        self.acts += other.acts;
        self.doubts += other.doubts;
        self.recognized += other.recognized;
        self.refusals += other.refusals;
        self.told += other.told;
        self.forgotten += other.forgotten;
        self.collections += other.collections;
        self.commits += other.commits;
        self.aborts += other.aborts;
        self.calls += other.calls;
        self.trace = self.trace.wrapping_add(other.trace);
    }
}

/// Something that was lost, invented or not told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The drive.
    pub seed: u64,
    /// The life in which it showed.
    pub life: u64,
    /// What it was.
    pub what: String,
    /// The last steps before it.
    pub history: Vec<String>,
}
