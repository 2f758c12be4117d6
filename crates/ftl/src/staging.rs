//! What the write buffer's memory holds: a mount puts the buffer back from it.
//!
//! ```text
//!   [length u32] [crc32c u32] [item] [bytes of the record]      the CRC covers item and bytes
//! ```
//!
//! It begins with where the streams stood when everything before was in flash ([`Item::Positions`]), and goes on with what
//! was opened, appended and changed since, in order. It ends where a length or a CRC is wrong.

use crate::address::Grain;
use crate::journal::{Change, Journal};
use crate::log::{Log, OpenLog};
use crate::oob::{Kind, OobFormat, Stream};
use crate::packing::Packing;
use crate::placement::LogId;
use kvssd_flash::rope::RopeRef;
use kvssd_flash::{Cause, Flash, Geometry, MediaError, PageAddress, SuperblockId};
use kvssd_types::NamespaceId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a log stands: the superblock, and the page that comes next.
pub(crate) type LogPosition = Option<(SuperblockId, PageAddress)>;

/// One thing that was staged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Item {
    /// Where all logs stood, the sequence number and the number of the next journal page.
    Positions(Vec<LogPosition>, u64, u64),
    /// A stream began to write to a superblock, with the log of its target.
    Opened(Stream, SuperblockId),
    /// A log's open page was finished before it was full.
    Turned(LogId),
    /// A record of a namespace with a tag was appended at the place; its bytes follow.
    Appended(Stream, Kind, (u32, u64), Grain),
    /// A change was noted.
    Changed(Change),
    /// The drive was mounted: what was under way before will not go on.
    Mounted,
    /// A log of a placement handle began to write to a superblock.
    OpenedBy(LogId, SuperblockId),
    /// A part of a mapped block came, from that byte of it on, with a placement handle; its bytes follow.
    Gathered(u64, u32, u8),
}

const HEAD_BYTES: usize = 8;

/// The bytes of an item and those that follow it.
pub(crate) fn encode(item: &Item, follows: RopeRef<'_>) -> Vec<u8> {
    let mut bytes = postcard::to_extend(item, vec![0; HEAD_BYTES]).expect("an item is plain data");
    follows.show(|piece| bytes.extend_from_slice(piece));
    let (length, crc) = (bytes.len() - HEAD_BYTES, crc32c::crc32c(&bytes[HEAD_BYTES..]));
    put_head(&mut bytes, length, crc);
    bytes
}

/// The bytes of an item, which says that those of `follows` stand behind it.
pub(crate) fn encode_before(item: &Item, follows: RopeRef<'_>) -> Vec<u8> {
    let mut bytes = postcard::to_extend(item, vec![0; HEAD_BYTES]).expect("an item is plain data");
    let (mut length, mut crc) = (bytes.len() - HEAD_BYTES, crc32c::crc32c(&bytes[HEAD_BYTES..]));
    follows.show(|piece| (length, crc) = (length + piece.len(), crc32c::crc32c_append(crc, piece)));
    put_head(&mut bytes, length, crc);
    bytes
}

fn put_head(bytes: &mut [u8], length: usize, crc: u32) {
    bytes[..4].copy_from_slice(&(length as u32).to_le_bytes());
    bytes[4..HEAD_BYTES].copy_from_slice(&crc.to_le_bytes());
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

/// A part of a mapped block that was gathered.
#[derive(Debug)]
pub(crate) struct GatheredPart {
    pub(crate) block: u64,
    pub(crate) start: u32,
    pub(crate) handle: u8,
    pub(crate) bytes: Vec<u8>,
}

/// What the write buffer said beside the records that were put back into it.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    /// The changes that were staged, in order.
    pub(crate) changes: Vec<Change>,
    /// The journal pages from this number on repeat them.
    pub(crate) journal_number: Option<u64>,
    /// The parts of mapped blocks that were gathered, in order.
    pub(crate) gathered: Vec<GatheredPart>,
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
    let items: Vec<(Item, &[u8])> = Items(staged).collect();
    let logs = logs_of(&items, log, packing, flash.geometry());
    let damaged = || MediaError::Failed("the write buffer's memory is damaged".to_owned());
    if !logs.iter().flatten().all(|&id| log.has(id)) {
        return Err(damaged());
    }
    let mut opened = Opened::of(&items);
    for (number, (item, follows)) in items.iter().enumerate() {
        match *item {
            Item::Positions(ref positions, sequence, journal_number) => {
                let is_first = restored.journal_number.is_none();
                let can_stand = |(superblock, page): &(SuperblockId, PageAddress)| {
                    let geometry = flash.geometry();
                    (1..geometry.superblocks()).contains(&superblock.0)
                        && geometry.superblock_of(*page) == *superblock
                        && page.0.is_multiple_of(geometry.pages_per_program)
                };
                let are_numbers = sequence < 1 << 48 && journal_number < 1 << 48;
                let are_all = positions.len() == log.iter().count();
                if !is_first || !are_numbers || !are_all || !positions.iter().flatten().all(can_stand) {
                    return Err(damaged());
                }
                for (stream, position) in log.iter_mut().zip(positions) {
                    stream.superblock = position.map(|(superblock, _)| superblock);
                    stream.page = position.map_or(PageAddress(0), |(_, page)| page);
                }
                log.sequence = sequence;
                journal.number = journal_number;
                restored.journal_number = Some(journal_number);
            }
            Item::Mounted => opened.waiting.clear(),
            Item::Opened(_, superblock) | Item::OpenedBy(_, superblock) => {
                if let Some(id) = logs[number].filter(|_| !opened.taken.contains(&number)) {
                    opened.waiting.insert(id, (superblock, number));
                }
            }
            Item::Turned(id) => {
                let mut refill = Refill::new(id, log, flash, packing);
                if refill.stream.superblock.is_some() || refill.open(opened.waiting.remove(&id), &mut opened) {
                    refill.open_page();
                    refill.turn_page(&opened)?;
                }
            }
            Item::Appended(stream, kind, (namespace, tag), place) => {
                journal.number += u64::from(stream == Stream::Journal);
                if kind == Kind::Journal {
                    // The page that was appended is the one that its changes were gathered in.
                    let _ = journal.next_page(true);
                }
                let Some(id) = logs[number] else { return Err(damaged()) };
                let mut refill = Refill::new(id, log, flash, packing);
                let next = |opened: &mut Opened| opened.next(&items, number, &logs);
                refill.append((kind, (NamespaceId(namespace), tag), place), follows, &mut opened, next)?;
            }
            Item::Changed(ref change) => {
                journal.gather(change, packing.page_bytes() as usize);
                if let Change::Bound { tag, .. } = *change {
                    // All of the block is in a record, what was gathered of it before with it.
                    restored.gathered.retain(|part| part.block != tag);
                }
                restored.changes.push(change.clone());
            }
            Item::Gathered(block, start, handle) => {
                restored.gathered.push(GatheredPart { block, start, handle, bytes: follows.to_vec() });
            }
        }
    }
    Ok(restored)
}

