//! `kvssd replay`: a trace on new drives, design by design.

use crate::Outcome;
use crate::arguments::replay::{CacheIn, ReplayOptions, ReplayPace};
use crate::fail::Failure;
use crate::output::{JsonFile, is_dash, print};
use crate::progress::Progress;
use kvssd_cache::CachePlan;
use kvssd_flash::Profile;
use kvssd_measure::{Observer, columns, grouped, size};
use kvssd_sim::bench::Testbed;
use kvssd_sim::replay::{ReplaySetup, Trace, TraceSummary};
use kvssd_sim::trace::{
    BadRecord, ColumnName, InputBytes, SAMPLE_BYTES, TraceError, TraceName, TraceReader, decoded, table,
};
use kvssd_sim::{Pace, RunReport, SimError, comparison};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, stdin};
use std::time::Instant;

/// Replays a trace, or says what is in it.
pub fn run(options: &ReplayOptions) -> Outcome {
    let json_file = JsonFile::open(options.experiment.json.as_deref())?;
    let setups = setups(options)?;
    let mut progress = Progress::new();
    if options.dry_run {
        return dry_run(options, &json_file, progress);
    }
    if setups.len() as u64 * options.repeat > 1 && is_dash(&options.trace) {
        return Err(input_error(options, "can be read once only: name one --design, and no --repeat".to_owned()));
    }
    let mut runs = Vec::new();
    for setup in &setups {
        let run = setup.replay(open(options)?, &mut progress).map_err(|error| of_replay(options, error))?;
        runs.push(run);
    }
    drop(progress);
    if !json_file.takes_stdout() {
        print(&comparison(&runs.iter().collect::<Vec<_>>()))?;
    }
    json_file.write(&json!({ "runs": runs }))?;
    let wrong = |run: &RunReport| run.failed_retrieves + run.trace.as_ref().map_or(0, |trace| trace.wrong_answers);
    match runs.iter().map(wrong).sum() {
        0 => Ok(()),
        wrong => Err(SimError::WrongAnswers(wrong).into()),
    }
}

/// Every design's setup, so that what is wrong with any of them is said before the first runs.
fn setups(options: &ReplayOptions) -> Result<Vec<ReplaySetup>, Failure> {
    check_columns(&options.column)?;
    let Testbed { designs, scaled: profile, .. } =
        Testbed::load(&options.design, &options.profile, options.scale, &options.set)?;
    let setup = |design| ReplaySetup {
        design,
        profile: profile.clone(),
        threads: options.threads,
        queue_depth: options.queue_depth,
        pace: if options.pace == ReplayPace::Trace { Pace::Trace } else { Pace::Closed },
        time_scale: options.time_scale,
        cache: cache_plan(options, &profile),
        is_drives_cache: options.cache_in == CacheIn::Drive,
        value_bytes_max: options.value_bytes_max,
        warm_up: options.warm_up,
        block_erases_max: options.block_erases,
        seed: options.experiment.seed,
    };
    Ok(designs.into_iter().map(setup).collect())
}

/// Refuses two columns of one meaning: one of them would be passed over.
fn check_columns(columns: &[ColumnName]) -> Outcome {
    let mut given = BTreeSet::new();
    match columns.iter().find(|column| !given.insert(column.meaning())) {
        Some(column) => Err(SimError::Setup(format!("--column {}= is given more than once", column.meaning())).into()),
        None => Ok(()),
    }
}

/// The cache that is asked for, of three quarters of the flash if nothing else is said.
fn cache_plan(options: &ReplayOptions, profile: &Profile) -> Option<CachePlan> {
    let budget_bytes = options.cache_bytes.unwrap_or(profile.geometry.raw_bytes() / 4 * 3);
    options.cache.map(|eviction| CachePlan { budget_bytes, eviction, admission: options.admit.clone() })
}

/// The trace, to be read as often as is asked for.
fn open(options: &ReplayOptions) -> Result<Trace<'_>, Failure> {
    let input = InputBytes::default();
    let (name, reader, bytes) = open_once(options, &input)?;
    let again = input.clone();
    let further = (1..options.repeat).map(move |_| match open_once(options, &again) {
        Ok((_, reader, _)) => Ok(reader),
        Err(failure) => Err(TraceError::Again(io::Error::other(failure.to_string()))),
    });
    let input_bytes = bytes.saturating_mul(options.repeat);
    Ok(Trace { name, reader, further: Box::new(further), input, input_bytes })
}

