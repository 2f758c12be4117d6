//! `kvssd reproduce`: a paper's claims.

use crate::Outcome;
use crate::arguments::{Paper, ReproduceOptions};
use crate::bench::split_overrides;
use crate::fail::Failure;
use crate::output::{JsonFile, print};
use crate::progress::Progress;
use kvssd_flash::Profile;
use kvssd_lab::claims::{
    Claim, KamlCell, SweepCell, reproduce_iter, reproduce_kaml, reproduce_plus, reproduce_rhik, reproduce_study,
};
use serde_json::{Value, json};

/// Runs the claims.
pub fn run(options: &ReproduceOptions) -> Outcome {
    let json_file = JsonFile::open(options.json.as_deref())?;
    let (for_designs, for_profile) = split_overrides(&options.set);
    let scale = options.scale.unwrap_or(options.paper.default_scale());
    let mut progress = Progress::new();
    let mut sweep = None;
    let claims = match options.paper {
        Paper::Iter => {
            let profile = Profile::load("cosmos", &for_profile)?;
            let (claims, cells) = reproduce_iter(&profile, &for_designs, scale, options.seed, &mut progress)?;
            sweep = Some(Sweep { json: json!(cells), csv: csv_of_iter(&cells) });
            claims
        }
        Paper::Kaml => {
            let profile = Profile::load("kaml", &for_profile)?;
            let (claims, cells) = reproduce_kaml(&profile, &for_designs, scale, options.seed, &mut progress)?;
            sweep = Some(Sweep { json: json!(cells), csv: csv_of_kaml(&cells) });
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
        std::fs::write(path, sweep.as_ref().map_or("", |sweep| &sweep.csv))
            .map_err(|error| Failure::Input { path: path.clone(), why: format!("cannot be written: {error}") })?;
    }
    match sweep {
        None => json_file.write(&json!({ "claims": claims })),
        Some(sweep) => json_file.write(&json!({ "claims": claims, "sweep": sweep.json })),
    }
}

/// The cells of a sweep, in both forms.
struct Sweep {
    json: Value,
    /// A line for each.
    csv: String,
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
