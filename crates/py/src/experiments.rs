//! The laboratory's experiments. The interpreter goes on meanwhile, and Ctrl-C ends them.

#![expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]

use crate::errors::{of_failure, of_simulation};
use crate::json::object_of;
use crate::watch::watched;
use kvssd_cli::{Report, experiments_of};
use kvssd_papers::claims::Paper;
use kvssd_sim::{Experiment, SimError};
use pyo3::prelude::*;

/// What `kvssd bench` reports with options that are given as JSON.
#[pyfunction]
#[pyo3(signature = (options, progress=None))]
pub(crate) fn bench<'py>(py: Python<'py>, options: &str, progress: Option<Py<PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let experiments = experiments_of(options).map_err(|failure| of_failure(&failure))?;
    let report = watched(py, progress, |observer| {
        let runs = experiments.iter().map(|one: &Experiment| one.run(observer)).collect::<Result<Vec<_>, _>>()?;
        Ok(Report::of(&experiments, &runs))
    })?;
    match report.failed_retrieves() {
        0 => object_of(py, &report),
        wrong => Err(of_simulation(&SimError::WrongValues(wrong))),
    }
}

/// A paper's claims.
#[pyfunction]
#[pyo3(signature = (paper, scale=None, seed=1, overrides=Vec::new(), progress=None))]
pub(crate) fn reproduce<'py>(
    py: Python<'py>,
    paper: &str,
    scale: Option<f64>,
    seed: u64,
    overrides: Vec<(String, String)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let unknown = |_| {
        let known = Paper::ALL.map(Paper::name).join(", ");
        of_simulation(&SimError::Setup(format!("there is no paper {paper}; there are {known}")))
    };
    let paper: Paper = paper.parse().map_err(unknown)?;
    let scale = scale.unwrap_or(paper.default_scale());
    let reproduction = watched(py, progress, |observer| Ok(paper.reproduce(&overrides, scale, seed, observer)?))?;
    object_of(py, &reproduction)
}
