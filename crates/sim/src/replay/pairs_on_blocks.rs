//! Pairs on a block drive, as a cache keeps them there: the host knows where each lies.
//!
//! ```text
//!   store    -> blocks that are free (FreeRuns) -> Write by the handle of its stream (Handles), each run side by side
//!   retrieve -> Read of the blocks that the part lies in
//!   delete   -> Deallocate (TRIM), and the blocks are free
//!   exist, and who is not there: the host knows, and asks no drive
//! ```
//!
//! LMCache's raw block device (0.5.6, `lmcache/v1/storage_backend/raw_block/core.py`) works so: an index in the host's memory, places that are
//! aligned to blocks, a placement identifier with each write. Its places are slots of one size, which values of many sizes would leave half empty
//! (its issue 3392); here a pair has the blocks that it needs. And it tells no drive what is dead before it writes over it: `reproduce fdp` is about
//! that one.

use super::handles::Handles;
use super::pair_drive::PairDrive;
use super::runs::{BlockRun, FreeRuns};
use crate::error::SimError;
use kvssd_device::{Completion, Device};
use kvssd_flash::{Profile, RopeBacking};
use kvssd_ftl::Design;
use kvssd_types::{Command, Key, KvError, Nanos, OwnedKey, Pattern, Reply, StoreCondition, Value, ValueBuilder};
use std::collections::HashMap;
use std::ops::Range;

/// Bytes of a block that a pair has: what the drive maps, so that no write is of a part. LMCache aligns so, too.
const ALIGNED_BYTES: u64 = 4096;

/// A block drive, and what its host knows.
pub(super) struct PairsOnBlocks {
    device: Device,
    free: FreeRuns,
    handles: Handles,
    pairs: HashMap<OwnedKey, Placed>,
    value_bytes_max: u64,
}

/// Where a value lies, from its first block on.
#[derive(Clone, Debug)]
struct Placed {
    runs: Vec<BlockRun>,
    value_bytes: u32,
}

impl PairsOnBlocks {
    /// An empty one, with values of as many bytes as a record has or, where that is asked for, more.
    ///
    /// # Errors
    /// When the design does not fit the hardware.
    pub(super) fn new(design: &Design, profile: &Profile, value_bytes_max: Option<u32>) -> Result<Self, SimError> {
        let device = Device::new(design, profile, Box::new(RopeBacking::new(profile.geometry)))?;
        let engine = device.engine();
        let record_bytes_max = engine.value_bytes_max();
        Ok(PairsOnBlocks {
            free: FreeRuns::new(engine.utilization().capacity_bytes / ALIGNED_BYTES),
            handles: Handles::new(design.placement_handles),
            pairs: HashMap::new(),
            value_bytes_max: value_bytes_max.map_or(record_bytes_max, |bytes| record_bytes_max.max(bytes.into())),
            device,
        })
    }

    fn store(
        &mut self,
        key: Key<'_>,
        value: &Value,
        condition: StoreCondition,
        stream: Option<u64>,
        at: Nanos,
    ) -> Completion {
        let before = self.pairs.get(key.bytes());
        let refused = match (condition, before) {
            (StoreCondition::IfExists, None) => Some(KvError::KeyNotFound),
            (StoreCondition::IfAbsent, Some(_)) => Some(KvError::KeyExists),
            _ => None,
        };
        let blocks = (value.len() as u64).div_ceil(ALIGNED_BYTES);
        let blocks_before = before.map_or(0, |placed| placed.runs.iter().map(|run| run.blocks).sum());
        // What it replaces makes room for it.
        let is_full = blocks > self.free.blocks() + blocks_before;
        if let Some(error) = refused.or(is_full.then_some(KvError::CapacityExceeded)) {
            return Completion { done: at, reply: Err(error) };
        }
        // It may get the blocks that are given back here: this drive executes commands in the order in which they come.
        let mut done = self.forget(key, at);
        let runs = self.free.take(blocks).expect("so many are free");
        let handle = self.handles.of(stream, blocks);
        let mut first_byte = 0;
        for run in self.pieces(&runs) {
            let offset_bytes = run.first * ALIGNED_BYTES;
            let piece = aligned(value, first_byte..first_byte + (run.blocks * ALIGNED_BYTES) as usize);
            first_byte += (run.blocks * ALIGNED_BYTES) as usize;
            let command = Command::Write { offset_bytes, value: piece, handle };
            let Completion { done: written, reply } = self.device.submit(command, at);
            if let Err(error) = reply {
                // None of it is there: what was written is free.
                runs.iter().for_each(|run| self.free.give_back(*run));
                return Completion { done: written, reply: Err(error) };
            }
            done = done.max(written);
        }
        self.pairs.insert(key.bytes().into(), Placed { runs, value_bytes: value.len() as u32 });
        Completion { done, reply: Ok(Reply::Stored) }
    }

