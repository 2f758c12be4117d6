//! The staging area: the write buffer's memory, as chunks of bytes in one of two halves.
//!
//! ```text
//!   half A   [chunk, epoch 7] [chunk, epoch 7] [chunk, epoch 7]  what is left of epoch 5 ...
//!   half B   [superseded by epoch 7]  what is left of epoch 6 ...
//! ```
//!
//! Bytes are staged behind those of the present epoch. What replaces all of them is the first chunk of the next epoch, in
//! the other half; it counts once it is whole. The old half is marked then, so that damage to the newer half is not taken
//! for a crash before it was written. The CRC covers the epoch, so old bytes are never read as newer
//! ones.
//!
//! No two processes write to the same epoch. Otherwise bytes that a crash tore off could fit behind what the next process
//! writes in their place.
//!
//! A process that is killed while it stages may leave any bytes of the chunk, since they may be copied to mapped memory (`system_files`). The
//! CRC covers all of them but itself, and nothing behind the chunk is of its epoch: it reads as not there.
//!
//! What it does not do: know what the bytes are.

use super::disk::Disk;
use super::error::{ImageError, damaged};
use super::layout::{Layout, u32_at, u64_at};
use crate::checksum::crc32c;
use crate::rope::RopeRef;

/// Bytes of a chunk before those that were staged: CRC, length, epoch, sure bytes.
const HEAD_BYTES: usize = 24;
const CHUNK_ALIGNMENT_BYTES: u64 = 8;
/// The length in the head that marks a half as superseded by the epoch that it names.
const SUPERSEDED: u32 = u32::MAX;
/// No drive lives to see so many epochs, and the number cannot overflow.
const EPOCH_MAX: u64 = 1 << 62;
/// Chunks are read in pieces of this many bytes, or one by one where they are longer.
const WINDOW_BYTES: u64 = 64 << 10;
/// How far behind the end a chunk is looked for that needs one at the end: more than most chunks have, and a fraction of a millisecond.
const LOOKED_THROUGH_BYTES: u64 = 1 << 20;
const WHAT: &str = "what is staged";

/// Where staged bytes lie, and those that are on their way there.
#[derive(Debug)]
pub(super) struct Staging {
    offset: u64,
    half_bytes: u64,
    bytes_max: u64,
    half: u64,
    pub(super) epoch: u64,
    /// Where the next chunk goes, from the start of the half.
    pub(super) end: u64,
    /// Staged bytes on file.
    bytes: u64,
    /// Whether an earlier process began the epoch.
    is_inherited: bool,
    /// The next chunk: room for its head, and bytes.
    gathered: Vec<u8>,
    /// Bytes of the half that are certainly there if the next chunk is.
    sure_bytes: u64,
}

/// The head of a chunk, as it was read.
struct Head {
    length: u32,
    epoch: u64,
    sure_bytes: u64,
}

impl Head {
    fn of(bytes: &[u8]) -> Head {
        Head { length: u32_at(bytes, 4), epoch: u64_at(bytes, 8), sure_bytes: u64_at(bytes, 16) }
    }
}

impl Staging {
    fn new(layout: &Layout) -> Staging {
        Staging {
            offset: layout.staging_offset,
            half_bytes: layout.half_bytes,
            bytes_max: layout.staging_bytes,
            half: 0,
            epoch: 1,
            end: 0,
            bytes: 0,
            is_inherited: false,
            gathered: Vec::new(),
            sure_bytes: 0,
        }
    }

    /// Writes an area where nothing is staged. It has an empty chunk, since an area without any chunk is damaged.
    pub(super) fn create(disk: &mut Disk, layout: &Layout) -> Result<Staging, ImageError> {
        let mut staging = Staging::new(layout);
        staging.write_chunk(disk, &mut [0; HEAD_BYTES])?;
        Ok(staging)
    }

