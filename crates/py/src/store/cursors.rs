//! Cursors: how far lists of keys and ranges of pairs have come.

use super::RawStore;
use crate::numbers::Meant;
use kvssd_host::{Error as StoreError, KeyCursor, Namespace, RangeCursor};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A page of pairs.
type PagePairs<'py> = Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>;

/// How far a list of keys has come.
#[pyclass(frozen, module = "kvssd._kvssd")]
pub(crate) struct RawCursor {
    pub(super) store: Py<RawStore>,
    pub(super) namespace: Meant,
    pub(super) cursor: Mutex<KeyCursor>,
}

#[pymethods]
impl RawCursor {
    /// Keys that come next; none at the end.
    fn next_keys<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let keys = self.store.get().on_pairs(py, self.namespace, |pairs| self.next_page(pairs))?;
        Ok(keys.iter().map(|key| PyBytes::new(py, key)).collect())
    }
}

impl RawCursor {
    fn next_page(&self, pairs: Namespace<'_>) -> Result<Vec<Box<[u8]>>, StoreError> {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner).next_page(pairs)
    }
}

/// A range of an ordered namespace, as it was when the range began.
#[pyclass(frozen, module = "kvssd._kvssd")]
pub(crate) struct RawRange {
    pub(super) store: Py<RawStore>,
    pub(super) namespace: Meant,
    pub(super) cursor: Mutex<Option<RangeCursor>>,
}

#[pymethods]
impl RawRange {
    /// Pairs that come next; none at the end.
    fn next_pairs<'py>(&self, py: Python<'py>) -> PyResult<PagePairs<'py>> {
        let pairs = self.store.get().on_pairs(py, self.namespace, |pairs| match &mut *self.lock() {
            Some(cursor) => cursor.next_page(pairs),
            None => Ok(Vec::new()),
        })?;
        let pairs = pairs.iter().map(|(key, value)| (PyBytes::new(py, key), PyBytes::new(py, value)));
        Ok(pairs.collect())
    }

    /// Ends the range: the drive need not keep any more what only this range shows.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        // A store that was closed, or that is another process's, keeps nothing for it. Nor is that made an exception, even to be passed over:
        // what nobody left is ended with the program, when there can be none any more.
        self.store.get().on_pairs_if_open(py, self.namespace, |pairs| {
            if let Some(cursor) = self.lock().take() {
                cursor.end(pairs);
            }
        })
    }
}

/// Ends the range if nobody else did: Python was interrupted before it came to that.
impl Drop for RawRange {
    fn drop(&mut self) {
        if self.lock().is_some() {
            Python::try_attach(|py| self.end(py).unwrap_or_else(|raised| raised.write_unraisable(py, None)));
        }
    }
}

impl RawRange {
    fn lock(&self) -> MutexGuard<'_, Option<RangeCursor>> {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
