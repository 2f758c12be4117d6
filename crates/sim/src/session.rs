//! A session: one drive through fill, overwrite and runs.

mod batches;
mod commands;
mod kvbench;
mod phase;
mod scans;
mod ycsb;

pub use self::ycsb::YcsbWork;

use self::batches::Batches;
use self::phase::Limit;
use self::scans::Scan;
use crate::baseline::Baseline;
use crate::error::{Exhausted, SimError};
use crate::host::HostPlan;
use crate::measured::Measured;
use crate::report::{Run, Subject};
use crate::setup::{Bed, Setup};
use crate::workload::{Distribution, KeyShape, Operation, PairShape, ValueSizes, YcsbCore};
use kvssd_device::{Completion, Device};
use kvssd_flash::RopeBacking;
use kvssd_measure::Observer;
use kvssd_types::{Command, KEY_BYTES_MAX, KvError, NamespaceId, Nanos, Pattern, Reply, Value, mix64};
use std::collections::BTreeMap;

/// The bit of a version that says that the record was deleted.
const DELETED: u32 = 1 << 31;

/// A drive with pairs on it, and the memory of which version of each record it must hold.
pub struct Session {
    setup: Setup,
    device: Device,
    keys: KeyShape,
    sizes: ValueSizes,
    versions: Vec<u32>,
    clock: Nanos,
    phases: u64,
    scans: BTreeMap<u64, Scan>,
    scans_begun: u64,
    batches: Batches,
}

impl Session {
    /// A new drive, and room for `inserts_max` records beyond those that it is filled with.
    ///
    /// # Errors
    /// When the setup is impossible.
    pub fn new(setup: &Setup, inserts_max: u64) -> Result<Self, SimError> {
        Session::with(setup, setup.pairs.keys()?, setup.pairs.value_sizes(setup.bed.seed)?, inserts_max)
    }

    fn with(setup: &Setup, keys: KeyShape, sizes: ValueSizes, inserts_max: u64) -> Result<Self, SimError> {
        setup.check(inserts_max, true)?;
        let Bed { design, profile, .. } = &setup.bed;
        let device = Device::new(design, profile, Box::new(RopeBacking::new(profile.geometry)))?;
        let (value_bytes, value_bytes_max) = (u64::from(setup.pairs.value_bytes), device.engine().value_bytes_max());
        if value_bytes > value_bytes_max {
            return Err(SimError::Setup(format!(
                "--value-bytes {value_bytes} is more than the {value_bytes_max} bytes that this drive takes"
            )));
        }
        // A workload that inserts may make the vector grow; most do not.
        let versions = Vec::with_capacity(setup.records as usize);
        Ok(Session {
            keys,
            sizes,
            setup: setup.clone(),
            device,
            versions,
            clock: Nanos::ZERO,
            phases: 0,
            scans: BTreeMap::new(),
            scans_begun: 0,
            batches: Batches::default(),
        })
    }

    /// The same session at the same moment once more: from here on the two drives live apart.
    #[must_use]
    pub fn snapshot(&self) -> Session {
        Session {
            setup: self.setup.clone(),
            device: self.device.snapshot().expect("a session's drive is in memory"),
            keys: self.keys,
            sizes: self.sizes.clone(),
            versions: self.versions.clone(),
            clock: self.clock,
            phases: self.phases,
            scans: self.scans.clone(),
            scans_begun: self.scans_begun,
            batches: self.batches.clone(),
        }
    }

    /// The drive.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// When the last command was done.
    #[must_use]
    pub fn clock(&self) -> Nanos {
        self.clock
    }

    /// The setup.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The next phases have these hosts.
    pub fn set_hosts(&mut self, hosts: HostPlan) {
        self.setup.hosts = hosts;
    }

    /// Inserts the records, in the order of their hashed keys' numbers.
    ///
    /// # Errors
    /// When the drive is full before, or the observer interrupts.
    pub fn fill(&mut self, observer: &mut dyn Observer) -> Result<(), SimError> {
        self.fill_more(self.setup.records, observer)
    }

    /// Inserts the next `count` records.
    ///
    /// # Errors
    /// When the drive is full before, or the observer interrupts.
    pub fn fill_more(&mut self, count: u64, observer: &mut dyn Observer) -> Result<(), SimError> {
        let mut next = self.versions.len() as u64;
        self.phase("fill", Limit::Operations(count), observer, |_| {
            next += 1;
            Operation::Insert { record: next - 1 }
        })?;
        Ok(())
    }

    /// Inserts records until no more fits; gives how many did.
    ///
    /// # Errors
    /// When the drive fails, or the observer interrupts.
    pub fn fill_up(&mut self, observer: &mut dyn Observer) -> Result<u64, SimError> {
        match self.fill(observer) {
            Ok(()) => Ok(self.setup.records),
            Err(SimError::Full { stored, .. }) => Ok(stored),
            Err(other) => Err(other),
        }
    }

    /// Overwrites `count` records, chosen at random.
    ///
    /// # Errors
    /// When the drive fails, or the observer interrupts.
    pub fn overwrite(&mut self, count: u64, observer: &mut dyn Observer) -> Result<(), SimError> {
        let records = self.setup.records;
        self.phase("overwrite", Limit::Operations(count), observer, |random| Operation::Update {
            record: random.below(records),
        })?;
        Ok(())
    }

    /// Whether the drive can do what a workload asks for.
    ///
    /// # Errors
    /// [`SimError::NoRanges`] when it scans and the index has no order.
    pub fn check_workload(&self, core: YcsbCore) -> Result<(), SimError> {
        if core.scans() && !self.device.engine().is_ordered(NamespaceId::FIRST) {
            let (workload, design) = (core.to_string(), self.setup.bed.design.name.to_owned());
            return Err(SimError::NoRanges { workload, design });
        }
        Ok(())
    }

