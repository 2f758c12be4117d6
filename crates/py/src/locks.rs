//! Locks between calls, which Python's handlers of signals make as well.
//!
//! ```text
//!   main thread    store.get   holds a lock, waits for the drive -> a handler runs -> store.get   must not wait for that lock
//! ```
//!
//! Whoever holds a lock may wait for the call that a handler has interrupted. So a handler's call takes what is free, and is refused what is not.

use crate::signals::is_of_handler;
use kvssd_host::Error as StoreError;
use std::sync::{
    LockResult, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult,
};

/// Takes a lock beside others. It is busy for a handler also while another thread waits for it.
pub(crate) fn shared<T>(lock: &RwLock<T>) -> Result<RwLockReadGuard<'_, T>, StoreError> {
    taken(|| lock.try_read(), || lock.read())
}

/// Takes a lock alone.
pub(crate) fn alone<T>(lock: &RwLock<T>) -> Result<RwLockWriteGuard<'_, T>, StoreError> {
    taken(|| lock.try_write(), || lock.write())
}

/// As [`alone`].
pub(crate) fn locked<T>(lock: &Mutex<T>) -> Result<MutexGuard<'_, T>, StoreError> {
    taken(|| lock.try_lock(), || lock.lock())
}

fn taken<G>(attempt: impl FnOnce() -> TryLockResult<G>, wait: impl FnOnce() -> LockResult<G>) -> Result<G, StoreError> {
    if !is_of_handler() {
        return Ok(wait().unwrap_or_else(PoisonError::into_inner));
    }
    match attempt() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            let why =
                "a call of this thread is under way, and may never end if this one waits: make it behind that one";
            Err(StoreError::Refused { why: why.to_owned() })
        }
    }
}
