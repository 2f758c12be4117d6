//! The claims about stores on the host: a key drive against an LSM store and a hash store on a block drive (figures 2 and 6).
//!
//! All run the same workload on the same profile, one request at a time, and pay for the host's processors. The LSM store's sizes are
//! scaled as its data is.

use super::cell::Bench;
use super::race::{Lap, Race, WINDOWS};
use super::{DEEP, drawn};
use crate::claims::{Claim, Findings, Verdict};
use crate::stores::{HashOptions, HashStore, HostStore, KeyDrive, LevelSizes, LsmOptions, LsmStore};
use kvssd_ftl::RecordHead;
use kvssd_measure::{Figure, Observer};
use kvssd_sim::Session;
use kvssd_sim::SimError;
use kvssd_sim::workload::{Distribution, KvBench, Percents, RunLength};

/// The paper's commands of each kind (section IV).
const COMMANDS: f64 = 10e6;
/// The least part of the paper's commands, and of its drives with them, that is run: as far as the LSM store's tables are scaled.
pub(super) const SCALE_MIN: f64 = 1.0 / 64.0;
const KEY_BYTES: u32 = 16;
const VALUE_BYTES: u32 = 4096;
/// The share of the capacity that is filled before the updates of figure 6.
const FILLED: f64 = 0.8;
/// The share of the rate at the beginning that is left where it has collapsed. Ours: the paper shows a plot.
const COLLAPSED: f64 = 0.5;
/// The share that is left where it has not: the 20 % of the house.
const KEPT: f64 = 0.8;

/// The laps of one store: insert, update, read.
struct Laps([Lap; 3]);

/// The three stores under one workload.
pub(super) struct Races {
    records: u64,
    scale_name: String,
    keys: Laps,
    lsm: Laps,
    hash: Laps,
}

impl Races {
    /// Runs them: `bench` has drives of `scale`, which is at least [`SCALE_MIN`].
    pub(super) fn run(bench: &Bench, observer: &mut dyn Observer) -> Result<Self, SimError> {
        let workload = bench.workload(KEY_BYTES, VALUE_BYTES, 1, Distribution::Uniform);
        let records = (COMMANDS * bench.scale) as u64;
        let workload = KvBench { records, ..workload };
        let (blocks, profile) = (&bench.blocks, &bench.profile);
        let options = LsmOptions::DEFAULT.scaled(bench.scale);
        let keys = KeyDrive::new(&bench.keys, profile, VALUE_BYTES)?;
        let keys = laps(Box::new(keys), &workload, bench.seed, observer)?;
        let lsm = laps(Box::new(LsmStore::new(blocks, profile, options)?), &workload, bench.seed, observer)?;
        let hash = HashStore::new(blocks, profile, HashOptions::DEFAULT)?;
        let hash = laps(Box::new(hash), &workload, bench.seed, observer)?;
        Ok(Races { records, scale_name: bench.scale_name(), keys, lsm, hash })
    }

    /// Processors that are busy on the host.
    pub(super) fn processors(&self) -> Claim {
        let over = |store: &Laps, of: fn(&Lap) -> f64| -> [f64; 3] {
            std::array::from_fn(|lap| of(&store.0[lap]) / of(&self.keys.0[lap]))
        };
        let busy = over(&self.lsm, |lap| lap.busy);
        let mean = busy.iter().sum::<f64>() / busy.len() as f64;
        let [spent, by_hash] = [&self.lsm, &self.hash].map(|store| over(store, |lap| lap.cpu_ns));
        let hash_busy = over(&self.hash, |lap| lap.busy);
        Claim::new(
            "study.9",
            format!(
                "{mean:.1}x ({}); {} of the time; hash store {}; {}",
                of_three(&busy),
                of_three(&spent),
                of_three(&hash_busy),
                of_three(&by_hash)
            ),
            Verdict::of(13.0, mean, 1.0),
            self.scale_name(),
        )
    }

    pub(super) fn drawn(&self) -> Figure {
        drawn::stores(self.latencies_over_keys(&self.lsm), self.latencies_over_keys(&self.hash))
    }

    fn latencies_over_keys(&self, store: &Laps) -> [f64; 3] {
        std::array::from_fn(|lap| store.0[lap].side.mean / self.keys.0[lap].side.mean)
    }

