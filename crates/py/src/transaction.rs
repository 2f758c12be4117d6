//! Transactions: one that is open keeps the manager that it belongs to.

#![expect(
    clippy::needless_pass_by_value,
    reason = "what Python hands over is owned, and bytes stay where Python has them"
)]

use crate::bytes::Bytes;
use crate::errors::{Error, check_owner, of_store, of_transaction};
use crate::keys::{KeyedStore, Manager};
use crate::locks::locked;
use crate::numbers::{Meant, Numbers};
use crate::signals::{heeding_signals, is_interrupted, is_of_handler};
use kvssd_host::tx::{Isolation, Transaction, TransactionError};
use kvssd_host::{NamespaceId, Owner};
use parking_lot::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use self_cell::self_cell;
use std::sync::Arc;

type Dependent<'a> = Transaction<'a, KeyedStore>;
/// None once it is committed.
type Held<'a> = Option<Dependent<'a>>;

self_cell!(
    /// A transaction and its manager.
    struct Open {
        owner: Arc<Manager>,
        #[not_covariant]
        dependent: Held,
    }
);

/// A transaction: open, or ended.
#[pyclass(frozen, module = "kvssd._kvssd")]
pub(crate) struct RawTransaction {
    owner: Owner,
    numbers: Arc<Numbers>,
    /// Its commit may wait for others, who may want to make a namespace.
    is_optimistic: bool,
    open: Mutex<Option<Open>>,
}

#[pymethods]
impl RawTransaction {
    fn read<'py>(
        &self,
        py: Python<'py>,
        namespace: Meant,
        key: Bytes,
        for_update: bool,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let value = self.access(py, namespace, |transaction, namespace| {
            if for_update { transaction.read_for_update(namespace, &key) } else { transaction.read(namespace, &key) }
        })?;
        Ok(value.map(|value| PyBytes::new(py, &value)))
    }

    fn write(&self, py: Python<'_>, namespace: Meant, key: Bytes, value: Bytes) -> PyResult<()> {
        self.access(py, namespace, |transaction, namespace| transaction.write(namespace, &key, &value))
    }

    fn insert(&self, py: Python<'_>, namespace: Meant, key: Bytes, value: Bytes) -> PyResult<()> {
        self.access(py, namespace, |transaction, namespace| transaction.insert(namespace, &key, &value))
    }

    fn update(&self, py: Python<'_>, namespace: Meant, key: Bytes, value: Bytes) -> PyResult<()> {
        self.access(py, namespace, |transaction, namespace| transaction.update(namespace, &key, &value))
    }

    fn delete(&self, py: Python<'_>, namespace: Meant, key: Bytes) -> PyResult<()> {
        self.access(py, namespace, |transaction, namespace| transaction.delete(namespace, &key))
    }

    /// Ends it: all that it wrote is there for good, or nothing, as where a namespace that it used is another one by now.
    fn commit(&self, py: Python<'_>, namespaces: Vec<Meant>) -> PyResult<()> {
        check_owner(&self.owner)?;
        heeding_signals(py, || {
            let open = self.take()?.ok_or_else(ended)?;
            let numbers = self.numbers.hold().map_err(|error| of_store(&error))?;
            for namespace in namespaces {
                numbers.check(namespace).map_err(|error| of_store(&error))?;
            }
            let _numbers = (!self.is_optimistic).then_some(numbers);
            open.commit().map_err(of_transaction)
        })
    }

    /// Ends it without a trace. Ending it twice is no error, nor is it one in a child, which has none of it.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        match check_owner(&self.owner) {
            Ok(()) => heeding_signals(py, || self.take().map(drop)),
            Err(_) => Ok(()),
        }
    }
}

/// Whoever did not leave it. Its end may wait for the drive; what a handler raises meanwhile is shown, since no call can raise it.
impl Drop for RawTransaction {
    fn drop(&mut self) {
        let open = self.open.get_mut().take();
        if open.is_some() {
            Python::try_attach(|py| {
                let ended = heeding_signals(py, || {
                    drop(open);
                    Ok(())
                });
                ended.unwrap_or_else(|raised| raised.write_unraisable(py, None));
            });
        }
    }
}

impl Open {
    fn commit(mut self) -> Result<(), TransactionError> {
        self.with_dependent_mut(|_, held| held.take().map_or(Ok(()), Transaction::commit))
    }
}

impl RawTransaction {
    pub(crate) fn begin(
        py: Python<'_>,
        manager: Arc<Manager>,
        numbers: &Arc<Numbers>,
        isolation: &str,
    ) -> PyResult<Self> {
        let isolation = match isolation {
            "locking" => Isolation::TwoPhaseLocking,
            "optimistic" => Isolation::Optimistic,
            "snapshot" => Isolation::Snapshot,
            other => {
                let line = format!("isolation is \"locking\", \"optimistic\" or \"snapshot\", not {other:?}");
                return Err(PyValueError::new_err(line));
            }
        };
        let open = heeding_signals(py, || {
            let begun = Open::try_new(manager, |manager| {
                // One that a handler uses may not wait: what it waits for may be what the handler has interrupted.
                manager.begin_unless(isolation, || is_of_handler() || is_interrupted()).map(Some)
            });
            begun.map_err(of_transaction)
        })?;
        let is_optimistic = isolation == Isolation::Optimistic;
        Ok(RawTransaction {
            owner: Owner::here(),
            numbers: Arc::clone(numbers),
            is_optimistic,
            open: Mutex::new(Some(open)),
        })
    }

    /// Another thread may be at it, and wait for one that needs the interpreter: whoever takes it has not got the interpreter's lock.
    fn take(&self) -> PyResult<Option<Open>> {
        Ok(locked(&self.open).map_err(|error| of_store(&error))?.take())
    }

    /// Does something in the transaction, without the interpreter's lock: it may wait for others.
    fn access<T: Send>(
        &self,
        py: Python<'_>,
        namespace: Meant,
        work: impl FnOnce(&mut Dependent<'_>, NamespaceId) -> Result<T, TransactionError> + Send,
    ) -> PyResult<T> {
        check_owner(&self.owner)?;
        heeding_signals(py, || {
            let namespace = self.numbers.hold().and_then(|numbers| numbers.check(namespace));
            let namespace = namespace.map_err(|error| of_store(&error))?;
            let mut open = locked(&self.open).map_err(|error| of_store(&error))?;
            let open = open.as_mut().ok_or_else(ended)?;
            open.with_dependent_mut(|_, held| work(held.as_mut().ok_or_else(ended)?, namespace).map_err(of_transaction))
        })
    }
}

fn ended() -> PyErr {
    Error::new_err("the transaction has ended")
}
