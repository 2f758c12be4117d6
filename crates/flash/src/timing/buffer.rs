//! The write buffer: a bounded number of units whose data waits in DRAM for their program to end.

use kvssd_types::Nanos;

/// Slots of one unit each. The log takes a slot when it begins to gather a unit; the slot is given back when the program of the unit
/// ends. If none is free, the log waits (back-pressure).
#[derive(Clone, Debug)]
pub struct WriteBuffer {
    /// For each slot that nobody holds, since when it is free; sorted.
    free_from: Vec<Nanos>,
    last_release: Nanos,
}

impl WriteBuffer {
    /// A buffer of `slots` units.
    #[must_use]
    pub fn new(slots: u32) -> Self {
        WriteBuffer { free_from: vec![Nanos::ZERO; slots as usize], last_release: Nanos::ZERO }
    }

    /// Takes a slot. Returns since when it is free, which may be before `at`. Of the slots that are free by then it takes the one freed
    /// last: a caller with an earlier clock may still come and need the others.
    ///
    /// # Panics
    /// When all slots are held by units that are not being programmed: more streams than slots.
    pub fn take(&mut self, at: Nanos) -> Nanos {
        assert!(!self.free_from.is_empty(), "the write buffer has a slot for every stream and one more");
        let free = self.free_from.partition_point(|&from| from <= at);
        self.free_from.remove(free.saturating_sub(1))
    }

    /// For a caller that holds a slot free from `held` on but needs one at an earlier time `at`: exchanges it for one that is free earlier, if there
    /// is one. Returns since when the slot that the caller now holds is free.
    #[inline]
    pub fn exchange(&mut self, held: Nanos, at: Nanos) -> Nanos {
        if held <= at {
            return held;
        }
        self.put(held);
        self.take(at)
    }

    /// Gives a slot back at `at`, when the program of its unit ends.
    pub fn give_back(&mut self, at: Nanos) {
        self.put(at);
        self.last_release = self.last_release.max(at);
    }

    fn put(&mut self, from: Nanos) {
        let index = self.free_from.partition_point(|&other| other <= from);
        self.free_from.insert(index, from);
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
        assert_eq!(buffer.take(Nanos(1)), Nanos(0));
        buffer.give_back(Nanos(90));
        buffer.give_back(Nanos(70));
        assert_eq!(buffer.take(Nanos(2)), Nanos(70));
        assert_eq!(buffer.take(Nanos(95)), Nanos(90));
        assert_eq!(buffer.drained(), Nanos(90));
    }

    #[test]
    fn who_comes_earlier_than_the_holder_of_a_slot_gets_one_that_is_free_by_then() {
        let mut buffer = WriteBuffer::new(2);
        assert_eq!((buffer.take(Nanos(0)), buffer.take(Nanos(0))), (Nanos(0), Nanos(0)));
        buffer.give_back(Nanos(30));
        buffer.give_back(Nanos(80));
        assert_eq!(buffer.take(Nanos(100)), Nanos(80));
        assert_eq!(buffer.exchange(Nanos(80), Nanos(50)), Nanos(30));
        assert_eq!(buffer.exchange(Nanos(30), Nanos(10)), Nanos(30));
        assert_eq!(buffer.take(Nanos(0)), Nanos(80));
    }

    #[test]
    fn no_slot_is_given_out_before_it_is_free() {
        let mut buffer = WriteBuffer::new(2);
        assert_eq!((buffer.take(Nanos(0)), buffer.take(Nanos(0))), (Nanos(0), Nanos(0)));
        buffer.give_back(Nanos(90));
        buffer.give_back(Nanos(70));
        assert_eq!(buffer.take(Nanos(95)), Nanos(90));
        assert_eq!(buffer.take(Nanos(10)), Nanos(70));
    }
}