    /// Latencies on the host.
    pub(super) fn latencies(&self) -> Claim {
        let (lsm, hash) = (self.latencies_over_keys(&self.lsm), self.latencies_over_keys(&self.hash));
        let best = [lsm[0].max(hash[0]), lsm[1].max(hash[1])];
        let figures = [(23.08, best[0]), (3.64, best[1])];
        let means = self.keys.0.each_ref().map(|lap| lap.side.mean / 1e3);
        Claim::new(
            "study.10",
            format!(
                "{:.1}x / {:.2}x; LSM {}; hash {}; key drive {:.1} / {:.1} / {:.1} us; LSM stalled {:.0} % of inserts, writes {:.1}x",
                best[0],
                best[1],
                of_three(&lsm),
                of_three(&hash),
                means[0],
                means[1],
                means[2],
                100.0 * self.lsm.0[0].stalled,
                self.lsm.0[0].amplification
            ),
            Verdict::worst(figures.map(|(paper, ours)| Verdict::of(paper, ours, 1.0))),
            self.scale_name(),
        )
    }

    fn scale_name(&self) -> String {
        format!("{}, {} pairs", self.scale_name, self.records)
    }
}

fn laps(
    store: Box<dyn HostStore>,
    workload: &KvBench,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Laps, SimError> {
    let mut race = Race::new(store, workload, seed)?;
    let insert = race.insert(observer)?;
    let read = race.run(("read", Percents::READS), workload.records, observer)?;
    let update = race.run(("update", Percents::UPDATES), workload.records, observer)?;
    Ok(Laps([insert, update, read]))
}

fn of_three(figures: &[f64; 3]) -> String {
    format!("{:.2}x / {:.2}x / {:.2}x", figures[0], figures[1], figures[2])
}

/// A drive that is 80 % full of pairs, and uniform updates of as many (figure 6).
pub(super) fn full_drives(bench: &Bench, observer: &mut dyn Observer) -> Result<Findings, SimError> {
    let keys = updates_of_keys(bench, DEEP, observer)?;
    let alone = updates_of_keys(bench, 1, observer)?;
    let lsm = updates_of_lsm(bench, observer)?;
    let shown = |updates: &Updates| {
        format!(
            "{:.2} of {:.0} MB/s, slowest {:.2}, collector busy {:.0} % and waited for {:.0} % of the time",
            updates.left,
            updates.bytes_s[0] / 1e6,
            updates.slowest,
            100.0 * updates.collecting,
            100.0 * updates.waiting
        )
    };
    let claim = Claim::new(
        "study.6",
        format!("QD 64 {}; QD 1 {}; LSM {}", shown(&keys), shown(&alone), shown(&lsm)),
        verdict_of_full(keys.left, lsm.left),
        bench.scale_name(),
    );
    Ok(Findings::from(claim).with([drawn::updates([&keys.bytes_s, &alone.bytes_s, &lsm.bytes_s])]))
}

/// The verdict on what is left of the rate of the key drive and of the LSM store.
fn verdict_of_full(keys: f64, lsm: f64) -> Verdict {
    match (keys < COLLAPSED, lsm) {
        (true, KEPT..) => Verdict::Reproduced,
        (true, COLLAPSED..) => Verdict::Direction,
        _ => Verdict::NotReproduced,
    }
}

/// How updates went.
struct Updates {
    /// Bytes of pairs a second in each part.
    bytes_s: Vec<f64>,
    /// The mean rate of the second half over the first part's.
    left: f64,
    /// The lowest rate over the first part's.
    slowest: f64,
    /// The share of the time that the drive's collector worked.
    collecting: f64,
    /// The time that commands waited for it, all together, over the time.
    waiting: f64,
}

impl Updates {
    /// Of the rates of parts with equally many operations, and the shares of the time.
    fn of(rates: &[f64], collecting: f64, waiting: f64) -> Self {
        let last = &rates[rates.len() / 2..];
        let mean = last.len() as f64 / last.iter().map(|rate| 1.0 / rate).sum::<f64>();
        let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let first = rates[0];
        let pair_bytes = f64::from(KEY_BYTES + VALUE_BYTES);
        let bytes_s = rates.iter().map(|rate| rate * pair_bytes).collect();
        Updates { bytes_s, left: mean / first, slowest: slowest / first, collecting, waiting }
    }
}

fn updates_of_keys(bench: &Bench, depth: u32, observer: &mut dyn Observer) -> Result<Updates, SimError> {
    let head = RecordHead { key_bytes: KEY_BYTES, value_bytes: VALUE_BYTES };
    let pair_bytes = bench.keys.packing(&bench.profile.geometry).bytes_charged(&head);
    let capacity = bench.keys.capacity_bytes(&bench.profile) as f64;
    let records = (capacity * FILLED / pair_bytes as f64) as u64;
    let workload = bench.workload(KEY_BYTES, VALUE_BYTES, depth, Distribution::Uniform);
    let workload = KvBench { records, length: RunLength::Operations(records / WINDOWS), ..workload };
    let mut session = Session::of_kvbench(&bench.keys, &bench.profile, &workload, bench.seed)?;
    session.populate(observer)?;
    let collector = |session: &Session| session.device().engine().gc_counters();
    let (begin, before) = (session.clock(), collector(&session));
    let mut rates = Vec::new();
    for _ in 0..WINDOWS {
        rates.push(session.run_kvbench_mix(&workload, records, observer)?.report.throughput_ops_s);
    }
    let (span, after) = ((session.clock() - begin).0 as f64, collector(&session));
    let (busy, stall) = (after.busy_ns - before.busy_ns, after.stall_ns - before.stall_ns);
    Ok(Updates::of(&rates, busy as f64 / span, stall as f64 / span))
}

fn updates_of_lsm(bench: &Bench, observer: &mut dyn Observer) -> Result<Updates, SimError> {
    let capacity = bench.blocks.capacity_bytes(&bench.profile) as f64;
    let records = (capacity * FILLED / f64::from(KEY_BYTES + VALUE_BYTES)) as u64;
    let workload = KvBench { records, ..bench.workload(KEY_BYTES, VALUE_BYTES, 1, Distribution::Uniform) };
    // "RocksDB's space amplification is 1.111... in the worst case" (figure 7). With KVbench's levels it is more, and the drive would be full.
    let options = LsmOptions { level_sizes: LevelSizes::FromLast, ..LsmOptions::DEFAULT.scaled(bench.scale) };
    let store = LsmStore::new(&bench.blocks, &bench.profile, options)?;
    let mut race = Race::new(Box::new(store), &workload, bench.seed)?;
    race.insert(observer)?;
    let lap = race.run(("update", Percents::UPDATES), records, observer)?;
    Ok(Updates::of(&lap.windows, lap.collecting, lap.waiting))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_flash::Profile;
    use kvssd_measure::Quiet;

    #[test]
    fn the_stores_run_one_workload_and_pay_for_what_they_do() {
        let profile = Profile::load("pm983", &[]).unwrap().scaled(1.0 / 1024.0).unwrap();
        let design = |name| kvssd_designs::named(name).unwrap();
        let scale = 1.0 / 2048.0;
        let bench = Bench { profile, scale, seed: 1, keys: design("multilevel"), blocks: design("block") };
        let races = Races::run(&bench, &mut Quiet).unwrap();
        for laps in [&races.keys, &races.lsm, &races.hash] {
            assert!(laps.0.iter().all(|lap| lap.windows.len() as u64 == WINDOWS && lap.busy > 0.0), "{:?}", laps.0);
        }
        let [keys, lsm, hash] = [&races.keys, &races.lsm, &races.hash].map(|laps| &laps.0);
        assert!(lsm[1].cpu_ns > 5.0 * keys[1].cpu_ns && hash[1].cpu_ns > 5.0 * keys[1].cpu_ns);
        assert!(lsm[1].amplification > 2.0, "it has compacted: {:?}", lsm[1]);
        assert!(keys[2].side.mean > 80_000.0 && hash[2].side.mean > 80_000.0, "reads come from flash");
        assert_ne!(races.processors().verdict, Verdict::NotReproduced);
    }

    #[test]
    fn a_rate_is_left_by_the_half_and_by_the_fifth() {
        let updates = Updates::of(&[10.0, 10.0, 5.0, 2.0], 0.0, 0.0);
        assert!((updates.left - 2.0 / (1.0 / 5.0 + 1.0 / 2.0) / 10.0).abs() < 1e-12 && updates.slowest == 0.2);
        assert_eq!(verdict_of_full(0.4, 0.9), Verdict::Reproduced);
        assert_eq!(verdict_of_full(0.4, 0.7), Verdict::Direction);
        assert_eq!(verdict_of_full(0.4, 0.4), Verdict::NotReproduced);
        assert_eq!(verdict_of_full(0.6, 0.9), Verdict::NotReproduced);
    }
}
