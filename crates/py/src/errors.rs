//! Exceptions, by what the caller can do about them.

use crate::locks::CANNOT_WAIT;
use crate::signals::is_of_handler;
use kvssd_cli::Failure;
use kvssd_host::tx::{AbortReason, Refusal, TransactionError};
use kvssd_host::{Error as StoreError, Owner, Store};
use kvssd_sim::SimError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyError};
use pyo3::prelude::*;

create_exception!(kvssd, Error, PyException, "What can go wrong, of any kind.");
create_exception!(kvssd, OpenError, Error, "There is no drive, or it is in use, or it is none that can be opened.");
create_exception!(kvssd, InvalidError, Error, "A key, a value, a batch or an option that cannot be.");
create_exception!(kvssd, NamespaceError, Error, "There is no such namespace.");
create_exception!(kvssd, FullError, Error, "The drive is full, or this host's quota is: deletes make room.");
create_exception!(kvssd, ReadOnlyError, Error, "The store was opened to be read.");
create_exception!(kvssd, RefusedError, Error, "The drive does not do that, and goes on.");
create_exception!(kvssd, DamagedError, Error, "Bytes are not what was written; other pairs may be whole.");
create_exception!(kvssd, FailedError, Error, "The drive failed or is not reached: open it again.");
create_exception!(kvssd, ClosedError, Error, "The store or the cache was closed: open it again.");
create_exception!(kvssd, ForkedError, Error, "The store was opened by another process: open it again in this one.");
create_exception!(kvssd, AbortedError, Error, "A transaction was aborted, and nothing is left of it: try it again.");
create_exception!(kvssd, ExperimentError, Error, "An experiment that cannot be, or found something wrong.");

/// The exception of a store's error.
pub(crate) fn of_store(error: &StoreError) -> PyErr {
    let line = error.to_string();
    match error {
        StoreError::NotFound(_) => OpenError::new_err(line + "; create=True makes one"),
        StoreError::Exists(_) | StoreError::Locked { .. } | StoreError::Foreign { .. } => OpenError::new_err(line),
        StoreError::InvalidOptions { .. }
        | StoreError::InvalidKey { .. }
        | StoreError::InvalidValue { .. }
        | StoreError::BatchTooLarge { .. }
        | StoreError::BatchValueTooLarge { .. } => InvalidError::new_err(line),
        StoreError::NoNamespace { .. } => NamespaceError::new_err(line),
        StoreError::Full | StoreError::QuotaFull => FullError::new_err(line),
        StoreError::ReadOnly => ReadOnlyError::new_err(line),
        StoreError::Forked { .. } => ForkedError::new_err(line),
        StoreError::Refused { .. } | StoreError::TooManyNamespaces { .. } => RefusedError::new_err(line),
        StoreError::Damaged { .. } => DamagedError::new_err(line),
        StoreError::KeyNotFound | StoreError::KeyExists => PyKeyError::new_err(line),
        _ => FailedError::new_err(line),
    }
}

/// The exception of a store that could not be opened: also where the system has no folder for the image, or lets nobody read it.
pub(crate) fn of_opening(error: &StoreError, is_read_only: bool) -> PyErr {
    match error {
        StoreError::NotFound(_) if is_read_only => OpenError::new_err(format!("{error}; read_only=True makes none")),
        StoreError::Io { why } => OpenError::new_err(why.clone()),
        other => of_store(other),
    }
}

/// What became of changes that are made all or none: a drive without such batches says what there is in their place.
pub(crate) fn of_atomic(store: &Store, made: Result<(), StoreError>) -> Result<(), StoreError> {
    made.map_err(|error| match error {
        StoreError::Refused { .. } if store.stats().is_ok_and(|stats| stats.batch_changes_max == 0) => {
            let why = "a drive at a URL has no batches that are made all or none, and no transactions that change something; \
                       store.batch(atomic=False) makes each change by itself, in no order";
            StoreError::Refused { why: why.to_owned() }
        }
        other => other,
    })
}

/// The exception of a transaction's error.
pub(crate) fn of_transaction(error: TransactionError) -> PyErr {
    let line = error.to_string();
    match error {
        TransactionError::Aborted(AbortReason::Asked) if is_of_handler() => RefusedError::new_err(CANNOT_WAIT),
        TransactionError::Aborted(_) => AbortedError::new_err(line),
        TransactionError::Refused(Refusal::ReadOnly) => ReadOnlyError::new_err(line),
        TransactionError::Refused(_) => PyKeyError::new_err(line),
        TransactionError::Drive(error) => of_store(&error),
        TransactionError::InDoubt(_) => FailedError::new_err(line),
    }
}

/// The exception of an experiment's error.
pub(crate) fn of_simulation(error: &SimError) -> PyErr {
    // Simulations speak of options as the command line writes them.
    ExperimentError::new_err(error.to_string())
}

/// The exception of what the command line would end with.
pub(crate) fn of_failure(failure: &Failure) -> PyErr {
    ExperimentError::new_err(failure.to_string())
}

/// What a child is told that was forked from the owner of a store, before it waits for a thread that it does not have.
pub(crate) fn check_owner(owner: &Owner) -> PyResult<()> {
    if owner.is_here() { Ok(()) } else { Err(of_store(&StoreError::Forked { process: owner.process() })) }
}

/// A store that was closed.
pub(crate) fn closed() -> PyErr {
    ClosedError::new_err("the store is closed")
}
