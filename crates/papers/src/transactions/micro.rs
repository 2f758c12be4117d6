//! KAML's microbenchmarks: Fetch, Update and Insert, on a key drive and on a block drive.
//!
//! ```text
//!            key drive                       block drive                        records
//!   Fetch    Retrieve                        Read                               there, at random
//!   Update   Store, or Batch of n            Write                              there, at random
//!   Insert   Store, or Batch of n            Write of blocks never written      not there yet
//! ```
//!
//! Source: KAML, section V-B: eight threads that issue one command after the other for bandwidths, one for latencies; records of 512 to
//! 4096 bytes, which the paper also calls values: two of 4 KB fit into a page of 8 KiB on either drive. Record n of a block drive lies at n
//! records from its beginning, so that several small ones share what the drive maps.
//! Records are inserted in their order, so that a small one finds in the buffer what it modifies, unless the testbed says that it does not
//! ([`Emulator::inserts_scattered`](kvssd_flash::Emulator::inserts_scattered)). The load factor of an index is the share of its slots that
//! are taken: the caller chooses the records for it.
//!
//! What it does not do: count the time of the host's software, which is 2 to 8 of a hundred in the paper; both sides are without.

mod places;

use self::places::Places;
use kvssd_device::Device;
use kvssd_flash::{Profile, RopeBacking};
use kvssd_ftl::{Design, RecordHead};
use kvssd_measure::{Latencies, LatencySummary, Observer};
use kvssd_sim::{Hosts, Turn};
use kvssd_sim::{Pace, SimError};
use kvssd_types::{
    BLOCK_BYTES, BatchChange, Command, Key, KvError, NamespaceId, Nanos, Pattern, PlacementHandle, Random, Reply,
    StoreCondition, Value, mix64,
};
use serde::Serialize;

const KEY_BYTES: usize = 8;
/// How often the observer is told, in commands.
const REPORT_EVERY: u64 = 1 << 12;

/// Which of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MicroKind {
    /// Values of records that are there.
    Fetch,
    /// New values of records that are there.
    Update,
    /// Records that are not there yet.
    Insert,
}

/// A drive and the records on it.
pub struct MicroBench {
    device: Device,
    design: Design,
    options: MicroOptions,
    /// Where a block drive has its records.
    places: Places,
    /// The version of each record.
    versions: Vec<u32>,
    clock: Nanos,
    runs: u64,
}

/// What is measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MicroOptions {
    /// Bytes of a record: whole blocks. On a key drive a key and the head before it are of them, and the value is what is left.
    pub record_bytes: u32,
    /// Threads, each with a command under way.
    pub threads: u32,
    /// Pairs of a command: 1 for single commands, more for batches of stores.
    pub batch_pairs: u32,
    /// Records that there will be in the end.
    pub records_max: u64,
    /// Of everything that is random.
    pub seed: u64,
}

/// The figures of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MicroReport {
    /// The drive.
    pub design: &'static str,
    /// The benchmark.
    pub kind: MicroKind,
    /// With what.
    pub options: MicroOptions,
    /// Records that there were in the end.
    pub records: u64,
    /// Pairs that were read or written.
    pub pairs: u64,
    /// Virtual time.
    pub seconds: f64,
    /// Values that were moved, in a second.
    pub bytes_per_s: f64,
    /// Of commands.
    pub latency_ns: LatencySummary,
}

impl MicroBench {
    /// An empty drive.
    ///
    /// # Errors
    /// When the design does not fit the profile, or the options not the design.
    pub fn new(design: &Design, profile: &Profile, options: MicroOptions) -> Result<Self, SimError> {
        check(design, &options)?;
        let device = Device::new(design, profile, Box::new(RopeBacking::new(profile.geometry)))?;
        MicroBench::over(device, design, options, Nanos::ZERO)
    }

