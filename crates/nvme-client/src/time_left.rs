//! How long a call may take.

use kvssd_runtime::time::{Duration, Instant};
use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::sync::OnceLock;

/// Timeout of one read or write. In between the thread checks its deadline and what others submitted.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Whether nobody wants the result any more of what this thread waits for.
static IS_UNWANTED: OnceLock<fn() -> bool> = OnceLock::new();

/// Ends calls that wait for a drive before their time when `is_unwanted` returns true. The waiting thread asks every 25 ms at most, and holds no
/// lock of the client then: an interpreter looks at its signals there, whose handlers may use the same client. Their calls fail while the thread
/// connects, and while the drive takes no more of a value they wait as long as a call may. This is for all clients of the process; the first
/// function that is given counts.
pub fn give_up_when(is_unwanted: fn() -> bool) {
    let _ = IS_UNWANTED.set(is_unwanted);
}

/// When a call ends that was not answered.
#[derive(Debug)]
pub(crate) struct Deadline {
    at: Instant,
    /// When it is asked next whether the result is wanted; None is never.
    asks: Option<Cell<Instant>>,
    is_given_up: Cell<bool>,
}

impl Deadline {
    /// In so much time.
    pub(crate) fn within(timeout: Duration) -> Deadline {
        Deadline { at: Instant::now() + timeout, asks: None, is_given_up: Cell::new(false) }
    }

    /// As [`Deadline::within`], of a call of the caller's own thread, which may give up ([`give_up_when`]).
    pub(crate) fn of_caller(timeout: Duration) -> Deadline {
        let asks = IS_UNWANTED.get().map(|_| Cell::new(Instant::now() + POLL_INTERVAL));
        Deadline { asks, ..Deadline::within(timeout) }
    }

    /// Whether it is time to ask whether the result is still wanted.
    pub(crate) fn must_ask(&self) -> bool {
        self.asks.as_ref().is_some_and(|next| Instant::now() >= next.get())
    }

    /// Asks whether the result is still wanted, if it is time to. That may run code which uses the same client: no lock may be held.
    pub(crate) fn ask(&self) {
        if self.must_ask()
            && let (Some(next), Some(is_unwanted)) = (&self.asks, IS_UNWANTED.get())
        {
            self.is_given_up.set(self.is_given_up.get() || is_unwanted());
            next.set(Instant::now() + POLL_INTERVAL);
        }
    }

    /// Whether the time is over, or the result is not wanted any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over_in(Duration::ZERO)
    }

    /// Whether it will be over then.
    pub(crate) fn is_over_in(&self, time: Duration) -> bool {
        self.is_given_up.get() || Instant::now() + time >= self.at
    }

    /// So much time again, from now on: the drive has answered something.
    pub(crate) fn renew(&mut self, timeout: Duration) {
        self.at = Instant::now() + timeout;
    }

    /// What is left, a millisecond at least.
    pub(crate) fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
    }

    /// The longest wait until it is to be looked at again.
    pub(crate) fn wait_max(&self) -> Duration {
        if self.asks.is_some() { self.left().min(POLL_INTERVAL) } else { self.left() }
    }
}

/// Whether one read or write found nothing to do in its time.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
