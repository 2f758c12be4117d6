//! The command line of `kvssd report`.

use clap::Args;
use std::path::PathBuf;

/// `kvssd report`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd report results -o report.html           of the folder of a kvssd sweep, also while it is still running
  kvssd report runs.json -o report.html         of a report of kvssd bench or kvssd replay
  kvssd report claims.json -o report.html       of what kvssd reproduce --json wrote

The page is one file without a network. It sorts, filters, and saves each plot as SVG and its data as CSV.")]
pub struct ReportOptions {
    /// The folder of a sweep, or a report in JSON
    pub results: PathBuf,
    /// The page, or - for the standard output
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub out: PathBuf,
}
