//! `kvssd bench --db-bench`: benchmarks of db_bench on each design.

use crate::arguments::bench::BenchOptions;
use crate::fail::Failure;
use crate::progress::Progress;
use kvssd_flash::Profile;
use kvssd_sim::bench::{VALUE_BYTES, designs, split_overrides};
use kvssd_sim::dbbench::{DbBench, DbBenchSession, DbBenchmark};
use kvssd_sim::{RunReport, Setup};

/// Operations of a benchmark that does not go over all records, if nothing else is asked for.
const OPERATIONS: u64 = 1000;

/// Runs the benchmarks in their order on a new drive of each design; gives a report for each.
pub fn run(options: &BenchOptions) -> Result<Vec<RunReport>, Failure> {
    let (for_designs, for_profile) = split_overrides(&options.drive.set);
    let profile = Profile::load(&options.drive.profile, &for_profile)?.scaled(options.drive.scale)?;
    let value_bytes = options.value_bytes.unwrap_or(VALUE_BYTES);
    let designs = designs(&options.drive.design, &for_designs)?;
    let fitting = || Setup::default_records(&designs, &profile, options.drive.key_bytes, value_bytes);
    let bench = DbBench {
        records: options.records.unwrap_or_else(fitting),
        key_bytes: options.drive.key_bytes,
        value_bytes,
        scan_length: options.drive.scan_length,
        threads: options.threads.unwrap_or(1),
        seed: options.experiment.seed,
    };
    let mut progress = Progress::new();
    let mut reports = Vec::new();
    for design in &designs {
        let mut session = DbBenchSession::new(design, &profile, &bench)?;
        for &benchmark in &options.drive.db_bench {
            let operations = match benchmark {
                DbBenchmark::FillSeq | DbBenchmark::FillRandom | DbBenchmark::Overwrite => bench.records,
                _ => options.operations.unwrap_or(OPERATIONS),
            };
            reports.push(session.run(benchmark, operations, &mut progress)?.report);
        }
    }
    Ok(reports)
}