    /// Looks for the end of what is staged.
    pub(super) fn open(disk: &Disk, layout: &Layout) -> Result<Staging, ImageError> {
        let mut staging = Staging::new(layout);
        let mut first = [None, None];
        for (half, first) in first.iter_mut().enumerate() {
            *first = staging.reader(disk, half as u64).chunk(0)?.map(|(head, _)| head);
        }
        let epoch_of = |half: usize, superseded: bool| {
            let head: Option<&Head> = first[half].as_ref();
            head.filter(|head| (head.length == SUPERSEDED) == superseded).map(|head| head.epoch)
        };
        let newest = epoch_of(0, false).max(epoch_of(1, false));
        if newest.is_none() || newest < epoch_of(0, true).max(epoch_of(1, true)) {
            return Err(disk.error(damaged(format!("the staged bytes at byte {} are not whole", staging.offset))));
        }
        staging.epoch = newest.unwrap_or_default();
        staging.half = u64::from(newest == epoch_of(1, false));
        staging.is_inherited = true;
        staging.find_end(disk)?;
        Ok(staging)
    }

    /// Skips the chunks of the epoch. After a crash there may be others behind one that is not whole, but none that needs it
    /// to be there.
    fn find_end(&mut self, disk: &Disk) -> Result<(), ImageError> {
        let mut reader = self.reader(disk, self.half);
        while let Some((head, bytes)) = reader.chunk(self.end)? {
            if head.epoch != self.epoch || head.length == SUPERSEDED {
                break;
            }
            self.bytes += bytes.len() as u64;
            self.end += aligned(HEAD_BYTES + bytes.len());
        }
        if self.is_end_needed(&mut reader)? {
            let at = reader.offset + self.end;
            return Err(disk.error(damaged(format!("the staged bytes at byte {at} are not whole"))));
        }
        Ok(())
    }

