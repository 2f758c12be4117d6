//! Moments.

use crate::machine::machine;
use std::ops::{Add, Sub};
pub use std::time::Duration;

/// A moment, as [`std::time::Instant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Moment);

/// Moments of worlds and of the machine never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    Machine(std::time::Instant),
    /// Since the world's begin.
    World(Duration),
}

/// The time since 1970, by the machine's clock; of a world, since its begin.
#[must_use]
pub fn since_1970() -> Duration {
    match machine() {
        None => std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default(),
        Some(machine) => machine.now(),
    }
}

impl Instant {
    /// This moment.
    #[must_use]
    #[inline]
    pub fn now() -> Instant {
        Instant(match machine() {
            None => Moment::Machine(std::time::Instant::now()),
            Some(machine) => Moment::World(machine.now()),
        })
    }

    /// The time since `earlier`; none when that is later.
    #[must_use]
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        match (self.0, earlier.0) {
            (Moment::Machine(later), Moment::Machine(earlier)) => later.checked_duration_since(earlier),
            (Moment::World(later), Moment::World(earlier)) => later.checked_sub(earlier),
            _ => None,
        }
    }

    /// The time since `earlier`, or zero when that is later.
    #[must_use]
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.checked_duration_since(earlier).unwrap_or_default()
    }

    /// The time since `earlier`, or zero when that is later.
    #[must_use]
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        self.saturating_duration_since(earlier)
    }

    /// The time since then.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Instant::now().saturating_duration_since(*self)
    }

    /// So much later, if there is such a moment.
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Instant> {
        Some(Instant(match self.0 {
            Moment::Machine(moment) => Moment::Machine(moment.checked_add(duration)?),
            Moment::World(moment) => Moment::World(moment.checked_add(duration)?),
        }))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        self.checked_add(duration).expect("a moment that far away cannot be told")
    }
}

/// So much earlier; no earlier than a world's begin.
impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, duration: Duration) -> Instant {
        Instant(match self.0 {
            Moment::Machine(moment) => Moment::Machine(moment - duration),
            Moment::World(since) => Moment::World(since.saturating_sub(duration)),
        })
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.saturating_duration_since(earlier)
    }
}
