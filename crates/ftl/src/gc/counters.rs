//! What is counted of garbage collection.

/// What garbage collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GcCounters {
    /// Superblocks that were erased.
    pub superblocks: u64,
    /// Superblocks that it began with beside another.
    pub victims_beside: u64,
    /// Pairs that were moved.
    pub pairs_moved: u64,
    /// Pages that were not read because nothing in them lived.
    pub pages_skipped: u64,
    /// How long it worked, in nanoseconds.
    pub busy_ns: u64,
    /// How long commands waited for it, in nanoseconds, all together.
    pub stall_ns: u64,
}
