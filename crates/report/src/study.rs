//! What was run: groups of runs that differ in their seed alone, and the axes on which groups differ.

use crate::run::{self, Run};
use kvssd_measure::Figure;
use kvssd_sim::steady::Confidence;
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

/// What a report is made of.
#[derive(Debug, Default)]
pub struct Study {
    /// What it is of, by name: the program, options.
    pub(crate) facts: Vec<(String, String)>,
    /// What did not come out, and why.
    pub(crate) notes: Vec<String>,
    pub(crate) axes: Vec<Axis>,
    pub(crate) groups: Vec<Group>,
    pub(crate) claims: Vec<Value>,
    /// Of papers.
    pub(crate) figures: Vec<Figure>,
}

/// Options that groups differ in.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub name: String,
    /// In the order in which they come, or ascending when they are numbers.
    pub values: Vec<String>,
}

/// Runs that differ in their seed alone.
#[derive(Debug)]
pub struct Group {
    /// The number of the value on each axis.
    pub at: Vec<usize>,
    pub runs: Vec<Run>,
}

/// Why there is nothing to show.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum StudyError {
    /// A document of something else.
    #[error("it is no report of kvssd bench, replay or reproduce; of a sweep, give the folder")]
    Unknown,
    /// A report of embedded stores or a drive on the wire.
    #[error("it was measured on wall-clock time: there are pages of drives on virtual time only")]
    WallClock,
    /// A report of claims with a figure that is none.
    #[error("a figure in it cannot be drawn: {0}")]
    Figure(String),
    /// A report, but an empty one.
    #[error("there are no runs in it: {0}")]
    Empty(String),
}

/// A mean, and how far it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub mean: f64,
    /// Of the interval of 95 %; none of one figure.
    pub half_width: Option<f64>,
}

/// A run, with what it was asked, by axis.
struct Found {
    at: Vec<(String, String)>,
    run: Run,
}

/// Notes of one kind beyond these are counted only.
const NOTES_MAX: usize = 40;

/// The axis of names in a sweep's file, each of which stands for options of its own.
pub const ROW: &str = "row";

impl Study {
    /// Of a document as `kvssd bench`, `replay` or `reproduce` write it with `--json`.
    ///
    /// # Errors
    /// It is something else, or has no runs.
    pub fn of_report(document: &Value) -> Result<Study, StudyError> {
        if let Some(claims) = document["claims"].as_array() {
            return Ok(Study { claims: claims.clone(), figures: figures_of(document)?, ..Study::default() });
        }
        let runs = document["runs"].as_array().ok_or(StudyError::Unknown)?;
        if runs.iter().any(|run| run.get("wall_ns").is_some()) {
            return Err(StudyError::WallClock);
        }
        if runs.iter().any(|run| run.get("simulated_ns").is_none()) {
            return Err(StudyError::Unknown);
        }
        let at = |run: &Value| vec![("design".to_owned(), text_of(&run["design"]))];
        let found = runs.iter().zip(workloads(runs)).filter_map(|(run, workload)| found(at(run), run, workload));
        let found = found.collect();
        let mut study = Study { facts: facts(document), ..Study::default() };
        study.note("ended early", document["failure"].as_str().map(str::to_owned).into_iter().collect());
        study.arrange(found, document["failure"].as_str().unwrap_or("it is empty"))?;
        Ok(study)
    }

    /// Of the index of a sweep, and what gives a report by its path there, if it is done.
    ///
    /// # Errors
    /// It is no such index, or no report is done.
    pub fn of_sweep(index: &Value, mut report: impl FnMut(&str) -> Option<Value>) -> Result<Study, StudyError> {
        let (Some(points), Some(axes)) = (index["points"].as_array(), index["axes"].as_array()) else {
            return Err(StudyError::Unknown);
        };
        let keys: Vec<Vec<&str>> = axes
            .iter()
            .map(|axis| axis.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect())
            .collect();
        let mut found_all = Vec::new();
        let (mut impossible, mut failed, mut missing) = (Vec::new(), Vec::new(), 0);
        for point in points {
            let words = || in_words(&point["at"]);
            match point["report"].as_str().map(&mut report) {
                None => impossible.push(format!("{}: {}", words(), text_of(&point["impossible"]))),
                Some(None) => missing += 1,
                Some(Some(report)) => {
                    failed.extend(report["failure"].as_str().map(|why| format!("{}: {why}", words())));
                    let at = place(&keys, &point["at"]);
                    let runs = report["runs"].as_array().map_or(&[][..], Vec::as_slice);
                    let at_of =
                        |workload: &str| if runs.len() > 1 { with_workload(at.clone(), workload) } else { at.clone() };
                    let all = runs.iter().zip(workloads(runs));
                    found_all.extend(all.filter_map(|(run, workload)| found(at_of(&workload), run, workload)));
                }
            }
        }
        let mut study = Study { facts: facts(index), ..Study::default() };
        let seeds = axes.iter().filter_map(|axis| axis.get("seed"));
        study.facts.extend(seeds.map(|seeds| ("seeds".to_owned(), text_of(seeds))));
        study.note("impossible", impossible);
        study.note("ended early", failed);
        if missing > 0 {
            study.notes.push(format!("{missing} of {} points are not run yet", points.len()));
        }
        study.arrange(found_all, "none of its points is done: run kvssd sweep first")?;
        Ok(study)
    }

