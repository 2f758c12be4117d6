//! Counts of flash operations by what they were for.

use kvssd_types::named_enum;
use std::ops::{Index, IndexMut};

named_enum! {
    /// What a flash operation was for.
    #[derive(PartialOrd, Ord)]
    pub enum Cause: "cause" {
        /// Pairs that a command reads or writes.
        User = "user",
        /// Pairs that garbage collection moves.
        Gc = "gc",
        /// Index pages that a command reads, and those that its misses evict.
        Index = "index",
        /// Index pages that garbage collection reads, moves, and evicts.
        GcIndex = "gc_index",
        /// Pages with invalid mappings (Plus, section IV-A).
        InvalidMappings = "invalid_mappings",
        /// The journal and its checkpoints, which only a mount reads.
        Journal = "journal",
        /// Pages without anything, written so that a flush can end a unit.
        Padding = "padding",
    }
}

/// A number for each cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerCause([u64; Cause::ALL.len()]);

impl PerCause {
    /// The sum over all causes.
    #[must_use]
    #[inline]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Index<Cause> for PerCause {
    type Output = u64;
    fn index(&self, cause: Cause) -> &u64 {
        &self.0[cause as usize]
    }
}

impl IndexMut<Cause> for PerCause {
    fn index_mut(&mut self, cause: Cause) -> &mut u64 {
        &mut self.0[cause as usize]
    }
}

/// What was done to the flash since the drive was new.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pages read.
    pub reads: PerCause,
    /// Pages that were wanted and still lay in the write buffer: none of these is a read.
    pub buffer_hits: PerCause,
    /// Pages that were wanted while somebody else's read of them was under way: none of these is one more.
    pub shared_reads: PerCause,
    /// Pages programmed.
    pub programs: PerCause,
    /// Blocks erased.
    pub erases: u64,
    /// Pages programmed on each channel.
    pub channel_programs: Vec<u64>,
    /// Pages programmed on each die.
    pub die_programs: Vec<u64>,
}

impl Counters {
    /// What was done since `before` was taken.
    #[must_use]
    pub fn since(&self, before: &Counters) -> Counters {
        let per_cause = |now: &PerCause, then: &PerCause| {
            let mut difference = PerCause::default();
            Cause::ALL.iter().for_each(|&cause| difference[cause] = now[cause] - then[cause]);
            difference
        };
        let each = |now: &[u64], then: &[u64]| now.iter().zip(then).map(|(now, then)| now - then).collect();
        Counters {
            reads: per_cause(&self.reads, &before.reads),
            buffer_hits: per_cause(&self.buffer_hits, &before.buffer_hits),
            shared_reads: per_cause(&self.shared_reads, &before.shared_reads),
            programs: per_cause(&self.programs, &before.programs),
            erases: self.erases - before.erases,
            channel_programs: each(&self.channel_programs, &before.channel_programs),
            die_programs: each(&self.die_programs, &before.die_programs),
        }
    }
}
