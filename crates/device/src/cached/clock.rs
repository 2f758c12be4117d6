//! The time of a drive's caches, by which pairs grow old.

use kvssd_types::Nanos;

/// The latest time that is believed; a later one counts as this. Nanoseconds since 1970, in the year 2262.
const TOLD_MAX: Nanos = Nanos(i64::MAX as u64);

/// A larger stamp is invalid: no drive lives 146 years longer than the latest time.
const STAMP_MAX: u64 = TOLD_MAX.0 + (1 << 62);

/// A pair that was stored further ahead of the time than this is of unknown age: some clock was wrong, and nobody knows for how long the drive
/// was closed. Clocks are corrected by less all the time, and seldom twice between two stores. An estimate.
const AHEAD_MAX: Nanos = Nanos(1_000_000_000);

/// A clock that never goes back while the drive is open. If it is ahead of the time that it is told, it goes on at that time's pace until that
/// catches up.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The time that the drive was told; `None` if it uses its own.
    told: Option<Nanos>,
    /// The told time when the last command came.
    heard: Option<Nanos>,
    now: Nanos,
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

    /// A pair with this stamp is there, perhaps since an earlier life. Returns whether its age is known.
    pub(super) fn knows(&mut self, stamp: Nanos) -> bool {
        match self.told {
            Some(told) => stamp.0 <= self.now.max(told).0.saturating_add(AHEAD_MAX.0),
            // The drive's own clock begins anew in each life, and was as far then.
            None => {
                self.now = self.now.max(stamp);
                true
            }
        }
    }
}

/// The stamp of what is stored next at `now`, behind `last`: they grow, however many there are in a moment.
pub(super) fn stamp_next(now: Nanos, last: Nanos) -> Nanos {
    now.max(Nanos(last.0.saturating_add(1)))
}

/// The time in a stamp's bytes; 0, the oldest, if they are no stamp.
pub(super) fn read_stamp(bytes: &[u8]) -> u64 {
    bytes.try_into().map(u64::from_le_bytes).ok().filter(|stamp| *stamp <= STAMP_MAX).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = AHEAD_MAX.0;

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
        // The drive's own time counts no longer where it is told one.
        let mut clock = Clock::default();
        clock.advance(Nanos(7));
        assert!(clock.knows(Nanos(5000)));
        assert_eq!([4000, 4010].map(|told| at(&mut clock, told)), [5000, 5010]);
    }

    #[test]
    fn what_was_stored_ahead_of_the_time_is_of_unknown_age() {
        let mut clock = Clock::default();
        clock.tell(Nanos(10 * SECOND));
        let known = |clock: &mut Clock| [0, 10, 11, 12].map(|second| clock.knows(Nanos(second * SECOND)));
        assert_eq!(known(&mut clock), [true, true, true, false], "before the first command");
        assert_eq!(at(&mut clock, 10 * SECOND), 10 * SECOND, "it is no later for it");
        assert_eq!(known(&mut clock), [true, true, true, false]);
        at(&mut clock, 20 * SECOND);
        at(&mut clock, 10 * SECOND);
        assert_eq!(known(&mut clock), [true; 4], "this life stored them");
        // Nobody told the time: the drive's own begins anew in each life.
        let mut clock = Clock::default();
        assert_eq!(known(&mut clock), [true; 4]);
        assert_eq!(clock.now(), Nanos(12 * SECOND));
    }

    #[test]
    fn stamps_grow_and_end_nowhere() {
        let mut last = Nanos::ZERO;
        let mut next = |now| {
            last = stamp_next(Nanos(now), last);
            last.0
        };
        assert_eq!([100, 100, 200, 150].map(&mut next), [100, 101, 200, 201]);
        assert_eq!([u64::MAX, 1].map(next), [u64::MAX; 2], "it overflows never");
        let mut clock = Clock::default();
        for told in [u64::MAX, 0, u64::MAX, 1, u64::MAX] {
            let now = at(&mut clock, told);
            assert_eq!(read_stamp(&now.to_le_bytes()), now);
        }
        assert_eq!([read_stamp(&[]), read_stamp(&[255; 8])], [0, 0]);
    }
}
