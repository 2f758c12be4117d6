//! Sweeps: the command line's plan and folder, while somebody else decides where a point is run.

#![expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]

use crate::errors::{ExperimentError, of_failure, of_simulation};
use crate::watch::watched;
use kvssd_cli::{Claim, Folder, Limits, Plan, Report, Run};
use kvssd_sim::SimError;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The runs of a plan, by numbers from 0 on, and the folder of their reports.
#[pyclass(frozen, module = "kvssd._kvssd")]
pub(crate) struct RawSweep {
    runs: Vec<Run>,
    folder: Folder,
}

#[pymethods]
impl RawSweep {
    /// Plans what a file asks for, or the same as JSON, and puts the index into the folder.
    #[staticmethod]
    fn open(py: Python<'_>, file: Option<PathBuf>, json: &str, out: PathBuf) -> PyResult<Self> {
        let open = || {
            let plan = file.map_or_else(|| Plan::of_json(json), |file| Plan::load(&file))?;
            let folder = Folder::open(&out, &plan)?;
            Ok(RawSweep { runs: plan.runs().into_iter().map(|(_, run)| run.clone()).collect(), folder })
        };
        py.detach(open).map_err(|failure| of_failure(&failure))
    }

    /// How many runs there are.
    fn count(&self) -> usize {
        self.runs.len()
    }

    /// The runs that have no report: the number, operations, and the memory that it needs.
    fn missing(&self, py: Python<'_>) -> Vec<(usize, u64, u64)> {
        let needs = |(number, run): (usize, &Run)| (number, run.experiment.work.operations(), run.memory_bytes);
        py.detach(|| {
            let runs = self.runs.iter().enumerate();
            runs.filter(|(_, run)| self.folder.found(run).is_none()).map(needs).collect()
        })
    }

    /// What `run_point` is told of a run: the hash, and the experiment as JSON.
    fn point(&self, number: usize) -> PyResult<(String, String)> {
        let run = self.run(number)?;
        Ok((run.hash.clone(), serde_json::to_string(&run.experiment).expect("experiments can be written")))
    }

    /// The right to make the report of a run; none while another process has it.
    fn claim(&self, py: Python<'_>, number: usize) -> PyResult<Option<RawClaim>> {
        let run = self.run(number)?;
        let claim = py.detach(|| self.folder.claim(run)).map_err(|failure| of_failure(&failure))?;
        Ok(claim.map(|claim| RawClaim { hash: run.hash.clone(), claim: Mutex::new(Some(claim)) }))
    }

    /// Whether the report of a run is there.
    fn has(&self, py: Python<'_>, number: usize) -> PyResult<bool> {
        let run = self.run(number)?;
        Ok(py.detach(|| self.folder.found(run)).is_some())
    }

    /// An error when a drive gave wrong values in any run.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let wrong_values = |run: &Run| self.folder.found(run).map_or(0, |report| report.failed_retrieves());
        match py.detach(|| self.runs.iter().map(wrong_values).sum()) {
            0 => Ok(()),
            wrong => Err(of_simulation(&SimError::WrongValues(wrong))),
        }
    }
}

impl RawSweep {
    fn run(&self, number: usize) -> PyResult<&Run> {
        self.runs.get(number).ok_or_else(|| PyIndexError::new_err(format!("there is no run {number}")))
    }
}

/// The right to make a report, until it is kept or given up.
#[pyclass(frozen, module = "kvssd._kvssd")]
pub(crate) struct RawClaim {
    hash: String,
    claim: Mutex<Option<Claim>>,
}

#[pymethods]
impl RawClaim {
    /// Keeps the report that `run_point` gave.
    fn keep(&self, py: Python<'_>, report: &[u8]) -> PyResult<()> {
        let report = serde_json::from_slice::<Report>(report).ok();
        let is_of_this = |report: &Report| report.experiments.len() == 1 && report.experiments[0].hash == self.hash;
        let report = report.filter(is_of_this).ok_or_else(|| {
            ExperimentError::new_err("the executor gave something else than the report of the run that was asked for")
        })?;
        let Some(claim) = self.take() else { return Ok(()) };
        py.detach(|| claim.keep(&report)).map_err(|failure| of_failure(&failure))
    }

    /// Gives it up: the report is there, or others may make it.
    fn done(&self, py: Python<'_>) {
        let claim = self.take();
        py.detach(|| drop(claim));
    }
}

impl RawClaim {
    fn take(&self) -> Option<Claim> {
        self.claim.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Runs a point; gives its report as JSON.
#[pyfunction]
#[pyo3(signature = (hash, experiment, progress=None))]
pub(crate) fn run_point(
    py: Python<'_>,
    hash: &str,
    experiment: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<u8>> {
    let experiment = Run::planned(hash, experiment).map_err(|failure| of_failure(&failure))?;
    let report =
        watched(py, progress, |observer| Ok(Report::make(&experiment, |experiment| experiment.run(observer))?))?;
    Ok(serde_json::to_vec(&report).expect("reports can be written"))
}

/// The cores of this machine, and the memory that is free in it.
#[pyfunction]
pub(crate) fn limits() -> (usize, u64) {
    let Limits { cores, memory_bytes } = Limits::of_machine();
    (cores, memory_bytes)
}
