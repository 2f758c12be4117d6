//! `kvssd bench`: designs side by side under one workload, or embedded stores.

mod db_bench;
mod embedded;
mod kvbench;
mod wire;

use crate::Outcome;
use crate::arguments::bench::{BenchOptions, Until};
use crate::fail::{Failure, is_url};
use crate::output::{JsonFile, print};
use crate::progress::Progress;
use flate2::Compression;
use flate2::write::GzEncoder;
use kvssd_sim::steady::ROUNDS_MAX;
use kvssd_sim::{Bench, Rounds, RunReport, RunTrace, SimError, comparison};
use serde_json::json;
use std::io;
use std::path::Path;

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
    let bench = asked_for(options);
    let Some(path) = &options.drive.trace_out else {
        let runs = bench.run(&mut progress)?;
        drop(progress);
        return report(&runs, &json_file);
    };
    let trace_file = JsonFile::open(Some(path))?;
    let (run, trace) = bench.run_recorded(options.drive.trace_window, &mut progress)?;
    drop(progress);
    trace_file.write_bytes(&packed(&trace, path).map_err(|why| Failure::Output { path: path.clone(), why })?)?;
    if trace_file.takes_stdout() {
        json_file.write(&json!({ "runs": [run] }))?;
        return verdict(&[run]);
    }
    report(&[run], &json_file)
}

/// The bytes of a trace, which a name in .gz wants compressed.
fn packed(trace: &RunTrace, path: &Path) -> io::Result<Vec<u8>> {
    if path.extension().is_none_or(|extension| extension != "gz") {
        let mut bytes = Vec::new();
        trace.write(&mut bytes)?;
        return Ok(bytes);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    trace.write(&mut encoder)?;
    encoder.finish()
}

/// Shows and writes runs; gives the verdict on them.
fn report(runs: &[RunReport], json_file: &JsonFile) -> Outcome {
    if !json_file.takes_stdout() {
        print(&comparison(&runs.iter().collect::<Vec<_>>()))?;
    }
    json_file.write(&json!({ "runs": runs }))?;
    verdict(runs)
}

/// An error when one of the runs was given wrong values.
fn verdict(runs: &[RunReport]) -> Outcome {
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
