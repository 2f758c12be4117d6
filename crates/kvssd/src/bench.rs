//! `kvssd bench`: designs side by side under one workload, or embedded stores.

mod db_bench;
mod embedded;
mod kvbench;
mod wire;

use crate::Outcome;
use crate::arguments::bench::{BenchOptions, Until};
use crate::fail::is_url;
use crate::output::{JsonFile, print};
use crate::progress::Progress;
use kvssd_sim::steady::ROUNDS_MAX;
use kvssd_sim::{Bench, Rounds, RunReport, SimError, comparison};
use serde_json::json;

/// Runs the bench.
pub fn run(options: &BenchOptions) -> Outcome {
    if let Some(path) = &options.store.store {
        return if is_url(path) { wire::run(options, path) } else { embedded::run(options, path) };
    }
    let json_file = JsonFile::open(options.experiment.json.as_deref())?;
    if let Some(path) = &options.drive.kvbench {
        return report(&kvbench::run(options, path)?, &json_file);
    }
    if !options.drive.db_bench.is_empty() {
        return report(&db_bench::run(options)?, &json_file);
    }
    let mut progress = Progress::new();
    let runs = asked_for(options).run(&mut progress)?;
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
        wrong => Err(SimError::WrongValues(wrong).into()),
    }
}

fn asked_for(options: &BenchOptions) -> Bench {
    let (drive, default) = (&options.drive, Bench::default());
    let rounds = match drive.until {
        Some(Until::Steady) => Rounds::UntilSteady { most: options.rounds.unwrap_or(ROUNDS_MAX) },
        None => Rounds::Count(options.rounds.unwrap_or(1)),
    };
    Bench {
        designs: drive.design.clone(),
        profile: drive.profile.clone(),
        scale: drive.scale,
        records: options.records,
        fill: drive.fill.unwrap_or(default.fill),
        overwrites: drive.overwrites,
        operations: options.operations,
        rounds,
        series: drive.series,
        workload: drive.workload,
        distribution: drive.distribution,
        threads: options.threads.unwrap_or(default.threads),
        queue_depth: drive.queue_depth,
        rate_per_s: drive.rate,
        key_bytes: drive.key_bytes,
        value_bytes: options.value_bytes.unwrap_or(default.value_bytes),
        value_distribution: drive.value_distribution,
        seed: options.experiment.seed,
        overrides: drive.set.clone(),
    }
}
