//! `kvssd bench --kvbench`: a workload of KVbench on each design.

use crate::arguments::bench::BenchOptions;
use crate::fail::Failure;
use crate::progress::Progress;
use kvssd_flash::Profile;
use kvssd_sim::bench::{designs, split_overrides};
use kvssd_sim::workload::KvBench;
use kvssd_sim::{RunReport, Session, SimError};
use std::path::Path;

/// Runs the workload of an ini file; gives a report for each design and phase.
pub fn run(options: &BenchOptions, path: &Path) -> Result<Vec<RunReport>, Failure> {
    let wrong = |why: String| Failure::Input { path: path.to_owned(), why };
    let text = std::fs::read(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let bench = KvBench::parse(&String::from_utf8_lossy(&text)).map_err(|error| wrong(error.to_string()))?;
    let (for_designs, for_profile) = split_overrides(&options.drive.set);
    let profile = Profile::load(&options.drive.profile, &for_profile)?.scaled(options.drive.scale)?;
    let mut progress = Progress::new();
    let mut reports = Vec::new();
    for design in designs(&options.drive.design, &for_designs)? {
        let runs = Session::run_kvbench(&design, &profile, &bench, options.experiment.seed, &mut progress);
        let runs = runs.map_err(|error| match error {
            SimError::Setup(why) => wrong(why),
            other => other.into(),
        })?;
        reports.extend(runs.into_iter().map(|run| run.report));
    }
    Ok(reports)
}