    /// Whether a chunk behind the end was written after one at the end. The damage may be in that chunk's length, and the chunks next to it may be
    /// lost as well, since a page of the disk has many: so some of what follows is searched.
    fn is_end_needed(&self, reader: &mut Reader<'_>) -> Result<bool, ImageError> {
        let Some(head) = reader.bytes(self.end, HEAD_BYTES)? else { return Ok(false) };
        let behind = self.end + aligned(HEAD_BYTES + u32_at(head, 4) as usize);
        if self.like_one_that_needs_end(reader, behind)?.is_some() && reader.chunk(behind)?.is_some() {
            return Ok(true);
        }
        let until = self.half_bytes.min(self.end + LOOKED_THROUGH_BYTES);
        let mut checked_bytes = 0;
        for at in (self.end..until).step_by(WINDOW_BYTES as usize) {
            let Some(piece) = reader.bytes(at, WINDOW_BYTES.min(until - at) as usize)? else { break };
            let words = piece.chunks_exact(8).zip((at..).step_by(8));
            let epochs: Vec<u64> = words.filter(|(word, _)| u64_at(word, 0) == self.epoch).map(|(_, at)| at).collect();
            for chunk_at in epochs.into_iter().filter_map(|at| at.checked_sub(8)).filter(|at| *at > self.end) {
                let Some(head) = self.like_one_that_needs_end(reader, chunk_at)? else { continue };
                // Values may have bytes that look like heads. They must not make the search longer.
                checked_bytes += u64::from(head.length);
                if checked_bytes > self.half_bytes {
                    return Ok(false);
                }
                if reader.chunk(chunk_at)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The head at a byte of the half, if it looks like that of a chunk that needs one at the end. Its CRC is not checked here.
    fn like_one_that_needs_end(&self, reader: &mut Reader<'_>, at: u64) -> Result<Option<Head>, ImageError> {
        let is_like_one = |head: &Head| {
            let fits = u64::from(head.length) <= self.half_bytes - at;
            head.epoch == self.epoch && (self.end + 1..=at).contains(&head.sure_bytes) && fits
        };
        Ok(reader.bytes(at, HEAD_BYTES)?.map(Head::of).filter(is_like_one))
    }

    /// Whether nothing is staged.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0 && self.gathered.is_empty()
    }

    /// Whether bytes are not written yet.
    pub(super) fn is_gathered(&self) -> bool {
        !self.gathered.is_empty()
    }

    /// Stages bytes, in memory. The error is how many bytes would be staged, if there is no room for them.
    pub(super) fn gather(&mut self, head: &[u8], follows: RopeRef<'_>) -> Result<(), u64> {
        let begin = self.gathered.len().max(HEAD_BYTES);
        let held = self.bytes + (begin - HEAD_BYTES) as u64;
        self.gathered.resize(begin, 0);
        self.gathered.extend_from_slice(head);
        follows.show(|piece| self.gathered.extend_from_slice(piece));
        let bytes = self.gathered.len() - begin;
        let wanted = held + bytes as u64;
        if wanted > self.bytes_max || bytes == 0 {
            // A head without bytes is nothing.
            self.gathered.truncate(if begin > HEAD_BYTES { begin } else { 0 });
        }
        if wanted > self.bytes_max { Err(wanted) } else { Ok(()) }
    }

    /// Writes what was gathered.
    pub(super) fn write(&mut self, disk: &mut Disk, sync: bool) -> Result<(), ImageError> {
        let mut chunk = std::mem::take(&mut self.gathered);
        if self.is_inherited || self.end + aligned(chunk.len()) > self.half_bytes {
            let held = self.read(disk).map_err(|error| disk.fail(error.fault))?;
            self.replace(disk, &held, sync)?;
        }
        if !sync {
            // Without `sync`, only the process may end, and that loses no written bytes.
            self.sure_bytes = self.end;
        }
        self.write_chunk(disk, &mut chunk)?;
        chunk.clear();
        self.gathered = chunk;
        Ok(())
    }

    /// Begins the next epoch with `bytes`, which must not be more than fit.
    pub(super) fn replace(&mut self, disk: &mut Disk, bytes: &[u8], sync: bool) -> Result<(), ImageError> {
        if sync && self.is_inherited {
            self.write_again(disk)?;
        }
        let superseded = self.offset + self.half * self.half_bytes;
        self.half = 1 - self.half;
        self.epoch += 1;
        (self.end, self.bytes, self.sure_bytes) = (0, 0, 0);
        self.is_inherited = false;
        let mut chunk = vec![0; HEAD_BYTES];
        chunk.extend_from_slice(bytes);
        self.write_chunk(disk, &mut chunk)?;
        if sync {
            disk.sync()?;
            self.synced();
        }
        let mut mark = [0; HEAD_BYTES];
        put_head(&mut mark, SUPERSEDED, self.epoch, 0);
        disk.write(superseded, &mark, WHAT)
    }

    /// Makes durable what an earlier process wrote, before the bytes that it replaced are overwritten. After a failed sync it may exist in the
    /// system's memory alone, where no later sync looks for it.
    fn write_again(&self, disk: &mut Disk) -> Result<(), ImageError> {
        let at = self.offset + self.half * self.half_bytes;
        let mut bytes = vec![0; self.end as usize];
        disk.read(at, &mut bytes, WHAT)?;
        disk.write(at, &bytes, WHAT)?;
        disk.sync()
    }

    /// Notes that all that was written so far survives a crash.
    pub(super) fn synced(&mut self) {
        self.sure_bytes = self.end;
    }

    /// What was written so far: its epoch and its end.
    pub(super) fn written(&self) -> (u64, u64) {
        (self.epoch, self.end)
    }

    /// Notes that what was written up to then survives a crash.
    pub(super) fn synced_to(&mut self, (epoch, end): (u64, u64)) {
        if epoch == self.epoch {
            self.sure_bytes = self.sure_bytes.max(end);
        }
    }

    /// The staged bytes on file.
    pub(super) fn read(&self, disk: &Disk) -> Result<Vec<u8>, ImageError> {
        let mut all = Vec::with_capacity(self.bytes as usize);
        let mut reader = self.reader(disk, self.half);
        let mut at = 0;
        while at < self.end {
            let Some((_, bytes)) = reader.chunk(at)? else {
                let at = reader.offset + at;
                return Err(disk.error(damaged(format!("the staged bytes at byte {at} are not whole any more"))));
            };
            at += aligned(HEAD_BYTES + bytes.len());
            all.extend_from_slice(bytes);
        }
        Ok(all)
    }

    /// Fills in the head of `chunk`, and writes the chunk.
    fn write_chunk(&mut self, disk: &mut Disk, chunk: &mut [u8]) -> Result<(), ImageError> {
        let bytes = chunk.len() - HEAD_BYTES;
        put_head(chunk, bytes as u32, self.epoch, self.sure_bytes);
        disk.stage(self.offset + self.half * self.half_bytes + self.end, chunk, WHAT)?;
        self.end += aligned(chunk.len());
        self.bytes += bytes as u64;
        Ok(())
    }

    fn reader<'a>(&self, disk: &'a Disk, half: u64) -> Reader<'a> {
        let offset = self.offset + half * self.half_bytes;
        Reader { disk, offset, half_bytes: self.half_bytes, window_at: 0, window: Vec::new() }
    }
}

