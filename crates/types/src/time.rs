//! Virtual time.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// A moment of virtual time, or a span of it, in nanoseconds. The drive is switched on at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The moment the drive is switched on.
    pub const ZERO: Nanos = Nanos(0);
    /// Later than everything.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// The span in seconds.
    #[must_use]
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time that `bytes` take at `bytes_per_second`, rounded up to a whole nanosecond.
    #[must_use]
    pub fn of_transfer(bytes: u64, bytes_per_second: u64) -> Nanos {
        Nanos((bytes * 1_000_000_000).div_ceil(bytes_per_second))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    /// The end of time is never passed.
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    /// The span from `other` to `self`; zero where `other` is the later one.
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(spans: I) -> Nanos {
        Nanos(spans.map(|span| span.0).sum())
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns if ns < 10_000 => write!(f, "{ns} ns"),
            ns if ns < 10_000_000 => write!(f, "{:.1} us", ns as f64 / 1e3),
            ns if ns < 10_000_000_000 => write!(f, "{:.1} ms", ns as f64 / 1e6),
            ns => write!(f, "{:.2} s", ns as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_takes_bytes_over_bandwidth_rounded_up() {
        assert_eq!(Nanos::of_transfer(4096, 800 << 20), Nanos(4883));
        assert_eq!(Nanos::of_transfer(0, 1), Nanos(0));
    }

    #[test]
    fn a_span_never_wraps() {
        assert_eq!(Nanos(3) - Nanos(5), Nanos::ZERO);
    }
}
