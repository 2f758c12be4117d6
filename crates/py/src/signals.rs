//! Python's signals, while a call waits for a drive or for others' transactions.

use pyo3::prelude::*;
use std::cell::RefCell;

thread_local! {
    /// What a handler has raised, until the call ends that it is to end.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Whether a handler of Python's signals has raised something, which is left for [`unless_raised`].
pub(crate) fn is_interrupted() -> bool {
    let Err(raised) = Python::attach(|py| py.check_signals()) else { return false };
    RAISED.set(Some(raised));
    true
}

/// What a call has done, unless [`is_interrupted`] ended it.
pub(crate) fn unless_raised<T>(done: PyResult<T>) -> PyResult<T> {
    RAISED.take().map_or(done, Err)
}