/// Reads a half from its start to its end, many chunks at a time.
struct Reader<'a> {
    disk: &'a Disk,
    offset: u64,
    half_bytes: u64,
    window_at: u64,
    window: Vec<u8>,
}

impl Reader<'_> {
    /// The head and the bytes of the chunk at byte `at` of the half, if one is there and whole.
    fn chunk(&mut self, at: u64) -> Result<Option<(Head, &[u8])>, ImageError> {
        let Some(head) = self.bytes(at, HEAD_BYTES)? else { return Ok(None) };
        let head = Head::of(head);
        if !(1..=EPOCH_MAX).contains(&head.epoch) {
            return Ok(None);
        }
        let length = if head.length == SUPERSEDED { 0 } else { head.length as usize };
        let Some(chunk) = self.bytes(at, HEAD_BYTES + length)? else { return Ok(None) };
        let is_whole = u32_at(chunk, 0) == crc32c(&chunk[4..]);
        Ok(is_whole.then_some((head, &chunk[HEAD_BYTES..])))
    }

    /// Some bytes of the half, if it has so many.
    fn bytes(&mut self, at: u64, count: usize) -> Result<Option<&[u8]>, ImageError> {
        let room = self.half_bytes.saturating_sub(at);
        if room < count as u64 {
            return Ok(None);
        }
        if at < self.window_at || at + count as u64 > self.window_at + self.window.len() as u64 {
            self.window_at = at;
            self.window.resize(room.min((count as u64).max(WINDOW_BYTES)) as usize, 0);
            self.disk.read(self.offset + at, &mut self.window, WHAT)?;
        }
        Ok(self.window.get((at - self.window_at) as usize..).and_then(|bytes| bytes.get(..count)))
    }
}

fn aligned(bytes: usize) -> u64 {
    (bytes as u64).next_multiple_of(CHUNK_ALIGNMENT_BYTES)
}

/// Writes the head of a chunk into its first bytes.
fn put_head(chunk: &mut [u8], length: u32, epoch: u64, sure_bytes: u64) {
    chunk[4..8].copy_from_slice(&length.to_le_bytes());
    chunk[8..16].copy_from_slice(&epoch.to_le_bytes());
    chunk[16..HEAD_BYTES].copy_from_slice(&sure_bytes.to_le_bytes());
    let crc = crc32c(&chunk[4..]);
    chunk[..4].copy_from_slice(&crc.to_le_bytes());
}
