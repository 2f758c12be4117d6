//! Locks whose poison is ignored.

use kvssd_runtime::sync::{Mutex, MutexGuard, PoisonError};

/// A panic leaves what is behind the mutexes of this crate whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
