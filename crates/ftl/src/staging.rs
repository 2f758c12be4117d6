//! What the write buffer's memory holds, so that a mount can put the buffer back as it was.
//!
//! ```text
//!   [length u32] [crc32c u32] [item] [bytes of the record]      the CRC covers item and bytes
//! ```
//!
//! It begins with where the streams stood when everything before was in flash ([`Item::Stood`]), and goes on with what was
//! opened, appended and changed since, in order. It ends where a length or a CRC is wrong.

use crate::address::{Grain, Packing};
use crate::journal::{Change, Journal};
use crate::log::{Log, OpenStream};
use crate::oob::{Kind, OobFormat, Stream};
use kvssd_flash::rope::Rope;
use kvssd_flash::{Cause, Flash, Geometry, MediaError, PageAddress, SuperblockId};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Where a stream stands: the superblock, and the page that comes next.
pub(crate) type Standing = Option<(SuperblockId, PageAddress)>;

/// One thing that was staged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Item {
    /// Where all streams stood, the sequence number and the number of the next journal page.
    Stood([Standing; Stream::ALL.len()], u64, u64),
    /// A stream began to write to a superblock.
    Opened(Stream, SuperblockId),
    /// A stream's open page was finished before it was full.
    Turned(Stream),
    /// A record was appended at the place; its bytes follow.
    Appended(Stream, Kind, u64, Grain),
    /// A change was noted.
    Changed(Change),
}

const HEAD_BYTES: usize = 8;

/// The bytes of an item and those that follow it.
pub(crate) fn encode(item: &Item, follows: Option<&Rope>) -> Vec<u8> {
    let mut bytes = postcard::to_extend(item, vec![0; HEAD_BYTES]).expect("an item is plain data");
    if let Some(rope) = follows {
        let start = bytes.len();
        bytes.resize(start + rope.len(), 0);
        rope.as_ref().copy_to(0, &mut bytes[start..]);
    }
    let length = (bytes.len() - HEAD_BYTES) as u32;
    let crc = crc32c::crc32c(&bytes[HEAD_BYTES..]);
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes[4..HEAD_BYTES].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The next item, the bytes that follow it, and the rest.
fn decode(bytes: &[u8]) -> Option<(Item, &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (body, rest) = rest.split_at_checked(number(0) as usize)?;
    if body.is_empty() || crc32c::crc32c(body) != number(4) {
        return None;
    }
    let (item, follows) = postcard::take_from_bytes(body).ok()?;
    Some((item, follows, rest))
}

/// What the write buffer said beside the records that were put back into it.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    /// The changes that were staged, in order.
    pub(crate) changes: Vec<Change>,
    /// The journal pages from this number on repeat them.
    pub(crate) journal_number: Option<u64>,
}

/// Puts the records that `staged` holds back into the streams, and units that are full into flash.
///
/// # Errors
/// [`MediaError`] when the flash fails.
pub(crate) fn restore(
    staged: &[u8],
    log: &mut Log,
    flash: &mut Flash,
    packing: &Packing,
    journal: &mut Journal,
) -> Result<Restored, MediaError> {
    let mut restored = Restored::default();
    let mut coming: [VecDeque<SuperblockId>; Stream::ALL.len()] = Default::default();
    let mut rest = staged;
    // A record that runs into the next superblock is staged before that is opened.
    while let Some((item, _, after)) = decode(rest) {
        if let Item::Opened(stream, superblock) = item {
            coming[stream as usize].push_back(superblock);
        }
        rest = after;
    }
    rest = staged;
    while let Some((item, follows, after)) = decode(rest) {
        rest = after;
        match item {
            Item::Stood(standings, sequence, journal_number) => {
                for (stream, standing) in log.streams.iter_mut().zip(standings) {
                    if standing.is_some_and(|(superblock, _)| superblock.0 >= flash.geometry().superblocks()) {
                        return Ok(restored);
                    }
                    stream.superblock = standing.map(|(superblock, _)| superblock);
                    stream.page = standing.map_or(PageAddress(0), |(_, page)| page);
                }
                log.sequence = sequence;
                journal.number = journal_number;
                restored.journal_number = Some(journal_number);
            }
            Item::Opened(..) => {}
            Item::Turned(stream) => {
                let mut refill = Refill::new(stream, log, &mut coming, flash, packing);
                if refill.stream.superblock.is_some() || refill.open() {
                    refill.turn_page()?;
                }
            }
            Item::Appended(stream, kind, tag, place) => {
                journal.number += u64::from(stream == Stream::Journal);
                if kind == Kind::Journal {
                    // The page that was appended is the one that its changes were gathered in.
                    let _ = journal.next_page(true);
                }
                if !Refill::new(stream, log, &mut coming, flash, packing).append(kind, tag, place, follows)? {
                    break;
                }
            }
            Item::Changed(change) => {
                journal.gather(&change, flash.geometry().page_bytes as usize);
                restored.changes.push(change);
            }
        }
    }
    Ok(restored)
}

