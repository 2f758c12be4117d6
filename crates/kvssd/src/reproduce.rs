//! `kvssd reproduce`: papers' claims.
//!
//! ```text
//!   papers -> experiments -> not found before -> as many at once as there are cores -> findings -> table, JSON, document
//!                              ^ folder                                                  v folder
//! ```

mod document;
mod experiments;

use self::experiments::{Found, Wanted};
use crate::Outcome;
use crate::arguments::{Paper, ReproduceOptions};
use crate::fail::Failure;
use crate::kept::{Kept, refuse_foreign};
use crate::output::{JsonFile, note, print, refuse_one_place, say};
use crate::page;
use clap::ValueEnum;
use kvssd_papers::claims::{Cell, Conditions, Experiment, KamlCell, Paper as Known, Reproduction, SweepCell};
use kvssd_sim::{SimError, check_scale};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Where `all` is kept if nothing else is asked for.
const FOLDER: &str = "reproduction";

/// Runs the claims.
pub fn run(options: &ReproduceOptions) -> Outcome {
    let [json, html, csv] = [&options.json, &options.html, &options.csv].map(Option::as_deref);
    refuse_one_place(&[("--json", json), ("--html", html), ("--csv", csv)])?;
    let json_file = JsonFile::open(json)?;
    let html_file = JsonFile::open(html)?;
    let wanted = wanted(options)?;
    if let Some(csv) = csv {
        refuse_cells(csv, &wanted)?;
    }
    let csv_file = JsonFile::open(csv)?;
    let folder = options.folder.clone().or((options.paper == Paper::All).then(|| PathBuf::from(FOLDER)));
    let kept = folder.as_deref().map(Kept::open).transpose()?;
    let path = folder.filter(|_| options.explain.is_none()).map(|folder| folder.join("reproduction.md"));
    if let Some(path) = &path {
        refuse_foreign(path, "give another folder", |bytes| bytes.starts_with(document::HEADING.as_bytes()))?;
    }
    let document_file = JsonFile::open(path.as_deref())?;
    let mut reproduction = Reproduction::default();
    let mut times = Vec::new();
    let (found, mut failures) = experiments::run(&wanted, kept.as_ref())?;
    let failure = failures.pop().map_or(Ok(()), Err);
    failures.iter().for_each(|why| say(&why.to_string()));
    if found.is_empty() {
        return failure;
    }
    for Found { ids, findings, seconds, .. } in found {
        times.push((ids, seconds));
        reproduction.add(findings);
    }
    reproduction.sort();
    let of_all = document::markdown(&reproduction.claims, &times);
    if let Some(claim) = &options.explain {
        reproduction.retain(claim);
    }
    if ![&json_file, &html_file, &csv_file].into_iter().any(JsonFile::takes_stdout) {
        print(&document::text(&reproduction.claims))?;
    }
    if let Some(path) = path {
        document_file.write_bytes(of_all.as_bytes())?;
        note(&format!("all of it is in {}", path.display()));
    }
    csv_file.write_bytes(csv_of(&reproduction.sweep).as_bytes())?;
    let document = json!(reproduction);
    page::write(&html_file, "What of the papers comes out", &document)?;
    json_file.write(&document)?;
    failure
}

/// What is to be run. That every drive of it can be is checked here.
fn wanted(options: &ReproduceOptions) -> Result<Vec<Wanted>, Failure> {
    let papers = papers(options.paper);
    let mut wanted = Vec::new();
    for &paper in &papers {
        let scale = options.scale.unwrap_or(paper.default_scale());
        let conditions = Conditions { paper, overrides: options.set.clone(), scale, seed: options.seed };
        let is_meant = |ids: &[&str]| options.explain.as_deref().is_none_or(|claim| ids.contains(&claim));
        let meant: Vec<_> = paper.experiments().iter().filter(|experiment| is_meant(experiment.ids)).collect();
        check(&meant, &conditions)?;
        wanted.extend(meant.into_iter().map(|experiment| Wanted { experiment, conditions: conditions.clone() }));
    }
    if wanted.is_empty() {
        let claim = options.explain.as_deref().unwrap_or_default();
        let known: Vec<&str> =
            papers.iter().flat_map(|paper| paper.experiments()).flat_map(|one| one.ids).copied().collect();
        return Err(SimError::Setup(format!(
            "--explain {claim}: there is no such claim; there are {}",
            known.join(", ")
        ))
        .into());
    }
    Ok(wanted)
}

/// Refuses conditions under which a drive cannot be.
fn check(experiments: &[&Experiment], conditions: &Conditions) -> Result<(), SimError> {
    let at = |scale: f64| {
        let conditions = Conditions { scale, ..conditions.clone() };
        experiments.iter().try_for_each(|experiment| experiment.check(&conditions))
    };
    check_scale(conditions.scale, at)
}

/// Refuses a file for the cells of claims that have none, or of several papers, whose cells have other columns.
fn refuse_cells(csv: &Path, wanted: &[Wanted]) -> Result<(), Failure> {
    let refused = |why: &str| Err(SimError::Setup(format!("--csv {}: {why}", csv.display())).into());
    let with_cells = wanted.iter().filter(|wanted| wanted.experiment.has_cells);
    let mut papers: Vec<&str> = with_cells.map(|wanted| wanted.conditions.paper.name()).collect();
    papers.dedup();
    match papers[..] {
        [_] => Ok(()),
        [] => {
            let all = Known::ALL.into_iter().flat_map(|paper| paper.experiments());
            let ids: Vec<&str> = all.filter(|one| one.has_cells).flat_map(|one| one.ids).copied().collect();
            let ids = ids.join(", ");
            refused(&format!("these claims sweep over nothing and have no cells; those that have are {ids}"))
        }
        _ => {
            let papers = papers.join(" and ");
            refused(&format!("the cells of {papers} have other columns each: ask for one of these papers"))
        }
    }
}

fn papers(paper: Paper) -> Vec<Known> {
    match paper {
        Paper::All => Known::ALL.to_vec(),
        paper => {
            let value = paper.to_possible_value().expect("every paper has a name");
            vec![value.get_name().parse().expect("it is one of those that are known")]
        }
    }
}

/// The cells of a paper, a line each.
fn csv_of(cells: &[Cell]) -> String {
    let head = match cells.first() {
        None => "",
        Some(Cell::Kaml(_)) => "claim,side,workload,value_bytes,parameter,setting,threads,per_second,latency_ns_mean\n",
        Some(Cell::Iter(_)) => {
            "order,value_bytes,scan_length,threads,degree,bytes_s,seek_ns_mean,next_ns_mean,next_ns_p999\n"
        }
    };
    cells.iter().fold(head.to_owned(), |text, cell| text + &line_of(cell))
}

fn line_of(cell: &Cell) -> String {
    match cell {
        Cell::Kaml(cell) => {
            let KamlCell {
                claim,
                side,
                workload,
                value_bytes,
                parameter,
                setting,
                threads,
                per_second,
                latency_ns_mean,
            } = cell;
            // Names of engines have commas.
            format!(
                "{claim},\"{side}\",{workload},{value_bytes},{parameter},{setting},{threads},{per_second:.0},{latency_ns_mean:.0}\n"
            )
        }
        Cell::Iter(cell) => {
            let SweepCell { order, value_bytes, scan_length, threads, degree, bytes_s, seek, next, .. } = cell;
            let (seek, mean, p999) = (seek.mean, next.mean, next.p999);
            format!("{order},{value_bytes},{scan_length},{threads},{degree},{bytes_s:.0},{seek:.0},{mean:.0},{p999}\n")
        }
    }
}
