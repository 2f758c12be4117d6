//! Python's signals, while a call waits for a drive or for others' transactions.

use pyo3::prelude::*;
use std::cell::{Cell, RefCell};

thread_local! {
    /// Whether this is the thread that Python's handlers run in, once that is known. Another one has nothing to look for, and must not ask for
    /// the interpreter while that ends.
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
    /// What a handler has raised, until the call ends that it is to end.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Whether a handler of Python's signals has raised something, which is left for [`unless_raised`].
pub(crate) fn is_interrupted() -> bool {
    if IS_MAIN.get() == Some(false) {
        return false;
    }
    let looked = Python::try_attach(|py| {
        let is_main = IS_MAIN.get().map_or_else(|| is_main(py), Ok)?;
        IS_MAIN.set(Some(is_main));
        if is_main { py.check_signals() } else { Ok(()) }
    });
    let Some(Err(raised)) = looked else { return false };
    RAISED.set(Some(raised));
    true
}

fn is_main(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    threading.call_method0("main_thread")?.getattr("ident")?.eq(threading.call_method0("get_ident")?)
}

/// What a call has done, unless [`is_interrupted`] ended it.
pub(crate) fn unless_raised<T>(done: PyResult<T>) -> PyResult<T> {
    RAISED.take().map_or(done, Err)
}