    /// On a drive of `design` that has no records of this benchmark yet, from `start` on.
    ///
    /// # Errors
    /// When the options cannot be.
    pub fn over(mut device: Device, design: &Design, options: MicroOptions, start: Nanos) -> Result<Self, SimError> {
        check(design, &options)?;
        let (mut places, mut clock) = (Places::in_order(options.record_bytes), start);
        if device.profile().emulator.inserts_scattered && !design.takes_keys() {
            places = Places::scattered(options.record_bytes, options.records_max, options.seed);
            clock = places.write_before(&mut device, start)?;
        }
        Ok(MicroBench { device, design: design.clone(), options, places, versions: Vec::new(), clock, runs: 0 })
    }

    /// From now on commands come from so many threads, and have so many pairs each.
    ///
    /// # Errors
    /// When that cannot be.
    pub fn set(&mut self, threads: u32, batch_pairs: u32) -> Result<(), SimError> {
        let options = MicroOptions { threads, batch_pairs, ..self.options };
        check(&self.design, &options)?;
        self.options = options;
        Ok(())
    }

    /// From now on records go to so many logs.
    ///
    /// # Errors
    /// When the drive fails, or has no namespaces.
    pub fn set_logs(&mut self, logs: u32) -> Result<(), SimError> {
        self.clock = self.device.set_logs(NamespaceId::FIRST, Some(logs), self.clock).map_err(SimError::Drive)?;
        Ok(())
    }

    /// The drive.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Runs `pairs` pairs of a benchmark, in commands of [`MicroOptions::batch_pairs`], which Fetch has one of.
    ///
    /// # Errors
    /// When there are no records to fetch or no room for those to insert, the drive fails, or the observer interrupts.
    pub fn run(&mut self, kind: MicroKind, pairs: u64, observer: &mut dyn Observer) -> Result<MicroReport, SimError> {
        let room = self.options.records_max - self.versions.len() as u64;
        if (kind == MicroKind::Insert && pairs > room)
            || (kind != MicroKind::Insert && (self.versions.len() as u64) < u64::from(self.options.batch_pairs))
        {
            return Err(SimError::Setup("a microbenchmark has too few records, or too many".to_owned()));
        }
        self.runs += 1;
        let mut random = Random::stream(self.options.seed, self.runs);
        let start = self.clock;
        let mut hosts = Hosts::new(Pace::Closed, self.options.threads, 1, start, self.options.seed);
        let (mut latencies, mut moved, mut commands) = (Latencies::new(), 0, 0u64);
        observer.begin(&format!("{} {kind:?}", self.design.name), pairs);
        while moved < pairs {
            let (at, Turn::Next { thread }) = hosts.pop() else { unreachable!("there are no other turns") };
            let records = self.draw(kind, pairs - moved, &mut random);
            let done = match kind {
                MicroKind::Fetch => self.fetch(records[0], at)?,
                MicroKind::Update | MicroKind::Insert => self.store(&records, at)?,
            };
            moved += records.len() as u64;
            commands += 1;
            latencies.add(done - at);
            self.clock = self.clock.max(done);
            hosts.done(done, thread);
            if commands.is_multiple_of(REPORT_EVERY) {
                observer.progress(moved);
                if observer.is_interrupted() {
                    return Err(SimError::Interrupted);
                }
            }
        }
        observer.progress(pairs);
        let seconds = (self.clock - start).as_seconds();
        Ok(MicroReport {
            design: self.design.name,
            kind,
            options: self.options,
            records: self.versions.len() as u64,
            pairs,
            seconds,
            bytes_per_s: (pairs * u64::from(self.value_bytes())) as f64 / seconds,
            latency_ns: latencies.summary(),
        })
    }

    /// The records of the next command, each another one.
    fn draw(&mut self, kind: MicroKind, pairs_left: u64, random: &mut Random) -> Vec<u64> {
        let records_now = self.versions.len() as u64;
        let count = if kind == MicroKind::Fetch { 1 } else { u64::from(self.options.batch_pairs).min(pairs_left) };
        if kind == MicroKind::Insert {
            self.versions.extend((0..count).map(|_| 0));
            return (records_now..records_now + count).collect();
        }
        let mut records: Vec<u64> = Vec::with_capacity(count as usize);
        while (records.len() as u64) < count {
            let record = random.below(records_now);
            if !records.contains(&record) {
                records.push(record);
            }
        }
        records
    }

