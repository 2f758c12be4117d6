//! Keys and values as Python has them.

use kvssd_host::Value;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView};
use std::ops::Deref;

/// A value of a store as Python has it: the one copy that it takes.
pub(crate) fn bytes_of<'py>(py: Python<'py>, value: &Value) -> Bound<'py, PyBytes> {
    match value {
        Value::Bytes(bytes) => PyBytes::new(py, bytes),
        described @ Value::Pattern(_) => PyBytes::new(py, &described.to_vec()),
    }
}

/// The bytes of anything that has a buffer. Those of a `bytes` stay where they are, others are copied.
#[derive(IntoPyObject)]
pub(crate) struct Bytes(PyBackedBytes);

/// The `bytes` of a buffer, which later changes of it leave as they are.
#[pyfunction]
pub(crate) fn to_bytes(buffer: Bytes) -> Bytes {
    buffer
}

/// Whether a buffer of that format (PEP 3118, with the letters of ctypes) holds addresses in place of what is meant: objects, `z` and `Z` for
/// strings elsewhere, `P`, `&` and `X` for pointers. Between colons are names, and `Z` before a kind of number makes it complex.
fn has_pointers(format: &str) -> bool {
    format.split(':').step_by(2).any(|kinds| {
        let complex_out = kinds.replace("Zf", "").replace("Zd", "").replace("Zg", "");
        complex_out.contains(['O', 'P', 'X', 'Z', 'z', '&'])
    })
}

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
        let format: String = view.getattr("format")?.extract()?;
        if has_pointers(&format) {
            return Err(wrong());
        }
        Ok(Bytes(view.call_method0("tobytes")?.extract()?))
    }
}
