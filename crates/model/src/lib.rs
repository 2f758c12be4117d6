//! A drive on paper: what a design does under a load, reckoned from geometry, times, DRAM, sizes, fill and skew, and not run.
//!
//! ```text
//!   Profile, Design, Load -> drive        what parts and records take, what the index foresees (IndexPlan::forecast)
//!                              -> cache        which look-ups read flash
//!                              -> collection   what is read and programmed for an operation
//!                              -> commands     what a command takes by itself, and reads
//!                              -> queues       how long that waits; throughput; chain, what collection takes
//!                              -> latency      medians
//! ```
//!
//! `docs/ESTIMATE.md` says how near it comes to the simulation, and where it does not.

mod busy;
mod cache;
mod chain;
mod collection;
mod commands;
mod drive;
mod latency;
mod load;
mod queues;
mod ranges;
mod traffic;

pub use crate::load::{Load, Mix};

use crate::cache::hits_of;
use crate::collection::{Fluid, Run};
use crate::commands::Commands;
use crate::drive::Drive;
use crate::latency::Stall;
use crate::queues::Loop;
use crate::ranges::Ranges;
use crate::traffic::Traffic;
use kvssd_flash::Profile;
use kvssd_ftl::{Design, RecordLayout};
use kvssd_types::BLOCK_BYTES;
use serde::Serialize;
use thiserror::Error;

/// What a drive does, on paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Operations a second.
    pub throughput_ops_s: f64,
    /// Operations a second of a drive of these parts whose commands wait for nobody.
    pub limit_ops_s: f64,
    /// Pages read from flash for an operation.
    pub flash_reads: f64,
    /// Pages programmed for an operation.
    pub flash_programs: f64,
    /// Bytes programmed for each byte of keys and values stored; none where nothing is.
    pub write_amplification: Option<f64>,
    /// The median of retrieves, or of Seek in ranges, in nanoseconds; none where there are none.
    pub retrieve_p50_ns: Option<f64>,
    /// The median of stores, or of batches, in nanoseconds; none where there are none.
    pub store_p50_ns: Option<f64>,
    /// The share of the time that dies work.
    pub dies: f64,
    /// What holds the drive back.
    pub held_back_by: HeldBackBy,
}

/// What holds a drive back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldBackBy {
    /// The commands that its hosts have under way.
    Clients,
    /// Garbage collection: stores wait for room.
    Collection,
    /// Parts that work all the time: the dies,
    Dies,
    /// their channels,
    Channels,
    /// the cores,
    Cores,
    /// or a direction of the link.
    Link,
}

/// Why there is no estimate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EstimateError {
    /// The index has no model.
    #[error("nobody has reckoned what the index {index} will do (IndexPlan::forecast)")]
    Unforeseen {
        /// Which.
        index: &'static str,
    },
    /// The load is none that the model knows.
    #[error("the model does not know {0}")]
    Load(&'static str),
    /// The drive is too small, or nearly.
    #[error("the pairs do not fit on the drive, or so tightly that it does little but collect")]
    Full,
}

/// What `design` does on a drive of `profile`, which is scaled, under `load`.
///
/// # Errors
/// Where the model has no answer.
pub fn estimate(profile: &Profile, design: &Design, load: &Load) -> Result<Estimate, EstimateError> {
    if load.operations == 0 || load.pairs == 0 {
        return Err(EstimateError::Load("drives without pairs and runs without operations"));
    }
    if !profile.emulator.is_off() {
        return Err(EstimateError::Load("what an emulator does and a drive does not (emulator.*)"));
    }
    if design.pairs_max(profile).is_some_and(|pairs_max| load.pairs > pairs_max) {
        return Err(EstimateError::Full);
    }
    let load = in_blocks(design, load);
    reckon(&Drive::new(profile, design, &load)?, &load)
}

/// What hosts ask for: of a block drive whole blocks.
fn in_blocks(design: &Design, load: &Load) -> Load {
    match design.layout {
        RecordLayout::Blocks => Load { value_bytes: load.value_bytes.max(1).next_multiple_of(BLOCK_BYTES), ..*load },
        _ => *load,
    }
}

