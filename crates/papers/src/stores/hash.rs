//! A store as Aerospike is on a raw device: the index in the host's memory, records in large write blocks.
//!
//! ```text
//!   put  --> write block in memory --full--> the first free one of the drive
//!   get  --> index --> the sectors of the record
//!   a write block of which less than half lives --> read, its living records moved to another --> free
//! ```
//!
//! A server on the same machine answers, so that a request takes the way through the network's stack. A put is answered when the record is in
//! memory (`commit-to-device` false). An update first reads the record that it replaces, whose other bins it keeps: the client's default, and
//! KVbench's (`couch_aerospike.cc`). Where no write block is free, requests wait; Aerospike would refuse them. What is written is read from memory
//! until the drive has it, and from the drive from then on: there is no `post-write-queue`.

use super::blocks::{Blocks, full};
use super::{HostStore, StoreUsage, costs};
use kvssd_device::Device;
use kvssd_flash::Profile;
use kvssd_ftl::Design;
use kvssd_sim::SimError;
use kvssd_types::{BLOCK_BYTES, Key, Nanos, Pattern, Value};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Records begin at multiples of this.
const RECORD_UNIT_BYTES: u32 = 16;
/// What a record has beside its value: head, digest of the key, one bin. Estimate: of the vendor's capacity planning.
const RECORD_HEAD_BYTES: u32 = 56;
/// Write blocks that only defragmentation takes.
const RESERVED: usize = 2;

/// The configuration of the storage engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashOptions {
    /// Bytes of a write block (`write-block-size`).
    pub write_block_bytes: u32,
    /// A write block of which less lives, in hundredths, is defragmented (`defrag-lwm-pct`).
    pub defragments_below_percent: u64,
    /// The time between two write blocks that are defragmented (`defrag-sleep`).
    pub defragmentation_sleep: Nanos,
    /// Bytes of write blocks that are being written before requests wait (`max-write-cache`).
    pub write_cache_bytes: u64,
}

impl HashOptions {
    /// The defaults, those of releases before 7.1.
    pub const DEFAULT: HashOptions = HashOptions {
        write_block_bytes: 1 << 20,
        defragments_below_percent: 50,
        defragmentation_sleep: Nanos(1_000_000),
        write_cache_bytes: 64 << 20,
    };
}

/// Where a record lies, and what is in it.
#[derive(Clone, Debug)]
struct Record {
    block: u32,
    offset: u32,
    bytes: u32,
    value: Value,
}

#[derive(Clone, Debug, Default)]
struct WriteBlock {
    /// Its bytes are the pattern of this number: another one each time it is filled.
    number: u64,
    live_bytes: u32,
    /// What was put into it, with where.
    keys: Vec<(Arc<[u8]>, u32)>,
    /// When the drive has it; not before it is full.
    written: Option<Nanos>,
    is_queued: bool,
}

/// A write block that is filled.
#[derive(Clone, Copy, Debug)]
struct Open {
    block: u32,
    used: u32,
}

/// The store.
pub struct HashStore {
    options: HashOptions,
    blocks: Blocks,
    index: BTreeMap<Arc<[u8]>, Record>,
    write_blocks: Vec<WriteBlock>,
    free: VecDeque<u32>,
    /// Write blocks to defragment.
    queue: VecDeque<u32>,
    /// For what clients put, and for what defragmentation moves.
    open: [Option<Open>; 2],
    /// When the write blocks that are being written will be.
    under_way: VecDeque<Nanos>,
    defragmenter: Nanos,
    /// What was read for it.
    fetched: Option<u32>,
    filled: u64,
    usage: StoreUsage,
}

/// Who fills a write block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filler {
    Client = 0,
    Defragmenter = 1,
}

impl HashStore {
    /// A new one on a new drive of the block design `design`.
    ///
    /// # Errors
    /// When the design does not fit the profile.
    pub fn new(design: &Design, profile: &Profile, options: HashOptions) -> Result<Self, SimError> {
        let blocks = Blocks::new(design, profile)?;
        let count = (blocks.capacity_bytes() / u64::from(options.write_block_bytes)) as u32;
        Ok(HashStore {
            options,
            blocks,
            index: BTreeMap::new(),
            write_blocks: vec![WriteBlock::default(); count as usize],
            free: (0..count).collect(),
            queue: VecDeque::new(),
            open: [None; 2],
            under_way: VecDeque::new(),
            defragmenter: Nanos::ZERO,
            fetched: None,
            filled: 0,
            usage: StoreUsage::default(),
        })
    }

    fn has_work(&self) -> bool {
        self.fetched.is_some() || !self.queue.is_empty()
    }

    /// Does the defragmentation that begins before `until`.
    fn advance(&mut self, until: Nanos) -> Result<(), SimError> {
        while self.has_work() && self.defragmenter < until {
            self.step()?;
        }
        Ok(())
    }

