//! The claims of the Study paper (section IV): a key drive against a block drive on the same flash, and against stores on the host
//! that use the block drive.

mod cell;
mod drawn;
mod hosts;
mod race;

use self::cell::{Bench, Side};
use self::drawn::ByDepth;
use self::hosts::{Races, SCALE_MIN, full_drives};
use super::experiment::Context;
use crate::claims::{Assumption, Claim, Experiment, Findings, Verdict};
use kvssd_ftl::Design;
use kvssd_measure::{Figure, Observer};
use kvssd_sim::workload::Distribution;
use kvssd_sim::{Session, SimError};

/// Commands under way where many are (section IV, figure 4).
const DEEP: u32 = 64;
/// Values of figure 4.
const VALUE_BYTES: [u32; 6] = [512, 2048, 4096, 8192, 24 << 10, 64 << 10];
/// The largest value that fits into a page with its key and metadata.
const WHOLE_BYTES_MAX: u32 = 24 << 10;
/// What counts as the same.
const SAME: f64 = 1.2;
/// What counts as a dip of the bandwidth, from one kilobyte to the next.
const DIP: f64 = 0.9;

/// What the paper does not tell of its drive: how much of the index is in its DRAM.
const INDEX_CACHE: &[Assumption] = &[
    Assumption::guess("3 GiB of DRAM for the index", &[("emulator.section_dram_bytes", "3221225472")]),
    Assumption::guess("2 GiB of DRAM for the index", &[("emulator.section_dram_bytes", "2147483648")]),
];

/// RocksDB's tables of 128 MiB scale with the drive, and a superblock does not: this is the smallest that stripes over all dies. How large the
/// real drive's are is not published; of the profile, whose blocks are small on purpose, one is half as large as a table.
const WIDE_TABLES: &[Assumption] = &[Assumption::guess(
    "tables of a third of a superblock, and not of a thirtieth",
    &[("geometry.pages_per_block", "3"), ("geometry.blocks_per_die", "715820"), ("nand.erase_ns", "14600")],
)];

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment::new(&["study.1", "study.4"], 60, check, |context, observer| {
        let bench = bench(context)?;
        let grid = Grid::run(&bench, observer)?;
        Ok(Findings::from(vec![grid.worst(&bench), grid.by_size(&bench)]).with(grid.drawn()))
    })
    .assuming(INDEX_CACHE),
    Experiment::new(&["study.2"], 10, check, |context, observer| orders(&bench(context)?, observer)),
    Experiment::new(&["study.3"], 30, check, |context, observer| overflow(&bench(context)?, observer)),
    Experiment::new(&["study.5"], 10, check, |context, observer| dips(&bench(context)?, observer)),
    Experiment::new(&["study.6"], 120, check, |context, observer| full_drives(&bench(context)?, observer))
        .assuming(WIDE_TABLES),
    Experiment::new(&["study.7", "study.8"], 10, check, |context, observer| {
        let bench = bench(context)?;
        let ((space, space_drawn), (keys, keys_drawn)) = (space(&bench, observer)?, long_keys(&bench, observer)?);
        Ok(Findings::from(vec![space, keys]).with([space_drawn, keys_drawn]))
    }),
    Experiment::new(&["study.9", "study.10"], 60, check, |context, observer| {
        let scale = context.scale.max(SCALE_MIN);
        let raced = Bench { profile: context.profile.scaled(scale)?, scale, ..bench(context)? };
        let races = Races::run(&raced, observer)?;
        Ok(Findings::from(vec![races.processors(), races.latencies()]).with([races.drawn()]))
    }),
];

/// Builds every drive that will be run.
fn check(context: &Context) -> Result<(), SimError> {
    let bench = bench(context)?;
    for design in [&bench.keys, &bench.blocks] {
        let workload = bench.workload(16, VALUE_BYTES[0], 1, Distribution::Uniform);
        Session::of_kvbench(design, &bench.profile, &workload, bench.seed)?;
    }
    Ok(())
}

