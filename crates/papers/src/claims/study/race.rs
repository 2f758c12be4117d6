//! A store under KVbench's workload, one request at a time: latency, processor time, and how the rate goes on.

use super::cell::Side;
use crate::stores::{HostStore, StoreUsage};
use kvssd_ftl::GcCounters;
use kvssd_measure::Observer;
use kvssd_sim::SimError;
use kvssd_sim::workload::{KeyShape, KvBench, Operation, Percents, ValueSizes};
use kvssd_types::{KEY_BYTES_MAX, Nanos, Pattern, Random, Value, mix64};

/// Parts of a phase whose rates are looked at.
pub(super) const WINDOWS: u64 = 20;
/// How often the observer is told, in operations.
const REPORT_EVERY: u64 = 1 << 10;

/// A store, and which version of each record it must hold.
pub(super) struct Race {
    pub(super) store: Box<dyn HostStore>,
    bench: KvBench,
    keys: KeyShape,
    sizes: ValueSizes,
    versions: Vec<u32>,
    clock: Nanos,
    seed: u64,
    phases: u64,
}

/// What a phase shows.
#[derive(Clone, Debug)]
pub(super) struct Lap {
    pub(super) side: Side,
    /// Processor time over time: how many processors were busy.
    pub(super) busy: f64,
    /// Processor time of an operation in nanoseconds.
    pub(super) cpu_ns: f64,
    /// Operations a second in each part of the phase.
    pub(super) windows: Vec<f64>,
    /// The share of the time that requests waited for work in the background of the host.
    pub(super) stalled: f64,
    /// The share of the time that the drive's collector worked.
    pub(super) collecting: f64,
    /// The time that commands waited for it, all together, over the time.
    pub(super) waiting: f64,
    /// Bytes written to the drive for those that were stored.
    pub(super) amplification: f64,
}

impl Race {
    pub(super) fn new(store: Box<dyn HostStore>, bench: &KvBench, seed: u64) -> Result<Self, SimError> {
        let (keys, sizes) = (bench.keys(seed)?, bench.sizes(seed)?);
        let versions = Vec::with_capacity(bench.records as usize);
        Ok(Race { store, bench: bench.clone(), keys, sizes, versions, clock: Nanos::ZERO, seed, phases: 0 })
    }

    /// Inserts all records.
    pub(super) fn insert(&mut self, observer: &mut dyn Observer) -> Result<Lap, SimError> {
        let (mut next, records) = (0, self.bench.records);
        self.lap("insert", records, observer, |_| {
            next += 1;
            Operation::Insert { record: next - 1 }
        })
    }

    /// Runs `count` operations of a mix.
    pub(super) fn run(
        &mut self,
        (name, percents): (&str, Percents),
        count: u64,
        observer: &mut dyn Observer,
    ) -> Result<Lap, SimError> {
        let records = self.bench.records;
        let mut operations = KvBench { percents, ..self.bench.clone() }.operations(records, records);
        self.lap(name, count, observer, |random| operations.next(random))
    }

    fn lap(
        &mut self,
        name: &str,
        count: u64,
        observer: &mut dyn Observer,
        mut next: impl FnMut(&mut Random) -> Operation,
    ) -> Result<Lap, SimError> {
        self.phases += 1;
        let mut random = Random::stream(self.seed, self.phases);
        let (begin, before, gc_before) = (self.clock, self.store.usage(), self.collector());
        let mut windows = Vec::new();
        let mut window = (self.clock, 0);
        let mut stored_bytes = 0;
        observer.begin(&format!("{}: {name}", self.store.name()), count);
        for done in 1..=count {
            stored_bytes += self.execute(next(&mut random))?;
            if done * WINDOWS / count > (done - 1) * WINDOWS / count {
                windows.push((done - window.1) as f64 / (self.clock - window.0).as_seconds());
                window = (self.clock, done);
            }
            if done.is_multiple_of(REPORT_EVERY) {
                observer.progress(done);
                if observer.is_interrupted() {
                    return Err(SimError::Interrupted);
                }
            }
        }
        let span = (self.clock - begin).0 as f64;
        let StoreUsage { cpu, stalled, written_bytes, .. } = self.store.usage();
        let cpu = (cpu - before.cpu).0 as f64;
        let gc = self.collector();
        let written = (written_bytes - before.written_bytes) as f64;
        Ok(Lap {
            side: Side { mean: span / count as f64, rate: count as f64 * 1e9 / span },
            busy: cpu / span,
            cpu_ns: cpu / count as f64,
            windows,
            stalled: (stalled - before.stalled).0 as f64 / span,
            collecting: (gc.busy_ns - gc_before.busy_ns) as f64 / span,
            waiting: (gc.stall_ns - gc_before.stall_ns) as f64 / span,
            amplification: if stored_bytes > 0 { written / stored_bytes as f64 } else { 0.0 },
        })
    }

    /// One operation; gives the bytes that it stored.
    fn execute(&mut self, operation: Operation) -> Result<u64, SimError> {
        let record = operation.record();
        match operation {
            Operation::Insert { .. } => self.versions.push(0),
            Operation::Update { .. } => self.versions[record as usize] += 1,
            _ => {}
        }
        let mut room = [0; KEY_BYTES_MAX];
        let key = self.keys.write(record, &mut room);
        let version = self.versions[record as usize];
        let seed = mix64(mix64(self.seed ^ record << 20).wrapping_add(version.into())) >> 16;
        let value = Value::Pattern(Pattern { seed, offset: 0, length: self.sizes.bytes(record, version) });
        let bytes = (key.bytes().len() + value.len()) as u64;
        self.clock = match operation {
            Operation::Insert { .. } => self.store.insert(key, value, self.clock)?,
            Operation::Update { .. } => self.store.update(key, value, self.clock)?,
            Operation::Read { .. } => match self.store.read(key, self.clock)? {
                (done, Some(found)) if found == value => done,
                _ => return Err(SimError::WrongValues(1)),
            },
            _ => unreachable!("a race inserts, updates and reads"),
        };
        Ok(if matches!(operation, Operation::Read { .. }) { 0 } else { bytes })
    }

    fn collector(&self) -> GcCounters {
        self.store.device().engine().gc_counters()
    }
}
