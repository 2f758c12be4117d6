//! Reports of experiments: by which program, of what, and what came out.
//!
//! ```text
//!   { "program", "experiments": [ { "hash", .. }, .. ], "runs": [ { "experiment", .. }, .. ] }
//!                                   |                             |
//!                                   what is asked, whole          what came out; its `host` alone is of the machine
//! ```

use crate::fail::Failure;
use crate::of_keys::of_keys;
use crate::output::say;
use crate::program::{Program, content_hash};
use kvssd_sim::{Experiment, RunReport, SimError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Superblocks that garbage collection should empty in a run with stores. An estimate: one more or less is a tenth.
pub const COLLECTED_MIN: u64 = 10;

/// A report.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// By which it is.
    pub program: Program,
    /// What was asked.
    pub experiments: Vec<Asked>,
    /// What came out, in the order of the experiments, each of which has at least one.
    pub runs: Vec<Value>,
    /// Why nothing did, or not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// An experiment in a report.
#[derive(Debug, Serialize, Deserialize)]
pub struct Asked {
    /// Of the experiment and the program ([`content_hash`]).
    pub hash: String,
    /// What is asked.
    #[serde(flatten)]
    pub experiment: Value,
}

/// A run in a report.
#[derive(Serialize)]
struct Listed<'a> {
    experiment: &'a str,
    #[serde(flatten)]
    run: &'a RunReport,
}

impl Report {
    /// What came of experiments.
    #[must_use]
    pub fn of(experiments: &[Experiment], runs: &[Vec<RunReport>]) -> Report {
        let asked: Vec<Asked> = experiments.iter().map(Asked::of).collect();
        let listed = asked.iter().zip(runs).flat_map(|(asked, runs)| {
            runs.iter().map(|run| serde_json::to_value(Listed { experiment: &asked.hash, run }))
        });
        let runs = listed.collect::<Result<_, _>>().expect("runs can be written");
        Report { program: Program::this().clone(), experiments: asked, runs, failure: None }
    }

    /// Has an experiment run; gives a report that depends on nothing else. It says so when the run ends early, which it does each time.
    ///
    /// # Errors
    /// When the observer interrupts.
    pub fn make(
        experiment: &Experiment,
        run: impl FnOnce(&Experiment) -> Result<Vec<RunReport>, SimError>,
    ) -> Result<Report, SimError> {
        let asked = std::slice::from_ref(experiment);
        match run(experiment) {
            Ok(runs) => Ok(Report::of(asked, &[runs]).without_host()),
            Err(SimError::Interrupted) => Err(SimError::Interrupted),
            // Such as a drive that is full.
            Err(why) => Ok(Report { failure: Some(of_keys(&why.to_string())), ..Report::of(asked, &[]) }),
        }
    }

    /// The same without what it took of the machine.
    fn without_host(mut self) -> Report {
        for run in &mut self.runs {
            run.as_object_mut().expect("a run is an object").shift_remove("host");
        }
        self
    }

    /// Whether it is of the one experiment of that hash.
    #[must_use]
    pub fn is_of(&self, hash: &str) -> bool {
        matches!(&self.experiments[..], [asked] if asked.hash == hash)
    }

    /// Retrieves that gave something else than was stored.
    #[must_use]
    pub fn failed_retrieves(&self) -> u64 {
        self.runs.iter().filter_map(|run| run["failed_retrieves"].as_u64()).sum()
    }

    /// Designs of runs that met so little of garbage collection that chance decides how much.
    #[must_use]
    pub fn little_collected(&self) -> Vec<&str> {
        let is_little = |run: &&Value| {
            let collects =
                run["gc"]["busy_ns"].as_u64() > Some(0) && run["latency_ns"]["store"]["count"].as_u64() > Some(0);
            collects && run["gc"]["superblocks"].as_u64() < Some(COLLECTED_MIN) && run["rounds"].is_null()
        };
        self.runs.iter().filter(is_little).filter_map(|run| run["design"].as_str()).collect()
    }
}

impl Asked {
    fn of(experiment: &Experiment) -> Asked {
        let experiment_value = serde_json::to_value(experiment).expect("experiments can be written");
        Asked { hash: content_hash(experiment), experiment: experiment_value }
    }
}

/// The experiments of the report in a file.
pub fn experiments_of(path: &Path) -> Result<Vec<Experiment>, Failure> {
    let wrong = Failure::of_input(path);
    let text = fs::read(path).map_err(|why| wrong(format!("cannot be read: {why}")))?;
    let document: Value = serde_json::from_slice(&text).map_err(|why| wrong(format!("it is no JSON: {why}")))?;
    let (report, experiments) = of_document(document).map_err(wrong)?;
    if report.program.build != Program::this().build {
        say(&format!(
            "{} is by another build ({}), this one is {}: figures may differ",
            path.display(),
            report.program.name(),
            Program::this().name()
        ));
    }
    experiments.iter().try_for_each(Experiment::check)?;
    Ok(experiments)
}

/// A report, by whichever build, and its experiments as they are known here.
///
/// # Errors
/// What is wrong with it.
pub fn of_document(document: Value) -> Result<(Report, Vec<Experiment>), String> {
    if document.get("experiments").is_none() {
        return Err(why_not(&document).to_owned());
    }
    let report: Report = serde_json::from_value(document).map_err(|why| format!("it is no report: {why}"))?;
    let experiments = report.experiments.iter().map(|asked| serde_json::from_value(asked.experiment.clone()));
    let experiments =
        experiments.collect::<Result<_, _>>().map_err(|why| format!("what it asks is not known here: {why}"))?;
    Ok((report, experiments))
}

/// Why a document without experiments is none to run again.
fn why_not(document: &Value) -> &'static str {
    match document["runs"].get(0) {
        Some(run) if run.get("wall_ns").is_some() => {
            "it was measured on wall-clock time, which is never the same again: give its options"
        }
        Some(run) if run.get("simulated_ns").is_some() && run.get("trace").is_some() => {
            "it is of a trace: give kvssd replay the trace and the options again"
        }
        Some(run) if run.get("simulated_ns").is_some() => {
            "it is an older report, from before reports said what they are of: give its options"
        }
        _ => "it is no report of kvssd bench or kvssd sweep",
    }
}