    fn retrieve(&mut self, key: Key<'_>, wanted: Range<u64>, at: Nanos) -> Completion {
        let Some(Placed { runs, value_bytes }) = self.pairs.get(key.bytes()).cloned() else {
            return Completion { done: at, reply: Err(KvError::KeyNotFound) };
        };
        let wanted = wanted.start.min(value_bytes.into())..wanted.end.min(value_bytes.into());
        let first_block = wanted.start / ALIGNED_BYTES;
        let end = if wanted.is_empty() { first_block } else { wanted.end.div_ceil(ALIGNED_BYTES) };
        let (mut done, mut come) = (at, ValueBuilder::default());
        for run in self.pieces(&part_of(&runs, first_block..end)) {
            let command = Command::Read {
                offset_bytes: run.first * ALIGNED_BYTES,
                length_bytes: (run.blocks * ALIGNED_BYTES) as u32,
            };
            let completion = self.device.submit(command, at);
            done = done.max(completion.done);
            match completion.reply {
                Ok(Reply::Read(Value::Bytes(bytes))) => come.push_bytes(&bytes),
                Ok(Reply::Read(Value::Pattern(pattern))) => come.push_pattern(pattern),
                Ok(other) => unreachable!("{other:?} is no answer to a read"),
                Err(error) => return Completion { done, reply: Err(error) },
            }
        }
        let begin = (wanted.start - first_block * ALIGNED_BYTES) as usize;
        let length = (wanted.end - wanted.start) as usize;
        let value = if length == 0 { Value::from(&[][..]) } else { come.build().slice(begin..begin + length) };
        Completion { done, reply: Ok(Reply::Retrieved { value, value_bytes }) }
    }

    fn delete(&mut self, key: Key<'_>, at: Nanos) -> Completion {
        if !self.pairs.contains_key(key.bytes()) {
            return Completion { done: at, reply: Err(KvError::KeyNotFound) };
        }
        Completion { done: self.forget(key, at), reply: Ok(Reply::Deleted) }
    }

    /// Gives the blocks of a pair back, if it is there, and tells the drive; gives when it knows.
    fn forget(&mut self, key: Key<'_>, at: Nanos) -> Nanos {
        let Some(Placed { runs, .. }) = self.pairs.remove(key.bytes()) else { return at };
        let mut done = at;
        for run in self.pieces(&runs) {
            let command = Command::Deallocate {
                offset_bytes: run.first * ALIGNED_BYTES,
                length_bytes: (run.blocks * ALIGNED_BYTES) as u32,
            };
            // A drive that cannot is told again by the next write.
            done = done.max(self.device.submit(command, at).done);
        }
        runs.into_iter().for_each(|run| self.free.give_back(run));
        done
    }

    /// Runs as commands take them.
    fn pieces(&self, runs: &[BlockRun]) -> Vec<BlockRun> {
        let most = (self.device.engine().value_bytes_max() / ALIGNED_BYTES).max(1);
        let cut = |run: &BlockRun| {
            let BlockRun { first, blocks } = *run;
            (0..blocks.div_ceil(most)).map(move |number| {
                let begin = number * most;
                BlockRun { first: first + begin, blocks: most.min(blocks - begin) }
            })
        };
        runs.iter().flat_map(cut).collect()
    }
}

/// Bytes of a value, with zeros behind its end; of one that is described, with more of what it is.
fn aligned(value: &Value, bytes: Range<usize>) -> Value {
    match value {
        Value::Pattern(pattern) => {
            let longer = Pattern { length: bytes.end as u32, ..*pattern };
            Value::Pattern(longer.slice(bytes))
        }
        Value::Bytes(held) => {
            let mut piece = held[bytes.start..bytes.end.min(held.len())].to_vec();
            piece.resize(bytes.len(), 0);
            Value::from(&piece[..])
        }
    }
}

/// The runs of some of a pair's blocks.
fn part_of(runs: &[BlockRun], blocks: Range<u64>) -> Vec<BlockRun> {
    let (mut part, mut begin) = (Vec::new(), 0);
    for run in runs {
        let (from, until) = (blocks.start.max(begin), blocks.end.min(begin + run.blocks));
        if from < until {
            part.push(BlockRun { first: run.first + from - begin, blocks: until - from });
        }
        begin += run.blocks;
    }
    part
}

impl PairDrive for PairsOnBlocks {
    fn submit(&mut self, command: Command<'_>, stream: Option<u64>, at: Nanos) -> Completion {
        match command {
            Command::Store { key, value, condition } => self.store(key, &value, condition, stream, at),
            Command::Retrieve { key, offset_bytes, length_bytes } => {
                let first = u64::from(offset_bytes);
                self.retrieve(key, first..first + u64::from(length_bytes), at)
            }
            Command::Delete { key } => self.delete(key, at),
            Command::Exist { key } => {
                let is_there = self.pairs.contains_key(key.bytes());
                Completion { done: at, reply: if is_there { Ok(Reply::Exists) } else { Err(KvError::KeyNotFound) } }
            }
            other => self.device.submit(other, at),
        }
    }

    fn value_bytes_max(&self) -> u64 {
        self.value_bytes_max
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn into_device(self: Box<Self>) -> Device {
        self.device
    }
}
