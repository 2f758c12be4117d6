//! The command line of `kvssd sweep`.

use clap::Args;
use std::path::PathBuf;

/// `kvssd sweep`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd sweep experiment.toml --out results                 all that is missing in the folder, on all cores
  kvssd sweep experiment.toml --out results --list          each run: whether it is done, and the memory that it needs
  kvssd sweep experiment.toml --out results --shard 3/16    a sixteenth of the runs, for a job array
  kvssd report results -o report.html                       tables and plots of all, in one page
  kvssd bench --from results/runs/0d6f...json               one of them again

experiment.toml (docs/SWEEPS.md; examples/sweep.toml is one):
  [options]                            # of every run, as of kvssd bench
  scale = \"1/256\"
  [axes]                               # each with each
  design = [\"original\", \"plus\", \"rhik\"]
  value-bytes = [50, 200, 1000, 4000]
  nand.erase_ns = [3800000, 5000000]   # a key with a dot is one of --set
  seed = { from = 1, to = 5 }
  [[pairs]]                            # an axis of several options that change together
  threads = [1, 20]
  operations = [10000, 200000]")]
pub struct SweepOptions {
    /// The file that says what is run
    pub experiment: PathBuf,
    /// Which runs, and where they are kept.
    #[command(flatten)]
    pub runs: RunsOptions,
}

/// `kvssd matrix`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd matrix --out matrix                     all runs, on all cores; then a table of throughput
  kvssd matrix --out matrix --seeds 5           five times, with other keys and values; the table has means
  kvssd matrix --list                           each run, and the memory that it needs
  kvssd report matrix -o matrix.html            the heat map, latencies, amplification

The rows are those of examples/matrix.toml, which is a sweep: change a copy of it and run kvssd sweep.")]
pub struct MatrixOptions {
    /// Each run with so many seeds, from 1 on [default: one, as kvssd bench has it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub seeds: Option<u16>,
    /// Which runs, and where they are kept.
    #[command(flatten)]
    pub runs: RunsOptions,
}

/// Which runs of a sweep are done, and where they are kept.
#[derive(Debug, Args)]
pub struct RunsOptions {
    /// The folder of the reports: what it has is not run again
    #[arg(long, value_name = "FOLDER", required_unless_present = "list")]
    pub out: Option<PathBuf>,
    /// Runs at a time, as far as memory allows [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Does one part of several, each of which may be another process or machine: 1/8 to 8/8
    #[arg(long, value_name = "PART/PARTS")]
    pub shard: Option<Shard>,
    /// Lists the runs and does none
    #[arg(long)]
    pub list: bool,
}

/// One part of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1 on.
    part: usize,
    parts: usize,
}

impl Shard {
    /// Whether the run of that number is in it.
    pub fn has(self, number: usize) -> bool {
        number % self.parts == self.part - 1
    }
}

impl std::str::FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (part, parts) = text
            .split_once('/')
            .and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)))
            .unwrap_or((0, 0));
        if (1..=parts).contains(&part) { Ok(Shard { part, parts }) } else { Err("write it as 1/8, 2/8, .. 8/8") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_take_every_run_once() {
        let shards: Vec<Shard> = (1..=3).map(|part| format!("{part}/3").parse().unwrap()).collect();
        for number in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(number)).count(), 1);
        }
        for wrong in ["", "0/3", "4/3", "1", "1/0", "-1/3", "1/2/3"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
