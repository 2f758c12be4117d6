//! A store as RocksDB is: a log-structured merge tree with the values in its tables.
//!
//! ```text
//!   put --> log                       written by the kernel as it fills, nobody waits for it
//!       --> MemTable --full--> the one that is flushed --flush--> level 0
//!                                                                   | compaction
//!   get --> MemTables, level 0 from the newest on,                  v
//!           one table of each level                               base level --> ... --> level 6
//! ```
//!
//! One flush and one compaction are under way at a time (`max_background_jobs` = 2). Writes wait while both MemTables are full, are
//! slowed down and stopped by the tables in level 0 and by what is still to be compacted. There is no Bloom filter and no compression,
//! and nothing is synced: defaults, except for the compression that values of random bytes have no use for. Data blocks are cached in a
//! block cache alone; the page cache only gathers writes and reads ahead. The kernel sends the drive no flush, since its write buffer is
//! safe from power cuts. Files are not trimmed (ext4 without `discard`).

mod cache;
mod job;
mod levels;
mod options;
mod table;

pub use options::LsmOptions;

use self::cache::Cache;
use self::job::{Job, Progress};
use self::levels::{Choice, Levels};
use self::options::{LEVEL0_SLOWS, LEVEL0_STOPS, LOG_WRITE_BYTES, SLOW_BYTES_PER_S};
use self::table::{Pair, Table, merge};
use super::blocks::Blocks;
use super::extents::Space;
use super::file::File;
use super::{HostStore, StoreUsage, costs};
use kvssd_device::Device;
use kvssd_flash::Profile;
use kvssd_ftl::Design;
use kvssd_sim::SimError;
use kvssd_types::{Key, Nanos, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A MemTable and its log.
#[derive(Debug, Default)]
struct MemTable {
    pairs: BTreeMap<Arc<[u8]>, Option<Value>>,
    log: Option<File>,
    /// Bytes of the log, which are about those of the memory.
    bytes: u64,
    /// Bytes of the log that the drive has.
    written_bytes: u64,
}

/// Work in the background, and when it goes on.
#[derive(Debug, Default)]
struct Worker {
    clock: Nanos,
    job: Option<Job>,
}

/// What writes have to do about compactions that do not keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pressure {
    None,
    Slow,
    Stop,
}

/// The store.
pub struct LsmStore {
    options: LsmOptions,
    blocks: Blocks,
    space: Space,
    active: MemTable,
    flushed: Option<MemTable>,
    levels: Levels,
    /// What the compaction under way replaces.
    choice: Option<Choice>,
    flush: Worker,
    compaction: Worker,
    pressure: Pressure,
    /// Tables that are compacted, while somebody may still read them.
    dead: Vec<Arc<Table>>,
    is_reading: bool,
    cache: Cache,
    files: u64,
    usage: StoreUsage,
}

impl LsmStore {
    /// A new one on a new drive of the block design `design`.
    ///
    /// # Errors
    /// When the design does not fit the profile.
    pub fn new(design: &Design, profile: &Profile, options: LsmOptions) -> Result<Self, SimError> {
        let blocks = Blocks::new(design, profile)?;
        let space = Space::new(blocks.capacity_bytes());
        Ok(LsmStore {
            cache: Cache::new(options.cache_bytes),
            options,
            blocks,
            space,
            active: MemTable::default(),
            flushed: None,
            levels: Levels::default(),
            choice: None,
            flush: Worker::default(),
            compaction: Worker::default(),
            pressure: Pressure::None,
            dead: Vec::new(),
            is_reading: false,
            files: 0,
            usage: StoreUsage::default(),
        })
    }

    /// Does the work in the background that begins before `until`.
    fn advance(&mut self, until: Nanos) -> Result<(), SimError> {
        while self.next_step().is_some_and(|next| next < until) {
            self.step()?;
        }
        Ok(())
    }

    /// When the next step in the background is.
    fn next_step(&self) -> Option<Nanos> {
        let workers = [&self.flush, &self.compaction];
        workers.iter().filter(|worker| worker.job.is_some()).map(|worker| worker.clock).min()
    }

