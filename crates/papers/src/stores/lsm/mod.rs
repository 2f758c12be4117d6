//! A store as RocksDB is: a log-structured merge tree with the values in its tables.
//!
//! ```text
//!   put --> MemTable --full--> the one that is flushed --flush--> level 0
//!                                                                   | compaction
//!   get --> MemTables, level 0 from the newest on,                  v
//!           one table of each level                               base level --> ... --> level 5
//! ```
//!
//! It is opened as KVbench does it ([`options`](LsmOptions)): there is no log, and nothing is synced; each table has a filter, and several
//! compactions are under way at a time. Writes wait while both MemTables are full, are slowed down and stopped by the tables in level 0
//! and by what is still to be compacted. There is no compression, which values of random bytes have no use for. Data blocks are cached in
//! a block cache alone; the page cache only gathers writes and reads ahead. The kernel sends the drive no flush, since its write buffer is
//! safe from power cuts. What a deleted file took is trimmed: the study's block drive erases "entire blocks for invalid SST files" (section IV).

mod cache;
mod job;
mod levels;
mod options;
mod table;

pub use options::{LevelSizes, LsmOptions};

use self::cache::Cache;
use self::job::{Job, Progress};
use self::levels::{Choice, Levels};
use self::options::{COMPACTIONS_MAX, FILTER_PASSES_ONE_OF, LEVEL0_SLOWS, LEVEL0_STOPS, SLOW_BYTES_PER_S};
use self::table::{Pair, Table, merge};
use super::blocks::Blocks;
use super::extents::Space;
use super::{HostStore, StoreUsage, costs};
use kvssd_device::Device;
use kvssd_flash::Profile;
use kvssd_ftl::Design;
use kvssd_sim::SimError;
use kvssd_types::{Key, Nanos, Value, mix64};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A MemTable.
#[derive(Debug, Default)]
struct MemTable {
    pairs: BTreeMap<Arc<[u8]>, Option<Value>>,
    bytes: u64,
}

/// A flush under way, and when it goes on.
#[derive(Debug, Default)]
struct Flush {
    clock: Nanos,
    job: Option<Job>,
}

/// A compaction under way, and when it goes on.
#[derive(Debug)]
struct Compaction {
    clock: Nanos,
    job: Job,
    choice: Choice,
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
    flush: Flush,
    compactions: Vec<Compaction>,
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
            flush: Flush::default(),
            compactions: Vec::new(),
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
        let flush = self.flush.job.is_some().then_some(self.flush.clock);
        self.compactions.iter().map(|compaction| compaction.clock).chain(flush).min()
    }

    /// The step in the background that comes next.
    fn step(&mut self) -> Result<(), SimError> {
        let flush = self.flush.job.is_some().then_some(self.flush.clock);
        let compactions = self.compactions.iter().map(|compaction| compaction.clock).enumerate();
        match compactions.min_by_key(|(_, clock)| *clock) {
            Some((at, clock)) if flush.is_none_or(|flush| clock < flush) => {
                self.bury(clock)?;
                self.step_of_compaction(at)
            }
            _ => {
                self.bury(self.flush.clock)?;
                self.step_of_flush()
            }
        }
    }

    fn step_of_flush(&mut self) -> Result<(), SimError> {
        let Flush { clock, job } = &mut self.flush;
        match job.as_mut().expect("somebody has work").step(&mut self.blocks, *clock)? {
            Progress::Until(until) => *clock = until,
            Progress::Done => {
                let (clock, outputs) = (*clock, job.take().expect("it was there").outputs);
                self.levels.tables[0].extend(outputs);
                self.flushed = None;
                self.usage.flushes += 1;
                self.tree_changed(clock)?;
            }
        }
        Ok(())
    }

    fn step_of_compaction(&mut self, at: usize) -> Result<(), SimError> {
        let Compaction { clock, job, .. } = &mut self.compactions[at];
        match job.step(&mut self.blocks, *clock)? {
            Progress::Until(until) => *clock = until,
            Progress::Done => {
                let Compaction { clock, job, choice } = self.compactions.remove(at);
                let taken = self.levels.replace(choice, job.outputs);
                self.dead.extend(taken);
                self.usage.compactions += 1;
                self.tree_changed(clock)?;
            }
        }
        Ok(())
    }

    /// Deletes the files of tables that nobody reads any more. Before a step: it may want the room.
    fn bury(&mut self, at: Nanos) -> Result<(), SimError> {
        let LsmStore { dead, space, blocks, is_reading, .. } = self;
        match is_reading {
            true => Ok(()),
            false => dead.drain(..).try_for_each(|table| table.file.delete(space, blocks, at)),
        }
    }

    /// Begins the compactions that are wanted, at `at`.
    fn tree_changed(&mut self, at: Nanos) -> Result<(), SimError> {
        while self.compactions.len() < COMPACTIONS_MAX {
            let Some(choice) = self.levels.choose(&self.options) else { break };
            if choice.moves_without_reading() {
                let moved = choice.upper.clone();
                self.levels.replace(choice, moved);
                continue;
            }
            self.begin_compaction(choice, at)?;
        }
        let (level0, pending) = (self.levels.tables[0].len(), self.levels.pending_bytes(&self.options));
        self.pressure = if level0 >= LEVEL0_STOPS || pending >= self.options.pending_stops_bytes {
            Pressure::Stop
        } else if level0 >= LEVEL0_SLOWS || pending >= self.options.pending_slows_bytes {
            Pressure::Slow
        } else {
            Pressure::None
        };
        Ok(())
    }

    fn begin_compaction(&mut self, choice: Choice, at: Nanos) -> Result<(), SimError> {
        self.levels.begin(&choice);
        // The newest first.
        let inputs: Vec<Arc<Table>> = choice.upper.iter().rev().chain(&choice.lower).cloned().collect();
        let keeps_deleted = self.levels.tables[choice.to + 1..].iter().any(|tables| !tables.is_empty());
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
        self.compactions.push(Compaction { clock: at, job: Job::compaction(&inputs, outputs), choice });
        Ok(())
    }

    fn table(&mut self, pairs: Vec<Pair>) -> Result<Arc<Table>, SimError> {
        self.files += 1;
        Table::new(self.files, pairs, &mut self.space).map(Arc::new)
    }

    /// Puts a pair into the MemTable.
    fn put(&mut self, key: Key<'_>, value: Option<Value>, at: Nanos) -> Result<Nanos, SimError> {
        let pair = Pair { key: key.bytes().into(), value };
        let bytes = pair.bytes();
        self.advance(at)?;
        let begin = self.wait_for_room(bytes, at)?;
        if begin > at {
            self.usage.stalls += 1;
            self.usage.stalled += begin - at;
        }
        let spent = Nanos(costs::MEMTABLE_PUT_NS) + costs::passes(bytes, 2);
        let done = begin + self.blocks.work(spent);
        self.advance(done)?;
        self.active.bytes += bytes;
        self.active.pairs.insert(pair.key, pair.value);
        Ok(done)
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
            if pair.is_none() && !passes_filter(key, table.file.number) {
                continue;
            }
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

/// Whether the filter of a table lets a key pass that the table has not.
fn passes_filter(key: &[u8], table: u64) -> bool {
    let hash = key.iter().fold(table, |hash, &byte| mix64(hash ^ u64::from(byte)));
    hash % FILTER_PASSES_ONE_OF == 0
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