    /// Sends for a write block, or moves what lives of the one that came.
    fn step(&mut self) -> Result<(), SimError> {
        if let Some(block) = self.fetched {
            return self.evacuate(block);
        }
        let block = self.queue.pop_front().expect("there is work");
        self.write_blocks[block as usize].is_queued = false;
        let call = self.blocks.work(Nanos(costs::SYSTEM_CALL_NS + costs::COMMAND_NS));
        let content = self.content(block, 0, self.options.write_block_bytes);
        self.defragmenter = self.blocks.read(self.offset_bytes(block), content, self.defragmenter)? + call;
        self.fetched = Some(block);
        Ok(())
    }

    fn evacuate(&mut self, block: u32) -> Result<(), SimError> {
        let at = self.defragmenter;
        let mut spent = Nanos::ZERO;
        for (key, offset) in std::mem::take(&mut self.write_blocks[block as usize].keys) {
            let lives = self.index.get(&key).filter(|record| (record.block, record.offset) == (block, offset));
            if let Some(Record { value, bytes, .. }) = lives.cloned() {
                spent += self.blocks.work(Nanos(costs::INDEX_NS) + costs::passes(bytes.into(), 1));
                self.append(&key, value, Filler::Defragmenter, at)?;
            }
        }
        self.fetched = None;
        self.release(block);
        self.usage.compactions += 1;
        self.defragmenter = at + spent + self.options.defragmentation_sleep;
        Ok(())
    }

    fn release(&mut self, block: u32) {
        self.write_blocks[block as usize] = WriteBlock::default();
        self.free.push_back(block);
    }

    /// Puts a record into a write block and makes it the one that counts; there must be a free write block if it does not fit.
    fn append(&mut self, key: &Arc<[u8]>, value: Value, filler: Filler, at: Nanos) -> Result<(), SimError> {
        let bytes = self.record_bytes(&value)?;
        let slot = filler as usize;
        if self.open[slot].is_some_and(|open| open.used + bytes > self.options.write_block_bytes) {
            self.write_out(filler, at)?;
        }
        let open = match self.open[slot] {
            Some(open) => open,
            None => {
                let block = self.free.pop_front().ok_or_else(full)?;
                self.filled += 1;
                self.write_blocks[block as usize].number = self.filled;
                Open { block, used: 0 }
            }
        };
        self.open[slot] = Some(Open { used: open.used + bytes, ..open });
        let write_block = &mut self.write_blocks[open.block as usize];
        write_block.live_bytes += bytes;
        write_block.keys.push((Arc::clone(key), open.used));
        let record = Record { block: open.block, offset: open.used, bytes, value };
        if let Some(old) = self.index.insert(Arc::clone(key), record) {
            self.died(&old, at);
        }
        Ok(())
    }

    /// Sends a full write block to the drive.
    fn write_out(&mut self, filler: Filler, at: Nanos) -> Result<(), SimError> {
        let Some(Open { block, .. }) = self.open[filler as usize].take() else { return Ok(()) };
        self.blocks.work(Nanos(costs::SYSTEM_CALL_NS + costs::COMMAND_NS));
        let content = self.content(block, 0, self.options.write_block_bytes);
        let done = self.blocks.write(self.offset_bytes(block), content, at)?;
        self.write_blocks[block as usize].written = Some(done);
        self.usage.flushes += 1;
        self.under_way.push_back(done);
        self.look_at(block, at);
        Ok(())
    }

    /// A record does not count any more.
    fn died(&mut self, record: &Record, at: Nanos) {
        self.write_blocks[record.block as usize].live_bytes -= record.bytes;
        self.look_at(record.block, at);
    }

    /// Frees a full write block of which nothing lives, queues one of which little does.
    fn look_at(&mut self, block: u32, at: Nanos) {
        let percent = self.options.defragments_below_percent;
        let write_block = &mut self.write_blocks[block as usize];
        if write_block.written.is_none() || write_block.is_queued || self.fetched == Some(block) {
            return;
        }
        if write_block.live_bytes == 0 {
            self.release(block);
        } else if u64::from(write_block.live_bytes) * 100 < u64::from(self.options.write_block_bytes) * percent {
            write_block.is_queued = true;
            if !self.has_work() {
                self.defragmenter = self.defragmenter.max(at);
            }
            self.queue.push_back(block);
        }
    }

    /// Waits until there is a write block for what a client puts, and room in the write cache; gives when there is.
    fn wait_for_room(&mut self, bytes: u32, at: Nanos) -> Result<Nanos, SimError> {
        let mut clock = at;
        let open = self.open[Filler::Client as usize];
        if open.is_some_and(|open| open.used + bytes <= self.options.write_block_bytes) {
            return Ok(clock);
        }
        while self.free.len() <= RESERVED {
            if !self.has_work() {
                return Err(full());
            }
            self.step()?;
            clock = clock.max(self.defragmenter);
        }
        self.under_way.retain(|done| *done > clock);
        let blocks_max = (self.options.write_cache_bytes / u64::from(self.options.write_block_bytes)).max(1);
        if self.under_way.len() as u64 >= blocks_max {
            clock = self.under_way.pop_front().map_or(clock, |done| clock.max(done));
            self.advance(clock)?;
        }
        if clock > at {
            self.usage.stalls += 1;
            self.usage.stalled += clock - at;
        }
        Ok(clock)
    }