/// The log that each item is of, if it is of one: the log that opened a superblock is the one that appends to it.
fn logs_of(items: &[(Item, &[u8])], log: &Log, packing: &Packing, geometry: &Geometry) -> Vec<Option<LogId>> {
    let mut owners: BTreeMap<SuperblockId, LogId> = BTreeMap::new();
    let by_default = |stream, superblock| LogId { stream, number: geometry.target_of(superblock) };
    let of_item = |(item, _): &(Item, &[u8])| match *item {
        Item::Positions(ref positions, ..) => {
            let all = log.ids().zip(positions);
            owners = all.filter_map(|(id, position)| position.map(|(superblock, _)| (superblock, id))).collect();
            None
        }
        Item::Opened(stream, superblock) => {
            let id = by_default(stream, superblock);
            owners.insert(superblock, id);
            Some(id)
        }
        Item::OpenedBy(id, superblock) => {
            owners.insert(superblock, id);
            Some(id)
        }
        Item::Turned(id) => Some(id),
        Item::Appended(stream, _, _, place) => {
            let superblock = packing.superblock_of(place);
            let owner = owners.get(&superblock).copied().filter(|owner| owner.stream == stream);
            Some(owner.unwrap_or(by_default(stream, superblock)))
        }
        Item::Changed(_) | Item::Mounted | Item::Gathered(..) => None,
    };
    items.iter().map(of_item).collect()
}

/// The items of what is staged.
struct Items<'a>(&'a [u8]);

impl<'a> Iterator for Items<'a> {
    type Item = (Item, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (item, follows, rest) = decode(self.0)?;
        self.0 = rest;
        Some((item, follows))
    }
}

/// The superblocks that streams opened, with the numbers of the items that say so.
#[derive(Default)]
struct Opened {
    /// Those that nothing was appended to yet.
    waiting: BTreeMap<LogId, (SuperblockId, usize)>,
    /// The items that records ran into.
    taken: Vec<usize>,
    /// The item with which each log opened its superblock; none when the log stood there before the memory began.
    current: BTreeMap<LogId, usize>,
    /// When each superblock was opened last.
    last: BTreeMap<SuperblockId, usize>,
}

impl Opened {
    fn of(items: &[(Item, &[u8])]) -> Self {
        let numbered = items.iter().enumerate().filter_map(|(number, (item, _))| match *item {
            Item::Opened(_, superblock) | Item::OpenedBy(_, superblock) => Some((superblock, number)),
            _ => None,
        });
        Opened { last: numbered.collect(), ..Opened::default() }
    }

    /// Whether flash still has what a log wrote to its superblock: not if that was erased and opened again since.
    fn is_last(&self, log: LogId, superblock: SuperblockId) -> bool {
        self.last.get(&superblock) <= self.current.get(&log)
    }

