//! A simulated drive to ask: a command at a time, with the moment when it comes.

#![expect(
    clippy::needless_pass_by_value,
    reason = "what Python hands over is owned, and bytes stay where Python has them"
)]

use crate::bytes::Bytes;
use crate::dicts::dict_of;
use crate::errors::{ExperimentError, InvalidError};
use kvssd_device::{Answer, AskError, AskedDevice};
use kvssd_types::Nanos;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// When a command is done, whether its key was there (or, of a store, whether there was room), and the bytes of the value.
type Told = (u64, bool, u32);

/// A drive on virtual time.
#[pyclass(frozen, module = "kvssd._kvssd")]
pub(crate) struct RawDevice(Mutex<AskedDevice>);

#[pymethods]
impl RawDevice {
    /// A new drive; `overrides` are keys of the profile, and parameters of the design behind `design.`.
    #[new]
    fn new(design: String, profile: &str, scale: f64, overrides: Vec<(String, String)>) -> PyResult<Self> {
        let device = AskedDevice::new(&design, profile, scale, &overrides);
        Ok(RawDevice(Mutex::new(device.map_err(|error| ExperimentError::new_err(error.to_string()))?)))
    }

    fn store(&self, py: Python<'_>, at_ns: u64, key: Bytes, value_bytes: u32) -> PyResult<Told> {
        self.ask(py, |device| device.store(Nanos(at_ns), &key, value_bytes))
    }

    fn retrieve(&self, py: Python<'_>, at_ns: u64, key: Bytes, offset_bytes: u32, length_bytes: u32) -> PyResult<Told> {
        self.ask(py, |device| device.retrieve(Nanos(at_ns), &key, (offset_bytes, length_bytes)))
    }

    fn delete(&self, py: Python<'_>, at_ns: u64, key: Bytes) -> PyResult<Told> {
        self.ask(py, |device| device.delete(Nanos(at_ns), &key))
    }

    fn exist(&self, py: Python<'_>, at_ns: u64, key: Bytes) -> PyResult<Told> {
        self.ask(py, |device| device.exist(Nanos(at_ns), &key))
    }

    /// The same drive at the same moment once more.
    fn fork(&self, py: Python<'_>) -> Self {
        py.detach(|| RawDevice(Mutex::new(self.lock().fork())))
    }

    /// What its flash did, and how full it is.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.lock().stats());
        Ok(dict_of!(
            py, stats;
            now_ns, flash_bytes, page_bytes, value_bytes_max, stored_bytes, pages_read, pages_programmed, erases,
        ))
    }
}

impl RawDevice {
    /// Asks the drive, without holding up other threads of Python.
    fn ask(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut AskedDevice) -> Result<Answer, AskError> + Send,
    ) -> PyResult<Told> {
        let answer = py.detach(|| work(&mut self.lock()));
        let Answer { done, is_done, value_bytes } = answer.map_err(|error| InvalidError::new_err(error.to_string()))?;
        Ok((done.0, is_done, value_bytes))
    }

    fn lock(&self) -> MutexGuard<'_, AskedDevice> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
