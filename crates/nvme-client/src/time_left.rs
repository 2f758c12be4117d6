//! How long one wait may take.

use kvssd_runtime::time::{Duration, Instant};

/// Timeout of one read or write. In between the thread checks its deadline and what others submitted.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(25);

pub(crate) fn remaining(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}
