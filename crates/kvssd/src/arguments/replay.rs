//! The command line of `kvssd replay`.

use super::units::{cache_bytes, count, named, scale, small_count, small_size, some_count};
use super::{Assignment, Experiment, assignment};
use clap::{Args, ValueEnum};
use kvssd_cache::{AdmissionRule, EvictionPolicy};
use kvssd_flash::BLOCK_ERASES_MAX;
use kvssd_sim::trace::{BadLines, ColumnName, TraceName};
use std::path::PathBuf;

/// `kvssd replay`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd replay cluster12.000.zst --design plus --scale 1/8
  kvssd replay kvcache_traces_1.csv --pace trace --bad-lines skip --json runs.json
  kvssd replay w105.oracleGeneral.zst --format oracle-general
  kvssd replay mooncake_trace.jsonl --value-bytes 65536
  kvssd replay requests.csv --column key=obj_id --column value_size=bytes
  kvssd replay requests.csv.gz --dry-run        what is in it, without a drive
  kvssd replay kvcache.csv --cache s3-fifo --admit asked=2 --design tessera      hit ratio, wear, years of life
  zcat requests.csv.gz | kvssd replay - --format csv --design rhik

Formats (docs/WORKLOADS.md): twitter, meta, ibm, oracle-general, lcs, vscsi, lmcache, mlperf, mooncake, csv with named columns. gzip and zstd are unpacked.")]
pub struct ReplayOptions {
    /// The trace: a file, or - for the standard input
    pub trace: PathBuf,
    /// What the trace looks like [default: told from the content; oracle-general and vscsi must be named]
    #[arg(long, value_name = "NAME", value_parser = named(TraceName::ALL, TraceName::name))]
    pub format: Option<TraceName>,
    /// closed: as fast as the drive can; trace: requests arrive when the trace says
    #[arg(long, default_value = "closed", value_name = "NAME")]
    pub pace: ReplayPace,
    /// What a column of a csv is called: key=obj_id, again for each; also op, value_size, key_size, timestamp (_ms, _us, _ns), ttl, stream
    #[arg(long, value_name = "MEANING=NAME")]
    pub column: Vec<ColumnName>,
    /// What is done about lines that cannot be read: stop, or skip and count them
    #[arg(long, default_value = "stop", value_name = "NAME")]
    pub bad_lines: BadLinesName,
    /// Bytes of a value where the trace has no sizes: a block of Mooncake's (a real one is larger), CSV without a size
    #[arg(long, default_value = "1MiB", value_name = "SIZE", value_parser = small_size)]
    pub value_bytes: u32,
    /// The largest value, as 64MiB, where that is more than a record holds (2 MiB): such values are kept in segments, which
    /// some designs need --set geometry.oob_bytes=512 for; others are cut off
    #[arg(long, value_parser = super::units::value_bytes, value_name = "SIZE")]
    pub value_bytes_max: Option<u32>,
    /// A design, again for each more to compare [default: original and plus]
    #[arg(long, value_name = "NAME")]
    pub design: Vec<String>,
    /// The testbed: a name (see `kvssd profiles`) or a TOML file
    #[arg(long, default_value = "kvvirt", value_name = "NAME|FILE")]
    pub profile: String,
    /// The part of the testbed's capacity and DRAM, as 1/64 or 0.25
    #[arg(long, default_value = "1/64", value_parser = scale, value_name = "FACTOR")]
    pub scale: f64,
    /// Host threads of the closed pace
    #[arg(long, default_value_t = kvssd_sim::bench::THREADS, value_name = "N", value_parser = small_count)]
    pub threads: u32,
    /// Commands that each thread has under way
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = small_count)]
    pub queue_depth: u32,
    /// Overrides a key of the profile (nand.erase_ns=5000000) or a parameter of the designs (design.grain_bytes=64)
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    pub set: Vec<Assignment>,
    /// What it begins with, and where its reports go.
    #[command(flatten)]
    pub experiment: Experiment,
    /// Keeps a cache on the drive, from which so many leave that others have room: fifo, lru, s3-fifo, ttl (who expires first)
    #[arg(long, value_name = "NAME", value_parser = named(EvictionPolicy::known(), |policy| policy.name))]
    pub cache: Option<EvictionPolicy>,
    /// Who keeps the cache: a host, which deletes who leaves, or the drive by itself, which charges it to its DRAM
    #[arg(long, value_enum, default_value = "host", requires = "cache")]
    pub cache_in: CacheIn,
    /// Bytes of keys and values that the cache holds [default: three quarters of the flash]
    #[arg(long, value_name = "SIZE", value_parser = cache_bytes, requires = "cache")]
    pub cache_bytes: Option<u64>,
    /// Who comes into the cache: asked=2 (at the second miss), at-most=65536 (bytes), a-day=100000000000 (bytes written); all must agree
    #[arg(long, value_name = "RULE", requires = "cache")]
    pub admit: Vec<AdmissionRule>,
    /// Requests that fill the drive before the figures begin
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = count)]
    pub warm_up: u64,
    /// Replays the trace so many times, one behind the other
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = some_count)]
    pub repeat: u64,
    /// The trace's times go by so many times as fast, with --pace trace
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", allow_negative_numbers = true)]
    pub time_scale: f64,
    /// Erases that a block outlives, for the drive's years of life; the default is that of three bits a cell
    #[arg(long, default_value_t = BLOCK_ERASES_MAX, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub block_erases: u32,
    /// Reads the trace and says what is in it; no drive is simulated
    #[arg(long)]
    pub dry_run: bool,
}

/// When requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplayPace {
    /// When the one before is done
    Closed,
    /// When the trace says
    Trace,
}

/// Who keeps a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CacheIn {
    /// A host
    Host,
    /// The drive
    Drive,
}

/// What is done about bad lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BadLinesName {
    /// The first one ends the replay
    Stop,
    /// They are counted
    Skip,
}

impl From<BadLinesName> for BadLines {
    fn from(name: BadLinesName) -> Self {
        match name {
            BadLinesName::Stop => BadLines::Stop,
            BadLinesName::Skip => BadLines::Skip,
        }
    }
}