    /// Whether updates of a workload can go in batches of so many of the records.
    ///
    /// # Errors
    /// [`SimError::Setup`] when there are none, or they come by the clock; when batches are too large, or the drive has no keys.
    pub fn check_batches(&self, core: YcsbCore, pairs: u32) -> Result<(), SimError> {
        let engine = self.device.engine();
        let PairShape { key_bytes, value_bytes, .. } = self.setup.pairs;
        let bytes = u64::from(pairs) * (key_bytes as u64 + u64::from(value_bytes));
        let (pairs_max, bytes_max) = (engine.batch_changes_max(), engine.value_bytes_max());
        let fail = |why: String| Err(SimError::Setup(why));
        match pairs {
            1 => Ok(()),
            0 => fail("--batch-pairs must be above 0".to_owned()),
            _ if !core.updates() => fail(format!("--batch-pairs {pairs} is of updates, and {core} has none")),
            _ if self.setup.hosts.rate_per_s.is_some() => fail(
                "--batch-pairs is not for --rate: what is gathered would wait for others, which no latency shows"
                    .to_owned(),
            ),
            _ if u64::from(pairs) > self.setup.records => {
                fail(format!("--batch-pairs {pairs} is more than the {} records", self.setup.records))
            }
            _ if !self.setup.bed.design.takes_keys() => {
                fail(format!("--batch-pairs {pairs} is not for {}, which takes no batches", self.setup.bed.design.name))
            }
            _ if pairs as usize > pairs_max || bytes > bytes_max => fail(format!(
                "--batch-pairs {pairs} of {bytes} bytes is more than the {pairs_max} pairs and {bytes_max} bytes that this drive takes"
            )),
            _ => Ok(()),
        }
    }

    fn report(
        &self,
        workload: &str,
        distribution: Distribution,
        records: u64,
        baseline: &Baseline,
        measured: &Measured,
    ) -> Run {
        let subject = Subject {
            design: self.setup.bed.design.name,
            profile: &self.setup.bed.profile,
            seed: self.setup.bed.seed,
            workload,
            distribution: distribution.name(),
            records,
        };
        Run::new(&subject, &self.device, baseline, measured)
    }

    fn store(&mut self, record: u64, at: Nanos, measured: &mut Measured) -> Result<Nanos, SimError> {
        let mut room = [0; KEY_BYTES_MAX];
        let key = self.keys.write(record, &mut room);
        let pattern = self.pattern(record);
        let command = self.write_command(record, key);
        let Completion { done, reply } = self.device.submit(command, at);
        let bytes = key.bytes().len() as u64 + u64::from(pattern.length);
        reply.map_err(|why| self.why_not_stored(why))?;
        measured.add_store(at, done, bytes);
        Ok(done)
    }

    fn why_not_stored(&self, why: KvError) -> SimError {
        match why {
            KvError::CapacityExceeded | KvError::InvalidRange { .. } => {
                let design = self.setup.bed.design.name.to_owned();
                // A block drive counts blocks, not records; and what is deleted has made room.
                let stored = match self.setup.bed.design.takes_keys() {
                    true => self.device.engine().utilization().pairs,
                    false => self.versions.len() as u64 - 1,
                };
                let what = Exhausted::of(self.device.engine().lacks());
                SimError::Full { what, design, stored, records: self.setup.records.max(stored + 1) }
            }
            other => SimError::Drive(other),
        }
    }

    fn retrieve(&mut self, record: u64, at: Nanos, measured: &mut Measured) -> Result<Nanos, SimError> {
        let mut room = [0; KEY_BYTES_MAX];
        let key = self.keys.write(record, &mut room);
        let expected = Value::Pattern(self.pattern(record));
        let is_there = self.versions[record as usize] & DELETED == 0;
        let command = self.read_command(record, key);
        let Completion { done, reply } = self.device.submit(command, at);
        match reply {
            Ok(Reply::Retrieved { value, .. } | Reply::Read(value)) if is_there && value == expected => {
                measured.verified_retrieves += 1;
            }
            // That nothing is there is what must be found of what was deleted.
            Err(KvError::KeyNotFound) if !is_there => measured.verified_retrieves += 1,
            Ok(_) | Err(KvError::KeyNotFound) => measured.failed_retrieves += 1,
            Err(other) => return Err(SimError::Drive(other)),
        }
        measured.add_retrieve(at, done, if is_there { expected.len() as u64 } else { 0 });
        Ok(done)
    }

    fn delete(&mut self, record: u64, at: Nanos, measured: &mut Measured) -> Result<Nanos, SimError> {
        let mut room = [0; KEY_BYTES_MAX];
        let key = self.keys.write(record, &mut room);
        let Completion { done, reply } = self.device.submit(Command::Delete { key }, at);
        let is_there = self.versions[record as usize] & DELETED == 0;
        match reply {
            Ok(_) | Err(KvError::KeyNotFound) => measured.failed_retrieves += u64::from(reply.is_ok() != is_there),
            Err(other) => return Err(SimError::Drive(other)),
        }
        self.versions[record as usize] |= DELETED;
        measured.add_other("delete", at, done, 0);
        Ok(done)
    }

    /// The value that a record must have now.
    fn pattern(&self, record: u64) -> Pattern {
        let version = self.versions[record as usize];
        // Seeds of 48 bits take less memory and are as far apart as a hundred million values need.
        let seed = mix64(mix64(self.setup.bed.seed ^ record << 20).wrapping_add(version.into())) >> 16;
        self.whole(Pattern { seed, offset: 0, length: self.sizes.bytes(record, version) })
    }
}
