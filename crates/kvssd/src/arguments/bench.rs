//! The command line of `kvssd bench`.

use super::units::{count, duration, named, scale, size, small_count, small_size, some, window};
use super::{Assignment, Experiment, assignment};
use clap::{Args, ValueEnum};
use kvssd_embedded::Durability;
use kvssd_sim::TraceWindow;
use kvssd_sim::dbbench::DbBenchmark;
use kvssd_sim::workload::{Distribution, SizeDistribution, YcsbCore};
use kvssd_types::Nanos;
use std::path::PathBuf;

/// `kvssd bench`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd bench --design plus --design original --workload ycsb-a --distribution uniform --seed 1
  kvssd bench --profile my-drive.toml --scale 1 --records 1e6 --value-bytes 4KiB
  kvssd bench --set nand.erase_ns=3800000 --set design.grain_bytes=128
  kvssd bench --rate 150000                     an open loop: commands arrive at that rate
  kvssd bench --until steady                    rounds until five in a row are steady (SNIA PTS); the report is of those
  kvssd bench --rounds 10 --operations 50000    figures of each round, and confidence intervals
  kvssd bench --design plus --trace-out run.json.gz --trace-window 20ms..25ms    open it in https://ui.perfetto.dev
  kvssd bench --series 10ms --json runs.json    throughput, percentiles, collection and more over virtual time, in columns
  kvssd bench --series 10ms --html runs.html    the same as tables and plots, in a page
  kvssd bench --design iter --profile cosmos --scale 1/64 --key-bytes 4 --db-bench fillrandom,seekrandom --scan-length 512
  kvssd bench --kvbench bench_config.ini        KVbench's population and run (docs/WORKLOADS.md)
  kvssd bench --from runs.json                  what a report is of, once more: the same figures (docs/REPORT.md)
  kvssd bench --store folder                    the embedded store on real files, in wall-clock time
  kvssd bench --store folder --durability sync --threads 8 --value-bytes 100
  kvssd bench --store nvme+tcp://127.0.0.1:4420 --depths 1,32,128       a drive on the wire (see `kvssd serve`)")]
pub struct BenchOptions {
    /// Takes everything from a report, of kvssd bench or of a kvssd sweep: the same once more
    #[arg(long, value_name = "REPORT", conflicts_with_all = ["drive", "store", "seed", "records", "operations", "threads",
        "value_bytes"])]
    pub from: Option<PathBuf>,
    /// Pairs that the drive is filled with [default: as --fill says; with --store by durability and size, 20000 of a URL]
    #[arg(long, value_name = "N", value_parser = count)]
    pub records: Option<u64>,
    /// Operations of the run, or of each of its rounds [default: a tenth of the records; of each benchmark of --db-bench that does not go over
    /// all records: 1000; with --store, of each workload: as many as records, 100000 reads at least; 100000 of a URL]
    #[arg(long, value_name = "N", value_parser = count)]
    pub operations: Option<u64>,
    /// Rounds of the run, one behind the other; the report has the figures of each, confidence intervals, and whether the last five are
    /// steady [default: 1; the most with --until steady: 25]. With --store FOLDER, how often all is done; the table shows the median [default: 1]
    #[arg(long, value_name = "N", conflicts_with_all = ["kvbench", "db_bench"], value_parser = some)]
    pub rounds: Option<u32>,
    /// Host threads [default: 20; with --db-bench and with --store URL 1; with --store FOLDER 1, then 8]
    #[arg(long, value_name = "N", value_parser = small_count)]
    pub threads: Option<u32>,
    /// Bytes of a value, at most, 0 to 2 MiB; 12 B to 16 MiB with --store URL [default: 1000; with --store URL 4096, with --store FOLDER
    /// 100, then 4096]
    #[arg(long, value_name = "SIZE", value_parser = small_size)]
    pub value_bytes: Option<u32>,
    /// What it begins with, and where its reports go.
    #[command(flatten)]
    pub experiment: Experiment,
    /// Writes tables and plots of a drive on virtual time as a page to look at, or to - for the standard output
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    pub html: Option<PathBuf>,
    /// Of a drive on virtual time.
    #[command(flatten)]
    pub drive: DriveOptions,
    /// Of embedded stores on wall-clock time.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// What a drive on virtual time is, and what is done with it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of a drive on virtual time")]
