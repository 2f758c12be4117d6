//! The command line.

pub mod bench;
pub mod estimate;
pub mod image;
pub mod namespace;
pub mod replay;
pub mod report;
pub mod serve;
pub mod sweep;
pub mod units;
pub mod world;

use bench::BenchOptions;
use clap::{Args, Parser, Subcommand, ValueEnum};
use estimate::EstimateOptions;
use image::{
    CreateOptions, DeleteOptions, DumpOptions, ExistOptions, GetOptions, ImageOptions, ListOptions, LoadOptions,
    PutOptions, StatOptions,
};
use kvssd_designs::split_overrides;
use namespace::NamespaceAction;
use replay::ReplayOptions;
pub use report::ReportOptions;
use serve::ServeOptions;
use std::path::PathBuf;
use sweep::{MatrixOptions, SweepOptions};
use units::scale;
use world::WorldOptions;

/// A key-value SSD in software: keep pairs in it, or run workloads on its designs and see what they cost.
#[derive(Debug, Parser)]
#[command(name = "kvssd", version, max_term_width = 110)]
#[command(after_help = "Examples:
  kvssd bench                                   original and plus under YCSB-A, side by side
  kvssd bench --workload ycsb-c --json runs.json
  kvssd bench --design plus --value-bytes 50 --scale 1/256
  kvssd bench --store folder                    the embedded store on real files, in wall-clock time
  kvssd sweep experiment.toml --out results     benches over designs, sizes, seeds or any other option
  kvssd matrix --out matrix                     every design on every paper's headline workload
  kvssd report results -o report.html           tables and plots of a sweep or a report, in one page
  kvssd replay cluster12.zst --scale 1/8        a trace that others recorded (see docs/WORKLOADS.md)
  kvssd reproduce plus                          the Plus paper's claims: paper, ours, verdict (built with --features papers)
  kvssd profiles                                the testbeds that come along
  kvssd put drive.kv city/oslo 59.91N           a pair into an image, which is made when there is none
  kvssd get drive.kv city/oslo
  kvssd get nvme+tcp://127.0.0.1:4420 city/oslo a drive on the wire: a URL may stand wherever an image does
  kvssd dump drive.kv pairs.csv
  kvssd namespace create drive.kv --name accounts --ordered
  kvssd serve drive.kv                          an NVMe/TCP target on this machine, port 4420