    /// The step in the background that comes next.
    fn step(&mut self) -> Result<(), SimError> {
        let compacts =
            self.compaction.job.is_some() && (self.flush.job.is_none() || self.compaction.clock < self.flush.clock);
        let worker = if compacts { &mut self.compaction } else { &mut self.flush };
        let job = worker.job.as_mut().expect("somebody has work");
        match job.step(&mut self.blocks, worker.clock)? {
            Progress::Until(clock) => worker.clock = clock,
            Progress::Done => {
                let (clock, outputs) = (worker.clock, worker.job.take().expect("it was there").outputs);
                if compacts {
                    let choice = self.choice.take().expect("a compaction has its choice");
                    let taken = self.levels.replace(&choice, outputs);
                    self.dead.extend(taken);
                    self.usage.compactions += 1;
                } else {
                    self.levels.0[0].extend(outputs);
                    let log = self.flushed.take().and_then(|memory| memory.log);
                    log.expect("a MemTable that is full has a log").delete(&mut self.space);
                    self.usage.flushes += 1;
                }
                self.tree_changed(clock)?;
            }
        }
        self.bury();
        Ok(())
    }

    /// Gives back the space of tables that nobody reads any more.
    fn bury(&mut self) {
        if !self.is_reading {
            self.dead.drain(..).for_each(|table| table.file.delete(&mut self.space));
        }
    }

    /// Begins the compaction that is wanted most, at `at` or when the last one ended.
    fn tree_changed(&mut self, at: Nanos) -> Result<(), SimError> {
        while self.compaction.job.is_none() {
            let Some(mut choice) = self.levels.choose(&self.options) else { break };
            if self.levels.moves_without_reading(&choice) {
                let mut moved = self.levels.0[choice.from][choice.upper.clone()].to_vec();
                moved.sort_by(|left, right| left.first().cmp(right.first()));
                self.levels.replace(&choice, moved);
                continue;
            }
            self.begin_compaction(&mut choice)?;
            self.choice = Some(choice);
            self.compaction.clock = self.compaction.clock.max(at);
        }
        let (level0, pending) = (self.levels.0[0].len(), self.levels.pending_bytes(&self.options));
        self.pressure = if level0 >= LEVEL0_STOPS || pending >= self.options.pending_stops_bytes {
            Pressure::Stop
        } else if level0 >= LEVEL0_SLOWS || pending >= self.options.pending_slows_bytes {
            Pressure::Slow
        } else {
            Pressure::None
        };
        Ok(())
    }

    fn begin_compaction(&mut self, choice: &mut Choice) -> Result<(), SimError> {
        let upper = &self.levels.0[choice.from][choice.upper.clone()];
        let lower = &self.levels.0[choice.to][choice.lower.clone()];
        // The newest first.
        let inputs: Vec<Arc<Table>> = upper.iter().rev().chain(lower).cloned().collect();
        let keeps_deleted = self.levels.0[choice.to + 1..].iter().any(|tables| !tables.is_empty());
        let mut outputs = Vec::new();
        let (mut pairs, mut bytes) = (Vec::new(), 0);
        for pair in merge(&inputs, keeps_deleted) {
            bytes += pair.bytes();
            pairs.push(pair);
            if bytes >= self.options.table_bytes {
                outputs.push(self.table(std::mem::take(&mut pairs))?);
                bytes = 0;
            }
        }
        if !pairs.is_empty() {
            outputs.push(self.table(pairs)?);
        }
        self.compaction.job = Some(Job::compaction(&inputs, outputs));
        Ok(())
    }

    fn table(&mut self, pairs: Vec<Pair>) -> Result<Arc<Table>, SimError> {
        self.files += 1;
        Table::new(self.files, pairs, &mut self.space).map(Arc::new)
    }

    /// Puts a pair into log and MemTable.
    fn put(&mut self, key: Key<'_>, value: Option<Value>, at: Nanos) -> Result<Nanos, SimError> {
        let pair = Pair { key: key.bytes().into(), value };
        let bytes = pair.bytes();
        self.advance(at)?;
        let begin = self.wait_for_room(bytes, at)?;
        if begin > at {
            self.usage.stalls += 1;
            self.usage.stalled += begin - at;
        }
        let into_log = Nanos(costs::SYSTEM_CALL_NS) + Nanos(bytes * costs::PAGE_WRITE_NS / costs::PAGE_BYTES);
        let spent = into_log + Nanos(costs::MEMTABLE_PUT_NS) + costs::passes(bytes, 2);
        let done = begin + self.blocks.work(spent);
        self.advance(done)?;
        self.active.bytes += bytes;
        self.active.pairs.insert(pair.key, pair.value);
        if self.active.bytes - self.active.written_bytes >= LOG_WRITE_BYTES {
            self.write_log(done)?;
        }
        Ok(done)
    }

    /// Has the kernel write what the log has of whole pages.
    fn write_log(&mut self, at: Nanos) -> Result<(), SimError> {
        let MemTable { log, bytes, written_bytes, .. } = &mut self.active;
        let end = *bytes / costs::PAGE_BYTES * costs::PAGE_BYTES;
        let log = log.as_ref().expect("a MemTable with pairs has a log");
        if end > *written_bytes {
            log.write(*written_bytes..end, &mut self.blocks, at)?;
            self.blocks.work(Nanos(costs::COMMAND_NS));
            *written_bytes = end;
        }
        Ok(())
    }

