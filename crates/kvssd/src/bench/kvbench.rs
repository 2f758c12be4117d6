//! `kvssd bench --kvbench`: a workload of KVbench on each design.

use crate::arguments::bench::BenchOptions;
use crate::fail::Failure;
use kvssd_sim::bench::Testbed;
use kvssd_sim::experiment::{Check, KvBenchWork, Work};
use kvssd_sim::{Experiment, SimError};
use std::path::Path;

/// The workload of an ini file on each design.
pub fn experiments(options: &BenchOptions, path: &Path, check: Check) -> Result<Vec<Experiment>, Failure> {
    let wrong = Failure::of_input(path);
    let text = std::fs::read(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let work = KvBenchWork { ini: String::from_utf8_lossy(&text).into_owned() };
    let drive = &options.drive;
    let testbed = Testbed::load(&drive.design, &drive.profile, drive.scale, &drive.set)?;
    let experiments = testbed.experiments(options.experiment.seed, |_| Work::Kvbench(work.clone()), check);
    experiments.map_err(|error| match error {
        SimError::Setup(_) | SimError::Workload(_) => wrong(error.to_string()),
        other => other.into(),
    })
}
