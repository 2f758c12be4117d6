//! What a sweep runs, point by point, found before the first run.

use super::file::{Axis, Place, Setting, SweepFile, arguments, flat, json, text};
use crate::arguments::bench::BenchOptions;
use crate::arguments::{Action, Arguments};
use crate::bench::experiments;
use crate::fail::Failure;
use crate::of_keys::of_keys;
use crate::program::{Program, content_hash};
use clap::Parser;
use kvssd_report::ROW;
use kvssd_sim::bench::DEFAULT_DESIGNS;
use kvssd_sim::{Experiment, SimError};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use toml::Value as Toml;

/// Options that say what is done with a report, or are of wall-clock time.
const NOT_OF_RUNS: [&str; 10] =
    ["store", "depths", "durability", "cache", "keep", "json", "html", "from", "trace-out", "trace-window"];

/// What a sweep runs.
pub struct Plan {
    file: SweepFile,
    points: Vec<Point>,
}

/// A point on the axes.
struct Point {
    at: Vec<Setting>,
    /// What is run there, or why that is impossible.
    run: Result<Run, String>,
}

/// An experiment that is to be run.
#[derive(Clone)]
pub struct Run {
    /// Of the experiment and the program: what its report is called.
    pub hash: String,
    /// What it is.
    pub experiment: Experiment,
    /// What it needs, at the most.
    pub memory_bytes: u64,
}

impl Plan {
    /// Reads the file and finds what it asks for at each point.
    ///
    /// # Errors
    /// When it cannot be read, asks for what is no option, or nothing in it is possible.
    pub fn load(path: &Path) -> Result<Plan, Failure> {
        Plan::of(SweepFile::load(path)?).map_err(Failure::of_input(path))
    }

    /// As [`Plan::load`], of the same as JSON.
    pub fn of_json(text: &str) -> Result<Plan, Failure> {
        let file = SweepFile::of_json(text);
        file.and_then(Plan::of).map_err(|why| SimError::Setup(format!("this is no sweep: {why}")).into())
    }

    /// Finds what a file asks for at each point.
    ///
    /// # Errors
    /// Why it cannot be run at all, in a line.
    pub fn of(mut file: SweepFile) -> Result<Plan, String> {
        if let Some(key) = file.keys().find(|key| NOT_OF_RUNS.contains(key)) {
            return Err(format!(
                "{key} is not for a sweep, which runs drives on virtual time and writes their reports itself"
            ));
        }
        if !file.keys().any(|key| key == "design") {
            let designs = DEFAULT_DESIGNS.map(|name| Toml::String(name.to_owned()));
            file.axes.insert(0, Axis(vec![("design".to_owned(), designs.to_vec())]));
        }
        let mut points = Vec::new();
        for Place { at, settings } in file.points()? {
            let options = options_of_point(&settings).map_err(|why| in_words(&at) + ": " + &of_keys(&why))?;
            let run = run(&options).map_err(|why| of_keys(&why.to_string()));
            points.push(Point { at, run });
        }
        let plan = Plan { file, points };
        if let Some((at, why)) = plan.impossible().next()
            && plan.runs().is_empty()
        {
            return Err(format!("none of its points is possible; {at}: {why}"));
        }
        Ok(plan)
    }

    /// What is to be run, each once, with where that is on the axes.
    #[must_use]
    pub fn runs(&self) -> Vec<(String, &Run)> {
        let mut known = BTreeSet::new();
        let runs = self.points.iter().filter_map(|point| Some((in_words(&point.at), point.run.as_ref().ok()?)));
        runs.filter(|(_, run)| known.insert(&run.hash)).collect()
    }

    /// Points on the axes.
    pub fn points(&self) -> usize {
        self.points.len()
    }

    /// Where nothing can be run, and why.
    pub fn impossible(&self) -> impl Iterator<Item = (String, &str)> {
        self.points.iter().filter_map(|point| Some((in_words(&point.at), point.run.as_ref().err()?.as_str())))
    }

