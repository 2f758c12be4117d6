//! One cell of the Study paper's figures: a drive, a value size, a queue depth.

use crate::claims::scale_name;
use kvssd_flash::Profile;
use kvssd_ftl::Design;
use kvssd_measure::Observer;
use kvssd_sim::RunReport;
use kvssd_sim::Session;
use kvssd_sim::SimError;
use kvssd_sim::workload::{Distribution, KvBench, Lengths, Percents, RunLength};

/// The commands of the paper's cells (section IV), of which a part is run.
const COMMANDS: f64 = 1.53e6;
/// The fewest commands that are run, and pairs that they are about: more than the write buffer holds, which does not scale.
const COMMANDS_MIN: u64 = 50_000;
/// The share of the drive that a cell fills at the most, so that what is measured is no garbage collection.
const FILLED: f64 = 0.4;
/// The share of its capacity that a drive is filled to where it is to hold as many pairs as it may.
const MOST_FILLED: f64 = 0.9;
/// Operations whose latencies stand for a drive that is as full as it will be.
const LAST: u64 = 5000;

/// What every experiment runs on.
#[derive(Clone)]
pub(super) struct Bench {
    pub(super) profile: Profile,
    pub(super) scale: f64,
    pub(super) seed: u64,
    pub(super) keys: Design,
    pub(super) blocks: Design,
}

/// Mean latency in nanoseconds, and commands a second: or the ratios of both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) mean: f64,
    pub(super) rate: f64,
}

impl Side {
    fn of(report: &RunReport, kind: &str) -> Self {
        Side { mean: report.latency_ns[kind].mean, rate: report.throughput_ops_s }
    }

    pub(super) fn over(&self, other: &Side) -> Side {
        Side { mean: self.mean / other.mean, rate: self.rate / other.rate }
    }
}

/// What a cell shows.
pub(super) struct Cell {
    pub(super) insert: Side,
    /// The last inserts alone.
    pub(super) insert_last: Side,
    pub(super) update: Side,
    pub(super) read: Side,
    /// Bytes of flash that live over bytes of pairs.
    pub(super) space: f64,
}

impl Bench {
    pub(super) fn scale_name(&self) -> String {
        scale_name(self.scale)
    }

    /// Bytes of a page over those that records may take.
    pub(super) fn reserve(&self) -> f64 {
        let geometry = &self.profile.geometry;
        f64::from(geometry.page_bytes) / f64::from(self.keys.packing(geometry).page_bytes())
    }

    /// As many pairs as the key drive takes, less a tenth.
    pub(super) fn pairs_max(&self, value_bytes: u32) -> u64 {
        let packing = self.keys.packing(&self.profile.geometry);
        let head = kvssd_ftl::RecordHead { key_bytes: 16, value_bytes };
        let capacity = self.keys.capacity_bytes(&self.profile).min(self.blocks.capacity_bytes(&self.profile));
        (capacity as f64 * MOST_FILLED / packing.bytes_charged(&head) as f64) as u64
    }

    /// Pairs of one size by one thread.
    pub(super) fn workload(&self, key_bytes: u32, value_bytes: u32, depth: u32, order: Distribution) -> KvBench {
        let commands = ((COMMANDS * self.scale) as u64).max(COMMANDS_MIN);
        let fit = self.pairs_max(value_bytes) as f64 * FILLED;
        KvBench {
            records: commands.min(fit as u64),
            is_population_measured: true,
            population_threads: 1,
            threads: 1,
            queue_depth: depth,
            key_lengths: Lengths::fixed(key_bytes),
            value_sizes: Lengths::fixed(value_bytes),
            distribution: order,
            percents: Percents::UPDATES,
            length: RunLength::Operations(commands),
            warmup_seconds: 0,
        }
    }

    /// Inserts, updates, and reads.
    pub(super) fn cell(
        &self,
        design: &Design,
        workload: &KvBench,
        observer: &mut dyn Observer,
    ) -> Result<Cell, SimError> {
        let mut session = Session::of_kvbench(design, &self.profile, workload, self.seed)?;
        let last = LAST.min(workload.records / 4);
        let insert = session.populate_to(workload.records - last, observer)?;
        let insert_last = session.populate_to(workload.records, observer)?;
        let utilization = session.device().engine().utilization();
        let mut run = |percents| {
            let mix = KvBench { percents, ..workload.clone() };
            session.run_kvbench_mix(&mix, workload.records, observer)
        };
        let read = run(Percents::READS)?;
        let update = run(Percents::UPDATES)?;
        Ok(Cell {
            insert: Side::of(&insert.report, "store"),
            insert_last: Side::of(&insert_last.report, "store"),
            update: Side::of(&update.report, "store"),
            read: Side::of(&read.report, "retrieve"),
            space: utilization.live_bytes as f64 / utilization.pair_bytes as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_measure::Quiet;

    /// The block drive reads no index, and the key drive pads small pairs: what the claims stand on.
    #[test]
    fn a_cell_measures_both_drives_alike() {
        let scale = 1.0 / 1024.0;
        let profile = Profile::load("pm983", &[]).unwrap().scaled(scale).unwrap();
        let design = |name| kvssd_designs::named(name).unwrap();
        let bench = Bench { profile, scale, seed: 1, keys: design("multilevel"), blocks: design("block") };
        let mut workload = bench.workload(16, 512, 1, Distribution::Uniform);
        (workload.records, workload.length) = (2000, RunLength::Operations(1000));
        let keys = bench.cell(&bench.keys, &workload, &mut Quiet).unwrap();
        let blocks = bench.cell(&bench.blocks, &workload, &mut Quiet).unwrap();
        assert!((0.5..2.0).contains(&(keys.read.mean / blocks.read.mean)), "{} {}", keys.read.mean, blocks.read.mean);
        assert!(keys.space > 1.9 && blocks.space > 0.9 && blocks.space < 1.1, "{} {}", keys.space, blocks.space);
        // Eight of these lie in a mapped block, of which a part is gathered: no write waits for a read.
        assert!(blocks.update.mean < blocks.read.mean / 2.0, "{} {}", blocks.update.mean, blocks.read.mean);
    }
}