/// Puts records into one stream at the places that they had.
struct Refill<'a> {
    stream: &'a mut OpenStream,
    coming: &'a mut VecDeque<SuperblockId>,
    flash: &'a mut Flash,
    geometry: Geometry,
    packing: &'a Packing,
    format: OobFormat,
    sequence: &'a mut u64,
}

impl<'a> Refill<'a> {
    fn new(
        stream: Stream,
        log: &'a mut Log,
        coming: &'a mut [VecDeque<SuperblockId>; Stream::ALL.len()],
        flash: &'a mut Flash,
        packing: &'a Packing,
    ) -> Self {
        Refill {
            geometry: *flash.geometry(),
            stream: &mut log.streams[stream as usize],
            coming: &mut coming[stream as usize],
            flash,
            packing,
            format: log.format,
            sequence: &mut log.sequence,
        }
    }

    /// Gives whether the record could be put where it was; if not, the power went while it was appended.
    fn append(&mut self, kind: Kind, tag: u64, place: Grain, bytes: &[u8]) -> Result<bool, MediaError> {
        let page_bytes = self.geometry.page_bytes as usize;
        if self.stream.superblock.is_none() && !self.open() {
            return Ok(false);
        }
        if self.stream.page != self.packing.page_of(place) || self.packing.byte_in_page(place) != self.stream.data.len()
        {
            return Ok(false);
        }
        self.stream.begin(self.packing, kind, tag, Cause::User);
        let mut done = 0;
        while done < bytes.len() {
            if self.stream.superblock.is_none() && !self.open() {
                return Ok(false);
            }
            if done > 0 {
                self.stream.oob.kind = kind;
                self.stream.oob.continues = Some(place);
            }
            let count = (page_bytes - self.stream.data.len()).min(bytes.len() - done);
            self.stream.data.push_literal(&bytes[done..done + count]);
            done += count;
            let end = self.stream.data.len();
            self.stream.data.push_zeros(end.next_multiple_of(self.packing.grain_bytes as usize) - end);
            if self.stream.data.len() == page_bytes {
                self.turn_page()?;
            }
        }
        Ok(true)
    }

    fn open(&mut self) -> bool {
        let superblocks = self.geometry.superblocks();
        let Some(superblock) = self.coming.pop_front().filter(|next| next.0 < superblocks) else { return false };
        self.stream.superblock = Some(superblock);
        self.stream.page = self.geometry.first_page(superblock);
        true
    }

    fn turn_page(&mut self) -> Result<(), MediaError> {
        let geometry = self.geometry;
        *self.sequence += 1;
        self.stream.oob.sequence = *self.sequence;
        let page = self.stream.page;
        let last = geometry.first_page(geometry.superblock_of(page)).0 + geometry.pages_per_superblock() - 1;
        if self.stream.turn_page(&geometry, self.format, &mut Vec::new()) {
            self.flash.restore(geometry.unit_of(page), self.stream.unit.finish())?;
            self.stream.causes.clear();
        }
        if page.0 < last {
            self.stream.page.0 += 1;
        } else {
            self.stream.superblock = None;
        }
        Ok(())
    }
}
