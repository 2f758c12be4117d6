//! A simulated drive to ask: a command at a time, with the moment when it comes.

#![expect(
    clippy::needless_pass_by_value,
    reason = "what Python hands over is owned, and bytes stay where Python has them"
)]

use crate::bytes::Bytes;
use crate::errors::{ExperimentError, InvalidError, of_simulation};
use kvssd_device::Device;
use kvssd_flash::{Profile, RopeBacking};
use kvssd_sim::SimError;
use kvssd_sim::bench::{designs, split_overrides};
use kvssd_types::{Command, Key, KvError, Nanos, Pattern, Reply, StoreCondition, Value};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// When a command is done, whether its key was there (or, of a store, whether there was room), and the bytes of the value.
type Answer = (u64, bool, u32);

/// A drive on virtual time.
#[pyclass(frozen, module = "kvssd._kvssd")]
pub(crate) struct RawDevice(Mutex<State>);

struct State {
    device: Device,
    now: Nanos,
    stores: u64,
    stored_bytes: u64,
}

#[pymethods]
impl RawDevice {
    /// A new drive; `overrides` are keys of the profile, and parameters of the design behind `design.`.
    #[new]
    fn new(design: String, profile: &str, scale: f64, overrides: Vec<(String, String)>) -> PyResult<Self> {
        let make = || -> Result<Device, SimError> {
            let (for_designs, for_profile) = split_overrides(&overrides);
            let profile = Profile::load(profile, &for_profile)?.scaled(scale)?;
            let design = designs(&[design], &for_designs)?.remove(0);
            Ok(Device::new(&design, &profile, Box::new(RopeBacking::new(profile.geometry)))?)
        };
        let device = make().map_err(|error| of_simulation(&error))?;
        Ok(RawDevice(Mutex::new(State { device, now: Nanos::ZERO, stores: 0, stored_bytes: 0 })))
    }

    fn store(&self, py: Python<'_>, at_ns: u64, key: Bytes, value_bytes: u32) -> PyResult<Answer> {
        self.ask(py, at_ns, |state| {
            state.stores += 1;
            let value = Value::Pattern(Pattern { seed: state.stores, offset: 0, length: value_bytes });
            let key = Key::new(&key)?;
            let answer = state.submit(Command::Store { key, value, condition: StoreCondition::Always }, at_ns)?;
            state.stored_bytes += if answer.1 { key.bytes().len() as u64 + u64::from(value_bytes) } else { 0 };
            Ok((answer.0, answer.1, value_bytes))
        })
    }

    fn retrieve(
        &self,
        py: Python<'_>,
        at_ns: u64,
        key: Bytes,
        offset_bytes: u32,
        length_bytes: u32,
    ) -> PyResult<Answer> {
        self.ask(py, at_ns, |state| {
            state.submit(Command::Retrieve { key: Key::new(&key)?, offset_bytes, length_bytes }, at_ns)
        })
    }

    fn delete(&self, py: Python<'_>, at_ns: u64, key: Bytes) -> PyResult<Answer> {
        self.ask(py, at_ns, |state| state.submit(Command::Delete { key: Key::new(&key)? }, at_ns))
    }

    fn exist(&self, py: Python<'_>, at_ns: u64, key: Bytes) -> PyResult<Answer> {
        self.ask(py, at_ns, |state| state.submit(Command::Exist { key: Key::new(&key)? }, at_ns))
    }

    /// The same drive at the same moment once more.
    fn fork(&self, py: Python<'_>) -> PyResult<Self> {
        py.detach(|| {
            let state = self.lock();
            let device = state.device.snapshot().ok_or_else(|| ExperimentError::new_err("it cannot be copied"))?;
            let State { now, stores, stored_bytes, .. } = *state;
            Ok(RawDevice(Mutex::new(State { device, now, stores, stored_bytes })))
        })
    }

    /// What its flash did, and how full it is.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.lock();
        let (engine, geometry) = (state.device.engine(), &state.device.profile().geometry);
        let flash = engine.flash_counters();
        let figures = [
            ("now_ns", state.now.0),
            ("flash_bytes", geometry.raw_bytes()),
            ("page_bytes", geometry.page_bytes.into()),
            ("value_bytes_max", engine.value_bytes_max()),
            ("stored_bytes", state.stored_bytes),
            ("pages_read", flash.reads.total()),
            ("pages_programmed", flash.programs.total()),
            ("erases", flash.erases),
        ];
        let dict = PyDict::new(py);
        figures.into_iter().try_for_each(|(name, figure)| dict.set_item(name, figure))?;
        Ok(dict)
    }
}

impl RawDevice {
    /// Asks the drive at a moment that is not before the last.
    fn ask(
        &self,
        py: Python<'_>,
        at_ns: u64,
        work: impl FnOnce(&mut State) -> Result<Answer, KvError> + Send,
    ) -> PyResult<Answer> {
        py.detach(|| {
            let mut state = self.lock();
            let now_ns = state.now.0;
            if at_ns < now_ns {
                let line =
                    format!("at_ns = {at_ns}: commands come in the order of time, and the last came at {now_ns}");
                return Err(InvalidError::new_err(line));
            }
            state.now = Nanos(at_ns);
            work(&mut state).map_err(|error| InvalidError::new_err(error.to_string()))
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn submit(&mut self, command: Command<'_>, at_ns: u64) -> Result<Answer, KvError> {
        let completion = self.device.submit(command, Nanos(at_ns));
        match completion.reply {
            Ok(Reply::Retrieved { value_bytes, .. }) => Ok((completion.done.0, true, value_bytes)),
            Ok(_) => Ok((completion.done.0, true, 0)),
            Err(KvError::KeyNotFound | KvError::CapacityExceeded) => Ok((completion.done.0, false, 0)),
            Err(other) => Err(other),
        }
    }
}
