//! The engine's files on a block drive, and what their bytes stand for.
//!
//! ```text
//!   drive     | master | log, around and around    | page 0 | page 1 | ...
//!                 |          |                         |
//!   archive    checkpoint  which part of the log     the page as it was written
//! ```
//!
//! What is written is a pattern of the number of its write, so that a gigabyte takes no memory; what that write stands for is kept
//! in the archive. What is read is looked at: from its first word follows which write it is of, and every byte must be that
//! write's. So a drive whose power went says itself what is left on it, and an archive that outlives the engine does no more than
//! read it.
//!
//! Shore-MT relies on pages that are written as a whole or not at all, as a drive writes them whose atomic write unit is a page (NVMe:
//! AWUPF). The modelled drive's is 4 KiB. So where the power went between the two blocks of a page, the older of both writes stands for
//! the page when recovery reads it, and is counted; at any other time it is an error.

use super::page::{Lsn, PAGE_BYTES, Page, PageId};
use kvssd_device::Device;
use kvssd_flash::PowerLoss;
use kvssd_sim::SimError;
use kvssd_types::{Command, KvError, Nanos, Pattern, PlacementHandle, Reply, Value, mix64, unmix64};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What the file system and the drive write as a whole.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// Longer transfers are cut into commands of this, all sent at once. Estimate: the kernel's limit.
const COMMAND_BLOCKS_MAX: u64 = 128;

/// What a write stands for.
#[derive(Clone, Debug)]
enum Content {
    Page(PageId, Arc<Page>),
    /// Where the last checkpoint is.
    Master(Lsn),
}

/// What writes stand for, by their numbers. It outlives the engine, as the drive does.
#[derive(Debug, Default)]
pub struct Archive {
    contents: BTreeMap<u64, Content>,
    /// Of log: the first block, of all blocks of log, and where the log that is in it ends.
    logs: BTreeMap<u64, (u64, Lsn)>,
    writes: u64,
    /// The writes of each page that may be on the drive, the oldest first, with when the drive has them.
    pages: BTreeMap<PageId, Vec<(u64, Nanos)>>,
}

/// What was read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of pages that were read.
    pub page_bytes_read: u64,
    /// Bytes of pages that were written.
    pub page_bytes_written: u64,
    /// Bytes of log that were written, in whole blocks.
    pub log_bytes_written: u64,
    /// Flushes of the drive's write cache.
    pub flushes: u64,
}

/// The drive, with master, log and pages on it.
pub(super) struct Media {
    device: Device,
    archive: Archive,
    log_blocks: u64,
    /// What was done by then no cut of the power takes back.
    hard_until: Nanos,
    /// A flush under way: from when on, and what was done by when.
    flush: Option<(Nanos, Nanos)>,
    pub(super) traffic: Traffic,
    /// The power came back just now.
    pub(super) is_recovering: bool,
    /// Pages of which the drive had one half of a write.
    pub(super) torn: u64,
}

