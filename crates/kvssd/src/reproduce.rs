//! `kvssd reproduce`: papers' claims.
//!
//! ```text
//!   papers -> experiments -> not found before -> as many at once as there are cores -> findings -> table, JSON, document
//!                              ^ folder                                                  v folder
//! ```

mod document;
mod kept;
mod workers;

use self::kept::Kept;
use self::workers::Job;
use crate::Outcome;
use crate::arguments::{Paper, ReproduceOptions};
use crate::fail::Failure;
use crate::output::{JsonFile, print, say};
use kvssd_papers::claims::{Conditions, KamlCell, Paper as Known, Reproduction, Sweep, SweepCell};
use kvssd_sim::SimError;
use serde_json::json;
use std::path::PathBuf;

/// Where `all` is kept if nothing else is asked for.
const FOLDER: &str = "reproduction";

/// Runs the claims.
pub fn run(options: &ReproduceOptions) -> Outcome {
    let json_file = JsonFile::open(options.json.as_deref())?;
    let jobs = jobs(options)?;
    let folder = options.folder.clone().or((options.paper == Paper::All).then(|| PathBuf::from(FOLDER)));
    let kept = folder.as_deref().map(Kept::open).transpose()?;
    let found = workers::run(jobs, kept.as_ref())?;
    let mut reproduction = Reproduction::default();
    let mut times = Vec::new();
    for finding in found {
        times.push((finding.ids, finding.seconds));
        reproduction.add(finding.findings);
    }
    reproduction.sort();
    if let Some(claim) = &options.explain {
        reproduction.claims.retain(|found| found.id == *claim);
    }
    if let Some(kept) = &kept {
        let path = kept.write_document(&document::markdown(&reproduction.claims, &times))?;
        say(&format!("all of it is in {}", path.display()));
    }
    if !json_file.takes_stdout() {
        print(&document::text(&reproduction.claims))?;
    }
    if let Some(path) = &options.csv {
        let cells = match &reproduction.sweep {
            None => String::new(),
            Some(Sweep::Iter(cells)) => csv_of_iter(cells),
            Some(Sweep::Kaml(cells)) => csv_of_kaml(cells),
        };
        std::fs::write(path, cells).map_err(|why| Failure::Output { path: path.clone(), why })?;
    }
    json_file.write(&json!(reproduction))
}

/// What is to be run. That every drive of it can be is checked here.
fn jobs(options: &ReproduceOptions) -> Result<Vec<Job>, Failure> {
    let mut jobs = Vec::new();
    for paper in papers(options.paper) {
        let scale = options.scale.unwrap_or(paper.default_scale());
        let conditions = Conditions { paper, overrides: options.set.clone(), scale, seed: options.seed };
        let wanted = |ids: &[&str]| options.explain.as_deref().is_none_or(|claim| ids.contains(&claim));
        let experiments: Vec<_> = paper.experiments().iter().filter(|experiment| wanted(experiment.ids)).collect();
        if !experiments.is_empty() {
            paper.check(&conditions)?;
        }
        jobs.extend(experiments.into_iter().map(|experiment| Job { experiment, conditions: conditions.clone() }));
    }
    if jobs.is_empty() {
        let claim = options.explain.as_deref().unwrap_or_default();
        return Err(SimError::Setup(format!(
            "--explain {claim}: this paper has no such claim; they are called plus.1"
        ))
        .into());
    }
    Ok(jobs)
}

fn papers(paper: Paper) -> Vec<Known> {
    match paper {
        Paper::Iter => vec![Known::Iter],
        Paper::Plus => vec![Known::Plus],
        Paper::Kaml => vec![Known::Kaml],
        Paper::Rhik => vec![Known::Rhik],
        Paper::Study => vec![Known::Study],
        Paper::All => Known::ALL.to_vec(),
    }
}

fn csv_of_kaml(sweep: &[KamlCell]) -> String {
    let mut text = "claim,side,workload,value_bytes,parameter,setting,threads,per_second,latency_ns_mean\n".to_owned();
    for cell in sweep {
        let KamlCell { claim, side, workload, value_bytes, parameter, setting, threads, per_second, latency_ns_mean } =
            cell;
        // Names of engines have commas.
        let line = format!(
            "{claim},\"{side}\",{workload},{value_bytes},{parameter},{setting},{threads},{per_second:.0},{latency_ns_mean:.0}\n"
        );
        text.push_str(&line);
    }
    text
}

fn csv_of_iter(sweep: &[SweepCell]) -> String {
    let mut text =
        "order,value_bytes,scan_length,threads,degree,bytes_s,seek_ns_mean,next_ns_mean,next_ns_p999\n".to_owned();
    for cell in sweep {
        let SweepCell { order, value_bytes, scan_length, threads, degree, bytes_s, seek, next, .. } = cell;
        let (seek, mean, p999) = (seek.mean, next.mean, next.p999);
        let line =
            format!("{order},{value_bytes},{scan_length},{threads},{degree},{bytes_s:.0},{seek:.0},{mean:.0},{p999}\n");
        text.push_str(&line);
    }
    text
}