/// Both drives on the testbed.
fn bench(context: &Context) -> Result<Bench, SimError> {
    let Context { profile, parameters, scale, seed } = context;
    let mut keys = kvssd_designs::named("multilevel")?;
    parameters.iter().try_for_each(|(key, value)| keys.set(key, value))?;
    let profile = profile.scaled(*scale)?;
    keys.check_parameters(&profile)?;
    Ok(Bench { profile, scale: *scale, seed: *seed, keys, blocks: kvssd_designs::named("block")? })
}

/// The key drive's figures over the block drive's.
#[derive(Clone, Copy)]
struct Ratios {
    insert: Side,
    update: Side,
    read: Side,
}

/// Both drives by value size and queue depth (figure 4).
struct Grid {
    cells: Vec<(u32, u32, Ratios)>,
}

impl Grid {
    fn run(bench: &Bench, observer: &mut dyn Observer) -> Result<Self, SimError> {
        let mut cells = Vec::new();
        for value_bytes in VALUE_BYTES {
            for depth in [1, DEEP] {
                let workload = bench.workload(16, value_bytes, depth, Distribution::Uniform);
                let keys = bench.cell(&bench.keys, &workload, observer)?;
                let blocks = bench.cell(&bench.blocks, &workload, observer)?;
                let ratios = Ratios {
                    insert: keys.insert.over(&blocks.insert),
                    update: keys.update.over(&blocks.update),
                    read: keys.read.over(&blocks.read),
                };
                cells.push((value_bytes, depth, ratios));
            }
        }
        Ok(Grid { cells })
    }

    fn at(&self, value_bytes: u32, depth: u32) -> &Ratios {
        let cell = self.cells.iter().find(|cell| (cell.0, cell.1) == (value_bytes, depth));
        &cell.expect("the cell is in the grid").2
    }

    fn most(&self, of: impl Fn(&Ratios) -> f64) -> f64 {
        self.cells.iter().map(|(_, _, ratios)| of(ratios)).fold(0.0, f64::max)
    }

    fn drawn(&self) -> [Figure; 2] {
        let of = |depth: u32, mean: fn(&Ratios) -> f64| VALUE_BYTES.map(|bytes| mean(self.at(bytes, depth))).to_vec();
        let by_depth = |mean| ByDepth { alone: of(1, mean), deep: of(DEEP, mean) };
        let (reads, writes) = (by_depth(|ratios| ratios.read.mean), by_depth(|ratios| ratios.insert.mean));
        drawn::latencies(&VALUE_BYTES, WHOLE_BYTES_MAX, reads, writes)
    }

    fn worst(&self, bench: &Bench) -> Claim {
        let (one, deep) = (self.at(4096, 1), self.at(4096, DEEP));
        let bandwidths = [one.read.rate.min(deep.read.rate), one.update.rate.min(deep.update.rate)];
        let means = [one.read.mean, one.insert.mean];
        let most =
            [self.most(|ratios| ratios.read.mean), self.most(|ratios| ratios.insert.mean.max(ratios.update.mean))];
        let papers = [
            (0.44, bandwidths[0]),
            (0.22, bandwidths[1]),
            (1.7, means[0]),
            (2.5, means[1]),
            (8.1, most[0]),
            (2.63, most[1]),
        ];
        Claim::new(
            "study.1",
            format!(
                "{:.2}x / {:.2}x; {:.2}x / {:.2}x; {:.1}x / {:.1}x",
                bandwidths[0], bandwidths[1], means[0], means[1], most[0], most[1]
            ),
            Verdict::worst(papers.map(|(paper, ours)| Verdict::of(paper, ours, 1.0))),
            bench.scale_name(),
        )
    }

