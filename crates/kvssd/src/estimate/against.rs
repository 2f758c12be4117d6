//! Estimates beside the reports of a sweep.
//!
//! ```text
//!   the runs have the figure, and the estimate     near, or off
//!   the runs have it, and there is no estimate     off
//!   the runs do not have it                        no cell: neither near nor off
//! ```

use crate::Outcome;
use crate::fail::Failure;
use crate::output::{JsonFile, print};
use crate::page::run_of_sweep;
use crate::report::of_document;
use kvssd_measure::columns;
use kvssd_model::Estimate;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// An estimate that is off by no more is near.
const NEAR: f64 = 0.15;
/// Where there is less of it, the difference itself counts: pages for an operation.
const LITTLE: f64 = 0.05;

/// A figure of an estimate, and the same of a report's run.
type Figure = (&'static str, fn(&Estimate) -> Option<f64>, fn(&Value) -> Option<f64>);

const FIGURES: [Figure; 6] = [
    ("ops/s", |estimate| Some(estimate.throughput_ops_s), |run| run["throughput_ops_s"].as_f64()),
    ("reads", |estimate| Some(estimate.flash_reads), |run| for_each_operation(run, "reads")),
    ("programs", |estimate| Some(estimate.flash_programs), |run| for_each_operation(run, "programs")),
    ("amplification", |estimate| estimate.write_amplification, |run| run["write_amplification"].as_f64()),
    ("retrieve p50", |estimate| estimate.retrieve_p50_ns, |run| median(run, &["seek", "retrieve"])),
    ("store p50", |estimate| estimate.store_p50_ns, |run| median(run, &["batch", "store"])),
];

/// Prints what the reports of the folder are of as reckoned and as run.
pub fn run(folder: &Path, file: &JsonFile) -> Outcome {
    let cells = cells(folder)?;
    if !file.takes_stdout() {
        print(&table(&cells))?;
    }
    file.write(
        &json!({ "near": NEAR, "cells": cells.iter().map(Cell::json).collect::<Vec<_>>(), "within": shares(&cells), "counts": counts_json(&cells) }),
    )
}

/// What one or more reports, of several seeds, are of.
struct Cell {
    name: String,
    /// Figure by figure as run; none where the runs do not have it: those of reads have no median of stores.
    measured: Vec<Option<f64>>,
    /// As reckoned, none where the model does not have it; or why there is no estimate.
    reckoned: Result<Vec<Option<f64>>, String>,
}

/// How a figure of a cell is counted; none where the runs do not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Near,
    Off,
    NotReckoned,
}

impl Cell {
    fn reckoned(&self, number: usize) -> Option<f64> {
        self.reckoned.as_ref().ok().and_then(|figures| figures[number])
    }

    fn verdict(&self, number: usize) -> Option<Verdict> {
        let run = self.measured[number]?;
        Some(match self.reckoned(number) {
            None => Verdict::NotReckoned,
            Some(estimate) if is_near(estimate, run) => Verdict::Near,
            Some(_) => Verdict::Off,
        })
    }

    fn json(&self) -> Value {
        let numbers = FIGURES.iter().enumerate();
        let figures: BTreeMap<&str, Value> = numbers
            .filter_map(|(number, (name, ..))| {
                let (estimate, run) = (self.reckoned(number), self.measured[number]?);
                Some((*name, json!({ "estimate": estimate, "run": run })))
            })
            .collect();
        match &self.reckoned {
            Err(why) => json!({ "cell": self.name, "impossible": why, "figures": figures }),
            Ok(_) => json!({ "cell": self.name, "figures": figures }),
        }
    }
}

/// Whether the estimate is as near as can be wished.
fn is_near(estimate: f64, run: f64) -> bool {
    (estimate - run).abs() <= (NEAR * run).max(if run < 10.0 { LITTLE } else { 0.0 })
}