    /// Waits until there is room for a pair of so many bytes; gives when there is.
    fn wait_for_room(&mut self, bytes: u64, at: Nanos) -> Result<Nanos, SimError> {
        let mut clock = at;
        while self.pressure == Pressure::Stop {
            clock = clock.max(self.wait()?);
        }
        if self.pressure == Pressure::Slow {
            clock += Nanos::of_transfer(bytes, SLOW_BYTES_PER_S);
            self.advance(clock)?;
        }
        if self.active.bytes > 0 && self.active.bytes + bytes > self.options.write_buffer_bytes {
            while self.flushed.is_some() {
                clock = clock.max(self.wait()?);
            }
            self.switch(clock)?;
        }
        if self.active.log.is_none() {
            self.files += 1;
            let log_bytes = bytes.max(self.options.write_buffer_bytes);
            self.active.log = Some(File::new(self.files, log_bytes, &mut self.space)?);
        }
        Ok(clock)
    }

    /// Lets the work in the background do its next step; gives when that ended.
    fn wait(&mut self) -> Result<Nanos, SimError> {
        let begun = self.next_step().expect("what is waited for is under way");
        self.step()?;
        Ok(begun)
    }

    /// Begins the flush of the MemTable.
    fn switch(&mut self, at: Nanos) -> Result<(), SimError> {
        let full = std::mem::take(&mut self.active);
        let pairs = full.pairs.iter().map(|(key, value)| Pair { key: Arc::clone(key), value: value.clone() });
        self.files += 1;
        let table = Table::new(self.files, pairs.collect(), &mut self.space)?;
        self.flushed = Some(full);
        self.flush.clock = self.flush.clock.max(at);
        self.flush.job = Some(Job::flush(table));
        Ok(())
    }

    /// Looks through the tables: when it knows, and the value.
    fn search(&mut self, key: &[u8], at: Nanos) -> Result<(Nanos, Option<Value>), SimError> {
        let mut clock = at;
        for table in self.levels.candidates(key) {
            clock += self.blocks.work(Nanos(costs::TABLE_GET_NS));
            let Some((number, pair)) = table.find(key) else { continue };
            let bytes = table.blocks[number].bytes.clone();
            let length = bytes.end - bytes.start;
            if !self.cache.touch((table.file.number, number), length) {
                let call = costs::SYSTEM_CALL_NS + costs::FILE_SYSTEM_NS + costs::COMMAND_NS;
                clock += self.blocks.work(Nanos(call) + costs::passes(length, 1));
                self.advance(clock)?;
                clock = table.file.read(bytes, &mut self.blocks, clock)?;
            }
            if let Some(pair) = pair {
                clock += self.blocks.work(costs::passes(length, 1));
                return Ok((clock, pair.value.clone()));
            }
        }
        Ok((clock, None))
    }
}

impl HostStore for LsmStore {
    fn name(&self) -> &'static str {
        "LSM store"
    }

    fn insert(&mut self, key: Key<'_>, value: Value, at: Nanos) -> Result<Nanos, SimError> {
        self.put(key, Some(value), at)
    }

    fn update(&mut self, key: Key<'_>, value: Value, at: Nanos) -> Result<Nanos, SimError> {
        self.put(key, Some(value), at)
    }

    fn read(&mut self, key: Key<'_>, at: Nanos) -> Result<(Nanos, Option<Value>), SimError> {
        self.advance(at)?;
        let clock = at + self.blocks.work(Nanos(costs::MEMTABLE_GET_NS));
        let memory = [Some(&self.active), self.flushed.as_ref()];
        let known = memory.into_iter().flatten().find_map(|memory| memory.pairs.get(key.bytes()).cloned());
        if let Some(value) = known {
            return Ok((clock, value));
        }
        self.is_reading = true;
        let found = self.search(key.bytes(), clock);
        self.is_reading = false;
        self.bury();
        found
    }

    fn delete(&mut self, key: Key<'_>, at: Nanos) -> Result<Nanos, SimError> {
        self.put(key, None, at)
    }

    fn usage(&self) -> StoreUsage {
        StoreUsage {
            cpu: self.blocks.cpu,
            read_bytes: self.blocks.read_bytes,
            written_bytes: self.blocks.written_bytes,
            space_bytes: self.space.used_bytes(),
            ..self.usage
        }
    }

    fn device(&self) -> &Device {
        self.blocks.device()
    }
}
