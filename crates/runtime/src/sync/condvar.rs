use super::{MutexGuard, map};
use crate::machine::{Key, Wake, machine};
use std::sync::LockResult;
use std::time::Duration;

/// As [`std::sync::Condvar`].
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar);

/// As [`std::sync::WaitTimeoutResult`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the time was over.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// A condition for which nobody waits.
    #[must_use]
    pub const fn new() -> Self {
        Condvar(std::sync::Condvar::new())
    }

    /// Frees the mutex, waits until it is notified, and takes the mutex again.
    ///
    /// # Errors
    /// When the mutex is poisoned.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        if machine().is_some() {
            return map(self.wait_in_world(guard, None), |(guard, _)| guard);
        }
        let waited = guard.exchange(|held| map(self.0.wait(held), |held| (held, ())));
        map(waited, |(guard, ())| guard)
    }

    /// The same, but only so long.
    ///
    /// # Errors
    /// When the mutex is poisoned.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        if machine().is_some() {
            return self.wait_in_world(guard, Some(timeout));
        }
        guard.exchange(|held| {
            map(self.0.wait_timeout(held, timeout), |(held, waited)| (held, WaitTimeoutResult(waited.timed_out())))
        })
    }

    fn wait_in_world<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Option<Duration>,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let Some(machine) = machine().filter(|machine| !machine.is_unwinding()) else {
            return Ok((guard, WaitTimeoutResult(true)));
        };
        let until = timeout.map(|timeout| machine.now() + timeout);
        // Nobody runs between these two.
        let mutex = guard.free();
        let was_woken = machine.wait(self.key(), until);
        map(mutex.lock(), |guard| (guard, WaitTimeoutResult(!was_woken)))
    }

    /// Wakes one that waits.
    pub fn notify_one(&self) {
        self.notify(Wake::One);
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) {
        self.notify(Wake::All);
    }

    fn notify(&self, wake: Wake) {
        match (machine(), wake) {
            (Some(machine), wake) => machine.wake(self.key(), wake),
            (None, Wake::One) => self.0.notify_one(),
            (None, Wake::All) => self.0.notify_all(),
        }
    }

    fn key(&self) -> Key {
        Key::at("a condition", &self.0)
    }
}
