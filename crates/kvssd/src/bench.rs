//! `kvssd bench`: designs side by side under one workload, or embedded stores.
//!
//! ```text
//!   options | --from report -> experiments, one a design -> as many at once as there are cores -> table, report, page
//! ```

mod db_bench;
mod embedded;
mod kvbench;
mod wire;

use crate::Outcome;
use crate::arguments::bench::{BenchOptions, Until};
use crate::fail::{Failure, is_url};
use crate::output::{JsonFile, note, print, refuse_one_place, say};
use crate::page;
use crate::progress::Progress;
use crate::report::{COLLECTED_MIN, Report, experiments_of};
use crate::workers::{self, Job, Limits};
use flate2::Compression;
use flate2::write::GzEncoder;
use kvssd_sim::experiment::Check;
use kvssd_sim::steady::ROUNDS_MAX;
use kvssd_sim::workload::PairShape;
use kvssd_sim::{Bench, Experiment, HostPlan, Rounds, RunReport, RunTrace, Setup, SimError, TraceWindow, comparison};
use kvssd_types::Nanos;
use serde_json::json;
use std::io;
use std::path::Path;

/// Less of what was asked for is told.
const FILLED_SHARE_MIN: f64 = 0.95;

/// What a trace shows of a run, if nothing else is asked for.
const TRACE_WINDOW: TraceWindow = TraceWindow { from: Nanos::ZERO, until: Nanos(10_000_000) };

/// Runs the bench.
pub fn run(options: &BenchOptions) -> Outcome {
    if let Some(path) = &options.store.store {
        return if is_url(path) { wire::run(options, path) } else { embedded::run(options, path) };
    }
    let [json, html] = [&options.experiment.json, &options.html].map(Option::as_deref);
    refuse_one_place(&[("--json", json), ("--html", html), ("--trace-out", options.drive.trace_out.as_deref())])?;
    let files = Files { json: JsonFile::open(json)?, html: JsonFile::open(html)? };
    let experiments = match &options.from {
        Some(path) => check_company(options).and_then(|()| experiments_of(path))?,
        None => experiments(options, Experiment::check)?,
    };
    if options.drive.series.is_some() && !files.json.is_wanted() && !files.html.is_wanted() {
        return Err(SimError::Setup("--series goes into the report: give --json FILE or --html FILE".to_owned()).into());
    }
    note_fills(options, &experiments)?;
    let Some(path) = &options.drive.trace_out else {
        let jobs = experiments.iter().map(job).collect::<Result<_, _>>()?;
        return show_done(&experiments, workers::run_each(jobs, &Limits::of_machine(), "runs"), &files);
    };
    let [experiment] = &experiments[..] else {
        return Err(SimError::Setup("--trace-out shows one run: name one --design".to_owned()).into());
    };
    let trace_file = JsonFile::open(Some(path))?;
    let mut progress = Progress::new();
    let filled = experiment.fill(&mut progress)?;
    let window = options.drive.trace_window.unwrap_or(TRACE_WINDOW);
    let (run, trace) = experiment.run_recorded_on(filled, window, &mut progress)?;
    drop(progress);
    trace_file.write_bytes(&packed(&trace, path).map_err(Failure::of_output(path))?)?;
    show(&experiments, &[vec![run]], &files, files.take_stdout() || trace_file.takes_stdout())
}

/// Tells of designs that are filled less far than they should, since no more pairs fit.
fn note_fills(options: &BenchOptions, experiments: &[Experiment]) -> Result<(), Failure> {
    if options.from.is_some() || options.records.is_some() {
        return Ok(());
    }
    let asked = options.drive.fill.unwrap_or(Setup::FILL);
    for experiment in experiments {
        if let Some(filled) = experiment.filled_share()?.filter(|filled| *filled < FILLED_SHARE_MIN * asked) {
            note(&format!(
                "{}: pairs take {filled:.3} of the flash, not {asked:.3} (--fill): beside its reserves and index no more fit",
                experiment.design_name()
            ));
        }
    }
    Ok(())
}

/// Where the report goes.
struct Files {
    json: JsonFile,
    html: JsonFile,
}

