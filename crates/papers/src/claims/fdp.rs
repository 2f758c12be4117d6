//! Placement handles under caches of LLMs: the measurement in LMCache's pull request 4016 (July 2026).
//!
//! ```text
//!   nine workers, five classes, 855 of 960 GiB     written over 3840 GiB      WAF
//!     chat, chat | long context | RAG, RAG |       without handles            2.600
//!     random, random, random | metadata            a handle for each class    1.425
//! ```
//!
//! Known are the drive, the classes, their objects and spans, that the drive was filled in order before, that its reclaim units have 16 GiB, and
//! how LMCache 0.5.6 gives out slots and evicts ([`worker`]). Not known are its spare flash and what the traces ask for: estimates, made before
//! the first run (the profile, [`worker::CLASSES`]). Superblocks stand for 8 GiB each: of fewer than 128 our collector keeps too many free.
//!
//! Beside it the same workers keep pairs on a key-value drive of the same flash, where an eviction is a delete. It needs no handle to know
//! what is dead.

mod drives;
mod worker;

use self::drives::{BlockDrive, Drive, PairDrive};
use self::worker::Worker;
use super::experiment::Context;
use crate::claims::{Claim, Experiment, Findings, Verdict, scale_name};
use kvssd_flash::Profile;
use kvssd_ftl::{Design, KeptFree};
use kvssd_measure::figure::{Along, Kind, Source, Values};
use kvssd_measure::{Figure, Observer, Unit};
use kvssd_sim::SimError;
use kvssd_types::Random;

/// What was measured: without handles, and with one for each class.
const MEASURED: [f64; 2] = [2.600, 1.425];
/// A figure is reproduced within this.
const BAND: f64 = 0.1;
/// The bytes that are written, over those of the drive.
const WRITTEN_OVER_CAPACITY: f64 = 4.0;
/// A handle for each class, and the default one for the filling.
const HANDLES: u32 = worker::CLASSES.len() as u32 + 1;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment::new(&["fdp.1", "fdp.2"], 60, check, amplification)];

/// The drives, with as little kept free as collection can do with.
fn design(name: &str) -> Result<Design, SimError> {
    Ok(Design { gc_low_superblocks: 2, gc_high_superblocks: 1, ..kvssd_designs::named(name)? })
}

fn design_of_pairs(context: &Context) -> Result<Design, SimError> {
    let mut design = design("tessera")?;
    context.parameters.iter().try_for_each(|(key, value)| design.set(key, value))?;
    Ok(design)
}

/// The drive, with what collection keeps free beside its flash: it is not known of the measured one, and too much of so few superblocks to
/// be a part of what is spare.
fn profile(context: &Context) -> Result<Profile, SimError> {
    let mut profile = context.profile.scaled(context.scale)?;
    let KeptFree { collector, low, .. } = design("block")?.kept_free(&profile.geometry);
    let spare = f64::from(profile.geometry.superblocks()) * profile.space.over_provisioning_percent / 100.0;
    let kept = collector + low;
    profile.geometry.blocks_per_die += kept;
    profile.space.over_provisioning_percent =
        100.0 * (spare + f64::from(kept)) / f64::from(profile.geometry.superblocks());
    Ok(profile)
}

fn check(context: &Context) -> Result<(), SimError> {
    let profile = profile(context)?;
    let blocks = design("block")?;
    for handles in [1, HANDLES] {
        BlockDrive::new(&blocks, &profile, handles)?;
    }
    // More open superblocks must not take of what is spare: handles are all that differs.
    let [one, all] =
        [1, HANDLES].map(|placement_handles| Design { placement_handles, ..blocks.clone() }.capacity_bytes(&profile));
    if one != all {
        return Err(SimError::Setup(format!(
            "the flash is too small for {HANDLES} placement handles: a drive has {all} bytes with them and {one} without, and \
             they would be compared; choose a larger --scale"
        )));
    }
    PairDrive::new(&design_of_pairs(context)?, &profile).map(|_| ())
}

fn amplification(context: &Context, observer: &mut dyn Observer) -> Result<Findings, SimError> {
    let profile = profile(context)?;
    let blocks = design("block")?;
    let capacity_bytes = blocks.capacity_bytes(&profile);
    let mut run = |what: &str, drive: &mut dyn Drive, unmeasured_bytes: u64| {
        drive.fill()?;
        let bytes = Bytes { capacity: capacity_bytes, unmeasured: unmeasured_bytes };
        written_over(drive, bytes, context.scale, context.seed, what, observer)
    };
    let mixed = run("no handles", &mut BlockDrive::new(&blocks, &profile, 1)?, 0)?;
    let apart = run("a handle for each class", &mut BlockDrive::new(&blocks, &profile, HANDLES)?, 0)?;
    // Pairs cannot be filled in order. As much as that is stored before it is measured, so that no flash is fresh here either.
    let pairs = run("pairs", &mut PairDrive::new(&design_of_pairs(context)?, &profile)?, capacity_bytes)?;
    let claims: Vec<Claim> = ["fdp.1", "fdp.2"]
        .into_iter()
        .zip(MEASURED.into_iter().zip([mixed, apart]))
        .map(|(id, (measured, ours))| {
            let band = measured * (1.0 - BAND)..=measured * (1.0 + BAND);
            let verdict = Verdict::within(band, measured, ours, 1.0);
            Claim::new(id, format!("{ours:.3}"), verdict, scale_name(context.scale))
        })
        .collect();
    Ok(Findings::from(claims).with([figure([mixed, apart, pairs])]))
}

fn figure(ours: [f64; 3]) -> Figure {
    let caption = "Flash bytes written over bytes that nine caches stored; a key-value drive, to which evictions are deletes, beside block drives.";
    let along = Along::names("drive", ["blocks, no handles", "blocks, a handle for each class", "pairs"]);
    Figure::new("fdp", "1", &[1, 2], caption, Kind::Bars, along, Values::linear("write amplification", Unit::Plain))
        .ours("WAF", ours)
        .with("WAF", Source::Paper, &[Some(MEASURED[0]), Some(MEASURED[1]), None])
}

/// What is written.
#[derive(Clone, Copy)]
struct Bytes {
    /// What a block drive holds.
    capacity: u64,
    /// Stored before the measurement begins.
    unmeasured: u64,
}

/// Has all workers write until they have written the drive several times over; gives how much of it was written to flash for each byte.
fn written_over(
    drive: &mut dyn Drive,
    bytes: Bytes,
    scale: f64,
    seed: u64,
    what: &str,
    observer: &mut dyn Observer,
) -> Result<f64, SimError> {
    let mut workers = Worker::all(bytes.capacity, scale);
    let mut random = Random::new(seed);
    let total_bytes = bytes.unmeasured + (bytes.capacity as f64 * WRITTEN_OVER_CAPACITY) as u64;
    observer.begin(&format!("{what}, MiB stored"), total_bytes >> 20);
    let (mut before, mut stored_bytes) = (None, 0);
    while stored_bytes < total_bytes {
        if stored_bytes >= bytes.unmeasured {
            before.get_or_insert_with(|| (drive.programmed_bytes(), stored_bytes));
        }
        // They write equally fast.
        let worker = workers.iter_mut().min_by_key(|worker| worker.stored_bytes()).expect("there are workers");
        stored_bytes += worker.store_next(drive, &mut random)?;
        observer.progress(stored_bytes >> 20);
        if observer.is_interrupted() {
            return Err(SimError::Interrupted);
        }
    }
    let (flash_before, stored_before) = before.unwrap_or_default();
    Ok((drive.programmed_bytes() - flash_before) as f64 / (stored_bytes - stored_before) as f64)
}