    fn by_size(&self, bench: &Bench) -> Claim {
        let shown: Vec<String> = self
            .cells
            .iter()
            .map(|(bytes, depth, ratios)| {
                format!("{bytes} B QD {depth} {:.2}x / {:.2}x", ratios.insert.mean, ratios.read.mean)
            })
            .collect();
        let best = |of: &dyn Fn(&Ratios) -> f64| {
            // "For small KVPs (e.g., 512B, 2KB, and 8KB)": all of them.
            let small = self.cells.iter().filter(|(bytes, depth, _)| *bytes < WHOLE_BYTES_MAX && *depth == DEEP);
            small.map(|(_, _, ratios)| of(ratios)).fold(f64::INFINITY, f64::min)
        };
        let (write, read) = (best(&|ratios| ratios.insert.mean), best(&|ratios| ratios.read.mean));
        let alone = self.cells.iter().filter(|(_, depth, _)| *depth == 1);
        let worst = alone.map(|(_, _, ratios)| ratios.insert.mean).fold(0.0, f64::max);
        let papers = [(5.4, worst), (0.86, write), (0.37, read)];
        Claim::new(
            "study.4",
            format!("{worst:.1}x; {write:.2}x / {read:.2}x ({})", shown.join(", ")),
            Verdict::worst(papers.map(|(paper, ours)| Verdict::of(paper, ours, 1.0))),
            bench.scale_name(),
        )
    }
}

/// The order of the commands: it makes no difference where keys are hashed (figure 2).
fn orders(bench: &Bench, observer: &mut dyn Observer) -> Result<Findings, SimError> {
    let orders = [Distribution::Sequential, Distribution::Uniform, Distribution::Zipfian];
    let mut latencies = |design: &Design| -> Result<[[f64; 2]; 3], SimError> {
        let mut found = [[0.0; 2]; 3];
        for (found, order) in found.iter_mut().zip(orders) {
            let cell = bench.cell(design, &bench.workload(16, 4096, 1, order), observer)?;
            *found = [cell.read.mean, cell.update.mean];
        }
        Ok(found)
    };
    let (keys, blocks) = (latencies(&bench.keys)?, latencies(&bench.blocks)?);
    let spread = |side: usize| {
        let of = keys.map(|latency| latency[side]);
        of.iter().copied().fold(0.0, f64::max) / of.iter().copied().fold(f64::INFINITY, f64::min)
    };
    let spreads = [spread(0), spread(1)];
    let lower = [0, 1].map(|side| 1.0 - blocks[0][side] / blocks[1][side]);
    let same = spreads.iter().all(|&spread| spread <= SAME);
    let papers = [(0.8, lower[0]), (0.6, lower[1])];
    let of_blocks = Verdict::worst(papers.map(|(paper, ours)| Verdict::of(paper, ours, 0.0)));
    let claim = Claim::new(
        "study.2",
        format!("{:.2}x / {:.2}x; {:.2} / {:.2}", spreads[0], spreads[1], lower[0], lower[1]),
        if same { of_blocks } else { Verdict::NotReproduced },
        bench.scale_name(),
    );
    Ok(Findings::from(claim).with([drawn::orders(&keys, &blocks)]))
}

/// Few pairs and as many as there may be (figure 3).
fn overflow(bench: &Bench, observer: &mut dyn Observer) -> Result<Findings, SimError> {
    const VALUE: u32 = 512;
    // More than the write buffer holds, which does not scale.
    let few = bench.workload(16, VALUE, 1, Distribution::Uniform).records;
    let many = bench.pairs_max(VALUE).min((3e9 * bench.scale) as u64);
    let mut ratios = [[0.0; 2]; 2];
    for (ratios, design) in ratios.iter_mut().zip([&bench.keys, &bench.blocks]) {
        let mut workload = bench.workload(16, VALUE, 1, Distribution::Uniform);
        workload.records = few;
        let low = bench.cell(design, &workload, observer)?;
        workload.records = many;
        let high = bench.cell(design, &workload, observer)?;
        *ratios = [high.read.mean / low.read.mean, high.insert_last.mean / low.insert_last.mean];
    }
    let [keys, blocks] = ratios;
    let papers = [(2.0, keys[0]), (16.4, keys[1])];
    let is_flat = blocks.iter().all(|ratio| (1.0 / SAME..=SAME).contains(ratio));
    let verdict = Verdict::worst(papers.map(|(paper, ours)| Verdict::of(paper, ours, 1.0)));
    let claim = Claim::new(
        "study.3",
        format!("{:.2}x / {:.2}x from {few} to {many} pairs; {:.2}x / {:.2}x", keys[0], keys[1], blocks[0], blocks[1]),
        if is_flat { verdict } else { Verdict::NotReproduced },
        bench.scale_name(),
    );
    Ok(Findings::from(claim).with([drawn::overflow(keys, blocks)]))
}

