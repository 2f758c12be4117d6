//! The time of a drive's caches: the age of pairs, and the order of stores.

use kvssd_types::Nanos;

/// The latest time that is believed; a later one counts as this. Nanoseconds since 1970, in the year 2262.
const TOLD_MAX: Nanos = Nanos(i64::MAX as u64);

/// A larger stamp is invalid: no drive lives 146 years longer than the latest time.
const STAMP_MAX: u64 = TOLD_MAX.0 + (1 << 62);

/// A clock that never goes back. If it is ahead of the time that it is told, it goes on at that time's pace until that catches up.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The time that the drive was told; `None` if it uses its own.
    told: Option<Nanos>,
    /// The told time when the last command came.
    heard: Option<Nanos>,
    now: Nanos,
    /// The last stamp: later ones are larger, however many there are in a moment.
    stamp: u64,
}

impl Clock {
    /// The time from here on.
    pub(super) fn tell(&mut self, now: Nanos) {
        if self.told.is_none() {
            // The drive's own time began with the drive.
            self.heard = None;
        }
        self.told = Some(now.min(TOLD_MAX));
    }

    /// A command comes, at `at` on the drive's own clock.
    pub(super) fn advance(&mut self, at: Nanos) {
        let told = self.told.unwrap_or(at);
        let passed = self.heard.map_or(0, |heard| told.0.saturating_sub(heard.0));
        self.heard = Some(told);
        self.now = if told >= self.now { told } else { Nanos(self.now.0.saturating_add(passed).min(STAMP_MAX)) };
    }

    pub(super) fn now(&self) -> Nanos {
        self.now
    }

    /// The stamp of what is stored now.
    pub(super) fn stamp(&mut self) -> Nanos {
        self.stamp = self.now.0.max(self.stamp.saturating_add(1));
        Nanos(self.stamp)
    }

    /// The last stamp.
    pub(super) fn last(&self) -> Nanos {
        Nanos(self.stamp)
    }

    /// A pair with this stamp exists, so now is no earlier.
    pub(super) fn saw(&mut self, stamp: u64) {
        self.stamp = self.stamp.max(stamp);
        self.now = self.now.max(Nanos(stamp));
    }
}

/// The time in a stamp's bytes; 0, the oldest, if they are no stamp.
pub(super) fn read_stamp(bytes: &[u8]) -> u64 {
    bytes.try_into().map(u64::from_le_bytes).ok().filter(|stamp| *stamp <= STAMP_MAX).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(clock: &mut Clock, told: u64) -> u64 {
        clock.tell(Nanos(told));
        clock.advance(Nanos(7));
        clock.now().0
    }

    #[test]
    fn time_goes_on_behind_a_clock_that_was_far_ahead() {
        let mut clock = Clock::default();
        assert_eq!(
            [1000, 9000, 1010, 1030, 900, 905].map(|told| at(&mut clock, told)),
            [1000, 9000, 9000, 9020, 9020, 9025]
        );
        assert_eq!(at(&mut clock, 9100), 9100, "it has caught up");
        // A machine that began in 1970 and learnt the time later.
        let mut clock = Clock::default();
        clock.saw(5000);
        assert_eq!([0, 10, 5020, 5030].map(|told| at(&mut clock, told)), [5000, 5010, 5020, 5030]);
        // The drive's own time counts no longer where it is told one.
        let mut clock = Clock::default();
        clock.advance(Nanos(7));
        clock.saw(5000);
        assert_eq!([4000, 4010].map(|told| at(&mut clock, told)), [5000, 5010]);
    }

    #[test]
    fn stamps_grow_and_end_nowhere() {
        let mut clock = Clock::default();
        at(&mut clock, 100);
        assert_eq!([clock.stamp().0, clock.stamp().0, clock.last().0, clock.now().0], [100, 101, 101, 100]);
        at(&mut clock, 200);
        assert_eq!(clock.stamp().0, 200);
        for told in [u64::MAX, 0, u64::MAX, 1, u64::MAX] {
            let before = at(&mut clock, told);
            assert!(read_stamp(&clock.stamp().0.to_le_bytes()) >= before);
        }
        clock.saw(u64::MAX);
        assert_eq!(clock.stamp(), Nanos(u64::MAX), "it overflows never");
        assert_eq!([read_stamp(&[]), read_stamp(&[255; 8])], [0, 0]);
    }
}
