//! `kvssd bench`: designs side by side under one workload, or embedded stores.

mod db_bench;
mod embedded;
mod kvbench;
mod wire;

use crate::Outcome;
use crate::arguments::Assignment;
use crate::arguments::bench::BenchOptions;
use crate::fail::{Failure, is_url};
use crate::output::{JsonFile, print};
use crate::progress::Progress;
use kvssd_flash::Profile;
use kvssd_ftl::{Design, DesignError};
use kvssd_lab::{LabError, Pace, RunReport, Session, Setup, comparison};
use serde_json::json;

/// Host threads, if nothing else is asked for.
pub const THREADS: u32 = 20;
const VALUE_BYTES: u32 = 1000;

/// What is compared unless something else is asked for: the Plus paper's two.
const DEFAULT_DESIGNS: [&str; 2] = ["original", "plus"];

/// What the parameters of designs begin with among the overrides.
const DESIGN_PREFIX: &str = "design.";

/// Runs the bench.
pub fn run(options: &BenchOptions) -> Outcome {
    if let Some(path) = &options.store.store {
        return if is_url(path) { wire::run(options, path) } else { embedded::run(options, path) };
    }
    let json_file = JsonFile::open(options.json.as_deref())?;
    if let Some(path) = &options.drive.kvbench {
        return report(&kvbench::run(options, path)?, &json_file);
    }
    if !options.drive.db_bench.is_empty() {
        return report(&db_bench::run(options)?, &json_file);
    }
    let setups = setups(options)?;
    let mut progress = Progress::new();
    let mut runs = Vec::new();
    for setup in &setups {
        runs.push(run_one(setup, options, &mut progress)?);
    }
    drop(progress);
    report(&runs, &json_file)
}

/// Shows and writes runs; an error when one of them was given wrong values.
fn report(runs: &[RunReport], json_file: &JsonFile) -> Outcome {
    if !json_file.takes_stdout() {
        print(&comparison(&runs.iter().collect::<Vec<_>>()))?;
    }
    json_file.write(&json!({ "runs": runs }))?;
    match runs.iter().map(|run| run.failed_retrieves).sum() {
        0 => Ok(()),
        wrong => Err(LabError::WrongValues(wrong).into()),
    }
}

fn run_one(setup: &Setup, options: &BenchOptions, progress: &mut Progress) -> Result<RunReport, Failure> {
    let operations = options.operations.unwrap_or(setup.records.div_ceil(10));
    let mut session = Session::new(setup, if options.drive.workload.inserts() { operations } else { 0 })?;
    session.check_workload(options.drive.workload)?;
    session.fill(progress)?;
    session.overwrite(options.drive.overwrites.unwrap_or(setup.records), progress)?;
    Ok(session.run(options.drive.workload, options.drive.distribution, operations, progress)?.report)
}

/// Every design's setup, so that what is wrong with any of them is said before the first runs.
fn setups(options: &BenchOptions) -> Result<Vec<Setup>, Failure> {
    let (for_designs, for_profile) = split_overrides(&options.drive.set);
    let profile = Profile::load(&options.drive.profile, &for_profile)?.scaled(options.drive.scale)?;
    let value_bytes = options.value_bytes.unwrap_or(VALUE_BYTES);
    let designs = designs(&options.drive.design, &for_designs)?;
    let records = options
        .records
        .unwrap_or_else(|| Setup::default_records(&designs, &profile, options.drive.key_bytes, value_bytes));
    designs
        .into_iter()
        .map(|design| {
            let setup = Setup {
                design,
                profile: profile.clone(),
                records,
                key_bytes: options.drive.key_bytes,
                value_bytes,
                value_distribution: options.drive.value_distribution,
                threads: options.threads.unwrap_or(THREADS),
                queue_depth: options.drive.queue_depth,
                pace: options.drive.rate.map_or(Pace::Closed, |rate_per_s| Pace::Open { rate_per_s }),
                seed: options.seed,
            };
            setup.check(options.operations.unwrap_or(0), options.drive.workload.inserts())?;
            Ok(setup)
        })
        .collect()
}

/// What is to be put over the designs, and over the profile.
pub fn split_overrides(overrides: &[Assignment]) -> (Vec<Assignment>, Vec<Assignment>) {
    let (mut for_designs, for_profile): (Vec<_>, Vec<_>) =
        overrides.iter().cloned().partition(|(key, _)| key.starts_with(DESIGN_PREFIX));
    for (key, _) in &mut for_designs {
        key.drain(..DESIGN_PREFIX.len());
    }
    (for_designs, for_profile)
}

/// The designs of these names, or the default ones, with parameters put over them.
pub fn designs(names: &[String], parameters: &[(String, String)]) -> Result<Vec<Design>, DesignError> {
    let mut designs = if names.is_empty() {
        DEFAULT_DESIGNS.iter().map(|name| Design::named(name)).collect::<Result<Vec<_>, _>>()?
    } else {
        names.iter().map(|name| Design::named(name)).collect::<Result<Vec<_>, _>>()?
    };
    for design in &mut designs {
        for (key, value) in parameters {
            design.set(key, value)?;
        }
    }
    Ok(designs)
}