/// The bandwidth of inserts where a value outgrows the pages that it fitted into (figure 5).
fn dips(bench: &Bench, observer: &mut dyn Observer) -> Result<Findings, SimError> {
    let mut shown = Vec::new();
    let mut holds = true;
    let mut steps = Vec::new();
    for (kilobytes, dips) in [(16, false), (25, true), (32, false), (40, false), (49, true)] {
        let mut bandwidths = |kilobytes: u32| -> Result<[f64; 2], SimError> {
            let workload = bench.workload(16, kilobytes << 10, DEEP, Distribution::Uniform);
            let mut found = [0.0; 2];
            for (found, design) in found.iter_mut().zip([&bench.keys, &bench.blocks]) {
                *found = bench.cell(design, &workload, observer)?.insert.rate * f64::from(kilobytes << 10);
            }
            steps.push((kilobytes, found));
            Ok(found)
        };
        let (before, after) = (bandwidths(kilobytes - 1)?, bandwidths(kilobytes)?);
        let [keys, blocks] = [after[0] / before[0], after[1] / before[1]];
        holds &= (keys < DIP) == dips && blocks >= DIP;
        shown.push(format!("{kilobytes} KB {keys:.2}x, {blocks:.2}x"));
    }
    let claim = Claim::new("study.5", shown.join("; "), Verdict::if_true(holds).by_construction(), bench.scale_name());
    Ok(Findings::from(claim).with([drawn::dips(&steps)]))
}

/// Flash that pairs take over their bytes (figure 7).
fn space(bench: &Bench, observer: &mut dyn Observer) -> Result<(Claim, Figure), SimError> {
    let mut of = |value_bytes: u32| -> Result<f64, SimError> {
        let workload = bench.workload(16, value_bytes, DEEP, Distribution::Uniform);
        Ok(bench.cell(&bench.keys, &workload, observer)?.space)
    };
    let small = of(50)?;
    let large = [of(1024)?, of(2048)?, of(4096)?];
    let is_about_one = large.iter().all(|&space| Verdict::of(1.0, space, 17.0) == Verdict::Reproduced);
    let claim = Claim::new(
        "study.7",
        format!(
            "{small:.1}x; {:.2}x, {:.2}x, {:.2}x; with what is the controller's own {:.2} times that",
            large[0],
            large[1],
            large[2],
            bench.reserve()
        ),
        if is_about_one {
            Verdict::within(13.6..=20.0, 17.0, small, 1.0).by_construction()
        } else {
            Verdict::NotReproduced
        },
        bench.scale_name(),
    );
    Ok((claim, drawn::space(small, large)))
}

/// Keys that a command has no room for (figure 8).
fn long_keys(bench: &Bench, observer: &mut dyn Observer) -> Result<(Claim, Figure), SimError> {
    let mut shown = Vec::new();
    let mut worst: f64 = 1.0;
    let mut all = Vec::new();
    for (mode, depth) in [("sync", 1), ("async", DEEP)] {
        let mut rates = |key_bytes: u32| -> Result<[f64; 2], SimError> {
            let workload = bench.workload(key_bytes, 512, depth, Distribution::Uniform);
            let cell = bench.cell(&bench.keys, &workload, observer)?;
            Ok([cell.insert.rate, cell.read.rate])
        };
        let (short, long) = (rates(16)?, rates(17)?);
        let ratios = [long[0] / short[0], long[1] / short[1]];
        worst = worst.min(ratios[0]).min(ratios[1]);
        shown.push(format!("{mode} {:.2}x / {:.2}x", ratios[0], ratios[1]));
        all.extend([(format!("{mode} insert"), ratios[0]), (format!("{mode} retrieve"), ratios[1])]);
    }
    let claim =
        Claim::new("study.8", shown.join("; "), Verdict::of(0.53, worst, 1.0).by_construction(), bench.scale_name());
    Ok((claim, drawn::long_keys(&all)))
}
