//! `kvssd world`.

use clap::Args;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

/// `kvssd world`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd world                                          every scenario with every design, for some minutes
  kvssd world --scenario solo --drives 10000 --jobs 2 --json world.json
  kvssd world --scenario sweep --seed 0 --drives 5100  every call of a scripted life, struck in every way, on three drives
  kvssd world --scenario hosts --design plus --seed 17 --drives 1      a loss again, with its last steps

Each drive is alone in a world of its own: the same seed gives the same lives, on however many threads.
Exit status: 0 nothing lost; 1 something lost")]
pub struct WorldOptions {
    /// A scenario, or all of them
    #[arg(long, default_value = "all", value_name = "NAME")]
    pub scenario: String,
    /// A design, or all of them
    #[arg(long, default_value = "all", value_name = "NAME")]
    pub design: String,
    /// Drives for each scenario and design: each has a seed, and lives some dozen lives
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub drives: u64,
    /// Of the first drive; the next ones follow
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Threads [default: as many as the machine has cores]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Ends after so many minutes, with what there is then
    #[arg(long, value_name = "N")]
    pub minutes: Option<NonZeroU64>,
    /// Writes the reports to a file, or to - for the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