    fn store(&mut self, records: &[u64], at: Nanos) -> Result<Nanos, SimError> {
        let mut changes = Vec::with_capacity(records.len());
        for &record in records {
            let version = &mut self.versions[record as usize];
            *version += 1;
            changes.push((key_bytes(record), self.value(record)));
        }
        let completion = match &changes[..] {
            [(_, value)] if !self.design.takes_keys() => {
                let offset_bytes = self.offset_bytes(records[0]);
                self.device
                    .submit(Command::Write { offset_bytes, value: value.clone(), handle: PlacementHandle::DEFAULT }, at)
            }
            [(key, value)] => {
                let condition = StoreCondition::Always;
                self.device.submit(Command::Store { key: name(key), value: value.clone(), condition }, at)
            }
            several => {
                let namespace = NamespaceId::FIRST;
                let changes: Vec<BatchChange<'_>> = several
                    .iter()
                    .map(|(key, value)| BatchChange { namespace, key: name(key), value: Some(value.clone()) })
                    .collect();
                self.device.submit(Command::Batch { changes: &changes }, at)
            }
        };
        completion.success().map_err(SimError::Drive)
    }

    fn fetch(&mut self, record: u64, at: Nanos) -> Result<Nanos, SimError> {
        let length_bytes = self.value_bytes();
        let key = key_bytes(record);
        let command = match self.design.takes_keys() {
            true => Command::Retrieve { key: name(&key), offset_bytes: 0, length_bytes },
            false => Command::Read { offset_bytes: self.offset_bytes(record), length_bytes },
        };
        let completion = self.device.submit(command, at);
        match completion.reply {
            Ok(Reply::Retrieved { value, .. } | Reply::Read(value)) if value == self.value(record) => {
                Ok(completion.done)
            }
            Ok(_) | Err(KvError::KeyNotFound) => Err(SimError::WrongValues(1)),
            Err(error) => Err(SimError::Drive(error)),
        }
    }

    /// What a value has of a record.
    fn value_bytes(&self) -> u32 {
        let head_bytes = if self.design.takes_keys() { RecordHead::bytes_for(KEY_BYTES) } else { 0 };
        self.options.record_bytes - head_bytes as u32
    }

    /// The value of a record's version.
    fn value(&self, record: u64) -> Value {
        let seed = record << 32 | u64::from(self.versions[record as usize]);
        Value::Pattern(Pattern { seed, offset: 0, length: self.value_bytes() })
    }

    /// Where a block drive has a record.
    fn offset_bytes(&self, record: u64) -> u64 {
        self.places.offset_bytes(record)
    }
}

fn check(design: &Design, options: &MicroOptions) -> Result<(), SimError> {
    let fail = |why: &str| Err(SimError::Setup(why.to_owned()));
    if options.record_bytes == 0 || !options.record_bytes.is_multiple_of(BLOCK_BYTES) {
        return fail("records of the microbenchmarks are whole blocks of 512 bytes");
    }
    if options.threads == 0 || options.batch_pairs == 0 || options.records_max < u64::from(options.batch_pairs) {
        return fail("a microbenchmark has a thread, a pair in a command and records for it at least");
    }
    if options.batch_pairs > 1 && !design.takes_keys() {
        return fail("a block drive makes no batches");
    }
    Ok(())
}

fn key_bytes(record: u64) -> [u8; KEY_BYTES] {
    mix64(record).to_be_bytes()
}

fn name(bytes: &[u8; KEY_BYTES]) -> Key<'_> {
    Key::new(bytes).expect("eight bytes are a key")
}

#[cfg(test)]
mod tests;