    fn note(&mut self, what: &str, mut notes: Vec<String>) {
        let more = notes.len().saturating_sub(NOTES_MAX);
        notes.truncate(NOTES_MAX);
        self.notes.extend(notes.into_iter().map(|note| format!("{what}: {note}")));
        if more > 0 {
            self.notes.push(format!("{what}: {more} points more"));
        }
    }

    /// Puts runs into groups. What all of them have in common is a fact, and no axis.
    fn arrange(&mut self, found: Vec<Found>, why_none: &str) -> Result<(), StudyError> {
        let first = found.first().ok_or_else(|| StudyError::Empty(why_none.to_owned()))?;
        let axes: Vec<Axis> = first.at.iter().map(|(name, _)| axis(name, &found)).collect();
        let (varied, common): (Vec<Axis>, Vec<Axis>) = axes.into_iter().partition(|axis| axis.values.len() > 1);
        let known: Vec<String> = self.facts.iter().map(|(name, _)| name.clone()).collect();
        let common = common.into_iter().filter(|axis| !known.contains(&axis.name));
        self.facts.extend(common.map(|axis| (axis.name, axis.values.concat())));
        self.axes = varied;
        let wrong: f64 = found.iter().filter_map(|found| found.run.number("/failed_retrieves")).sum();
        if wrong > 0.0 {
            self.notes.push(format!("{wrong} retrieves gave back something else than was stored: a bug of the design"));
        }
        for Found { at, run } in found {
            let number = |axis: &Axis| {
                let value = at.iter().find(|(name, _)| *name == axis.name).map_or("", |(_, value)| value);
                axis.values.iter().position(|known| known == value).unwrap_or(0)
            };
            let at: Vec<usize> = self.axes.iter().map(number).collect();
            match self.groups.iter_mut().find(|group| group.at == at) {
                Some(group) => group.runs.push(run),
                None => self.groups.push(Group { at, runs: vec![run] }),
            }
        }
        self.groups.sort_by(|a, b| a.at.cmp(&b.at));
        Ok(())
    }
}

impl Axis {
    /// Its values as numbers, if all are.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        self.values.iter().map(|value| value.parse().ok().filter(|number: &f64| number.is_finite())).collect()
    }
}

impl Group {
    /// A figure of its runs: over seeds or, of one run in rounds, over rounds.
    pub fn estimate(&self, figure: &run::Figure) -> Option<Estimate> {
        let figures: Vec<f64> = self.runs.iter().filter_map(|run| run.number(figure.pointer)).collect();
        match figures[..] {
            [] => None,
            [mean] => {
                let pointer = figure.of_rounds.map(|name| format!("/rounds/confidence_95/{name}/half_width"));
                let half_width = pointer.and_then(|pointer| self.runs[0].number(&pointer));
                Some(Estimate { mean, half_width })
            }
            _ => {
                let Confidence { mean, half_width } = Confidence::of(&figures);
                Some(Estimate { mean, half_width: Some(half_width) })
            }
        }
    }

    /// The mean of a number that runs have, where it is 0 in those that have none.
    pub fn mean(&self, of_run: impl Fn(&Run) -> f64) -> f64 {
        self.runs.iter().map(of_run).sum::<f64>() / self.runs.len() as f64
    }
}

/// The figures of papers in a document, which older ones do not have.
fn figures_of(document: &Value) -> Result<Vec<Figure>, StudyError> {
    let figures = document["figures"].as_array().map_or(&[][..], Vec::as_slice);
    let read = |figure: &Value| {
        let figure: Figure = Figure::deserialize(figure).map_err(|why| StudyError::Figure(why.to_string()))?;
        match figure.fault() {
            None => Ok(figure),
            Some(fault) => Err(StudyError::Figure(format!("{} figure {}: {fault}", figure.paper, figure.number))),
        }
    };
    figures.iter().map(read).collect()
}