    /// The record of a key, once its sectors are there; they need not be read while they are in memory.
    fn fetch(&mut self, key: &[u8], at: Nanos) -> Result<(Nanos, Option<Record>), SimError> {
        if !self.index.get(key).is_some_and(|record| self.is_on_drive(record, at)) {
            return Ok((at, self.index.get(key).cloned()));
        }
        let clock = at + self.blocks.work(Nanos(costs::SYSTEM_CALL_NS + costs::COMMAND_NS));
        self.advance(clock)?;
        // It may have been moved meanwhile.
        let record = self.index[key].clone();
        if !self.is_on_drive(&record, clock) {
            return Ok((clock, Some(record)));
        }
        let start = record.offset / BLOCK_BYTES * BLOCK_BYTES;
        let end = (record.offset + record.bytes).next_multiple_of(BLOCK_BYTES);
        let content = self.content(record.block, start, end);
        let ready = self.blocks.read(self.offset_bytes(record.block) + u64::from(start), content, clock)?;
        Ok((ready, Some(record)))
    }

    fn is_on_drive(&self, record: &Record, at: Nanos) -> bool {
        self.write_blocks[record.block as usize].written.is_some_and(|written| written <= at)
    }

    fn content(&self, block: u32, start: u32, end: u32) -> Pattern {
        Pattern { seed: self.write_blocks[block as usize].number, offset: start, length: end - start }
    }

    fn offset_bytes(&self, block: u32) -> u64 {
        u64::from(block) * u64::from(self.options.write_block_bytes)
    }

    fn record_bytes(&self, value: &Value) -> Result<u32, SimError> {
        let bytes = (value.len() as u32 + RECORD_HEAD_BYTES).next_multiple_of(RECORD_UNIT_BYTES);
        match bytes <= self.options.write_block_bytes {
            true => Ok(bytes),
            false => Err(SimError::Setup(format!("a record of {bytes} bytes does not fit a write block"))),
        }
    }

    /// The request has arrived at the server, and the index was asked.
    fn arrive(&mut self, bytes: usize, at: Nanos) -> Result<Nanos, SimError> {
        self.advance(at)?;
        let spent = Nanos(costs::ROUND_TRIP_NS + costs::INDEX_NS) + costs::passes(bytes as u64, 4);
        let clock = at + self.blocks.work(spent);
        self.advance(clock)?;
        Ok(clock)
    }
}

impl HostStore for HashStore {
    fn name(&self) -> &'static str {
        "hash store"
    }

    fn insert(&mut self, key: Key<'_>, value: Value, at: Nanos) -> Result<Nanos, SimError> {
        let clock = self.arrive(value.len(), at)?;
        let (mut clock, _) = self.fetch(key.bytes(), clock)?;
        self.advance(clock)?;
        clock = self.wait_for_room(self.record_bytes(&value)?, clock)?;
        clock += self.blocks.work(costs::passes(value.len() as u64, 1));
        self.advance(clock)?;
        self.append(&key.bytes().into(), value, Filler::Client, clock)?;
        Ok(clock)
    }

    fn update(&mut self, key: Key<'_>, value: Value, at: Nanos) -> Result<Nanos, SimError> {
        self.insert(key, value, at)
    }

    fn read(&mut self, key: Key<'_>, at: Nanos) -> Result<(Nanos, Option<Value>), SimError> {
        let clock = self.arrive(0, at)?;
        let (ready, record) = self.fetch(key.bytes(), clock)?;
        let Some(record) = record else { return Ok((ready, None)) };
        Ok((ready + self.blocks.work(costs::passes(record.bytes.into(), 4)), Some(record.value)))
    }

    fn delete(&mut self, key: Key<'_>, at: Nanos) -> Result<Nanos, SimError> {
        let clock = self.arrive(0, at)?;
        if let Some(old) = self.index.remove(key.bytes()) {
            self.died(&old, clock);
        }
        Ok(clock)
    }

    fn usage(&self) -> StoreUsage {
        let used = self.write_blocks.len() - self.free.len();
        StoreUsage {
            cpu: self.blocks.cpu,
            read_bytes: self.blocks.read_bytes,
            written_bytes: self.blocks.written_bytes,
            space_bytes: used as u64 * u64::from(self.options.write_block_bytes),
            ..self.usage
        }
    }

    fn device(&self) -> &Device {
        self.blocks.device()
    }
}