fn reckon(drive: &Drive, load: &Load) -> Result<Estimate, EstimateError> {
    if let Some(Ranges { rate, seek_ns, reads, loads }) = ranges::ranges(drive, load) {
        return Ok(Estimate {
            throughput_ops_s: rate * 1e9,
            limit_ops_s: rate * 1e9,
            flash_reads: reads,
            flash_programs: 0.0,
            write_amplification: None,
            retrieve_p50_ns: Some(seek_ns),
            store_p50_ns: None,
            dies: loads[0],
            held_back_by: held_back_by(loads, false),
        });
    }
    let filled = Fluid::new(drive, load).filled().ok_or(EstimateError::Full)?;
    let before = before(drive, load, &filled).ok_or(EstimateError::Full)?;
    let overwritten = filled.overwritten(before.free).ok_or(EstimateError::Full)?;
    let hits = hits_of(drive, load, before.traffic.moved);
    let operations = load.operations as f64;
    let run = |part: f64, free: f64| overwritten.clone().run(operations * part, free, load.points(), &hits);
    let settled = settle(drive, load, &hits, run).ok_or(EstimateError::Full)?;
    let Settled { traffic, at_work, .. } = settled;
    let commands = Commands::new(drive, load, &traffic, &hits);
    let idle = queues::closed_loop(drive, load, &Traffic::default(), &commands);
    let Loop { rate, ref busy, store_wait_ns, turn_wait_ns } = at_work;
    let store = commands.store.times(load.batch_pairs, drive);
    let (of_retrieve, of_store) = busy.as_seen(drive, load, &traffic, &commands);
    let waits = stall(drive, load, &traffic, &commands, &at_work);
    let store_p50_ns = latency::median_ns(drive, &of_store, &store, waits);
    let retrieve_p50_ns = latency::median_ns(drive, &of_retrieve, &commands.retrieve, Stall::default());
    let stored_bytes = commands.stores * drive.record.user_bytes;
    Ok(Estimate {
        throughput_ops_s: rate * 1e9,
        limit_ops_s: idle.rate * 1e9,
        flash_reads: traffic.reads() + commands.record_reads,
        flash_programs: traffic.programs(),
        write_amplification: (stored_bytes > 0.0).then(|| traffic.programs() * drive.record.page_bytes / stored_bytes),
        retrieve_p50_ns: (commands.retrieves > 0.0).then_some(retrieve_p50_ns + turn_wait_ns.retrieve_ns),
        store_p50_ns: (commands.stores > 0.0).then_some(store_p50_ns + turn_wait_ns.store_ns),
        dies: busy.dies * rate / busy.rate,
        held_back_by: held_back_by([busy.dies, busy.channels, busy.cores, busy.link], store_wait_ns > 0.0),
    })
}

/// Who waits for room waits in a crowd till a superblock is free: the stores that come meanwhile, at most one of each client.
fn stall(drive: &Drive, load: &Load, traffic: &Traffic, commands: &Commands, at_work: &Loop) -> Stall {
    let superblocks = (traffic.erases / drive.dies).max(1e-12);
    let each_ns = (1.0 - at_work.rate / at_work.busy.rate) / (at_work.rate * superblocks);
    let come = (at_work.busy.rate * commands.stores * each_ns).min(f64::from(load.clients));
    Stall { share: (come * superblocks / commands.stores.max(1e-12)).clamp(1e-9, 1.0), mean_ns: at_work.store_wait_ns }
}

/// Room and the width of collection hang on each other: so often, at the most, one is reckoned from the other.
const SETTLING_STEPS: usize = 3;
/// From so many operations for each pair.
const SETTLING_SHARE: f64 = 0.25;
/// A collector has come to rest when its free superblocks differ by less.
const AT_REST: f64 = 0.01;

/// The most steps of the bisection for the part of [`Run::raise`] that is done, and the share of an operation's reads that makes no difference.
const RAISE_STEPS: i32 = 16;
const RAISE_SHARE_MIN: f64 = 0.02;