/// Opens its file: the format, its requests, and its bytes.
fn open_once(options: &ReplayOptions, read: &InputBytes) -> Result<(TraceName, TraceReader<'static>, u64), Failure> {
    let cannot = |error: io::Error| input_error(options, format!("cannot be read: {error}"));
    let (file, bytes): (Box<dyn Read>, u64) = if is_dash(&options.trace) {
        (Box::new(stdin().lock()), 0)
    } else {
        let file = File::open(&options.trace).map_err(cannot)?;
        let bytes = file.metadata().map_err(cannot)?.len();
        (Box::new(file), bytes)
    };
    let mut input = decoded(file, read).map_err(cannot)?;
    let mut sample = Vec::new();
    (&mut input).take(SAMPLE_BYTES as u64).read_to_end(&mut sample).map_err(cannot)?;
    if sample.is_empty() {
        let header = if options.format == Some(TraceName::Csv) { ": a csv begins with a header" } else { "" };
        return Err(input_error(options, format!("it is empty, and has no request{header}")));
    }
    let untold = || {
        let names = TraceName::ALL.map(TraceName::name).join(", ");
        let table = "--column key=NAME for a table whose header has no key";
        input_error(options, format!("its content does not tell its format: say --format, one of {names}; or {table}"))
    };
    let told = || TraceName::of_content(&sample);
    let of_columns = (!options.column.is_empty()).then_some(TraceName::Csv);
    let name = options.format.or(of_columns).or_else(told).ok_or_else(untold)?;
    let value_bytes = options.value_bytes.into();
    let format = match of_columns {
        Some(_) if name != TraceName::Csv => {
            return Err(SimError::Setup(format!("--column is for --format csv, and this is {name}")).into());
        }
        Some(_) => table(value_bytes, options.column.clone()),
        None => name.format(value_bytes),
    };
    Ok((name, TraceReader::new(input, &sample, format, options.bad_lines.into()), bytes))
}

fn dry_run(options: &ReplayOptions, json_file: &JsonFile, mut progress: Progress) -> Outcome {
    let Trace { name, reader, input, input_bytes, .. } = open(options)?;
    // Whatever is repeated, it is read once.
    progress.begin(&format!("{name}, bytes"), input_bytes / options.repeat);
    let started = Instant::now();
    let summary = TraceSummary::of(reader, name.name(), &input, &mut progress);
    let seconds = started.elapsed().as_secs_f64();
    drop(progress);
    let summary = summary.map_err(|error| of_replay(options, error))?;
    if !json_file.takes_stdout() {
        print(&columns(&rows(&summary, seconds)))?;
    }
    json_file.write(&json!({ "trace": summary }))
}

fn rows(summary: &TraceSummary, seconds: f64) -> Vec<Vec<String>> {
    let mut rows = vec![
        ("format", summary.format.to_owned()),
        ("lines", grouped(summary.lines)),
        ("bad lines", grouped(summary.bad_lines)),
        ("requests", grouped(summary.requests)),
    ];
    let actions: Vec<(String, u64)> =
        summary.actions.iter().map(|(name, count)| (format!("  {name}"), *count)).collect();
    rows.extend(actions.iter().map(|(name, count)| (name.as_str(), grouped(*count))));
    rows.extend([
        ("longest key", size(summary.key_bytes_max)),
        ("largest value", size(summary.value_bytes_max)),
        ("bytes of values to store", size(summary.written_bytes)),
        ("keys", grouped(summary.unique_keys)),
        ("their largest values together", size(summary.working_set_bytes)),
        ("duration", summary.duration_ns.map_or("-".to_owned(), |ns| format!("{:.0} s", ns as f64 / 1e9))),
        ("lines a second of this machine", grouped((summary.lines as f64 / seconds.max(1e-9)) as u64)),
    ]);
    rows.into_iter().map(|(name, figure)| vec![name.to_owned(), figure]).collect()
}

fn input_error(options: &ReplayOptions, why: String) -> Failure {
    Failure::of_input(&options.trace)(why)
}

/// Names the file where the trace is what is wrong.
fn of_replay(options: &ReplayOptions, error: SimError) -> Failure {
    match error {
        SimError::Trace(error @ TraceError::Bad { bad: BadRecord { is_fatal: false, .. }, .. }) => {
            input_error(options, format!("{error} (--bad-lines skip passes over such lines)"))
        }
        SimError::Trace(error) => input_error(options, error.to_string()),
        other => other.into(),
    }
}
