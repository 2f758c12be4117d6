//! db_bench: RocksDB's own benchmark, on a drive that has iterators (IterKVSSD, section 5).
//!
//! ```text
//!   thread -> write | get | Create, Seek, Next, Next ..., Destroy -> thread ...       each command when the one before it is done
//!   writer -> write, write ...                                                        beside the readers, until they are done
//! ```
//!
//! Every value is verified, and every range against what was there when its iterator was made.

mod benchmark;
mod memory;
mod scan;

pub use benchmark::DbBenchmark;

use self::memory::Memory;
use self::scan::Scan;
use crate::baseline::Baseline;
use crate::error::{Exhausted, SimError};
use crate::measured::Measured;
use crate::report::{Run, Subject};
use kvssd_device::Device;
use kvssd_flash::{Profile, RopeBacking};
use kvssd_ftl::{Design, IteratorPlan};
use kvssd_measure::Observer;
use kvssd_types::{Command, IteratorOptions, Key, KvError, NamespaceId, Nanos, Random, Reply, StoreCondition, mix64};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// How often the observer is told, in operations.
const REPORT_EVERY: u64 = 1 << 10;
/// Bytes of a key that tell records apart; the first of longer keys are zeros.
const NUMBER_BYTES: usize = 8;

/// What db_bench is told of the store and of a benchmark.
#[derive(Clone, Copy, Debug)]
pub struct DbBench {
    /// Records that there may be (`num`).
    pub records: u64,
    /// Bytes of a key (`key_size`).
    pub key_bytes: usize,
    /// Bytes of a value (`value_size`).
    pub value_bytes: u32,
    /// Calls of Next behind a Seek (`seek_nexts`).
    pub scan_length: u32,
    /// Threads (`threads`).
    pub threads: u32,
    /// Of everything that is random.
    pub seed: u64,
}

/// A drive under db_bench.
pub struct DbBenchSession {
    bench: DbBench,
    design: &'static str,
    profile: Profile,
    device: Device,
    memory: Memory,
    clock: Nanos,
    runs: u64,
}

/// What a thread does next.
#[derive(Debug)]
enum Step {
    /// An operation.
    Begin,
    /// The Seek of a range, to this record.
    Seek(Scan),
    /// The Next of a range.
    Next(Scan),
    /// The end of a range.
    Destroy(Scan),
    /// A change beside the readers.
    Change,
    /// There is nothing more to do.
    Rest,
}

impl DbBenchSession {
    /// A new drive without records.
    ///
    /// # Errors
    /// When the design does not fit, or keys do not tell so many records apart.
    pub fn new(design: &Design, profile: &Profile, bench: &DbBench) -> Result<Self, SimError> {
        let fail = |why: String| Err(SimError::Setup(why));
        if !design.takes_keys() {
            return fail(format!("db_bench needs keys, and design {} takes blocks", design.name));
        }
        if !(1..=255).contains(&bench.key_bytes) {
            return fail(format!("--key-bytes {} must be 1 to 255", bench.key_bytes));
        }
        let bits = 8 * bench.key_bytes.min(NUMBER_BYTES) as u32;
        if bench.records == 0 {
            return fail("--records must be above 0".to_owned());
        }
        if bits < u64::BITS && bench.records > 1 << bits {
            return fail(format!("keys of {} bytes do not tell {} records apart", bench.key_bytes, bench.records));
        }
        if bench.threads == 0 || bench.threads > 1 << 12 {
            return fail("--threads must be 1 to 4096".to_owned());
        }
        let device = Device::new(design, profile, Box::new(RopeBacking::new(profile.geometry)))?;
        if u64::from(bench.value_bytes) > device.engine().value_bytes_max() {
            return fail(format!("--value-bytes {} is more than this drive takes", bench.value_bytes));
        }
        let memory = Memory::new(bench.records, bench.value_bytes, bench.seed);
        let (design, profile) = (design.name, profile.clone());
        Ok(DbBenchSession { bench: *bench, design, profile, device, memory, clock: Nanos::ZERO, runs: 0 })
    }

    /// The same session at the same moment once more: from here on the two drives live apart.
    #[must_use]
    pub fn snapshot(&self) -> DbBenchSession {
        DbBenchSession {
            bench: self.bench,
            design: self.design,
            profile: self.profile.clone(),
            device: self.device.snapshot().expect("a session's drive is in memory"),
            memory: self.memory.clone(),
            clock: self.clock,
            runs: self.runs,
        }
    }

    /// The drive.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Iterators read ahead so from now on.
    pub fn set_iterator_plan(&mut self, plan: IteratorPlan) {
        self.device.set_iterator_plan(plan);
    }

    /// The next benchmarks have another scan length and number of threads.
    pub fn set(&mut self, scan_length: u32, threads: u32) {
        (self.bench.scan_length, self.bench.threads) = (scan_length, threads);
    }

