//! What an emulator does that no drive would.
//!
//! Figures of papers were measured on emulators. Where one depends on what its emulator does, the testbed can be told to do the
//! same, one thing at a time, and so shows on which of them the figure hangs (docs/TESTBEDS.md).

use serde::{Deserialize, Serialize};

/// The `[emulator]` table of a profile. All is off where a profile says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Emulator {
    /// A die knows the moment from which it is free and nothing else: what is reserved ahead keeps others from the time
    /// before it.
    pub dies_first_come: bool,
    /// A command whose evicted sections fill a program waits for its end.
    pub evictions_wait: bool,
    /// A store whose record fills a program waits for its end.
    pub stores_wait: bool,
    /// More firmware for each record of another key that a retrieve reads, in a fresh pass through the read path.
    pub retry_ns: u64,
    /// DRAM that sections have for themselves, in bytes: nothing else is charged to it. 0 for one budget. Scales with the capacity.
    pub section_dram_bytes: u64,
    /// Who wants what is being read already reads it again.
    pub reads_unshared: bool,
    /// Garbage collection reads the pages of its victims in no time.
    pub victims_unread: bool,
    /// A section that garbage collection alone has changed is not written when it leaves DRAM: the host's memory keeps what it says. No
    /// such drive can be mounted.
    pub moves_dirty_nothing: bool,
    /// Stores and deletes take a signature for its key, and read no record to compare the whole one. It is compared all the same, in no
    /// time: a collision costs nobody his pair.
    pub signatures_trusted: bool,
    /// All threads of a zipfian run of YCSB draw one and the same sequence of keys.
    pub one_sequence: bool,
    /// A zipfian run of YCSB asks most for what was loaded first: ranks of the law over all pairs are their numbers, and nothing is scattered.
    pub first_are_popular: bool,
    /// Inserts of KAML's microbenchmarks go to places of a block drive that were written before, in no order.
    pub inserts_scattered: bool,
}

impl Emulator {
    /// Whether it does what a drive would.
    #[must_use]
    pub fn is_off(&self) -> bool {
        *self == Emulator::default()
    }
}
