//! Locks between calls, which Python's handlers of signals make as well.
//!
//! ```text
//!   main thread    store.get   holds a lock, waits for the drive -> a handler runs -> store.get   must not wait for that lock
//! ```
//!
//! Whoever holds a lock may wait for the call that a handler has interrupted. So a handler's call takes what is free, and is refused what is not.

use crate::signals::{heeds_signals, is_interrupted, is_of_handler};
use kvssd_host::Error as StoreError;
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// How often the main thread looks at its signals while it waits for a lock.
const ASKS_EVERY: Duration = Duration::from_millis(25);

/// Why a handler's call is refused.
pub(crate) const CANNOT_WAIT: &str =
    "a call that a handler makes cannot wait: one is under way that has what it needs, and may be the interrupted one";

/// Takes a lock beside others. It is busy for a handler also while another thread waits to have it alone.
pub(crate) fn shared<T>(lock: &RwLock<T>) -> Result<RwLockReadGuard<'_, T>, StoreError> {
    taken(|time| lock.try_read_for(time), || lock.read())
}

/// Takes a lock alone.
pub(crate) fn alone<T>(lock: &RwLock<T>) -> Result<RwLockWriteGuard<'_, T>, StoreError> {
    taken(|time| lock.try_write_for(time), || lock.write())
}

/// As [`alone`].
pub(crate) fn locked<T>(lock: &Mutex<T>) -> Result<MutexGuard<'_, T>, StoreError> {
    taken(|time| lock.try_lock_for(time), || lock.lock())
}

fn taken<G>(attempt: impl Fn(Duration) -> Option<G>, wait: impl FnOnce() -> G) -> Result<G, StoreError> {
    if is_of_handler() {
        return attempt(Duration::ZERO).ok_or_else(|| StoreError::Refused { why: CANNOT_WAIT.to_owned() });
    }
    if !heeds_signals() {
        return Ok(wait());
    }
    loop {
        if let Some(guard) = attempt(ASKS_EVERY) {
            return Ok(guard);
        }
        // Whoever has the lock may be another thread, which waits for a silent drive.
        if is_interrupted() {
            return Err(StoreError::Refused { why: "a handler has ended the wait".to_owned() });
        }
    }
}
