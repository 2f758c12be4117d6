//! The laboratory's experiments. The interpreter goes on meanwhile, and Ctrl-C ends them.

#![expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]

use crate::errors::of_simulation;
use crate::json::object_of;
use kvssd_measure::Observer;
use kvssd_papers::claims::Paper;
use kvssd_sim::bench::Assignment;
use kvssd_sim::{Bench, SimError};
use pyo3::prelude::*;
use serde_json::json;
use std::str::FromStr;

/// Asks Python now and then whether somebody wants it to end.
#[derive(Default)]
struct Signals {
    raised: Option<PyErr>,
}

impl Observer for Signals {
    fn begin(&mut self, _phase: &str, _total: u64) {
        self.look();
    }

    fn progress(&mut self, _done: u64) {
        self.look();
    }

    fn is_interrupted(&self) -> bool {
        self.raised.is_some()
    }
}

impl Signals {
    fn look(&mut self) {
        if self.raised.is_none() {
            self.raised = Python::attach(|py| py.check_signals()).err();
        }
    }
}

/// Does an experiment without the interpreter's lock.
fn experiment<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut dyn Observer) -> Result<T, SimError> + Send,
) -> PyResult<T> {
    let (done, raised) = py.detach(|| {
        let mut signals = Signals::default();
        let done = work(&mut signals);
        (done, signals.raised)
    });
    match (done, raised) {
        (Err(SimError::Interrupted), Some(raised)) => Err(raised),
        (done, _) => done.map_err(|error| of_simulation(&error)),
    }
}

/// What a name stands for.
fn named<T: FromStr>(text: &str) -> PyResult<T>
where
    SimError: From<T::Err>,
{
    text.parse().map_err(|error| of_simulation(&SimError::from(error)))
}

/// Designs side by side under a YCSB workload; what is `None` is the command line's default.
#[pyfunction]
#[pyo3(signature = (
    designs, profile=None, scale=None, records=None, fill=None, overwrites=None, operations=None, workload=None, distribution=None,
    threads=None, queue_depth=None, rate=None, key_bytes=None, value_bytes=None, value_distribution=None, seed=None,
    overrides=Vec::new(),
))]
#[expect(clippy::too_many_arguments, reason = "they are the experiment's, each with a name in Python")]
pub(crate) fn bench<'py>(
    py: Python<'py>,
    designs: Vec<String>,
    profile: Option<String>,
    scale: Option<f64>,
    records: Option<u64>,
    fill: Option<f64>,
    overwrites: Option<u64>,
    operations: Option<u64>,
    workload: Option<&str>,
    distribution: Option<&str>,
    threads: Option<u32>,
    queue_depth: Option<u32>,
    rate: Option<f64>,
    key_bytes: Option<usize>,
    value_bytes: Option<u32>,
    value_distribution: Option<&str>,
    seed: Option<u64>,
    overrides: Vec<Assignment>,
) -> PyResult<Bound<'py, PyAny>> {
    let default = Bench::default();
    let bench = Bench {
        designs,
        profile: profile.unwrap_or(default.profile),
        scale: scale.unwrap_or(default.scale),
        records,
        fill: fill.unwrap_or(default.fill),
        overwrites,
        operations,
        rounds: default.rounds,
        series: None,
        workload: workload.map(named).transpose()?.unwrap_or(default.workload),
        distribution: distribution.map(named).transpose()?,
        threads: threads.unwrap_or(default.threads),
        queue_depth: queue_depth.unwrap_or(default.queue_depth),
        rate_per_s: rate,
        batch_pairs: default.batch_pairs,
        key_bytes: key_bytes.unwrap_or(default.key_bytes),
        value_bytes: value_bytes.unwrap_or(default.value_bytes),
        value_distribution: value_distribution.map(named).transpose()?.unwrap_or(default.value_distribution),
        seed: seed.unwrap_or(default.seed),
        overrides,
    };
    let runs = experiment(py, |observer| bench.run(observer))?;
    match runs.iter().map(|run| run.failed_retrieves).sum() {
        0 => object_of(py, &json!({ "runs": runs })),
        wrong => Err(of_simulation(&SimError::WrongValues(wrong))),
    }
}

/// A paper's claims.
#[pyfunction]
#[pyo3(signature = (paper, scale=None, seed=1, overrides=Vec::new()))]
pub(crate) fn reproduce<'py>(
    py: Python<'py>,
    paper: &str,
    scale: Option<f64>,
    seed: u64,
    overrides: Vec<Assignment>,
) -> PyResult<Bound<'py, PyAny>> {
    let paper: Paper = named(paper)?;
    let scale = scale.unwrap_or(paper.default_scale());
    let reproduction = experiment(py, |observer| paper.reproduce(&overrides, scale, seed, observer))?;
    object_of(py, &reproduction)
}
