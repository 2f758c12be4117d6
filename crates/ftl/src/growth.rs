//! What is counted of an index's own work.

use kvssd_types::Nanos;

/// Work that let no change in, or no command ([`Growth`](crate::index::Growth)): tables that are all split at once, a
/// MemTable or a local index that is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrowthCounters {
    /// How often it was done to its end.
    pub closures: u64,
    /// How long it took, in nanoseconds, all together, with the garbage collection that made room for it.
    pub closed_ns: u64,
}

impl GrowthCounters {
    /// It took so long, and is done or waits for room.
    pub(crate) fn add(&mut self, took: Nanos, is_done: bool) {
        self.closed_ns += took.0;
        self.closures += u64::from(is_done);
    }
}
