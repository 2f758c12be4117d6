//! A session: one drive through fill, overwrite and runs.

use self::scans::Scan;
use crate::error::SimError;
use crate::host::{Hosts, Turn};
use crate::report::{Baseline, Measured, Run, Subject};
use crate::setup::Setup;
use crate::workload::{Distribution, KeyShape, Operation, ValueSizes, Ycsb, YcsbCore};
use kvssd_device::{Completion, Device};
use kvssd_flash::RopeBacking;
use kvssd_measure::Observer;
use kvssd_types::{Command, KEY_BYTES_MAX, Key, KvError, Nanos, Pattern, Random, Reply, Value, mix64};
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

mod commands;
mod kvbench;
mod scans;

/// How often the observer is told, in operations.
const REPORT_EVERY: u64 = 1 << 12;

/// How many operations are drawn at a time.
const LOOK_AHEAD: u64 = 32;

/// The bit of a version that says that the record was deleted.
const DELETED: u32 = 1 << 31;

/// When a phase ends.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// After so many operations.
    Operations(u64),
    /// After so much virtual time.
    Time(Nanos),
}

/// Which thread makes which operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sequences {
    /// There is one sequence, and whichever thread is ready takes the next one.
    Shared,
    /// Each thread makes the same as all the others ([`Emulator::one_sequence`](kvssd_flash::Emulator::one_sequence)).
    Same,
}

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
}

impl Session {
    /// A new drive, and room for `inserts_max` records beyond those that it is filled with.
    ///
    /// # Errors
    /// When the setup is impossible.
    pub fn new(setup: &Setup, inserts_max: u64) -> Result<Self, SimError> {
        Session::with(setup, setup.keys()?, setup.value_sizes()?, inserts_max)
    }

