//! Stores that were answered before their keys were looked up.
//!
//! ```text
//!   key, value -> write buffer -> answer
//!             \-> look-up: sections, the record before it ...  -> bound         at most so many at a time, in DRAM
//! ```
//!
//! What such a store changes is changed at once, as of all commands, and carries the moments of its look-up: a section that was read
//! for it is there for others when the read is done.

use crate::dram::DramUse;
use kvssd_types::Nanos;

/// Bytes of DRAM for a store whose key is being looked up: its place and the hash of its key. The key is in the write buffer.
const ENTRY_BYTES: u64 = 16;

/// When those end that are under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Behind {
    /// The most at a time; 0 where stores are answered when their keys are bound.
    stores_max: usize,
    /// In order.
    ends: Vec<Nanos>,
}

impl Behind {
    pub(crate) fn new(stores_max: u32) -> Self {
        Behind { stores_max: stores_max as usize, ends: Vec::new() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.stores_max > 0
    }

    /// The moment, from `at` on, at which there is room for so many stores more; for more than there can be, when all others are done.
    pub(crate) fn room_at(&self, stores: usize, at: Nanos) -> Nanos {
        let others_max = self.stores_max.saturating_sub(stores);
        let waits_for = self.ends.len().checked_sub(others_max + 1);
        waits_for.map_or(at, |last| at.max(self.ends[last]))
    }

    /// A store is bound at `end`. No clock lies before `now` any more.
    pub(crate) fn add(&mut self, end: Nanos, now: Nanos) {
        let done = self.ends.partition_point(|&end| end <= now);
        self.ends.drain(..done);
        let at = self.ends.partition_point(|&other| other <= end);
        self.ends.insert(at, end);
    }

    /// When all are done.
    pub(crate) fn done_at(&self) -> Nanos {
        self.ends.last().copied().unwrap_or_default()
    }

    pub(crate) fn dram(&self, dram: &mut DramUse) {
        if self.is_on() {
            dram.add("stores_behind", self.dram_bytes());
        }
    }

    pub(crate) fn dram_bytes(&self) -> u64 {
        self.stores_max as u64 * ENTRY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_finds_no_room_waits_for_the_first_that_ends() {
        let mut behind = Behind::new(3);
        assert_eq!(behind.room_at(1, Nanos(5)), Nanos(5));
        for end in [30, 10, 20] {
            behind.add(Nanos(end), Nanos(0));
        }
        assert_eq!([1, 2, 3, 9].map(|stores| behind.room_at(stores, Nanos(5)).0), [10, 20, 30, 30]);
        assert_eq!([1, 2].map(|stores| behind.room_at(stores, Nanos(15)).0), [15, 20]);
        assert_eq!(behind.done_at(), Nanos(30));
        behind.add(Nanos(40), Nanos(20));
        assert_eq!(behind.ends, [30, 40].map(Nanos));
        assert!(!Behind::default().is_on());
    }
}
