//! The write buffer: a bounded number of units whose data waits in DRAM for their program to end.

use kvssd_types::Nanos;

/// Slots of one unit each. A slot is taken when the log begins to gather a unit and given back when its program has ended;
/// who finds none free waits (back-pressure).
#[derive(Clone, Debug)]
pub struct WriteBuffer {
    /// From when on each slot that nobody holds is free, in order.
    free_from: Vec<Nanos>,
    last_release: Nanos,
}

impl WriteBuffer {
    /// A buffer of `slots` units.
    #[must_use]
    pub fn new(slots: u32) -> Self {
        WriteBuffer { free_from: vec![Nanos::ZERO; slots as usize], last_release: Nanos::ZERO }
    }

    /// Takes a slot; gives the moment from which it is the asker's, `at` or later. Of the slots that are free by then it takes
    /// the one that became so last: an asker with an earlier clock may still come and need the others.
    ///
    /// # Panics
    /// When all slots are held by units that are not being programmed: more streams than slots.
    pub fn take(&mut self, at: Nanos) -> Nanos {
        assert!(!self.free_from.is_empty(), "the write buffer has a slot for every stream and one more");
        let free = self.free_from.partition_point(|&from| from <= at);
        self.free_from.remove(free.saturating_sub(1)).max(at)
    }

    /// Gives a slot back at `at`, when the program of its unit ends.
    pub fn give_back(&mut self, at: Nanos) {
        let index = self.free_from.partition_point(|&from| from <= at);
        self.free_from.insert(index, at);
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

    #[test]
    fn no_slot_is_given_out_before_it_is_free() {
        let mut buffer = WriteBuffer::new(2);
        assert_eq!((buffer.take(Nanos(0)), buffer.take(Nanos(0))), (Nanos(0), Nanos(0)));
        buffer.give_back(Nanos(90));
        buffer.give_back(Nanos(70));
        assert_eq!(buffer.take(Nanos(95)), Nanos(95));
        assert_eq!(buffer.take(Nanos(10)), Nanos(70));
    }
}
