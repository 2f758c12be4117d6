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

mod cache;
mod chain;
mod collection;
mod commands;
mod drive;
mod latency;
mod load;
mod queues;
mod ranges;

pub use crate::load::{Load, Mix};

use crate::cache::hits_of;
use crate::collection::{Fluid, Traffic};
use crate::commands::Commands;
use crate::drive::Drive;
use crate::queues::Busy;
use kvssd_flash::Profile;
use kvssd_ftl::Design;
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
    let drive = Drive::new(profile, design, load)?;
    if let Some((rate, seek_ns, flash_reads)) = ranges::ranges(&drive, load) {
        return Ok(Estimate {
            throughput_ops_s: rate * 1e9,
            limit_ops_s: rate * 1e9,
            flash_reads,
            flash_programs: 0.0,
            write_amplification: None,
            retrieve_p50_ns: Some(seek_ns),
            store_p50_ns: None,
            dies: rate * flash_reads * drive.read_ns / drive.dies,
            held_back_by: if rate * flash_reads * drive.read_ns < 0.95 * drive.dies {
                HeldBackBy::Clients
            } else {
                HeldBackBy::Dies
            },
        });
    }
    let before = Load { mix: Mix::Points { retrieves: 0.0, stores: 1.0 }, skew: 0.0, batch_pairs: 1, ..*load };
    let free_before = settle(&drive, &before, drive.free_low)?.free;
    let Settled { traffic, busy, waits, .. } = settle(&drive, load, free_before)?;
    let commands = Commands::new(&drive, load, &traffic, &hits_of(&drive, load));
    let (idle, _) = queues::closed_loop(&drive, load, &Traffic::default(), &commands);
    let store = commands.store.times(load.batch_pairs, &drive);
    let store_p50_ns = latency::median_ns(&drive, &busy, &store);
    let stored_bytes = commands.stores * drive.record.user_bytes;
    Ok(Estimate {
        throughput_ops_s: busy.rate * 1e9,
        limit_ops_s: idle.rate * 1e9,
        flash_reads: traffic.reads() + commands.record_reads,
        flash_programs: traffic.programs(),
        write_amplification: (stored_bytes > 0.0).then(|| traffic.programs() * drive.record.page_bytes / stored_bytes),
        retrieve_p50_ns: (commands.retrieves > 0.0).then(|| latency::median_ns(&drive, &busy, &commands.retrieve)),
        store_p50_ns: (commands.stores > 0.0).then_some(store_p50_ns),
        dies: busy.dies,
        held_back_by: held_back_by(&busy, waits),
    })
}

/// Room and the width of collection hang on each other: so often one is reckoned from the other.
const SETTLING_STEPS: usize = 3;

/// A drive that has come to rest.
struct Settled {
    /// What an operation takes.
    traffic: Traffic,
    /// The drive at its throughput, and whether stores wait for collection.
    busy: Busy,
    waits: bool,
    /// The free superblocks at which its collector rests.
    free: f64,
}

fn settle(drive: &Drive, load: &Load, free_before: f64) -> Result<Settled, EstimateError> {
    let hits = hits_of(drive, load);
    let reckon = |free: f64| {
        let traffic = Fluid::new(drive, load, &hits).run(free_before, free).ok_or(EstimateError::Full)?;
        let commands = Commands::new(drive, load, &traffic, &hits);
        let (busy, waits) = queues::closed_loop(drive, load, &traffic, &commands);
        let free = if load.points().1 > 0.0 { drive.free_at(busy.step_pages) } else { drive.free_low };
        Ok(Settled { traffic, busy, waits, free })
    };
    let mut settled = reckon(drive.free_low)?;
    for _ in 1..SETTLING_STEPS {
        settled = reckon(settled.free)?;
    }
    Ok(settled)
}

fn held_back_by(busy: &Busy, waits: bool) -> HeldBackBy {
    let parts = [
        (busy.dies, HeldBackBy::Dies),
        (busy.channels, HeldBackBy::Channels),
        (busy.cores, HeldBackBy::Cores),
        (busy.link, HeldBackBy::Link),
    ];
    let busiest = parts.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(load, _)| *load > 0.95);
    match busiest {
        _ if waits => HeldBackBy::Collection,
        Some((_, part)) => part,
        None => HeldBackBy::Clients,
    }
}
