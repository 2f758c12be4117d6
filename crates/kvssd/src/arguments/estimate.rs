//! The command line of `kvssd estimate`.

use super::bench::BenchOptions;
use clap::Args;
use std::path::PathBuf;

/// `kvssd estimate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd estimate --design plus --design tessera --scale 1/256       what kvssd bench of the same would show, in milliseconds
  kvssd estimate --value-bytes 50 --set memory.dram_bytes=1000000000 --workload ycsb-c
  kvssd estimate --against results              beside every report of a sweep, and how far off (docs/ESTIMATE.md)
  kvssd estimate --against results --json -     the same for scripts")]
pub struct EstimateOptions {
    /// Reckons what the reports of a sweep's folder are of, and shows both
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["drive", "store", "seed", "records", "operations", "threads", "value_bytes",
        "from", "html"])]
    pub against: Option<PathBuf>,
    /// What is done with the drive.
    #[command(flatten)]
    pub bench: BenchOptions,
}