    /// What the folder has where: the axes, and for each point its report or why there is none. It does not depend on what is run
    /// already.
    #[must_use]
    pub fn index(&self) -> Value {
        let point = |point: &Point| match &point.run {
            Ok(run) => json!({ "at": json(&point.at), "report": format!("runs/{}.json", run.hash) }),
            Err(why) => json!({ "at": json(&point.at), "impossible": why }),
        };
        let list = |(key, values): (String, Vec<Toml>)| (key, Toml::Array(values));
        let axes = self.file.axes.iter().map(|axis| axis.0.iter().cloned().map(list).collect::<Vec<_>>());
        let rows = &self.file.rows;
        let names = rows.iter().map(|(name, _)| Toml::String(name.clone())).collect();
        let of_rows = (!rows.is_empty()).then(|| vec![list((ROW.to_owned(), names))]);
        json!({
            "program": Program::this(),
            "options": json(&self.file.options),
            "rows": rows.iter().map(|(name, row)| (name.clone(), json(row).into())).collect::<Map<_, Value>>(),
            "axes": of_rows.into_iter().chain(axes).map(|axis| json(&axis)).collect::<Vec<_>>(),
            "points": self.points.iter().map(point).collect::<Vec<_>>(),
        })
    }
}

impl Run {
    /// The experiment of a run that this program planned, maybe on another machine.
    ///
    /// # Errors
    /// When it is none, or another program planned it, whose reports would have other names.
    pub fn planned(hash: &str, experiment: &str) -> Result<Experiment, Failure> {
        let setup = |why: String| Failure::Sim(SimError::Setup(why));
        let experiment =
            serde_json::from_str(experiment).map_err(|why| setup(format!("it is no experiment: {why}")))?;
        if content_hash(&experiment) == hash {
            return Ok(experiment);
        }
        let here = Program::this().name();
        Err(setup(format!(
            "the sweep was planned by another build, and this is {here}: install the same one everywhere"
        )))
    }
}

/// What `kvssd bench` runs with options that are given as JSON, by their names without the dashes.
///
/// # Errors
/// When there is no such option, or it cannot be that.
pub fn experiments_of(options: &str) -> Result<Vec<Experiment>, Failure> {
    let setup = |why: String| Failure::Sim(SimError::Setup(why));
    let table = serde_json::from_str(options).map_err(|why| setup(format!("these are no options: {why}")))?;
    experiments(&bench_options(arguments(&flat(table))).map_err(setup)?, Experiment::check)
}

/// What `kvssd bench` would be given at a point.
fn options_of_point(settings: &[Setting]) -> Result<BenchOptions, String> {
    let options = bench_options(arguments(settings))?;
    match options.drive.design.len() {
        1 => Ok(options),
        _ => Err("a run has one design: put a list of them under [axes]".to_owned()),
    }
}

fn bench_options(arguments: impl Iterator<Item = String>) -> Result<BenchOptions, String> {
    let line = ["kvssd", "bench"].map(str::to_owned).into_iter().chain(arguments);
    match Arguments::try_parse_from(line) {
        Ok(Arguments { action: Action::Bench(options), .. }) => Ok(*options),
        Ok(_) => unreachable!("bench is what was asked for"),
        Err(why) => Err(crate::one_line(&why.to_string())),
    }
}

fn run(options: &BenchOptions) -> Result<Run, Failure> {
    let experiment = experiments(options, Experiment::check)?.pop().expect("there is one design");
    let (hash, memory_bytes) = (content_hash(&experiment), experiment.memory_bytes()?);
    Ok(Run { hash, experiment, memory_bytes })
}

fn in_words(at: &[Setting]) -> String {
    match at {
        [] => "the only run".to_owned(),
        at => at.iter().map(|(key, value)| format!("{key}={}", text(value))).collect::<Vec<_>>().join(" "),
    }
}
