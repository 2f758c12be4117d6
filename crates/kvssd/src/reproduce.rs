//! `kvssd reproduce`: a paper's claims.

use crate::Outcome;
use crate::arguments::{Paper, ReproduceOptions};
use crate::bench::split_overrides;
use crate::fail::Failure;
use crate::output::{JsonFile, print};
use crate::progress::Progress;
use kvssd_flash::Profile;
use kvssd_lab::claims::{Claim, SweepCell, reproduce_iter, reproduce_plus, reproduce_rhik, reproduce_study};
use serde_json::json;

/// Runs the claims.
pub fn run(options: &ReproduceOptions) -> Outcome {
    let json_file = JsonFile::open(options.json.as_deref())?;
    let (for_designs, for_profile) = split_overrides(&options.set);
    let scale = options.scale.unwrap_or(options.paper.default_scale());
    let mut progress = Progress::new();
    let mut sweep = Vec::new();
    let claims = match options.paper {
        Paper::Iter => {
            let profile = Profile::load("cosmos", &for_profile)?;
            let (claims, cells) = reproduce_iter(&profile, &for_designs, scale, options.seed, &mut progress)?;
            sweep = cells;
            claims
        }
        Paper::Plus => {
            let profile = Profile::load("kvvirt", &for_profile)?;
            reproduce_plus(&profile, &for_designs, scale, options.seed, &mut progress)?
        }
        Paper::Rhik => {
            let profile = Profile::load("kvemu", &for_profile)?;
            reproduce_rhik(&profile, &for_designs, scale, options.seed, &mut progress)?
        }
        Paper::Study => {
            let profile = Profile::load("pm983", &for_profile)?;
            reproduce_study(&profile, &for_designs, scale, options.seed, &mut progress)?
        }
    };
    drop(progress);
    if !json_file.takes_stdout() {
        print(&claims.iter().map(text_of).collect::<String>())?;
    }
    if let Some(path) = &options.csv {
        std::fs::write(path, csv_of(&sweep))
            .map_err(|error| Failure::Input { path: path.clone(), why: format!("cannot be written: {error}") })?;
    }
    match sweep.is_empty() {
        true => json_file.write(&json!({ "claims": claims })),
        false => json_file.write(&json!({ "claims": claims, "sweep": sweep })),
    }
}

/// A line for each cell.
fn csv_of(sweep: &[SweepCell]) -> String {
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