    /// Makes an iterator that lives as long as the drive; gives whether there was memory for it.
    ///
    /// # Errors
    /// When the drive fails.
    pub fn keep_iterator(&mut self) -> Result<bool, SimError> {
        let command = Command::CreateIterator { options: IteratorOptions::default() };
        let completion = self.device.submit(command, self.clock);
        self.clock = completion.done;
        match completion.reply {
            Ok(_) => Ok(true),
            Err(KvError::TooManyIterators { .. }) => Ok(false),
            Err(other) => Err(SimError::Drive(other)),
        }
    }

    /// Whether the drive can do what a benchmark asks for.
    ///
    /// # Errors
    /// [`SimError::NoRanges`] when it seeks and keys have no order.
    pub fn check_benchmark(&self, benchmark: DbBenchmark) -> Result<(), SimError> {
        if benchmark.seeks() && !self.device.engine().is_ordered(NamespaceId::FIRST) {
            let (workload, design) = (benchmark.to_string(), self.design.to_owned());
            return Err(SimError::NoRanges { workload, design });
        }
        Ok(())
    }

    /// Runs a benchmark of so many operations: queries, gets, writes, or pairs of `readseq`.
    ///
    /// # Errors
    /// [`SimError::NoRanges`] when it seeks and keys have no order; when the drive is full or fails, or the observer interrupts.
    pub fn run(
        &mut self,
        benchmark: DbBenchmark,
        operations: u64,
        observer: &mut dyn Observer,
    ) -> Result<Run, SimError> {
        self.check_benchmark(benchmark)?;
        observer.begin(&format!("{} {benchmark}", self.design), operations);
        let (baseline, records) = (Baseline::of(&self.device), self.memory.present());
        let started = Instant::now();
        // Reads are the same each time, so that runs on one drive can be compared.
        self.runs += u64::from(benchmark.writes());
        let run = if benchmark.writes() { self.runs } else { 0 };
        let mut phase = Phase {
            benchmark,
            operations,
            begun: 0,
            random: Random::new(mix64(self.bench.seed ^ run << 32)),
            measured: Measured::from(self.clock, None),
        };
        self.go(&mut phase, observer)?;
        observer.progress(operations);
        let mut measured = phase.measured;
        self.clock = measured.end;
        measured.operations = phase.begun;
        measured.wall = started.elapsed();
        let subject = Subject {
            design: self.design,
            profile: &self.profile,
            seed: self.bench.seed,
            workload: benchmark.name(),
            distribution: if benchmark == DbBenchmark::FillSeq { "sequential" } else { "uniform" },
            records,
        };
        Ok(Run::new(&subject, &self.device, &baseline, &measured))
    }

    /// Has the threads take their turns until all operations are done.
    fn go(&mut self, phase: &mut Phase, observer: &mut dyn Observer) -> Result<(), SimError> {
        let mut turns: BinaryHeap<Reverse<(Nanos, u64, usize)>> = BinaryHeap::new();
        let mut steps: Vec<Step> = (0..self.bench.threads).map(|_| Step::Begin).collect();
        steps.extend(phase.benchmark.changes_beside().map(|_| Step::Change));
        let mut count = 0;
        for thread in 0..steps.len() {
            turns.push(Reverse((self.clock, count, thread)));
            count += 1;
        }
        let mut readers = self.bench.threads;
        while readers > 0
            && let Some(Reverse((at, _, thread))) = turns.pop()
        {
            let step = std::mem::replace(&mut steps[thread], Step::Rest);
            let (done, next) = self.step(step, at, phase)?;
            phase.measured.end = phase.measured.end.max(done);
            if matches!(next, Step::Rest) {
                readers -= 1;
                continue;
            }
            steps[thread] = next;
            turns.push(Reverse((done, count, thread)));
            count += 1;
            if count.is_multiple_of(REPORT_EVERY) {
                observer.progress(phase.begun);
                if observer.is_interrupted() {
                    return Err(SimError::Interrupted);
                }
            }
        }
        Ok(())
    }

