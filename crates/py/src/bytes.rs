//! Keys and values as Python has them.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyMemoryView;
use std::ops::Deref;

/// The bytes of anything that has a buffer. Those of a `bytes` stay where they are, others are copied.
pub(crate) struct Bytes(PyBackedBytes);

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Bytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.extract() {
            return Ok(Bytes(bytes));
        }
        let wrong = || {
            let kind = object.get_type().name().map_or_else(|_| "that".to_owned(), |name| name.to_string());
            PyTypeError::new_err(format!("keys and values are bytes, or a buffer such as a NumPy array, not {kind}"))
        };
        let view = PyMemoryView::from(&object).map_err(|_| wrong())?;
        // An array of objects has pointers in its buffer.
        if view.getattr("format")?.extract::<String>()?.contains('O') {
            return Err(wrong());
        }
        Ok(Bytes(view.call_method0("tobytes")?.extract()?))
    }
}
