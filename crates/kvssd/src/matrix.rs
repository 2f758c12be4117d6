//! `kvssd matrix`: every design on every paper's headline workload, which is a sweep that comes along.

use crate::Outcome;
use crate::arguments::sweep::MatrixOptions;
use crate::output::print;
use crate::sweep::{self, Plan, SweepFile};
use kvssd_measure::columns;
use serde_json::Value;
use std::collections::BTreeMap;

/// The rows, and the drive.
const FILE: &str = include_str!("../../../examples/matrix.toml");

/// Runs what is missing, and prints who does how much in which row.
pub fn run(options: &MatrixOptions) -> Outcome {
    let plan = plan(options.seeds);
    sweep::run_plan(&plan, &options.runs)?;
    match options.runs.out.as_deref().filter(|_| !options.runs.list) {
        Some(out) => print(&table(&plan.index(), |path| sweep::report(out, path))),
        None => Ok(()),
    }
}

fn plan(seeds: Option<u16>) -> Plan {
    let seeds = seeds.map_or(String::new(), |seeds| format!("seed = {{ from = 1, to = {seeds} }}\n"));
    let text = FILE.replacen("[axes]\n", &format!("[axes]\n{seeds}"), 1);
    let mut file = SweepFile::parse(&text).expect("the file that comes along is right");
    // Somebody's own design is among them.
    file.set_axis("design", kvssd_designs::all().iter().map(|design| design.name.to_owned()));
    Plan::of(file).expect("the file that comes along can be run")
}

/// Throughput by row and design, in thousands of operations a second, of several seeds the mean; the highest of a row has a star.
fn table(index: &Value, report: impl Fn(&str) -> Option<Value>) -> String {
    let mut designs: Vec<&str> = Vec::new();
    let mut rows: Vec<(String, BTreeMap<&str, Vec<f64>>)> = Vec::new();
    let mut refusals: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for point in index["points"].as_array().into_iter().flatten() {
        let (row, design) = (point["at"]["row"].as_str().unwrap_or(""), point["at"]["design"].as_str().unwrap_or(""));
        if !designs.contains(&design) {
            designs.push(design);
        }
        if let Some(why) = point["impossible"].as_str() {
            let rows = refusals.entry(why).or_default();
            if rows.last() != Some(&row) {
                rows.push(row);
            }
        }
        let report = point["report"].as_str().and_then(&report);
        let runs = report.as_ref().and_then(|report| report["runs"].as_array());
        if !rows.iter().any(|(name, _)| name == row) {
            rows.push((row.to_owned(), BTreeMap::new()));
        }
        // Of benchmarks one after the other, the last one is what the row is about.
        if let (Some(run), Some((_, row))) = (runs.and_then(|runs| runs.last()), rows.last_mut()) {
            row.entry(design).or_default().push(run["throughput_ops_s"].as_f64().unwrap_or(0.0));
        }
    }
    let mean = |rates: Vec<f64>| rates.iter().sum::<f64>() / rates.len() as f64;
    let means =
        rows.into_iter().map(|(name, row)| (name, row.into_iter().map(|(of, rates)| (of, mean(rates))).collect()));
    let rows: Vec<(String, BTreeMap<&str, f64>)> = means.collect();
    let heading = std::iter::once("K operations/s".to_owned()).chain(designs.iter().map(|name| (*name).to_owned()));
    let line = |(name, row): &(String, BTreeMap<&str, f64>)| {
        let best = row.values().copied().fold(0.0, f64::max);
        let cell = |design: &&str| match row.get(design) {
            None => "-".to_owned(),
            Some(&rate) => {
                let (thousands, star) = (rate / 1e3, if rate == best { "*" } else { "" });
                let decimals = if thousands < 10.0 { 2 } else { 1 };
                format!("{thousands:.decimals$}{star}")
            }
        };
        std::iter::once(name.clone()).chain(designs.iter().map(cell)).collect::<Vec<_>>()
    };
    let lines: Vec<Vec<String>> = std::iter::once(heading.collect()).chain(rows.iter().map(line)).collect();
    let refusal = |(why, rows): (&&str, &Vec<&str>)| format!("not in {}: {why}\n", rows.join("; "));
    format!("\n{}\n{}", columns(&lines), refusals.iter().map(refusal).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_file_lists_the_designs_that_come_along() {
        let file = SweepFile::parse(FILE).unwrap();
        let listed: Vec<String> =
            file.points().unwrap().iter().map(|place| place.at[1].1.as_str().unwrap().to_owned()).collect();
        let known = kvssd_designs::all();
        assert_eq!(listed[..known.len()], known.iter().map(|design| design.name.to_owned()).collect::<Vec<_>>());
        assert!(plan(None).runs().len() > 8 * 7, "most designs can do most rows");
        assert_eq!(plan(Some(3)).runs().len(), 3 * plan(None).runs().len());
    }

    #[test]
    fn a_table_has_the_highest_of_each_row_and_why_others_are_not_there() {
        let index = json!({ "points": [
            { "at": { "row": "a", "design": "x" }, "report": "1" },
            { "at": { "row": "a", "design": "y" }, "impossible": "it has no order" },
            { "at": { "row": "b", "design": "x" }, "report": "2" },
            { "at": { "row": "b", "design": "y" }, "report": "2" },
            { "at": { "row": "b", "design": "y" }, "report": "4" },
        ]});
        let report = |path: &str| {
            Some(
                json!({ "runs": [{ "throughput_ops_s": 1e3 }, { "throughput_ops_s": path.parse::<f64>().unwrap() * 1e3 }] }),
            )
        };
        let table = table(&index, report);
        let words: Vec<&str> = table.split_whitespace().collect();
        assert_eq!(
            words[2..],
            ["x", "y", "a", "1.00*", "-", "b", "2.00", "3.00*", "not", "in", "a:", "it", "has", "no", "order"]
        );
    }
}