    /// Does a step that begins at `at`; gives when it is done, and the next one of the thread.
    fn step(&mut self, step: Step, at: Nanos, phase: &mut Phase) -> Result<(Nanos, Step), SimError> {
        match step {
            Step::Begin if phase.begun == phase.operations => Ok((at, Step::Rest)),
            Step::Begin if phase.benchmark.seeks() => self.create(at, phase),
            Step::Begin => {
                phase.begun += 1;
                let random = phase.random.below(self.memory.records());
                let done = match phase.benchmark {
                    DbBenchmark::FillSeq => self.write((phase.begun - 1) % self.memory.records(), at, phase)?,
                    benchmark if benchmark.writes() => self.write(random, at, phase)?,
                    _ => self.get(random, at, phase)?,
                };
                Ok((done, Step::Begin))
            }
            // Pairs are the operations of all threads together, and the others have read the last.
            Step::Seek(scan) | Step::Next(scan) if phase.has_read_all() => self.destroy(&scan, at, phase),
            Step::Seek(scan) => self.seek(scan, at, phase),
            Step::Next(scan) => self.next(scan, at, phase),
            Step::Destroy(scan) => self.destroy(&scan, at, phase),
            Step::Change => {
                let record = phase.random.below(self.memory.records());
                let deletes = phase.benchmark.changes_beside().unwrap_or(0);
                let done = match deletes > 0 && phase.random.below(deletes) == 0 {
                    true => self.delete(record, at, phase)?,
                    false => self.write(record, at, phase)?,
                };
                Ok((done, Step::Change))
            }
            Step::Rest => Ok((at, Step::Rest)),
        }
    }

    /// Submits a command that must go well, and adds its latency.
    fn submit(
        &mut self,
        command: Command<'_>,
        at: Nanos,
        name: &'static str,
        phase: &mut Phase,
    ) -> Result<(Nanos, Reply), SimError> {
        let completion = self.device.submit(command, at);
        phase.measured.others.entry(name).or_default().add(completion.done - at);
        Ok((completion.done, completion.reply.map_err(SimError::of_drive)?))
    }

    fn write(&mut self, record: u64, at: Nanos, phase: &mut Phase) -> Result<Nanos, SimError> {
        let room = self.key_of(record);
        let key = self.key(&room);
        let value = self.memory.write(record);
        phase.measured.stored_bytes += (key.bytes().len() + value.len()) as u64;
        let completion = self.device.submit(Command::Store { key, value, condition: StoreCondition::Always }, at);
        phase.measured.stores.add(completion.done - at);
        match completion.reply {
            Ok(_) => Ok(completion.done),
            Err(KvError::CapacityExceeded) => {
                let (engine, design) = (self.device.engine(), self.design.to_owned());
                let (what, stored) = (Exhausted::of(engine.lacks()), engine.utilization().pairs);
                Err(SimError::Full { what, design, stored, records: self.memory.records() })
            }
            Err(other) => Err(SimError::Drive(other)),
        }
    }

    fn get(&mut self, record: u64, at: Nanos, phase: &mut Phase) -> Result<Nanos, SimError> {
        let room = self.key_of(record);
        let command = Command::Retrieve { key: self.key(&room), offset_bytes: 0, length_bytes: self.bench.value_bytes };
        let completion = self.device.submit(command, at);
        let is_right = match (completion.reply, self.memory.now(record)) {
            (Ok(Reply::Retrieved { value, .. }), Some(expected)) => {
                phase.measured.retrieved_bytes += value.len() as u64;
                value == expected
            }
            (Err(KvError::KeyNotFound), None) => true,
            (Ok(_) | Err(KvError::KeyNotFound), _) => false,
            (Err(other), _) => return Err(SimError::Drive(other)),
        };
        phase.measured.verified_retrieves += u64::from(is_right);
        phase.measured.failed_retrieves += u64::from(!is_right);
        phase.measured.retrieves.add(completion.done - at);
        Ok(completion.done)
    }

    fn delete(&mut self, record: u64, at: Nanos, phase: &mut Phase) -> Result<Nanos, SimError> {
        let room = self.key_of(record);
        let was_there = self.memory.delete(record);
        let completion = self.device.submit(Command::Delete { key: self.key(&room) }, at);
        match completion.reply {
            Ok(_) | Err(KvError::KeyNotFound) => {
                phase.measured.failed_retrieves += u64::from(completion.reply.is_ok() != was_there);
            }
            Err(other) => return Err(SimError::Drive(other)),
        }
        phase.measured.others.entry("delete").or_default().add(completion.done - at);
        Ok(completion.done)
    }

    fn key_of(&self, record: u64) -> [u8; 255] {
        let mut room = [0; 255];
        let (key_bytes, number) = (self.bench.key_bytes, record.to_be_bytes());
        let count = key_bytes.min(NUMBER_BYTES);
        room[key_bytes - count..key_bytes].copy_from_slice(&number[NUMBER_BYTES - count..]);
        room
    }

    fn key<'k>(&self, room: &'k [u8; 255]) -> Key<'k> {
        Key::new(&room[..self.bench.key_bytes]).expect("the length was checked")
    }
}

/// A benchmark that goes on.
struct Phase {
    benchmark: DbBenchmark,
    operations: u64,
    begun: u64,
    random: Random,
    measured: Measured,
}

impl Phase {
    /// Whether its operations are pairs, and all of them were read.
    fn has_read_all(&self) -> bool {
        self.benchmark == DbBenchmark::ReadSeq && self.begun == self.operations
    }
}