/// A drive that has come to rest.
struct Settled {
    /// What an operation takes.
    traffic: Traffic,
    /// The drive at its throughput.
    at_work: Loop,
    /// The free superblocks at which its collector rests.
    free: f64,
}

/// The drive while pairs are overwritten, before the run.
fn before(drive: &Drive, load: &Load, filled: &Fluid<'_>) -> Option<Settled> {
    let mix = Mix::Points { retrieves: 0.0, stores: 1.0, modifies: false };
    let before = Load { mix, skew: 0.0, batch_pairs: 1, ..*load };
    let hits = hits_of(drive, &before, 0.0);
    let overwritten = filled.clone().overwritten(drive.free_low)?;
    let operations = (load.operations as f64).min(SETTLING_SHARE * load.pairs as f64);
    let before = Load { operations: operations as u64, ..before };
    let run = |part: f64, free: f64| overwritten.clone().run(operations * part, free, before.points(), &hits);
    settle(drive, &before, &hits, run)
}

/// A run at its throughput. What frees superblocks beyond those that were free before is done as far as collection keeps up: nobody waits for it,
/// and of a short run that is not all of it. (What the rest takes is reckoned as if all was done: a short run finds fuller victims on paper.)
fn at_work(drive: &Drive, load: &Load, hits: &[f64], run: &Run) -> (Traffic, Loop) {
    let with = |share: f64| {
        let traffic = run.traffic.beside(run.raise, share);
        let commands = Commands::new(drive, load, &traffic, hits);
        (traffic, queues::closed_loop(drive, load, &traffic, &commands))
    };
    let keeps_up =
        |(traffic, at_work): &(Traffic, Loop)| at_work.store_wait_ns == 0.0 && at_work.busy.collects(drive, traffic);
    let all = with(1.0);
    if run.raise.erases == 0.0 || keeps_up(&all) {
        return all;
    }
    let (mut share, mut best) = (0.0, with(0.0));
    for step in 1..=RAISE_STEPS {
        let half = 0.5f64.powi(step);
        if half * run.raise.reads() < RAISE_SHARE_MIN * best.0.reads() {
            break;
        }
        let more = share + half;
        let with_more = with(more);
        if keeps_up(&with_more) {
            (share, best) = (more, with_more);
        }
    }
    best
}

/// Reckons the drive at rest from what a part of its operations takes with so many superblocks free.
fn settle(drive: &Drive, load: &Load, hits: &[f64], run: impl Fn(f64, f64) -> Option<Run>) -> Option<Settled> {
    let reckon = |part: f64, free: f64| {
        let (traffic, at_work) = at_work(drive, load, hits, &run(part, free)?);
        let free = if load.points().1 > 0.0 { drive.free_at(at_work.busy.step_pages) } else { drive.free_low };
        Some(Settled { traffic, at_work, free })
    };
    // Of a long run the beginning tells where the collector comes to rest.
    let part = (SETTLING_SHARE * load.pairs as f64 / load.operations as f64).min(1.0);
    let mut free = drive.free_low;
    let mut settled = reckon(part, free)?;
    for _ in 1..SETTLING_STEPS {
        if (settled.free - free).abs() < AT_REST {
            break;
        }
        free = settled.free;
        settled = reckon(part, free)?;
    }
    if part < 1.0 { reckon(1.0, settled.free) } else { Some(settled) }
}

