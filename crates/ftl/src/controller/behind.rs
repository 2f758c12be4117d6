//! Stores that were answered before their keys were looked up.
//!
//! ```text
//!   key, value -> write buffer -> answer
//!             \-> look-up: sections, the record before it ...  -> bound         at most so many at a time, in DRAM
//! ```
//!
//! As with all commands, state changes at once and carries the times of the look-up: a section that was read for it is there for others
//! when the read is done. A store that finds no room here is answered only when its key is bound.

use crate::dram::DramUse;
use kvssd_types::{KEY_BYTES_MAX, Nanos};

/// Bytes of DRAM for a store whose key is being looked up: its place, the key's hash, and the longest key, since the write buffer may
/// have let go of the record before.
const ENTRY_BYTES: u64 = 16 + KEY_BYTES_MAX as u64;

/// When the stores in flight end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Behind {
    /// The most stores at a time; 0 if a store is answered only when its key is bound.
    stores_max: usize,
    /// Sorted.
    ends: Vec<Nanos>,
}

impl Behind {
    pub(crate) fn new(stores_max: u32) -> Self {
        Behind { stores_max: stores_max as usize, ends: Vec::new() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.stores_max > 0
    }

    /// Whether there is room for so many stores more at `at`.
    pub(crate) fn has_room(&self, stores: usize, at: Nanos) -> bool {
        let under_way = self.ends.len() - self.ends.partition_point(|&end| end <= at);
        under_way + stores <= self.stores_max
    }

    /// Adds stores whose keys are bound at `end`, and drops those that ended by `now`.
    pub(crate) fn add(&mut self, stores: usize, end: Nanos, now: Nanos) {
        let done = self.ends.partition_point(|&end| end <= now);
        self.ends.drain(..done);
        let at = self.ends.partition_point(|&other| other <= end);
        self.ends.splice(at..at, std::iter::repeat_n(end, stores));
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
    fn there_is_room_until_as_many_are_under_way_as_may_be() {
        let mut behind = Behind::new(4);
        behind.add(1, Nanos(30), Nanos(0));
        behind.add(2, Nanos(10), Nanos(0));
        assert_eq!([1, 2].map(|stores| behind.has_room(stores, Nanos(5))), [true, false]);
        assert_eq!([3, 4].map(|stores| behind.has_room(stores, Nanos(10))), [true, false]);
        assert!(behind.has_room(4, Nanos(30)) && !behind.has_room(5, Nanos(30)), "more than there can be never have");
        assert_eq!(behind.done_at(), Nanos(30));
        behind.add(1, Nanos(40), Nanos(20));
        assert_eq!(behind.ends, [30, 40].map(Nanos));
        assert!(!Behind::default().is_on());
    }
}
