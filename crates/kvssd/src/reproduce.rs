//! `kvssd reproduce`: a paper's claims.

use crate::Outcome;
use crate::arguments::{Paper, ReproduceOptions};
use crate::bench::split_overrides;
use crate::output::{JsonFile, print};
use crate::progress::Progress;
use kvssd_flash::Profile;
use kvssd_lab::claims::{Claim, reproduce_plus, reproduce_rhik, reproduce_study};
use serde_json::json;

/// Runs the claims.
pub fn run(options: &ReproduceOptions) -> Outcome {
    let json_file = JsonFile::open(options.json.as_deref())?;
    let (for_designs, for_profile) = split_overrides(&options.set);
    let scale = options.scale.unwrap_or(options.paper.default_scale());
    let mut progress = Progress::new();
    let claims = match options.paper {
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
    json_file.write(&json!({ "claims": claims }))
}

fn text_of(claim: &Claim) -> String {
    let Claim { id, claim, paper, ours, verdict, scale } = claim;
    let verdict = verdict.name();
    format!("{id:<8} {claim}\n{:<10} paper {paper}; ours {ours} (scale {scale}): {verdict}\n", "")
}