/// By the load of the dies, of their channels, of the cores, and of the link; and whether stores wait for room.
fn held_back_by(loads: [f64; 4], waits: bool) -> HeldBackBy {
    let parts = [HeldBackBy::Dies, HeldBackBy::Channels, HeldBackBy::Cores, HeldBackBy::Link];
    let parts = loads.into_iter().zip(parts);
    let busiest = parts.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(load, _)| *load > 0.95);
    match busiest {
        _ if waits => HeldBackBy::Collection,
        Some((_, part)) => part,
        None => HeldBackBy::Clients,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_designs::{BLOCK, DESIGNS, PINK, PLUS, RHIK};

    fn load_of(profile: &Profile, filled: f64) -> Load {
        let pairs = (filled * profile.geometry.raw_bytes() as f64 / 1088.0) as u64;
        Load { skew: 0.99, ranks: 10_000_000_000, ..Load::half_and_half(pairs) }
    }

    #[test]
    fn hosts_of_a_block_drive_write_whole_blocks() {
        let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 64.0).unwrap();
        let estimate_of = |value_bytes| {
            let load = Load { value_bytes, ..Load::half_and_half(100_000) };
            estimate(&profile, &BLOCK, &load).unwrap()
        };
        assert_eq!(estimate_of(100), estimate_of(512));
        assert_eq!(estimate_of(513), estimate_of(1024));
    }

    #[test]
    fn values_on_a_block_drive_touch_the_blocks_that_it_maps_whatever_its_pages() {
        let reads = |profile: &str, value_bytes, stores: f64| {
            let profile = Profile::load(profile, &[]).unwrap().scaled(1.0 / 64.0).unwrap();
            let mix = Mix::Points { retrieves: 1.0 - stores, stores, modifies: false };
            let load = Load { mix, value_bytes, overwrites: 0, ..Load::half_and_half(20_000) };
            estimate(&profile, &BLOCK, &load).unwrap().flash_reads
        };
        // 3584 bytes from a multiple of 512 on: 1.75 blocks, none of which is whole unless it begins there.
        for (profile, value_bytes, of_retrieve, of_store) in [
            ("kvvirt", 512, 1.0, 1.0),
            ("kvvirt", 3500, 1.75, 1.75),
            ("kvvirt", 4096, 1.0, 0.0),
            ("kvvirt", 8192, 2.0, 0.0),
            ("pm983", 4096, 1.0, 0.0),
            ("pm983", 8192, 1.125, 0.0),
        ] {
            let found = [0.0, 1.0].map(|stores| reads(profile, value_bytes, stores));
            assert!((found[0] - of_retrieve).abs() < 0.02, "{profile} {value_bytes}: {found:?}");
            assert!((found[1] - of_store).abs() < 0.02, "{profile} {value_bytes}: {found:?}");
        }
    }

    #[test]
    fn what_the_model_does_not_know_and_what_does_not_fit_has_no_estimate() {
        let profile = |key: &str, value: &str| {
            let profile = Profile::load("kvvirt", &[(key.to_owned(), value.to_owned())]).unwrap();
            profile.scaled(1.0 / 256.0).unwrap()
        };
        let load = Load { value_bytes: 100, ..Load::half_and_half(200_000) };
        let plain = profile("core_costs.cores", "2");
        assert_eq!(estimate(&plain, &kvssd_designs::KAML, &load), Err(EstimateError::Full), "its table is full before");
        let emulated = profile("emulator.section_dram_bytes", "100000000");
        assert!(matches!(estimate(&emulated, &PLUS, &load), Err(EstimateError::Load(_))));
        let locks = profile("core_costs.range_lock_ns", "100000");
        let [free, locked] = [&plain, &locks].map(|profile| estimate(profile, &BLOCK, &load).unwrap());
        assert!(locked.throughput_ops_s < 0.2 * free.throughput_ops_s && locked.held_back_by == HeldBackBy::Cores);
    }

    /// What bounds the time of an estimate: a step of the fluid or of a queue takes some 50 ns (docs/ESTIMATE.md). On the drive that comes along an
    /// overwrite and an operation for each pair are a millisecond; nothing is more than three.
    #[test]
    fn an_estimate_takes_no_more_steps_at_a_larger_scale() {
        for name in kvssd_flash::PROFILE_NAMES {
            for scale in [1.0 / 64.0, 1.0] {
                let profile = Profile::load(name, &[]).unwrap().scaled(scale).unwrap();
                for design in DESIGNS.iter().chain([&BLOCK]) {
                    for (filled, turns) in [(0.4, 1), (0.72, 1), (0.72, 20)] {
                        let load = load_of(&profile, filled);
                        let load = Load { overwrites: turns * load.pairs, operations: turns * load.operations, ..load };
                        let load = in_blocks(design, &load);
                        let Ok(drive) = Drive::new(&profile, design, &load) else { continue };
                        let _ = reckon(&drive, &load);
                        let most = if name == "kvvirt" && turns == 1 { 20_000 } else { 70_000 };
                        let steps = drive.work.steps();
                        assert!(
                            100 < steps && steps < most,
                            "{name} {scale} {} {filled} {turns}: {steps}",
                            design.name
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn skew_is_that_of_the_ranks_that_are_drawn_and_helps_trees_whose_keys_are_changed() {
        let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 256.0).unwrap();
        let load = load_of(&profile, 0.6);
        let reads = |design: &Design, load: &Load| estimate(&profile, design, load).unwrap().flash_reads;
        let alike = Load { skew: 0.0, ..load };
        let plain = Load { ranks: load.pairs, ..load };
        for design in [&RHIK, &PINK] {
            assert!(reads(design, &plain) < reads(design, &load), "{}: more ranks, less skew", design.name);
            assert!(reads(design, &load) < reads(design, &alike), "{}", design.name);
        }
        let only_reads = Mix::Points { retrieves: 1.0, stores: 0.0, modifies: false };
        let (skewed, alike) = (Load { mix: only_reads, ..load }, Load { mix: only_reads, ..alike });
        assert_eq!(reads(&PINK, &skewed), reads(&PINK, &alike), "a tree keeps no page because it was asked for");
    }

    /// All pairs of a tree may be in its MemTable.
    #[test]
    fn a_drive_of_a_few_pairs_has_figures_too() {
        let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 512.0).unwrap();
        for (name, pairs) in
            ["iter", "pink", "plus", "rhik"].into_iter().flat_map(|name| [1, 3, 1000, 1500].map(|pairs| (name, pairs)))
        {
            let load = Load { value_bytes: 100, ..Load::half_and_half(pairs) };
            let estimate = estimate(&profile, &kvssd_designs::named(name).unwrap(), &load).unwrap();
            let Estimate { throughput_ops_s, flash_reads, dies, .. } = estimate;
            assert!(throughput_ops_s > 50_000.0 && (0.0..3.0).contains(&flash_reads), "{name}, {pairs}: {estimate:?}");
            assert!((0.0..1.0).contains(&dies), "{name}, {pairs}: {dies}");
        }
    }

    /// A drive that was just overwritten goes on collecting beside what comes: as far as there is time for it.
    #[test]
    fn a_short_run_is_not_charged_with_all_that_collection_is_behind() {
        let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 512.0).unwrap();
        let only_reads = Mix::Points { retrieves: 1.0, stores: 0.0, modifies: false };
        for (name, mix) in ["original", "iter", "rhik"].into_iter().flat_map(|name| {
            [only_reads, Mix::Points { retrieves: 0.5, stores: 0.5, modifies: false }].map(|mix| (name, mix))
        }) {
            let design = kvssd_designs::named(name).unwrap();
            let reads = [1, 10, 100, 1000, 10_000].map(|operations| {
                let load = Load { mix, operations, value_bytes: 500, ..load_of(&profile, 0.4) };
                estimate(&profile, &design, &load).unwrap().flash_reads
            });
            assert!(reads.iter().all(|reads| (1.0..9.0).contains(reads)), "{name}: {reads:?}");
        }
    }

    #[test]
    fn a_store_of_what_was_just_retrieved_looks_nothing_up() {
        let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 256.0).unwrap();
        let load = Load { skew: 0.0, ..load_of(&profile, 0.6) };
        let points = |modifies| Load { mix: Mix::Points { retrieves: 1.0, stores: 0.5, modifies }, ..load };
        let [apart, together] = [false, true].map(|modifies| estimate(&profile, &PLUS, &points(modifies)).unwrap());
        assert!(together.flash_reads < apart.flash_reads - 0.2);
        let times = |estimate: &Estimate| estimate.store_p50_ns.unwrap();
        assert!(times(&together) < times(&apart) - 25_000.0, "{} {}", times(&together), times(&apart));
    }
}