    fn with(setup: &Setup, keys: KeyShape, sizes: ValueSizes, inserts_max: u64) -> Result<Self, SimError> {
        setup.check(inserts_max, true)?;
        let backing = Box::new(RopeBacking::new(setup.profile.geometry));
        let device = Device::new(&setup.design, &setup.profile, backing)?;
        let (value_bytes, value_bytes_max) = (u64::from(setup.value_bytes), device.engine().value_bytes_max());
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
        })
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
        if core == YcsbCore::E && !self.device.engine().is_ordered() {
            let (workload, design) = (core.to_string(), self.setup.design.name.to_owned());
            return Err(SimError::NoRanges { workload, design });
        }
        Ok(())
    }

    /// Runs a YCSB workload and measures it.
    ///
    /// # Errors
    /// When the workload asks for what the design has not, the drive fails, or the observer interrupts.
    pub fn run(
        &mut self,
        core: YcsbCore,
        distribution: Option<Distribution>,
        operations: u64,
        observer: &mut dyn Observer,
    ) -> Result<Run, SimError> {
        self.check_workload(core)?;
        let records = self.versions.len() as u64;
        let mut workload = Ycsb::new(core, distribution, records, operations);
        let baseline = Baseline::of(&self.device);
        let distribution = distribution.unwrap_or(core.default_distribution());
        let sequences = match distribution {
            Distribution::Zipfian if self.setup.profile.emulator.one_sequence => Sequences::Same,
            _ => Sequences::Shared,
        };
        let limit = Limit::Operations(operations);
        let measured = self.phase_of(sequences, core.name(), limit, observer, |random| workload.next(random))?;
        Ok(self.report(core.name(), distribution, records, &baseline, &measured))
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
            design: self.setup.design.name,
            profile: &self.setup.profile,
            seed: self.setup.seed,
            workload,
            distribution: distribution.name(),
            records,
        };
        Run::new(&subject, &self.device, baseline, measured)
    }

    /// Lets the hosts work until the limit is reached.
    fn phase(
        &mut self,
        name: &str,
        limit: Limit,
        observer: &mut dyn Observer,
        next: impl FnMut(&mut Random) -> Operation,
    ) -> Result<Measured, SimError> {
        self.phase_of(Sequences::Shared, name, limit, observer, next)
    }

    fn phase_of(
        &mut self,
        sequences: Sequences,
        name: &str,
        limit: Limit,
        observer: &mut dyn Observer,
        mut next: impl FnMut(&mut Random) -> Operation,
    ) -> Result<Measured, SimError> {
        let start = self.clock;
        let (mut count, end, total) = match limit {
            Limit::Operations(count) => (count, Nanos(u64::MAX), count),
            Limit::Time(length) => (u64::MAX, start + length, length.0),
        };
        observer.begin(&format!("{} {name}", self.setup.design.name), total);
        self.phases += 1;
        let seed = mix64(self.setup.seed ^ self.phases << 32);
        let Setup { pace, threads, queue_depth, .. } = self.setup;
        let mut random = Random::new(seed);
        let mut randoms = vec![Random::new(seed); if sequences == Sequences::Same { threads as usize } else { 0 }];
        let mut upcoming = VecDeque::new();
        let mut hosts = Hosts::new(pace, threads, queue_depth, self.clock, seed);
        let mut measured = Measured { start: self.clock, end: self.clock, ..Measured::default() };
        let started = Instant::now();
        let mut begun = 0;
        let mut under_way = 0;
        while begun < count || under_way > 0 {
            let (at, turn) = hosts.pop();
            match turn {
                Turn::Next { .. } if begun == count => {}
                Turn::Next { .. } if at >= end => count = begun,
                Turn::Next { thread } => {
                    if let Some(random) = randoms.get_mut(thread as usize) {
                        upcoming.push_back(next(random));
                    }
                    if upcoming.is_empty() {
                        let ahead = (count - begun).min(LOOK_AHEAD);
                        upcoming.extend((0..ahead).map(|_| next(&mut random)));
                        self.expect(upcoming.make_contiguous());
                    }
                    let operation = upcoming.pop_front().expect("operations were drawn just now");
                    begun += 1;
                    let goes_on = matches!(operation, Operation::ReadModifyWrite { .. } | Operation::Scan { .. });
                    under_way += u64::from(goes_on);
                    self.execute(operation, thread, at, &mut hosts, &mut measured)?;
                    if begun.is_multiple_of(REPORT_EVERY) {
                        observer.progress(if count == u64::MAX { (at - start).0 } else { begun });
                        if observer.is_interrupted() {
                            return Err(SimError::Interrupted);
                        }
                    }
                }
                Turn::GoOn { thread, scan } => {
                    let has_ended = self.go_on(scan, thread, at, &mut hosts, &mut measured)?;
                    under_way -= u64::from(has_ended);
                }
                Turn::WriteBack { thread, record } => {
                    under_way -= 1;
                    self.execute(Operation::Update { record }, thread, at, &mut hosts, &mut measured)?;
                }
            }
        }
        observer.progress(total);
        self.clock = measured.end;
        measured.operations = begun;
        measured.wall = started.elapsed();
        Ok(measured)
    }

    /// Tells the drive's memory what will be wanted soon.
    fn expect(&mut self, upcoming: &[Operation]) {
        let mut rooms = [[0; KEY_BYTES_MAX]; LOOK_AHEAD as usize];
        let keys: Vec<Key<'_>> = upcoming
            .iter()
            .zip(&mut rooms)
            .map(|(operation, room)| self.keys.write(operation.record(), room))
            .collect();
        self.device.expect(&keys);
        let versions = upcoming.iter().filter_map(|operation| self.versions.get(operation.record() as usize));
        std::hint::black_box(versions.fold(0, |sum, version| sum ^ version));
    }

    /// Submits an operation's first command, at `at`, and gives the hosts their next turn.
    fn execute(
        &mut self,
        operation: Operation,
        thread: u32,
        at: Nanos,
        hosts: &mut Hosts,
        measured: &mut Measured,
    ) -> Result<(), SimError> {
        let done = match operation {
            Operation::Read { record } => self.retrieve(record, at, measured)?,
            Operation::ReadModifyWrite { record } => {
                let done = self.retrieve(record, at, measured)?;
                measured.end = measured.end.max(done);
                hosts.write_back(done, thread, record);
                return Ok(());
            }
            Operation::Update { record } => {
                let version = &mut self.versions[record as usize];
                *version = (*version & !DELETED) + 1;
                self.store(record, at, measured)?
            }
            Operation::Insert { record } => {
                assert_eq!(record, self.versions.len() as u64, "records are inserted in their order");
                self.versions.push(0);
                self.store(record, at, measured)?
            }
            Operation::Delete { record } => self.delete(record, at, measured)?,
            Operation::Scan { record, length } => {
                let done = self.begin_scan((record, length), thread, at, hosts)?;
                measured.end = measured.end.max(done);
                return Ok(());
            }
        };
        measured.end = measured.end.max(done);
        hosts.done(done, thread);
        Ok(())
    }

    fn store(&mut self, record: u64, at: Nanos, measured: &mut Measured) -> Result<Nanos, SimError> {
        let mut room = [0; KEY_BYTES_MAX];
        let key = self.keys.write(record, &mut room);
        let pattern = self.pattern(record);
        let command = self.write_command(record, key);
        let Completion { done, reply } = self.device.submit(command, at);
        match reply {
            Ok(_) => {}
            Err(KvError::CapacityExceeded | KvError::InvalidRange { .. }) => {
                let design = self.setup.design.name.to_owned();
                // A block drive counts blocks, not records; and what is deleted has made room.
                let stored = match self.setup.design.takes_keys() {
                    true => self.device.engine().utilization().pairs,
                    false => self.versions.len() as u64 - 1,
                };
                return Err(SimError::Full { design, stored, records: self.setup.records.max(stored + 1) });
            }
            Err(other) => return Err(SimError::Drive(other)),
        }
        measured.stored_bytes += key.bytes().len() as u64 + u64::from(pattern.length);
        measured.stores.add(done - at);
        Ok(done)
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
        measured.retrieved_bytes += if is_there { expected.len() as u64 } else { 0 };
        measured.retrieves.add(done - at);
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
        measured.others.entry("delete").or_default().add(done - at);
        Ok(done)
    }

    /// The value that a record must have now.
    fn pattern(&self, record: u64) -> Pattern {
        let version = self.versions[record as usize];
        // Seeds of 48 bits take less memory and are as far apart as a hundred million values need.
        let seed = mix64(mix64(self.setup.seed ^ record << 20).wrapping_add(version.into())) >> 16;
        self.whole(Pattern { seed, offset: 0, length: self.sizes.bytes(record, version) })
    }
}
