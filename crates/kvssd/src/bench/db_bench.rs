//! `kvssd bench --db-bench`: benchmarks of db_bench on each design, in their order, on a new drive.

use crate::arguments::bench::BenchOptions;
use kvssd_sim::bench::{Testbed, VALUE_BYTES};
use kvssd_sim::experiment::{Check, DbBenchWork, Work};
use kvssd_sim::{Experiment, Setup, SimError};

/// Operations of a benchmark that does not go over all records, if nothing else is asked for.
const OPERATIONS: u64 = 1000;
const SCAN_LENGTH: u32 = 128;

/// The benchmarks on each design.
pub fn experiments(options: &BenchOptions, check: Check) -> Result<Vec<Experiment>, SimError> {
    let drive = &options.drive;
    let testbed = Testbed::load(&drive.design, &drive.profile, drive.scale, &drive.set)?;
    let value_bytes = options.value_bytes.unwrap_or(VALUE_BYTES);
    let fitting = || Setup::default_records(&testbed.designs, &testbed.scaled, drive.key_bytes, value_bytes);
    let work = DbBenchWork {
        benchmarks: drive.db_bench.clone(),
        records: options.records.unwrap_or_else(fitting),
        operations: options.operations.unwrap_or(OPERATIONS),
        key_bytes: drive.key_bytes,
        value_bytes,
        scan_length: drive.scan_length.unwrap_or(SCAN_LENGTH),
        threads: options.threads.unwrap_or(1),
    };
    testbed.experiments(options.experiment.seed, |_| Work::DbBench(work.clone()), check)
}