fn found(mut at: Vec<(String, String)>, run: &Value, workload: String) -> Option<Found> {
    run.get("simulated_ns")?;
    if !at.iter().any(|(name, _)| name == "workload" || name == ROW) {
        at.push(("workload".to_owned(), workload));
    }
    Some(Found { at, run: Run(run.clone()) })
}

/// What the runs of a document do. What is done again on the same drive has a number: it is another state of that drive, and no other seed.
fn workloads(runs: &[Value]) -> Vec<String> {
    let key = |run: &Value| ["experiment", "design", "workload"].map(|name| text_of(&run[name]));
    let name = |(number, run): (usize, &Value)| {
        let before = runs[..number].iter().filter(|other| key(other) == key(run)).count();
        let workload = text_of(&run["workload"]);
        if before == 0 { workload } else { format!("{workload} {}", before + 1) }
    };
    runs.iter().enumerate().map(name).collect()
}

/// A row whose runs are several has a row for each of them.
fn with_workload(mut at: Vec<(String, String)>, workload: &str) -> Vec<(String, String)> {
    if let Some((_, row)) = at.iter_mut().find(|(name, _)| name == ROW) {
        *row = format!("{row}: {workload}");
    }
    at
}

/// Where a point is: the options of an axis that change together are one. Seeds are no place.
fn place(keys: &[Vec<&str>], at: &Value) -> Vec<(String, String)> {
    let keys = keys.iter().map(|keys| keys.iter().copied().filter(|key| *key != "seed").collect::<Vec<_>>());
    let values = |keys: &[&str]| keys.iter().map(|key| text_of(&at[*key])).collect::<Vec<_>>().join(", ");
    keys.filter(|keys| !keys.is_empty()).map(|keys| (keys.join(", "), values(&keys))).collect()
}

fn axis(name: &str, found: &[Found]) -> Axis {
    let mut values: Vec<String> = Vec::new();
    for (_, value) in found.iter().flat_map(|found| &found.at).filter(|(other, _)| other == name) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    let mut axis = Axis { name: name.to_owned(), values };
    if axis.numbers().is_some() {
        let number = |value: &String| value.parse::<f64>().unwrap_or(0.0);
        axis.values.sort_by(|a, b| number(a).total_cmp(&number(b)));
    }
    axis
}

/// What a document says about itself, and what all that it asks has in common.
fn facts(document: &Value) -> Vec<(String, String)> {
    let program = &document["program"];
    let mut facts = Vec::new();
    if let Some(version) = program["version"].as_str() {
        let commit = program["commit"].as_str().unwrap_or("unknown commit");
        facts.push(("program".to_owned(), format!("kvssd {version}, {commit}, {}", text_of(&program["compiler"]))));
    }
    let none = Map::new();
    let options = document["options"].as_object().unwrap_or(&none);
    facts.extend(options.iter().map(|(name, value)| (name.clone(), text_of(value))));
    let asked = document["experiments"].as_array().map_or(&[][..], Vec::as_slice);
    let in_common = |pointer: &str| {
        let value = asked.first()?.pointer(pointer)?;
        asked.iter().all(|other| other.pointer(pointer) == Some(value)).then(|| text_of(value))
    };
    let work = asked.first().and_then(|asked| asked["work"].as_object()).into_iter().flatten();
    // A file of KVbench's is too long, and the workload is an axis.
    let work = work.filter(|(name, value)| !value.is_null() && *name != "ini" && *name != "workload");
    let work = work.map(|(name, _)| (name.clone(), format!("/work/{name}")));
    let known = [("profile", "/profile/name"), ("scale", "/scale"), ("seed", "/seed")];
    let known = known.map(|(name, pointer)| (name.to_owned(), pointer.to_owned()));
    facts.extend(known.into_iter().chain(work).filter_map(|(name, pointer)| Some((name, in_common(&pointer)?))));
    facts
}

fn in_words(at: &Value) -> String {
    let fields = at.as_object().into_iter().flatten();
    fields.map(|(key, value)| format!("{key}={}", text_of(value))).collect::<Vec<_>>().join(" ")
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text_of).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name} {}", text_of(value))).collect::<Vec<_>>().join(", ")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