Exit status: 0 done; 1 no such key, losses or findings; 2 not possible as asked, or a bad image; 3 full or failed;
4 another process has the image; 130 interrupted")]
pub struct Arguments {
    /// Tells nothing on the way: no bars, no lines of progress; results and errors alone
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// What to do.
    #[command(subcommand)]
    pub action: Action,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Fill a drive, overwrite it, run a workload; one column for each design, or for each embedded store
    Bench(Box<BenchOptions>),
    /// Reckon what a bench will show, without running it; or show how far off that is beside the reports of a sweep
    Estimate(Box<EstimateOptions>),
    /// Run what a file asks for: benches over axes of options, each kept in a folder; go on where it was interrupted
    Sweep(SweepOptions),
    /// Run every design on every paper's headline workload, on one drive with as much DRAM for each: a sweep that comes along
    Matrix(MatrixOptions),
    /// Write a page to look at: tables and plots of a sweep, a bench or claims, in one file of HTML
    Report(ReportOptions),
    /// Replay a trace of somebody's requests on new drives; one column for each design
    Replay(ReplayOptions),
    /// Run the experiments behind a paper's claims
    #[cfg_attr(not(feature = "papers"), command(hide = true))]
    Reproduce(ReproduceOptions),
    /// Cut the power of tiny, nearly full drives again and again, and check that nothing is lost
    #[cfg_attr(not(feature = "campaigns"), command(hide = true))]
    Crash(CrashOptions),
    /// Let the whole program live in a simulated world, killed and cut anywhere, and check that nothing is lost
    #[cfg_attr(not(feature = "campaigns"), command(hide = true))]
    World(WorldOptions),
    /// List the designs
    Designs,
    /// List the profiles
    Profiles,
    /// Make an image: a drive in a file
    Create(CreateOptions),
    /// Say what drive an image holds
    Info(ImageOptions),
    /// Look at everything in an image and name what is wrong
    Check(ImageOptions),
    /// Store a pair
    Put(PutOptions),
    /// Print the value of a key
    Get(GetOptions),
    /// Remove a key and its value
    Delete(DeleteOptions),
    /// Ask whether a key is there
    Exist(ExistOptions),
    /// Print keys
    List(ListOptions),
    /// Say how full a drive is and what it does, once or again and again
    Stat(StatOptions),
    /// Store pairs from a file
    Load(LoadOptions),
    /// Write all pairs to a file
    Dump(DumpOptions),
    /// Serve an image to hosts over NVMe/TCP
    Serve(ServeOptions),
    /// Print what a shell needs to complete this program's commands and options
    #[command(after_help = "Examples:
  kvssd completions bash > ~/.local/share/bash-completion/completions/kvssd
  kvssd completions zsh > \"${fpath[1]}/_kvssd\"
  kvssd completions fish > ~/.config/fish/completions/kvssd.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write a manual page of each command into a folder
    #[command(after_help = "Example:
  kvssd man ~/.local/share/man/man1 && man kvssd-bench")]
    Man {
        /// The folder, which is made if there is none
        folder: PathBuf,
    },
    /// Make, delete or list the namespaces of an image: key spaces of their own, each with an index of its own
    #[command(subcommand)]
    Namespace(NamespaceAction),
}

/// A key and the value to put over it.
pub type Assignment = (String, String);

/// `kvssd reproduce`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd reproduce plus                          the Plus paper's claims, on all cores
  kvssd reproduce plus --explain plus.1         one claim; if it does not come out, under each assumption of the testbed
  kvssd reproduce all                           all papers, into the folder reproduction; goes on where it was interrupted
  kvssd reproduce plus --html plus.html         a page, with the paper's figures drawn
  kvssd reproduce rhik --scale 1/8 --json rhik.json")]
pub struct ReproduceOptions {
    /// The paper
    pub paper: Paper,
    /// Runs what this claim needs and nothing else
    #[arg(long, value_name = "CLAIM")]
    pub explain: Option<String>,
    /// Keeps what each experiment finds in a folder, with a document of all, and takes from there what this program found before
    /// [default: none, and reproduction for all]
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// The part of the testbed's capacity, DRAM and keys, as 1/64 or 1 [default: 1/64, 1/16 for iter, and 1/1024 of study's 4 TiB]
    #[arg(long, value_parser = scale, value_name = "FACTOR")]
    pub scale: Option<f64>,
    /// Of everything that is random
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true)]
    pub seed: u64,
    /// Overrides a key of the profile or a parameter of the designs
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    pub set: Vec<Assignment>,
    /// Writes the claims, and the cells of a sweep (iter, kaml), to a file, or to - for the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Writes the claims as a page to look at, or to - for the standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Writes the cells of a sweep (iter, kaml) to a file, a line each
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// `kvssd crash`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd crash --cuts 1000                       every design, both semantics
  kvssd crash --design plus --semantics volatile --cuts 100 --seed 7
  kvssd crash --transactions --cuts 200         TPC-B and TPC-C on every design, the block drive too")]
pub struct CrashOptions {
    /// A design, or all of them
    #[arg(long, default_value = "all", value_name = "NAME")]
    pub design: String,
    /// Sets a parameter of the designs that have it (see `kvssd designs`): design.victims=cost-benefit
    #[arg(long, value_name = "KEY=VALUE", value_parser = of_design)]
    pub set: Vec<Assignment>,
    /// Cuts for each design and semantics
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub cuts: u32,
    /// Reads flip bits, programs and erases fail, blocks are retired
    #[arg(long, conflicts_with = "transactions")]
    pub media_faults: bool,
    /// Runs transactions, TPC-B and TPC-C in turn, and checks their tables: through a cache over drives of keys, and a page-based
    /// engine over the block drive
    #[arg(long)]
    pub transactions: bool,
    /// What the drive does for the day when the power goes [default: both]
    #[arg(long, value_name = "NAME")]
    pub semantics: Option<Semantics>,
    /// What it begins with, and where its reports go.
    #[command(flatten)]
    pub experiment: Experiment,
}

