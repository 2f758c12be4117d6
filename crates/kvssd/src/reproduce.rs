//! `kvssd reproduce`: a paper's claims.

use crate::Outcome;
use crate::arguments::{Paper, ReproduceOptions};
use crate::fail::Failure;
use crate::output::{JsonFile, print};
use crate::progress::Progress;
use kvssd_papers::claims::{Claim, KamlCell, Paper as Known, Sweep, SweepCell};
use serde_json::json;

/// Runs the claims.
pub fn run(options: &ReproduceOptions) -> Outcome {
    let json_file = JsonFile::open(options.json.as_deref())?;
    let paper = known(options.paper);
    let scale = options.scale.unwrap_or(paper.default_scale());
    let mut progress = Progress::new();
    let reproduction = paper.reproduce(&options.set, scale, options.seed, &mut progress)?;
    drop(progress);
    if !json_file.takes_stdout() {
        print(&reproduction.claims.iter().map(text_of).collect::<String>())?;
    }
    if let Some(path) = &options.csv {
        let cells = match &reproduction.sweep {
            None => String::new(),
            Some(Sweep::Iter(cells)) => csv_of_iter(cells),
            Some(Sweep::Kaml(cells)) => csv_of_kaml(cells),
        };
        std::fs::write(path, cells)
            .map_err(|error| Failure::Input { path: path.clone(), why: format!("cannot be written: {error}") })?;
    }
    json_file.write(&json!(reproduction))
}

fn known(paper: Paper) -> Known {
    match paper {
        Paper::Iter => Known::Iter,
        Paper::Plus => Known::Plus,
        Paper::Kaml => Known::Kaml,
        Paper::Rhik => Known::Rhik,
        Paper::Study => Known::Study,
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

fn text_of(claim: &Claim) -> String {
    let Claim { id, claim, paper, ours, verdict, scale } = claim;
    let verdict = verdict.name();
    format!("{id:<8} {claim}\n{:<10} paper {paper}; ours {ours} (scale {scale}): {verdict}\n", "")
}
