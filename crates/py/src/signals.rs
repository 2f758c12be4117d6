//! Python's signals, while a call waits for a drive or for others' transactions.

use kvssd_host::Owner;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};

thread_local! {
    /// Whether this is the thread that Python's handlers run in, once that is known. Another one has nothing to look for, and must not ask for
    /// the interpreter while that ends. In a process that is forked from it, it is.
    static IS_MAIN: RefCell<Option<(Owner, bool)>> = const { RefCell::new(None) };
    /// What a handler has raised, until the call ends that it is to end.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// Calls of this thread that are under way: more than one where a handler makes some.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Does something that may wait, without the interpreter's lock. What a handler raises meanwhile ends it, and is its error then.
pub(crate) fn heeding_signals<T: Send>(py: Python<'_>, work: impl FnOnce() -> PyResult<T> + Send) -> PyResult<T> {
    if IS_MAIN.with_borrow(|known| known.as_ref().is_none_or(|(owner, _)| !owner.is_here())) {
        IS_MAIN.set(Some((Owner::here(), is_main_or_ends(py)?)));
    }
    // What ended nothing any more: an iterator's end, say.
    unless_raised(Ok(()))?;
    let done = {
        let _call = Call::begin();
        py.detach(work)
    };
    unless_raised(done)
}

/// A call that is under way, until it is dropped: a panic ends it, too.
struct Call;

impl Call {
    fn begin() -> Self {
        CALLS.set(CALLS.get() + 1);
        Call
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        CALLS.set(CALLS.get() - 1);
    }
}

/// Whether the call that is under way is a handler's, which has interrupted another call of this thread.
pub(crate) fn is_of_handler() -> bool {
    CALLS.get() > 1
}

/// Whether this is the thread that handlers run in.
pub(crate) fn heeds_signals() -> bool {
    IS_MAIN.with_borrow(|known| known.as_ref().is_some_and(|(_, is_main)| *is_main))
}

/// Whether a handler of Python's signals has raised something.
pub(crate) fn is_interrupted() -> bool {
    if !heeds_signals() {
        return false;
    }
    let Some(Err(raised)) = Python::try_attach(|py| py.check_signals()) else { return false };
    RAISED.set(Some(raised));
    true
}

/// An interpreter that ends imports nothing any more, and its handlers run nowhere.
fn is_main_or_ends(py: Python<'_>) -> PyResult<bool> {
    is_main(py).or_else(|error| if error.is_instance_of::<PyImportError>(py) { Ok(false) } else { Err(error) })
}

fn is_main(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    threading.call_method0("main_thread")?.getattr("ident")?.eq(threading.call_method0("get_ident")?)
}

fn unless_raised<T>(done: PyResult<T>) -> PyResult<T> {
    RAISED.take().map_or(done, Err)
}