/// What every experiment begins with, and where its reports go.
#[derive(Debug, Args)]
#[group(skip)]
pub struct Experiment {
    /// Of everything that is random
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true)]
    pub seed: u64,
    /// Writes what it prints, and more, as JSON to a file, or to - for the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What survives a power cut.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Semantics {
    /// Everything that was accepted
    Protected,
    /// What it held at some moment since the last flush
    Volatile,
}

/// A paper whose claims can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Paper {
    /// Iterator Interface Extended LSM-tree-based KVSSD for Range Queries
    Iter,
    /// A Hash-Based Key-Value SSD FTL With Efficient Small-Value Support
    Plus,
    /// KAML: A Flexible, High-Performance Key-Value SSD
    Kaml,
    /// RHIK - Re-configurable Hash-based Indexing for KVSSD
    Rhik,
    /// KV-SSD: What Is It Good For?
    Study,
    /// No paper: LMCache's measurement of placement handles (pull request 4016)
    Fdp,
    /// All of them
    All,
}

/// A parameter of a design, without the `design.` before it, and what it is set to.
fn of_design(text: &str) -> Result<Assignment, String> {
    let (mut of_design, _) = split_overrides(&[assignment(text)?]);
    let wrong = || "it is a parameter of the design: write it as design.NAME=value (see `kvssd designs`)".to_owned();
    of_design.pop().ok_or_else(wrong)
}

fn assignment(text: &str) -> Result<Assignment, String> {
    let (key, value) = text.split_once('=').ok_or("write it as key=value, such as nand.erase_ns=3800000")?;
    if value.contains('\n') {
        return Err("a value is one line".to_owned());
    }
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    /// What clap asserts is compiled in: the profile of the tests says so.
    #[test]
    #[should_panic(expected = "in use by both")]
    fn a_command_line_with_a_flag_twice_is_not_sound() {
        Arguments::command()
            .arg(clap::Arg::new("one").short('1'))
            .arg(clap::Arg::new("other").short('1'))
            .debug_assert();
    }

    #[test]
    fn commands_in_the_documents_are_understood() {
        let documents = concat!(
            include_str!("../../../README.md"),
            include_str!("../../../CONTRIBUTING.md"),
            include_str!("../../../docs/NVME.md"),
            include_str!("../../../docs/PERFORMANCE.md"),
            include_str!("../../../docs/RELIABILITY.md"),
            include_str!("../../../docs/REPORT.md"),
            include_str!("../../../docs/REPRODUCTION.md"),
            include_str!("../../../docs/SWEEPS.md"),
            include_str!("../../../docs/TESTBEDS.md"),
            include_str!("../../../docs/TIMING.md"),
            include_str!("../../../docs/WORKLOADS.md"),
        );
        // A command may go over several lines.
        let documents = documents.replace("\\\n", "");
        let lines = documents.split("```").skip(1).step_by(2).flat_map(str::lines).map(str::trim);
        let commands: Vec<&str> =
            lines.filter(|line| line.starts_with("kvssd ") && !line.starts_with("kvssd  ")).collect();
        assert!(commands.len() > 50, "{} commands", commands.len());
        for command in commands {
            let words = shlex::split(command).expect("quotes are closed");
            let words = words.into_iter().take_while(|word| !["|", ">", "&&", "&"].contains(&word.as_str()));
            Arguments::try_parse_from(words).unwrap_or_else(|why| panic!("{command}: {why}"));
        }
    }
}