fn cells(folder: &Path) -> Result<Vec<Cell>, Failure> {
    let wrong = |path: &Path, why: String| Failure::Input { path: path.to_owned(), why };
    let read = |path: &Path| -> Result<Value, Failure> {
        let text = fs::read_to_string(path).map_err(|why| wrong(path, why.to_string()))?;
        serde_json::from_str(&text).map_err(|why| wrong(path, format!("it is no JSON of a sweep: {why}")))
    };
    let index_path = folder.join("index.json");
    let index = read(&index_path)?;
    let points = index["points"]
        .as_array()
        .ok_or_else(|| wrong(&index_path, "it has no points: name the folder of a sweep".to_owned()))?;
    let mut cells: Vec<(String, Vec<Value>)> = Vec::new();
    for point in points {
        let Some(path) = point["report"].as_str().map(|path| folder.join(path)) else { continue };
        let Some(report) = run_of_sweep(&path)? else { continue };
        let settings = point["at"].as_object().into_iter().flatten().filter(|(key, _)| *key != "seed");
        let name = settings.map(|(_, value)| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let name = name.collect::<Vec<_>>().join(", ");
        // A drive that was full has none.
        if report["runs"].as_array().is_none_or(Vec::is_empty) {
            continue;
        }
        match cells.iter_mut().find(|(other, _)| *other == name) {
            Some((_, reports)) => reports.push(report),
            None => cells.push((name, vec![report])),
        }
    }
    if cells.is_empty() {
        return Err(wrong(&index_path, "no report of this sweep is there: run kvssd sweep first".to_owned()));
    }
    Ok(cells.into_iter().map(|(name, reports)| cell(name, reports)).collect())
}

fn cell(name: String, mut reports: Vec<Value>) -> Cell {
    // Of benchmarks one after the other, the last one is what the cell is about.
    let runs: Vec<Value> = reports.iter().filter_map(|report| report["runs"].as_array()?.last().cloned()).collect();
    let experiments =
        reports.pop().map_or(Err("there is none".to_owned()), of_document).map(|(_, experiments)| experiments);
    let first = experiments.and_then(|experiments| experiments.into_iter().next().ok_or("it is of nothing".to_owned()));
    let estimate = first.and_then(|experiment| experiment.estimate().map_err(|why| why.to_string()));
    let reckoned = estimate.map(|estimate| FIGURES.iter().map(|(_, reckon, _)| reckon(&estimate)).collect());
    let mean = |(_, _, measure): &Figure| {
        let measured: Vec<f64> = runs.iter().filter_map(measure).collect();
        (!measured.is_empty()).then(|| measured.iter().sum::<f64>() / measured.len() as f64)
    };
    Cell { name, measured: FIGURES.iter().map(mean).collect(), reckoned }
}

fn for_each_operation(run: &Value, kind: &str) -> Option<f64> {
    let pages: u64 = run["flash"][kind].as_object()?.values().filter_map(Value::as_u64).sum();
    Some(pages as f64 / run["operations"].as_f64()?)
}

fn median(run: &Value, commands: &[&str]) -> Option<f64> {
    let latencies = commands.iter().map(|command| &run["latency_ns"][command]);
    latencies.filter(|latency| latency["count"].as_u64() > Some(0)).find_map(|latency| latency["p50"].as_f64())
}

/// Of a figure, how many cells are so.
fn count(cells: &[Cell], number: usize, verdict: Option<Verdict>) -> usize {
    cells.iter().filter(|cell| cell.verdict(number) == verdict).count()
}

/// Of each figure, the share of the cells that have it where the estimate is near.
fn shares(cells: &[Cell]) -> BTreeMap<&'static str, f64> {
    let share = |number: usize| {
        let there = cells.len() - count(cells, number, None);
        count(cells, number, Some(Verdict::Near)) as f64 / there.max(1) as f64
    };
    FIGURES.iter().enumerate().map(|(number, (name, ..))| (*name, share(number))).collect()
}

/// How the cells of a figure are counted, and what the table says of it.
const COUNTS: [(&str, &str, Option<Verdict>); 4] = [
    ("near", "  near", Some(Verdict::Near)),
    ("off", "  off", Some(Verdict::Off)),
    ("not_reckoned", "  without an estimate, counted as off", Some(Verdict::NotReckoned)),
    ("no_cell", "  the runs have no such figure: no cell", None),
];

fn counts_json(cells: &[Cell]) -> BTreeMap<&'static str, BTreeMap<&'static str, usize>> {
    let of = |number| COUNTS.iter().map(|(key, _, verdict)| (*key, count(cells, number, *verdict))).collect();
    FIGURES.iter().enumerate().map(|(number, (name, ..))| (*name, of(number))).collect()
}

fn table(cells: &[Cell]) -> String {
    let heading = std::iter::once("reckoned / run; * off by more than 15 %".to_owned());
    let heading: Vec<String> = heading.chain(FIGURES.iter().map(|(name, ..)| titled(name))).collect();
    let line = |cell: &Cell| {
        let figure = |number: usize| match (cell.reckoned(number), cell.measured[number]) {
            (_, None) => String::new(),
            (None, Some(run)) => format!("- / {} *", short(run)),
            (Some(estimate), Some(run)) => {
                format!("{} / {}{}", short(estimate), short(run), if is_near(estimate, run) { "" } else { " *" })
            }
        };
        std::iter::once(cell.name.clone()).chain((0..FIGURES.len()).map(figure)).collect::<Vec<_>>()
    };
    let shares = shares(cells);
    let last = std::iter::once("cells that are near".to_owned());
    let last = last.chain(FIGURES.iter().map(|(name, ..)| format!("{:.1} %", 100.0 * shares[name]))).collect();
    let counted = COUNTS.iter().map(|(_, label, verdict)| {
        let counts = (0..FIGURES.len()).map(|number| count(cells, number, *verdict).to_string());
        std::iter::once((*label).to_owned()).chain(counts).collect::<Vec<_>>()
    });
    let lines: Vec<Vec<String>> =
        [heading].into_iter().chain(cells.iter().map(line)).chain([last]).chain(counted).collect();
    let refused = cells.iter().filter_map(|cell| Some(format!("{}: {}\n", cell.name, cell.reckoned.as_ref().err()?)));
    format!("{}{}", columns(&lines), refused.collect::<String>())
}

/// A figure's name, with its unit where that is not in it.
fn titled(name: &str) -> String {
    if name.ends_with("p50") { format!("{name}, ns") } else { name.to_owned() }
}

/// A number with three digits.
fn short(number: f64) -> String {
    match number.abs() {
        small if small < 10.0 => format!("{number:.2}"),
        small if small < 1e3 => format!("{number:.0}"),
        _ => format!("{:.1} K", number / 1e3),
    }
}
