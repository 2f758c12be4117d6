//! What the experiments of the KAML paper run on, and what each of them measures.

use crate::claims::scale_name;
use crate::transactions::{MicroBench, MicroOptions, MicroReport, key_drive, wear_in};
use kvssd_designs::BLOCK;
use kvssd_device::Device;
use kvssd_flash::{PowerLoss, Profile, RopeBacking};
use kvssd_ftl::Design;
use kvssd_measure::{Figure, Observer};
use kvssd_sim::SimError;
use kvssd_types::Nanos;
use serde::{Deserialize, Serialize};

/// Threads that measure bandwidth (section V-A); of transactions the paper gives no number, and as many terminals are an estimate.
pub(super) const THREADS: u32 = 8;
/// Slots of the table of the microbenchmarks (section V-B: 64 million).
const SLOTS: f64 = 64e6;
/// Times that the drive is filled before an experiment (section V-A: "multiple times"). An estimate.
const TIMES_FILLED: u64 = 2;

/// Tables of transactions, their memory and their log are smaller than the drive by this once more, for the time that it takes. What
/// terminals wait for each other at, warehouses, districts, branches and tellers, stays as it is.
const TABLES_PART: f64 = 0.25;

/// A measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KamlCell {
    /// The first claim that it is for.
    pub claim: String,
    /// The drive, or the engine on it.
    pub side: String,
    /// What ran.
    pub workload: String,
    /// Bytes of a value with its key and head; of transactions, of most values alone.
    pub value_bytes: u32,
    /// What is swept.
    pub parameter: String,
    /// And what it was set to.
    pub setting: String,
    /// Threads.
    pub threads: u32,
    /// Records or transactions a second.
    pub per_second: f64,
    /// Mean latency of commands or transactions.
    pub latency_ns_mean: f64,
}

/// What every experiment runs on.
pub(super) struct Bench<'o> {
    pub(super) profile: Profile,
    pub(super) scale: f64,
    pub(super) seed: u64,
    pub(super) keys: Design,
    pub(super) blocks: Design,
    pub(super) observer: &'o mut dyn Observer,
    pub(super) cells: Vec<KamlCell>,
    pub(super) figures: Vec<Figure>,
}

impl<'o> Bench<'o> {
    pub(super) fn new(
        profile: &Profile,
        parameters: &[(String, String)],
        scale: f64,
        seed: u64,
        observer: &'o mut dyn Observer,
    ) -> Result<Self, SimError> {
        let mut keys = kvssd_designs::named("kaml")?;
        for (key, value) in parameters {
            if key == "flash_bytes_per_slot" {
                return Err(SimError::Setup(format!("design.{key} is chosen by these claims: they need load factors")));
            }
            keys.set(key, value)?;
        }
        let profile = profile.scaled(scale)?;
        keys.check_parameters(&profile)?;
        // "The command cannot return before the firmware reads 4 KB from flash into the RAM and modifies a portion of it" (section V-B).
        let blocks = Design { victims: keys.victims.clone(), gathered_blocks_max: 0, ..BLOCK };
        Ok(Bench { profile, scale, seed, keys, blocks, observer, cells: Vec::new(), figures: Vec::new() })
    }

    pub(super) fn scale_name(&self) -> String {
        scale_name(self.scale)
    }

    /// The part of the paper's tables that transactions run on.
    pub(super) fn tables_scale(&self) -> f64 {
        self.scale * TABLES_PART
    }

    /// Slots of the microbenchmarks' table.
    pub(super) fn slots(&self) -> u64 {
        (SLOTS * self.scale) as u64
    }

    /// The board with buffers that survive a power cut (section V-A), which engines must know of.
    pub(super) fn protected(&self) -> Profile {
        let mut profile = self.profile.clone();
        profile.memory.power_loss = PowerLoss::Protected;
        profile
    }

    /// A drive of keys that was written before, with namespaces for tables of so many slots; and when it is ready.
    pub(super) fn key_drive(&mut self, profile: &Profile, slots: &[u64]) -> Result<(Device, Nanos), SimError> {
        let (mut device, clock) = key_drive(&self.keys, profile, slots)?;
        let start = wear_in(&mut device, &self.keys, TIMES_FILLED, clock, self.observer)?;
        Ok((device, start))
    }

    /// A drive of blocks that was written before; and when it is ready.
    pub(super) fn block_drive(&mut self, profile: &Profile) -> Result<(Device, Nanos), SimError> {
        let mut device = Device::new(&self.blocks, profile, Box::new(RopeBacking::new(profile.geometry)))?;
        let start = wear_in(&mut device, &self.blocks, TIMES_FILLED, Nanos::ZERO, self.observer)?;
        Ok((device, start))
    }

    /// A microbenchmark on the key drive, with a table of so many slots, or on the block drive, with none.
    pub(super) fn micro(
        &mut self,
        slots: Option<u64>,
        record_bytes: u32,
        records_max: u64,
    ) -> Result<MicroBench, SimError> {
        let options = MicroOptions { record_bytes, threads: THREADS, batch_pairs: 1, records_max, seed: self.seed };
        let profile = self.profile.clone();
        let (device, start) = match slots {
            Some(slots) => self.key_drive(&profile, &[slots])?,
            None => self.block_drive(&profile)?,
        };
        let design = if slots.is_some() { &self.keys } else { &self.blocks };
        MicroBench::over(device, design, options, start)
    }

    /// Keeps a measurement of a microbenchmark; gives records a second.
    pub(super) fn keep(
        &mut self,
        claim: &'static str,
        (parameter, setting): (&'static str, String),
        report: &MicroReport,
    ) -> f64 {
        let per_second = report.pairs as f64 / report.seconds;
        self.cells.push(KamlCell {
            claim: claim.to_owned(),
            side: report.design.to_owned(),
            workload: format!("{:?}", report.kind),
            value_bytes: report.options.record_bytes,
            parameter: parameter.to_owned(),
            setting,
            threads: report.options.threads,
            per_second,
            latency_ns_mean: report.latency_ns.mean,
        });
        per_second
    }
}