impl Files {
    fn take_stdout(&self) -> bool {
        self.json.takes_stdout() || self.html.takes_stdout()
    }
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

/// Shows and writes those runs that were done, if others were interrupted. Where the drive of a design is full, say, those of the designs before
/// it: which of the others were done by then depends on the machine.
fn show_done(
    experiments: &[Experiment],
    results: Vec<(usize, Result<Vec<RunReport>, Failure>)>,
    files: &Files,
) -> Outcome {
    let is_interrupt = |why: &Failure| matches!(why, Failure::Sim(SimError::Interrupted));
    let (mut done, mut runs, mut failure) = (Vec::new(), Vec::new(), None);
    for (number, result) in results {
        match result {
            Ok(run) if failure.as_ref().is_none_or(is_interrupt) => {
                done.push(experiments[number].clone());
                runs.push(run);
            }
            Ok(_) => {}
            Err(why) => failure = failure.or(Some(why)),
        }
    }
    match failure {
        None => show(&done, &runs, files, files.take_stdout()),
        Some(why) if !done.is_empty() => {
            let when = if is_interrupt(&why) { " before the interrupt" } else { "" };
            say(&format!("{} of {} designs were done{when}", done.len(), experiments.len()));
            let failure = format!("{why}: {} of {} designs are here", done.len(), experiments.len());
            show_with(Some(failure), &done, &runs, files, files.take_stdout()).and(Err(why))
        }
        Some(why) => Err(why),
    }
}

/// Shows and writes runs. An error when one of them was given wrong values.
fn show(experiments: &[Experiment], runs: &[Vec<RunReport>], files: &Files, is_quiet: bool) -> Outcome {
    show_with(None, experiments, runs, files, is_quiet)
}

/// As [`show`], with why others are not there.
fn show_with(
    failure: Option<String>,
    experiments: &[Experiment],
    runs: &[Vec<RunReport>],
    files: &Files,
    is_quiet: bool,
) -> Outcome {
    if !is_quiet {
        print(&comparison(&runs.iter().flatten().collect::<Vec<_>>()))?;
    }
    let report = Report { failure, ..Report::of(experiments, runs) };
    let little = report.little_collected();
    if !little.is_empty() {
        note(&format!(
            "{}: garbage collection emptied fewer than {COLLECTED_MIN} superblocks in the run, and how many is chance: take more --operations, or --rounds",
            little.join(", ")
        ));
    }
    let document = json!(report);
    files.json.write(&document)?;
    page::write(&files.html, "kvssd bench", &document)?;
    match report.failed_retrieves() {
        0 => Ok(()),
        wrong => Err(SimError::WrongValues(wrong).into()),
    }
}

/// What the options ask of each design, with nothing left to a default. What is impossible is said here.
pub fn experiments(options: &BenchOptions, check: Check) -> Result<Vec<Experiment>, Failure> {
    check_company(options)?;
    match &options.drive.kvbench {
        Some(path) => kvbench::experiments(options, path, check),
        None if !options.drive.db_bench.is_empty() => Ok(db_bench::experiments(options, check)?),
        None => Ok(asked_for(options).experiments(check)?),
    }
}

/// Refuses options whose company is missing. The parser does not, where the company could not be there either: beside `--scale`, say.
fn check_company(options: &BenchOptions) -> Result<(), Failure> {
    let BenchOptions { drive, store, .. } = options;
    let alone = [
        ("--scan-length", "--db-bench", drive.scan_length.is_some() && drive.db_bench.is_empty()),
        ("--depths", "--store", !store.depths.is_empty()),
        ("--durability", "--store", store.durability.is_some()),
        ("--cache", "--store", store.cache.is_some()),
        ("--keep", "--store", store.keep),
        ("--trace-window", "--trace-out", drive.trace_window.is_some() && drive.trace_out.is_none()),
    ];
    match alone.into_iter().find(|&(.., is_alone)| is_alone) {
        Some((option, company, _)) => Err(SimError::Setup(format!("{option} is for {company}")).into()),
        None => Ok(()),
    }
}

fn job(experiment: &Experiment) -> Result<Job<'_, Vec<RunReport>>, Failure> {
    let work = |observer: &mut dyn kvssd_measure::Observer| Ok(experiment.run(observer)?);
    let memory_bytes = experiment.memory_bytes()?;
    Ok(Job { operations: experiment.work.operations(), is_guess: false, memory_bytes, items: 1, work: Box::new(work) })
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
        hosts: HostPlan {
            threads: options.threads.unwrap_or(default.hosts.threads),
            queue_depth: drive.queue_depth,
            rate_per_s: drive.rate,
        },
        batch_pairs: drive.batch_pairs,
        pairs: PairShape {
            key_bytes: drive.key_bytes,
            value_bytes: options.value_bytes.unwrap_or(default.pairs.value_bytes),
            value_distribution: drive.value_distribution,
        },
        seed: options.experiment.seed,
        overrides: drive.set.clone(),
    }
}