    /// What the log of item `number` opened first, or in the middle of its record: before anything else happened to it.
    fn next(
        &mut self,
        items: &[(Item, &[u8])],
        number: usize,
        logs: &[Option<LogId>],
    ) -> Option<(SuperblockId, usize)> {
        let log = logs[number]?;
        if let Some(waiting) = self.waiting.remove(&log) {
            return Some(waiting);
        }
        for (later, (item, _)) in items.iter().enumerate().skip(number + 1) {
            match *item {
                Item::Mounted | Item::Positions(..) => return None,
                _ if logs[later] != Some(log) => {}
                Item::Opened(_, superblock) | Item::OpenedBy(_, superblock) if !self.taken.contains(&later) => {
                    self.taken.push(later);
                    return Some((superblock, later));
                }
                Item::Appended(..) | Item::Turned(_) => return None,
                _ => {}
            }
        }
        None
    }
}

/// Puts records into one stream at the places that they had.
struct Refill<'a> {
    id: LogId,
    stream: &'a mut OpenLog,
    flash: &'a mut Flash,
    geometry: Geometry,
    packing: &'a Packing,
    format: OobFormat,
    sequence: &'a mut u64,
}

impl<'a> Refill<'a> {
    fn new(id: LogId, log: &'a mut Log, flash: &'a mut Flash, packing: &'a Packing) -> Self {
        let format = log.format;
        let (stream, sequence) = log.get_with_sequence(id);
        Refill { id, geometry: *flash.geometry(), stream, flash, packing, format, sequence }
    }

    /// Appends a record where it was. When the power went before the superblock that it runs into was opened, it ends
    /// there: nobody will ask for it.
    fn append(
        &mut self,
        (kind, tag, place): (Kind, (NamespaceId, u64), Grain),
        bytes: &[u8],
        opened: &mut Opened,
        mut next: impl FnMut(&mut Opened) -> Option<(SuperblockId, usize)>,
    ) -> Result<(), MediaError> {
        let page_bytes = self.packing.page_bytes() as usize;
        if self.stream.superblock.is_none() && !self.open(next(opened), opened) {
            return Ok(());
        }
        let is_next = self.stream.page == self.packing.page_of(place)
            && self.packing.byte_in_page(place) == self.stream.data.len();
        if !is_next || bytes.is_empty() {
            return Err(MediaError::Failed("what the write buffer held does not follow what is in flash".to_owned()));
        }
        self.open_page();
        self.stream.begin(self.packing, kind, tag, Cause::User);
        let mut done = 0;
        while done < bytes.len() {
            if self.stream.superblock.is_none() && !self.open(next(opened), opened) {
                return Ok(());
            }
            if done > 0 {
                self.open_page();
                self.stream.oob.kind = kind;
                self.stream.oob.continues = Some(place);
            }
            let count = (page_bytes - self.stream.data.len()).min(bytes.len() - done);
            self.stream.data.push_literal(&bytes[done..done + count]);
            done += count;
            let end = self.stream.data.len();
            self.stream.data.push_zeros(end.next_multiple_of(self.packing.grain_bytes as usize) - end);
            if self.stream.data.len() == page_bytes {
                self.turn_page(opened)?;
            }
        }
        Ok(())
    }

    fn open(&mut self, next: Option<(SuperblockId, usize)>, opened: &mut Opened) -> bool {
        let superblocks = 1..self.geometry.superblocks();
        let Some((superblock, number)) = next.filter(|(next, _)| superblocks.contains(&next.0)) else { return false };
        opened.current.insert(self.id, number);
        self.stream.superblock = Some(superblock);
        self.stream.page = self.geometry.first_page(superblock);
        true
    }

    /// Numbers the page that comes next, if there is nothing in it yet.
    fn open_page(&mut self) {
        if self.stream.data.is_empty() && self.stream.oob.entries.is_empty() {
            *self.sequence += 1;
            self.stream.oob.sequence = *self.sequence;
        }
    }

    fn turn_page(&mut self, opened: &Opened) -> Result<(), MediaError> {
        let geometry = self.geometry;
        let page = self.stream.page;
        let superblock = geometry.superblock_of(page);
        let last = geometry.first_page(superblock).0 + geometry.pages_per_superblock() - 1;
        if self.stream.turn_page(&geometry, self.format, &mut Vec::new()) {
            let content = self.stream.unit.finish();
            if opened.is_last(self.id, superblock) {
                self.flash.restore(geometry.unit_of(page), content)?;
            }
            self.stream.causes.clear();
            self.stream.unit_since.clear();
        }
        if page.0 < last {
            self.stream.page.0 += 1;
        } else {
            self.stream.superblock = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_flash::rope::Rope;

    #[test]
    fn an_item_that_stands_before_its_bytes_is_the_one_that_has_them() {
        let mut follows = Rope::default();
        follows.push_literal(b"record");
        follows.push_zeros(3000);
        follows.push_blob(vec![7; 500].into());
        let item = Item::Appended(Stream::User, Kind::Pair, (1, 77), Grain(12));
        let (whole, mut parted) = (encode(&item, follows.as_ref()), encode_before(&item, follows.as_ref()));
        assert!(parted.len() < 40, "none of the bytes are in it");
        follows.as_ref().show(|piece| parted.extend_from_slice(piece));
        assert_eq!(parted, whole);
        let (read, behind, rest) = decode(&whole).unwrap();
        assert!(matches!(read, Item::Appended(Stream::User, Kind::Pair, (1, 77), Grain(12))));
        assert_eq!((behind.len(), rest.len()), (3506, 0));
    }
}
