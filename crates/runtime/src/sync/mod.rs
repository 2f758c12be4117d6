//! Locks and conditions.

mod condvar;
mod mutex;
mod rw_lock;
mod turns;

pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{Mutex, MutexGuard};
pub use rw_lock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use std::sync::{Arc, LockResult, PoisonError, TryLockError, TryLockResult, Weak, atomic};
pub use turns::{Turn, Turns};

use crate::machine::{Key, Machine, Wake, machine};

/// Says to a world, when it is dropped, that a lock is free. It stands behind the guard of the lock, and so is dropped after it.
#[derive(Debug)]
struct Freed(Key);

impl Drop for Freed {
    #[inline]
    fn drop(&mut self) {
        if let Some(machine) = machine() {
            machine.wake(self.0, Wake::All);
        }
    }
}

/// Tries until a lock can be had, or is poisoned.
fn acquire<G>(machine: &dyn Machine, key: Key, mut attempt: impl FnMut() -> TryLockResult<G>) -> LockResult<G> {
    machine.may_lose_turn();
    loop {
        match attempt() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Err(poisoned),
            Err(TryLockError::WouldBlock) => machine.wait(key, None),
        };
    }
}

/// The same for a guard that wraps what was had.
fn map<G, W>(result: LockResult<G>, wrap: impl FnOnce(G) -> W) -> LockResult<W> {
    match result {
        Ok(guard) => Ok(wrap(guard)),
        Err(poisoned) => Err(PoisonError::new(wrap(poisoned.into_inner()))),
    }
}
