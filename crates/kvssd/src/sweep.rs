//! `kvssd sweep`: benches over axes of options, each kept in a folder.
//!
//! ```text
//!   experiment.toml -> points -> experiments, possible or not -> index.json
//!                                   |  of this shard, not in the folder
//!                                   v
//!                         as many at once as cores and memory allow -> runs/<hash>.json, each whole or not there
//! ```
//!
//! Nothing in the folder depends on when, where or how often a sweep was begun.

mod file;
mod folder;
mod group;
mod plan;

pub use self::file::SweepFile;
pub use self::folder::Folder;
pub use self::plan::{Plan, Run, experiments_of};

use self::group::Group;
use crate::Outcome;
use crate::arguments::sweep::{RunsOptions, SweepOptions};
use crate::output::{counted, note, print};
use crate::report::COLLECTED_MIN;
use crate::workers::{self, Job, Limits};
use kvssd_measure::{columns, grouped, size};
use kvssd_sim::SimError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Runs what is missing of a file, or lists all.
pub fn run(options: &SweepOptions) -> Outcome {
    run_plan(&Plan::load(&options.experiment)?, &options.runs)
}

/// Runs what is missing of a plan, or lists all.
pub fn run_plan(plan: &Plan, options: &RunsOptions) -> Outcome {
    let mut runs = plan.runs();
    if let Some(shard) = options.shard {
        runs = runs.into_iter().enumerate().filter(|(number, _)| shard.has(*number)).map(|(_, run)| run).collect();
    }
    let Some(out) = options.out.as_deref().filter(|_| !options.list) else {
        return list(plan, &runs, options.out.as_deref());
    };
    let folder = Folder::open(out, plan)?;
    let mut limits = Limits::of_machine();
    limits.cores = options.jobs.map_or(limits.cores, usize::from);
    let missing: Vec<&Run> = runs.iter().map(|(_, run)| *run).filter(|run| folder.found(run).is_none()).collect();
    let groups = Group::of(&missing, &limits);
    announce(plan, runs.len(), missing.len(), &groups, &limits);
    let of_others = workers::run(groups.into_iter().map(|group| group.job(&folder)).collect(), &limits, "runs")?;
    // If a process that makes one of these dies, it is made here.
    let jobs = of_others.into_iter().flatten().map(|run| job(run, &folder)).collect();
    workers::run(jobs, &limits, "runs of other processes")?;
    summary(plan, &runs, &folder, out)
}

/// A report in the folder of a sweep, by the path that its index has.
pub fn report(out: &Path, path: &str) -> Option<Value> {
    serde_json::from_slice(&fs::read(out.join(path)).ok()?).ok()
}

fn job<'a>(run: &'a Run, folder: &'a Folder) -> Job<'a, ()> {
    let (operations, memory_bytes) = (run.experiment.work.operations(), run.memory_bytes);
    Job { operations, is_guess: false, memory_bytes, items: 1, work: Box::new(|observer| folder.make(run, observer)) }
}

/// Says what will be done, and what it needs.
fn announce(plan: &Plan, runs: usize, missing: usize, groups: &[Group<'_>], limits: &Limits) {
    let impossible: Vec<_> = plan.impossible().collect();
    if let Some((at, why)) = impossible.first() {
        note(&format!("{} impossible, such as {at}: {why}", counted(impossible.len(), "point")));
    }
    let Some(largest) = groups.iter().map(Group::memory_bytes).max() else { return };
    let known = match runs - missing {
        0 => String::new(),
        known => format!(", {known} more were run before"),
    };
    let drives = match groups.len() {
        drives if drives < missing => format!(" on {}", counted(drives, "filled drive")),
        _ => String::new(),
    };
    let at_once = limits.cores.min(groups.len());
    note(&format!(
        "{}{drives}, up to {at_once} at once, each with {} of memory at the most{known}",
        counted(missing, "run"),
        size(largest)
    ));
    if largest > limits.memory_bytes {
        note(&format!("{} are free: a run that needs more is done alone", size(limits.memory_bytes)));
    }
}

/// Lists the runs, and what is impossible.
fn list(plan: &Plan, runs: &[(String, &Run)], out: Option<&Path>) -> Outcome {
    let folder = out.map(Folder::find).transpose()?.flatten();
    let heading = ["run", "report", "operations", "memory", "state"].map(str::to_owned).to_vec();
    let row = |(at, run): &(String, &Run)| {
        let state = if folder.as_ref().is_some_and(|folder| folder.found(run).is_some()) { "done" } else { "missing" };
        let operations = grouped(run.experiment.work.operations());
        vec![at.clone(), run.hash.clone(), operations, size(run.memory_bytes), state.to_owned()]
    };
    print(&columns(&std::iter::once(heading).chain(runs.iter().map(row)).collect::<Vec<_>>()))?;
    match plan.points() - plan.impossible().count() - plan.runs().len() {
        0 => {}
        same => print(&format!("{} more, the same as others\n", counted(same, "point")))?,
    }
    list_impossible(plan)
}

/// Lists what is impossible, each reason once.
fn list_impossible(plan: &Plan) -> Outcome {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    plan.impossible().for_each(|(at, why)| reasons.entry(why).or_default().push(at));
    if !reasons.is_empty() {
        print(&format!("\nimpossible: {}\n", counted(plan.impossible().count(), "point")))?;
    }
    let points = |points: &[String]| points.iter().map(|at| format!("    {at}\n")).collect::<String>();
    reasons.iter().try_for_each(|(why, at)| print(&format!("  {why}\n{}", points(at))))
}

/// Says what is in the folder now; an error when a drive gave back wrong values.
fn summary(plan: &Plan, runs: &[(String, &Run)], folder: &Folder, out: &Path) -> Outcome {
    let (mut failed, mut wrong, mut little_collected) = (0, 0, Vec::new());
    for (at, run) in runs {
        let Some(report) = folder.found(run) else { continue };
        wrong += report.failed_retrieves();
        if !report.little_collected().is_empty() {
            little_collected.push(at);
        }
        if let Some(why) = report.failure {
            failed += 1;
            print(&format!("{at}: {why}\n"))?;
        }
    }
    if let Some(first) = little_collected.first() {
        note(&format!(
            "in {} of {} runs, such as {first}, garbage collection emptied fewer than {COLLECTED_MIN} superblocks, and how many is chance: take more operations, or rounds",
            little_collected.len(),
            runs.len()
        ));
    }
    let (reports, impossible) = (counted(runs.len(), "report"), counted(plan.impossible().count(), "point"));
    print(&format!(
        "{}: {reports}, {failed} of them of runs that ended early; {impossible} impossible\n",
        out.display()
    ))?;
    if wrong == 0 { Ok(()) } else { Err(SimError::WrongValues(wrong).into()) }
}
