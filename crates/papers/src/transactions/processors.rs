//! The host's cores.

use super::costs;
use kvssd_flash::timing::Pool;
use kvssd_types::Nanos;

/// The cores, each of which does one thing at a time.
pub(super) struct Processors {
    cores: Pool,
    now: Nanos,
    busy: Nanos,
}

impl Processors {
    pub(super) fn new() -> Self {
        Processors { cores: Pool::new(costs::CORES), now: Nanos::ZERO, busy: Nanos::ZERO }
    }

    /// Nobody asks for anything before that moment any more.
    pub(super) fn advance(&mut self, now: Nanos) {
        assert!(self.now <= now, "calls come in the order of their times");
        self.now = now;
    }

    pub(super) fn now(&self) -> Nanos {
        self.now
    }

    /// Works for so long, as soon as a core is free; gives when it is done.
    pub(super) fn work(&mut self, at: Nanos, time: Nanos) -> Nanos {
        self.busy += time;
        self.cores.take(at, time, self.now)
    }

    /// How long cores worked, all together.
    pub(super) fn busy(&self) -> Nanos {
        self.busy
    }
}