#[group(id = "drive")]
pub struct DriveOptions {
    /// A design, again for each more to compare [default: original and plus]
    #[arg(long, conflicts_with = "store", value_name = "NAME")]
    pub design: Vec<String>,
    /// The testbed: a name (see `kvssd profiles`) or a TOML file
    #[arg(long, conflicts_with = "store", default_value = "kvvirt", value_name = "NAME|FILE")]
    pub profile: String,
    /// The part of the testbed's capacity and DRAM, as 1/64 or 0.25
    #[arg(long, conflicts_with = "store", default_value = "1/64", value_parser = scale, value_name = "FACTOR")]
    pub scale: f64,
    /// A workload of YCSB
    #[arg(long, conflicts_with = "store", default_value = "ycsb-a", value_name = "NAME",
        value_parser = named(YcsbCore::ALL, YcsbCore::name))]
    pub workload: YcsbCore,
    /// Runs a workload of KVbench, from its ini file, instead of a YCSB one: what it is and how long is all in the file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["store", "workload", "distribution", "records", "operations", "threads",
        "queue_depth", "rate", "batch_pairs", "key_bytes", "value_bytes", "value_distribution", "overwrites", "fill"])]
    pub kvbench: Option<PathBuf>,
    /// Runs benchmarks of db_bench on each drive, one after the other, instead of a YCSB workload
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = named(DbBenchmark::ALL, DbBenchmark::name),
        conflicts_with_all = ["store", "workload", "kvbench", "distribution", "overwrites", "queue_depth", "rate", "batch_pairs",
        "value_distribution"])]
    pub db_bench: Vec<DbBenchmark>,
    /// Calls of Next behind each Seek of db_bench's ranges
    /// [default: 128]
    #[arg(long, value_name = "N", requires = "db_bench", value_parser = small_count)]
    pub scan_length: Option<u32>,
    /// Which records are asked for [default: the workload's own]
    #[arg(long, conflicts_with = "store", value_name = "NAME", value_parser = named(Distribution::ALL, Distribution::name))]
    pub distribution: Option<Distribution>,
    /// The part of the flash that pairs take after the fill, of each design alone; where a design cannot, as much as it can
    /// [default: 0.745, as in the Plus paper]
    #[arg(long, conflicts_with_all = ["store", "records", "db_bench"], value_name = "SHARE", allow_negative_numbers = true)]
    pub fill: Option<f64>,
    /// Random overwrites before the run [default: as many as records]
    #[arg(long, conflicts_with = "store", value_name = "N", value_parser = count)]
    pub overwrites: Option<u64>,
    /// Runs rounds until the last five are steady: throughput, mean latency and write amplification each within 20 % of its mean, with a
    /// slope of 10 % at most. Those five are what is reported
    #[arg(long, conflicts_with_all = ["store", "kvbench", "db_bench"], value_name = "STATE")]
    pub until: Option<Until>,
    /// Cuts the run into intervals of virtual time, such as 10ms or 500us; the JSON has the figures of each
    #[arg(long, conflicts_with_all = ["store", "kvbench", "db_bench"], value_name = "TIME", value_parser = duration)]
    pub series: Option<Nanos>,
    /// Writes what every die, channel, core and the link did, and each command's way through them, for Perfetto; gzip where the name ends
    /// in .gz. Of one design
    #[arg(long, conflicts_with_all = ["store", "kvbench", "db_bench"], value_name = "FILE")]
    pub trace_out: Option<PathBuf>,
    /// The virtual time of the run that is in the trace [default: 0ms..10ms]
    #[arg(long, requires = "trace_out", value_name = "FROM..UNTIL", value_parser = window)]
    pub trace_window: Option<TraceWindow>,
    /// Commands that each thread has under way
    #[arg(long, conflicts_with = "store", default_value_t = 1, value_name = "N", value_parser = small_count)]
    pub queue_depth: u32,
    /// Commands a second, arriving at random however long the drive takes: the run has none of --threads then, nor of --queue-depth
    /// [default: a closed loop]
    #[arg(long, conflicts_with = "store", value_name = "PER_SECOND", allow_negative_numbers = true)]
    pub rate: Option<f64>,
    /// Updates that a thread gathers and sends as one atomic batch; each counts as an operation
    #[arg(long, conflicts_with = "store", default_value_t = 1, value_name = "N", value_parser = some)]
    pub batch_pairs: u32,
    /// Bytes of a key, 1 to 255
    #[arg(long, conflicts_with = "store", default_value_t = 8, value_name = "N")]
    pub key_bytes: usize,
    /// How the sizes of values are distributed
    #[arg(long, conflicts_with = "store", default_value = "constant", value_name = "NAME",
        value_parser = named(SizeDistribution::ALL, SizeDistribution::name))]
    pub value_distribution: SizeDistribution,
    /// Overrides a key of the profile (nand.erase_ns=5000000) or a parameter of the designs (design.grain_bytes=64, design.index=lsm for the index that
    /// an ordered namespace would have, design.victims=cost-benefit for what is collected first)
    #[arg(long, conflicts_with = "store", value_name = "KEY=VALUE", value_parser = assignment)]
    pub set: Vec<Assignment>,
}

/// What a run goes on to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Until {
    /// Five rounds that are steady
    Steady,
}

/// How embedded stores are measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of embedded stores, on wall-clock time and real files")]
#[group(skip)]
pub struct StoreOptions {
    /// Measures the embedded store in a folder that is made at this path and removed at the end, beside others if they are built
    /// in (cargo build --features rivals); or the drive on the wire at this URL
    #[arg(long, value_name = "PATH|URL")]
    pub store: Option<PathBuf>,
    /// Of a drive on the wire: commands that each thread has under way, measured one after the other
    /// [default: 1,32,128]
    #[arg(long, requires = "store", value_name = "N", value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub depths: Vec<u16>,
    /// What a returned write outlives: process (kill -9) or sync (power loss) [default: process, then sync]
    #[arg(long, requires = "store", value_name = "NAME", value_parser = named(Durability::ALL, Durability::name))]
    pub durability: Option<Durability>,
    /// Memory of each embedded store for its cache, as 64MiB [default: what the image takes by itself]
    #[arg(long, requires = "store", value_name = "SIZE", value_parser = size)]
    pub cache: Option<u64>,
    /// Leaves the folder where it is
    #[arg(long, requires = "store")]
    pub keep: bool,
}
