//! How fast a host may go: token buckets, without a clock.
//!
//! ```text
//!   take 4 KiB at 1 MiB/s          +3.9 ms
//!   ---- now ---------------------- paid_until ------>  time
//!        <----- AHEAD_NS at the most ----->             open while it is not further away than that
//! ```
//!
//! A bucket is the moment until which all that was taken is paid for. What is taken is counted when its length is known,
//! so a bucket may be taken from beyond its end once; then it opens later.

use kvssd_types::Nanos;
use std::num::NonZeroU64;

/// What may be taken in advance: as much as the rate gives in that time. An estimate: longer than a queue of 128 short
/// commands takes, shorter than a person notices.
const AHEAD_NS: Nanos = Nanos(100_000_000);

/// The most that a host may do in a second; `None` for as much as it likes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// I/O commands.
    pub operations_per_second: Option<NonZeroU64>,
    /// Bytes of values that it stores, and of values and lists that it gets.
    pub bytes_per_second: Option<NonZeroU64>,
}

impl Rate {
    /// Whether there is any bound.
    pub(crate) fn is_bounded(&self) -> bool {
        *self != Rate::default()
    }
}

/// What a host has taken of its [`Rate`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    operations: Bucket,
    bytes: Bucket,
}

impl Pace {
    /// When the next command may be executed; not before `now`.
    pub(crate) fn opens(&self, now: Nanos) -> Nanos {
        self.operations.opens().max(self.bytes.opens()).max(now)
    }

    /// Counts commands and bytes.
    pub(crate) fn take(&mut self, operations: u64, bytes: u64, rate: &Rate, now: Nanos) {
        self.operations.take(operations, rate.operations_per_second, now);
        self.bytes.take(bytes, rate.bytes_per_second, now);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    paid_until: Nanos,
}

impl Bucket {
    fn opens(self) -> Nanos {
        self.paid_until - AHEAD_NS
    }

    fn take(&mut self, amount: u64, per_second: Option<NonZeroU64>, now: Nanos) {
        let Some(per_second) = per_second else { return };
        let cost = (u128::from(amount) * 1_000_000_000).div_ceil(u128::from(per_second.get()));
        self.paid_until = self.paid_until.max(now) + Nanos(u64::try_from(cost).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos(1_000_000_000);

    fn rate(operations: u64, bytes: u64) -> Rate {
        Rate { operations_per_second: NonZeroU64::new(operations), bytes_per_second: NonZeroU64::new(bytes) }
    }

    /// How many commands of so many bytes go through until `end`, for a host that always has one more.
    fn done(rate: &Rate, bytes: u64, begin: Nanos, end: Nanos) -> u64 {
        let (mut pace, mut now, mut count) = (Pace::default(), begin, 0);
        loop {
            now = pace.opens(now);
            if now > end {
                return count;
            }
            pace.take(1, bytes, rate, now);
            count += 1;
        }
    }

    #[test]
    fn a_host_gets_its_rate_and_a_little_in_advance() {
        let ten = Nanos(10 * SECOND.0);
        assert_eq!(done(&rate(100, 0), 4096, SECOND, SECOND + ten), 1011);
        assert_eq!(done(&rate(0, 1_000_000), 1000, SECOND, SECOND + ten), 10_101);
        // The one that lets less through counts.
        assert_eq!(done(&rate(1_000_000, 1_000_000), 1000, SECOND, SECOND + ten), 10_101);
        assert_eq!(done(&rate(3, 0), 0, Nanos::ZERO, ten), 31);
    }

    #[test]
    fn time_that_was_not_used_is_not_kept() {
        let (rate, mut pace) = (rate(10, 0), Pace::default());
        let late = Nanos(3600 * SECOND.0);
        let mut at_once = 0;
        while pace.opens(late) == late {
            pace.take(1, 0, &rate, late);
            at_once += 1;
        }
        assert_eq!(at_once, 2, "a tenth of a second's, and the one that goes beyond");
    }

    #[test]
    fn what_is_larger_than_a_second_gives_is_paid_for_later() {
        let (rate, mut pace) = (rate(0, 1000), Pace::default());
        pace.take(1, 5000, &rate, SECOND);
        assert_eq!(pace.opens(SECOND), Nanos(6 * SECOND.0) - AHEAD_NS);
        // Nothing overflows.
        pace.take(1, u64::MAX, &rate, SECOND);
        pace.take(u64::MAX, u64::MAX, &rate, Nanos::MAX);
        assert_eq!(pace.opens(SECOND), Nanos::MAX - AHEAD_NS);
        assert!(!Rate::default().is_bounded() && rate.is_bounded());
    }
}
