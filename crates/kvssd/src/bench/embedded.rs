//! `kvssd bench --store`: embedded stores side by side.

use crate::Outcome;
use crate::arguments::bench::BenchOptions;
use crate::output::{JsonFile, print};
use crate::progress::Progress;
use kvssd_embedded::{Durability, EmbeddedError, HAS_RIVALS, Plan, measure};
use serde_json::json;
use std::path::Path;

/// How many threads call the stores, and how large values are, where nothing is said.
const THREADS: [u32; 2] = [1, 8];
const VALUES_BYTES: [usize; 2] = [100, 4096];

/// Measures the stores in a folder at `path`.
pub fn run(options: &BenchOptions, path: &Path) -> Outcome {
    if !options.store.depths.is_empty() {
        let why = "--depths is of a drive on the wire: a call of a store in a folder is done when it returns";
        return Err(EmbeddedError::Plan(why.to_owned()).into());
    }
    let json_file = JsonFile::open(options.experiment.json.as_deref())?;
    let plan = Plan {
        records: options.records,
        operations: options.operations,
        values_bytes: options.value_bytes.map_or(VALUES_BYTES.to_vec(), |bytes| vec![bytes as usize]),
        threads: options.threads.map_or(THREADS.to_vec(), |threads| vec![threads]),
        durabilities: options.store.durability.map_or(Durability::ALL.to_vec(), |durability| vec![durability]),
        rounds: options.rounds.unwrap_or(1),
        seed: options.experiment.seed,
        cache_bytes: options.store.cache,
    };
    let mut progress = Progress::new();
    let report = measure(&plan, path, options.store.keep, &mut progress)?;
    drop(progress);
    if !json_file.takes_stdout() {
        print(&report.table())?;
        if !HAS_RIVALS {
            print("\nkvssd alone: a program built with --features rivals shows fjall, redb and LMDB beside it\n")?;
        }
    }
    json_file.write(&json!({ "runs": report.measurements }))
}
