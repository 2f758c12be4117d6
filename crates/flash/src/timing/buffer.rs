//! The write buffer: a bounded number of units whose data waits in DRAM for their program to end.

use kvssd_types::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slots of one unit each. A slot is taken when the log begins to gather a unit and given back when its program has ended;
/// who finds none free waits (back-pressure).
#[derive(Clone, Debug)]
pub struct WriteBuffer {
    slots_free: u32,
    releases: BinaryHeap<Reverse<Nanos>>,
    last_release: Nanos,
}

impl WriteBuffer {
    /// A buffer of `slots` units.
    #[must_use]
    pub fn new(slots: u32) -> Self {
        WriteBuffer { slots_free: slots, releases: BinaryHeap::new(), last_release: Nanos::ZERO }
    }

    /// Takes a slot; gives the moment from which it is the asker's, `at` or later.
    ///
    /// # Panics
    /// When all slots are held by units that are not being programmed: more streams than slots.
    pub fn take(&mut self, at: Nanos) -> Nanos {
        while self.releases.peek().is_some_and(|release| release.0 <= at) {
            self.releases.pop();
            self.slots_free += 1;
        }
        if self.slots_free > 0 {
            self.slots_free -= 1;
            return at;
        }
        self.releases.pop().expect("the write buffer has a slot for every stream and one more").0
    }

    /// Gives a slot back at `at`, when the program of its unit ends.
    pub fn give_back(&mut self, at: Nanos) {
        self.releases.push(Reverse(at));
        self.last_release = self.last_release.max(at);
    }

    /// When the last program that was begun so far ends.
    #[must_use]
    pub fn drained(&self) -> Nanos {
        self.last_release
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_no_slot_waits_for_the_first_release() {
        let mut buffer = WriteBuffer::new(2);
        assert_eq!(buffer.take(Nanos(0)), Nanos(0));
        assert_eq!(buffer.take(Nanos(1)), Nanos(1));
        buffer.give_back(Nanos(90));
        buffer.give_back(Nanos(70));
        assert_eq!(buffer.take(Nanos(2)), Nanos(70));
        assert_eq!(buffer.take(Nanos(95)), Nanos(95));
        assert_eq!(buffer.drained(), Nanos(90));
    }
}