impl Media {
    pub(super) fn new(device: Device, archive: Archive, log_bytes: u64) -> Result<Self, SimError> {
        let log_blocks = log_bytes / BLOCK_BYTES;
        let (hard_until, traffic) = (Nanos::ZERO, Traffic::default());
        let (is_recovering, torn) = (false, 0);
        let media = Media { device, archive, log_blocks, hard_until, flush: None, traffic, is_recovering, torn };
        let room = media.device.engine().utilization().capacity_bytes;
        if log_blocks < 8 || room < media.page_offset(PageId(1)) {
            return Err(SimError::Setup(format!("a log of {log_bytes} bytes does not fit a drive of {room}")));
        }
        Ok(media)
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    pub(super) fn into_archive(self) -> Archive {
        self.archive
    }

    /// Pages that the drive has room for.
    pub(super) fn pages_max(&self) -> u32 {
        let room = self.device.engine().utilization().capacity_bytes - self.page_offset(PageId(0));
        u32::try_from(room / u64::from(PAGE_BYTES)).unwrap_or(u32::MAX)
    }

    pub(super) fn log_bytes(&self) -> u64 {
        self.log_blocks * BLOCK_BYTES
    }

    /// Whether what was written must be flushed before a cut of the power cannot take it back. A host asks the drive for that
    /// (NVMe: volatile write cache) and sends no flushes to one that is protected.
    pub(super) fn needs_flush(&self) -> bool {
        self.device.profile().memory.power_loss != PowerLoss::Protected
    }

    /// What was done by that moment no cut of the power takes back.
    pub(super) fn hard_until(&mut self, at: Nanos) -> Nanos {
        if !self.needs_flush() {
            self.hard_until = at;
        } else if let Some((_, covered)) = self.flush.take_if(|(done, _)| *done <= at) {
            self.hard_until = covered;
        }
        self.hard_until
    }

    /// Flushes the drive's write cache; gives when that is done.
    pub(super) fn flush(&mut self, at: Nanos) -> Result<Nanos, SimError> {
        self.hard_until(at);
        let done = self.device.submit(Command::Flush, at).success().map_err(SimError::Drive)?;
        self.traffic.flushes += 1;
        // One that is still under way covers less and counts first.
        self.flush = self.flush.or(Some((done, at)));
        Ok(done)
    }

    /// Writes a page; gives when the drive has it.
    pub(super) fn write_page(&mut self, id: PageId, page: &Arc<Page>, at: Nanos) -> Result<Nanos, SimError> {
        let number = self.note(Content::Page(id, Arc::clone(page)));
        let content = Pattern { seed: number, offset: 0, length: PAGE_BYTES };
        let done = self.write(self.page_offset(id), content, at)?;
        self.traffic.page_bytes_written += u64::from(PAGE_BYTES);
        let hard_until = self.hard_until(at);
        let writes = self.archive.pages.entry(id).or_default();
        // All before the last that is there for good is gone.
        let gone = writes.iter().rposition(|(_, done)| *done <= hard_until).unwrap_or(0);
        writes.drain(..gone).for_each(|(number, _)| drop(self.archive.contents.remove(&number)));
        writes.push((number, done));
        Ok(done)
    }

    /// Whether a page was ever written: the file's length tells.
    pub(super) fn is_written(&self, id: PageId) -> bool {
        self.archive.pages.contains_key(&id)
    }

    /// Reads a page: when it is there, and what it is; an empty one where none was written.
    pub(super) fn read_page(&mut self, id: PageId, at: Nanos) -> Result<(Nanos, Arc<Page>), SimError> {
        self.traffic.page_bytes_read += u64::from(PAGE_BYTES);
        let (done, blocks) = self.read(self.page_offset(id), u64::from(PAGE_BYTES) / BLOCK_BYTES, at)?;
        let page = match blocks[..] {
            [None, None] => Arc::default(),
            [Some((first, 0)), Some((second, 1))] if first == second => self.page_of(id, first)?,
            _ if !self.is_recovering => return Err(SimError::WrongValues(1)),
            [Some((first, 0)), Some((second, 1))] => {
                self.torn += 1;
                self.page_of(id, first.min(second))?
            }
            [None, Some((_, 1))] | [Some((_, 0)), None] => {
                self.torn += 1;
                Arc::default()
            }
            _ => return Err(SimError::WrongValues(1)),
        };
        Ok((done, page))
    }

    fn page_of(&self, id: PageId, number: u64) -> Result<Arc<Page>, SimError> {
        match self.archive.contents.get(&number) {
            Some(Content::Page(of, page)) if *of == id => Ok(Arc::clone(page)),
            _ => Err(SimError::WrongValues(1)),
        }
    }

    /// Writes log, whole blocks, the first and the last of which may hold other log as well; gives when the drive has it.
    pub(super) fn write_log(&mut self, log: Range<Lsn>, at: Nanos) -> Result<Nanos, SimError> {
        let (first, end) = (log.start.0 / BLOCK_BYTES, log.end.0.div_ceil(BLOCK_BYTES));
        self.archive.writes += 1;
        let number = self.archive.writes;
        self.archive.logs.insert(number, (first, log.end));
        self.traffic.log_bytes_written += (end - first) * BLOCK_BYTES;
        let (mut block, mut done) = (first, at);
        while block < end {
            let place = block % self.log_blocks;
            let blocks = (end - block).min(self.log_blocks - place).min(COMMAND_BLOCKS_MAX);
            let offset = ((block - first) * BLOCK_BYTES) as u32;
            let content = Pattern { seed: number, offset, length: (blocks * BLOCK_BYTES) as u32 };
            done = done.max(self.write(self.log_offset(place), content, at)?);
            block += blocks;
        }
        Ok(done)
    }

    /// Reads log from a block of it on: when what there is is there, and where it ends.
    pub(super) fn read_log(&mut self, from: Lsn, at: Nanos) -> Result<(Nanos, Lsn), SimError> {
        let first = from.0 / BLOCK_BYTES;
        let (mut end, mut clock) = (from, at);
        for block in first..first + self.log_blocks {
            let place = block % self.log_blocks;
            let (done, blocks) = self.read(self.log_offset(place), 1, clock)?;
            clock = done;
            let Some((number, offset)) = blocks[0] else { break };
            let Some(&(start, upto)) = self.archive.logs.get(&number) else { break };
            if start + offset != block || upto.0 <= block * BLOCK_BYTES {
                break;
            }
            end = upto.min(Lsn((block + 1) * BLOCK_BYTES));
            if end.0 < (block + 1) * BLOCK_BYTES {
                break;
            }
        }
        Ok((clock, end))
    }

    /// Says where the last checkpoint is; gives when the drive has it.
    pub(super) fn write_master(&mut self, checkpoint: Lsn, at: Nanos) -> Result<Nanos, SimError> {
        let number = self.note(Content::Master(checkpoint));
        self.write(0, Pattern { seed: number, offset: 0, length: BLOCK_BYTES as u32 }, at)
    }

    /// Reads where the last checkpoint is.
    pub(super) fn read_master(&mut self, at: Nanos) -> Result<(Nanos, Lsn), SimError> {
        let (done, blocks) = self.read(0, 1, at)?;
        match blocks[0].and_then(|(number, _)| self.archive.contents.get(&number)) {
            Some(Content::Master(checkpoint)) => Ok((done, *checkpoint)),
            _ => Err(SimError::WrongValues(1)),
        }
    }

    /// Log before `start` is not needed any more.
    pub(super) fn forget_log(&mut self, start: Lsn) {
        while self.archive.logs.first_key_value().is_some_and(|(_, (_, end))| *end <= start) {
            self.archive.logs.pop_first();
        }
    }

    /// What an engine before this one wrote behind the end of its log does not count: a block's head says whose it is.
    pub(super) fn end_log(&mut self, end: Lsn) {
        self.archive.logs.values_mut().for_each(|(_, upto)| *upto = end.min(*upto));
        // What is there now was there before the power came.
        self.archive.pages.values_mut().flatten().for_each(|(_, done)| *done = Nanos::MAX);
    }

    fn note(&mut self, content: Content) -> u64 {
        self.archive.writes += 1;
        self.archive.contents.insert(self.archive.writes, content);
        self.archive.writes
    }

    fn log_offset(&self, place: u64) -> u64 {
        u64::from(PAGE_BYTES) + place * BLOCK_BYTES
    }

    fn page_offset(&self, id: PageId) -> u64 {
        self.log_offset(self.log_blocks).next_multiple_of(PAGE_BYTES.into()) + u64::from(id.0) * u64::from(PAGE_BYTES)
    }

    fn write(&mut self, offset_bytes: u64, content: Pattern, at: Nanos) -> Result<Nanos, SimError> {
        let (value, handle) = (Value::Pattern(content), PlacementHandle::DEFAULT);
        self.device.submit(Command::Write { offset_bytes, value, handle }, at).success().map_err(SimError::Drive)
    }

    /// Reads blocks: of each, the write that it is of and which of that write's blocks it is; none of one that was never written.
    fn read(&mut self, offset_bytes: u64, blocks: u64, at: Nanos) -> Result<(Nanos, Vec<Option<Written>>), SimError> {
        let length_bytes = (blocks * BLOCK_BYTES) as u32;
        let completion = self.device.submit(Command::Read { offset_bytes, length_bytes }, at);
        let value = match completion.reply.map_err(SimError::Drive)? {
            Reply::Read(value) if value.len() == length_bytes as usize => value,
            other => return Err(SimError::Drive(KvError::Failed(format!("a read was answered by {other:?}")))),
        };
        let block = |block: u64| {
            let start = (block * BLOCK_BYTES) as usize;
            written(&value.slice(start..start + BLOCK_BYTES as usize), self.archive.writes, self.log_blocks)
        };
        Ok((completion.done, (0..blocks).map(block).collect::<Result<_, _>>()?))
    }
}

/// A write, by its number, and one of its blocks.
type Written = (u64, u64);

/// The write that a block is of, when there were so many writes, of so many blocks at the most.
fn written(block: &Value, writes: u64, blocks_max: u64) -> Result<Option<Written>, SimError> {
    if let Value::Pattern(pattern) = block {
        return Ok(Some((pattern.seed, u64::from(pattern.offset) / BLOCK_BYTES)));
    }
    let bytes = block.to_vec();
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    // The first word of a block is a bijection of the number of the write, given where in the write it lies.
    let word = u64::from_le_bytes(bytes[..8].try_into().expect("a block is longer than a word"));
    for offset in 0..blocks_max {
        let start = offset * BLOCK_BYTES;
        let number = unmix64(word).wrapping_sub(mix64(start / 8));
        let content = Pattern { seed: number, offset: start as u32, length: BLOCK_BYTES as u32 };
        if (1..=writes).contains(&number) && *block == Value::Pattern(content) {
            return Ok(Some((number, offset)));
        }
    }
    Err(SimError::WrongValues(1))
}
