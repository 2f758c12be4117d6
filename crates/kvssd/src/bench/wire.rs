//! `kvssd bench --store URL`: a drive on the wire, by queue depth.

use crate::Outcome;
use crate::arguments::bench::BenchOptions;
use crate::fail::{Failure, of_image};
use crate::output::{JsonFile, print};
use crate::progress::Progress;
use kvssd_embedded::{EmbeddedError, WirePlan, measure_wire};
use kvssd_host::DriveUrl;
use serde_json::json;
use std::path::Path;

const RECORDS: u64 = 20_000;
const OPERATIONS: u64 = 100_000;
const VALUE_BYTES: usize = 4096;
const DEPTHS: [u16; 3] = [1, 32, 128];

/// Measures the drive at `url`.
pub fn run(options: &BenchOptions, path: &Path) -> Outcome {
    let store = &options.store;
    let is_of_folder = store.durability.is_some() || store.keep || store.cache.is_some();
    if is_of_folder || options.rounds.is_some_and(|rounds| rounds > 1) {
        let why =
            "--durability, --cache, --keep and --rounds are of stores in a folder: a drive on the wire is as served";
        return Err(EmbeddedError::Plan(why.to_owned()).into());
    }
    let json_file = JsonFile::open(options.experiment.json.as_deref())?;
    let url: DriveUrl = path.to_string_lossy().parse().map_err(Failure::of_store(path))?;
    let plan = WirePlan {
        url,
        queue_depths: if store.depths.is_empty() { DEPTHS.to_vec() } else { store.depths.clone() },
        threads: options.threads.unwrap_or(1),
        records: options.records.unwrap_or(RECORDS),
        operations: options.operations.unwrap_or(OPERATIONS),
        value_bytes: options.value_bytes.map_or(VALUE_BYTES, |bytes| bytes as usize),
        seed: options.experiment.seed,
    };
    let mut progress = Progress::new();
    let report = measure_wire(&plan, &mut progress).map_err(|error| named(error, path))?;
    drop(progress);
    if !json_file.takes_stdout() {
        print(&report.table())?;
    }
    json_file.write(&json!({ "runs": report.measurements }))
}

/// An error of a drive, which names it.
fn named(error: EmbeddedError, path: &Path) -> EmbeddedError {
    match error {
        EmbeddedError::Wire { why, pairs_left } => EmbeddedError::Wire { why: of_image(path, &why), pairs_left },
        error => error,
    }
}
