//! What the write buffer's memory holds: a mount puts the buffer back from it.
//!
//! ```text
//!   [length u32] [crc32c u32] [item] [bytes of the record]      the CRC covers item and bytes
//! ```
//!
//! The full units of a large record need not be staged, if the medium keeps the order of writes:
//!
//! ```text
//!   Begun | its full units are programmed | Ended, the bytes behind them      it is there
//!   Begun | some of them are              | Torn, how many                    it is not, and the log goes on behind them
//! ```
//!
//! The mount that finds no end of a record notes that it is torn.
//!
//! The memory begins with the positions of the streams when everything before was in flash ([`Item::Positions`]). Behind that stand all
//! opens, appends and changes since, in order. It ends at the first wrong length or CRC.

mod refill;
mod straight;

use self::refill::{Opened, Record, Refill};
use self::straight::End;
use crate::journal::{Change, Journal};
use crate::layout::address::Grain;
use crate::layout::oob::{Kind, Stream};
use crate::layout::packing::Packing;
use crate::space::log::Log;
use crate::space::placement::LogId;
use kvssd_flash::checksum::{crc32c, crc32c_append};
use kvssd_flash::rope::RopeRef;
use kvssd_flash::{Flash, Geometry, MediaError, PageAddress, SuperblockId};
use kvssd_types::NamespaceId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a log stands: the superblock, and the page that comes next.
pub(crate) type LogPosition = Option<(SuperblockId, PageAddress)>;

/// One thing that was staged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Item {
    /// Where all logs stood, the sequence number of the last page, and the number of the next journal page.
    Positions { logs: Vec<LogPosition>, sequence: u64, journal_number: u64 },
    /// A stream began to write to a superblock, with the log of its target.
    Opened(Stream, SuperblockId),
    /// A log's open page was finished before it was full.
    Turned(LogId),
    /// A record was appended; its bytes follow.
    Appended { stream: Stream, kind: Kind, namespace: u32, tag: u64, place: Grain },
    /// A change was noted.
    Changed(Change),
    /// The drive was mounted: work that was in progress before does not go on.
    Mounted,
    /// A log of a placement handle began to write to a superblock.
    OpenedBy(LogId, SuperblockId),
    /// A part of a mapped block was gathered, from byte `start` on; its bytes follow.
    Gathered { block: u64, start: u32, handle: u8 },
    /// Like `Appended`, for a record whose first `bytes` bytes fill units and go straight to flash.
    Begun { stream: Stream, kind: Kind, namespace: u32, tag: u64, place: Grain, bytes: u32 },
    /// The units of the record that began at the place are programmed; the bytes behind them follow.
    Ended(Grain),
    /// The last record that was begun has no end. The number counts its programmed units.
    Torn(u32),
}

const HEAD_BYTES: usize = 8;
/// No sequence number, and no number of a journal page, is so high.
const NUMBERS_END: u64 = 1 << 48;

/// The usual size of an item.
const ITEM_BYTES: usize = 64;

/// The bytes of an item and those that follow it.
pub(crate) fn encode(item: &Item, follows: RopeRef<'_>) -> Vec<u8> {
    let mut bytes = encode_before(item, follows);
    follows.show(|piece| bytes.extend_from_slice(piece));
    bytes
}

/// The bytes of an item. Its length and CRC cover the bytes of `follows` too, which the caller puts behind it.
pub(crate) fn encode_before(item: &Item, follows: RopeRef<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ITEM_BYTES);
    bytes.resize(HEAD_BYTES, 0);
    let mut bytes = postcard::to_extend(item, bytes).expect("an item is plain data");
    let (mut length, mut crc) = (bytes.len() - HEAD_BYTES, crc32c(&bytes[HEAD_BYTES..]));
    follows.show(|piece| (length, crc) = (length + piece.len(), crc32c_append(crc, piece)));
    bytes[..4].copy_from_slice(&(length as u32).to_le_bytes());
    bytes[4..HEAD_BYTES].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The body of the next entry, and the remaining bytes.
fn body(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (body, rest) = rest.split_at_checked(number(0) as usize)?;
    let is_whole = !body.is_empty() && crc32c(body) == number(4);
    is_whole.then_some((body, rest))
}

/// A part of a mapped block that was gathered.
#[derive(Debug)]
pub(crate) struct GatheredPart {
    pub(crate) block: u64,
    pub(crate) start: u32,
    pub(crate) handle: u8,
    pub(crate) bytes: Vec<u8>,
}

/// What the write buffer's memory held beside the records that were put back.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    /// The changes that were staged, in order.
    pub(crate) changes: Vec<Change>,
    /// The journal pages from this number on repeat them.
    pub(crate) journal_number: Option<u64>,
    /// The parts of mapped blocks that were gathered, in order.
    pub(crate) gathered: Vec<GatheredPart>,
    /// The number of units in flash of a record without an end, if no earlier mount has noted it.
    pub(crate) torn_units: Option<u32>,
}

impl Restored {
    fn change(&mut self, change: &Change) {
        if let Change::Bound { tag, .. } = *change {
            // The record holds all of the block, with what was gathered of it before.
            self.gathered.retain(|part| part.block != tag);
        }
        self.changes.push(change.clone());
    }
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
    let items = Items(staged).collect::<Result<Vec<_>, _>>()?;
    let logs = logs_of(&items, log, packing, flash.geometry());
    if !logs.iter().flatten().all(|&id| log.has(id)) {
        return Err(damaged());
    }
    let mut opened = Opened::of(&items);
    for (number, (item, follows)) in items.iter().enumerate() {
        match *item {
            Item::Positions { logs: ref positions, sequence, journal_number } => {
                let is_first = restored.journal_number.is_none();
                if !is_first || journal_number >= NUMBERS_END || !stand(log, flash.geometry(), positions, sequence) {
                    return Err(damaged());
                }
                (journal.number, restored.journal_number) = (journal_number, Some(journal_number));
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
            Item::Appended { stream, kind, namespace, tag, place } => {
                journal.number += u64::from(stream == Stream::Journal);
                if kind == Kind::Journal {
                    // The page that was appended is the one that its changes were gathered in.
                    let _ = journal.next_page(true);
                }
                let Some(id) = logs[number] else { return Err(damaged()) };
                let mut refill = Refill::new(id, log, flash, packing);
                let next = |opened: &mut Opened| opened.next(&items, number, &logs);
                let record = Record { kind, tag: (NamespaceId(namespace), tag), place };
                refill.append(record, follows, &mut opened, next)?;
            }
            Item::Begun { kind, namespace, tag, place, bytes, .. } => {
                let (Some(id), Ok(bytes)) = (logs[number], usize::try_from(bytes)) else { return Err(damaged()) };
                let mut refill = Refill::new(id, log, flash, packing);
                let next = |opened: &mut Opened| opened.next(&items, number, &logs);
                let record = Record { kind, tag: (NamespaceId(namespace), tag), place };
                let end = End::of(&items, number, place);
                let units = refill.pass_over(record, bytes, end, &mut opened, next)?;
                restored.torn_units = (end == End::Unknown).then_some(units);
            }
            Item::Ended(_) | Item::Torn(_) => {}
            Item::Changed(ref change) => {
                journal.gather(change, packing.page_bytes() as usize);
                restored.change(change);
            }
            Item::Gathered { block, start, handle } => {
                restored.gathered.push(GatheredPart { block, start, handle, bytes: follows.to_vec() });
            }
        }
    }
    Ok(restored)
}

fn damaged() -> MediaError {
    MediaError::Failed("the write buffer's memory is damaged".to_owned())
}

/// Restores the positions of all logs. Returns whether these are possible.
fn stand(log: &mut Log, geometry: &Geometry, positions: &[LogPosition], sequence: u64) -> bool {
    let can_stand = |(superblock, page): &(SuperblockId, PageAddress)| {
        (1..geometry.superblocks()).contains(&superblock.0)
            && geometry.superblock_of(*page) == *superblock
            && page.0.is_multiple_of(geometry.pages_per_program)
    };
    let are_all = positions.len() == log.iter().count();
    if !are_all || sequence >= NUMBERS_END || !positions.iter().flatten().all(can_stand) {
        return false;
    }
    for (stream, position) in log.iter_mut().zip(positions) {
        stream.superblock = position.map(|(superblock, _)| superblock);
        stream.page = position.map_or(PageAddress(0), |(_, page)| page);
    }
    log.sequence = sequence;
    true
}

/// The log of each item, if it belongs to one: the log that opened a superblock is the one that appends to it.
fn logs_of(items: &[(Item, &[u8])], log: &Log, packing: &Packing, geometry: &Geometry) -> Vec<Option<LogId>> {
    let mut owners: BTreeMap<SuperblockId, LogId> = BTreeMap::new();
    let by_default = |stream, superblock| LogId { stream, number: geometry.target_of(superblock) };
    let of_item = |(item, _): &(Item, &[u8])| match *item {
        Item::Positions { ref logs, .. } => {
            let all = log.ids().zip(logs);
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
        Item::Appended { stream, place, .. } | Item::Begun { stream, place, .. } => {
            let superblock = packing.superblock_of(place);
            let owner = owners.get(&superblock).copied().filter(|owner| owner.stream == stream);
            Some(owner.unwrap_or(by_default(stream, superblock)))
        }
        Item::Changed(_) | Item::Mounted | Item::Gathered { .. } | Item::Ended(_) | Item::Torn(_) => None,
    };
    items.iter().map(of_item).collect()
}

/// The items of what is staged, each with the bytes that follow it.
struct Items<'a>(&'a [u8]);

impl<'a> Iterator for Items<'a> {
    type Item = Result<(Item, &'a [u8]), MediaError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (body, rest) = body(self.0)?;
        self.0 = rest;
        // The entry is whole, so it was meant: to ignore it would lose what stands behind it.
        let unknown =
            |_| MediaError::Failed("the write buffer's memory holds what a later kvssd has staged".to_owned());
        Some(postcard::take_from_bytes(body).map_err(unknown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_flash::rope::Rope;

    #[test]
    fn an_item_stands_before_its_bytes() {
        let mut follows = Rope::default();
        follows.push_literal(b"record");
        follows.push_zeros(3000);
        follows.push_blob(vec![7; 500].into());
        let place = Grain(12);
        let item = Item::Appended { stream: Stream::User, kind: Kind::Pair, namespace: 1, tag: 77, place };
        let whole = encode(&item, follows.as_ref());
        assert!(encode_before(&item, follows.as_ref()).len() < 40, "none of the bytes are in it");
        let mut items = Items(&whole);
        let (read, behind) = items.next().unwrap().unwrap();
        let Item::Appended { stream: Stream::User, kind: Kind::Pair, namespace: 1, tag: 77, place: Grain(12) } = read
        else {
            panic!("{read:?}")
        };
        assert!(behind.len() == 3506 && items.next().is_none());
    }

    #[test]
    fn what_is_staged_ends_where_it_is_not_whole_and_an_unknown_item_is_told() {
        let mut bytes = encode(&Item::Mounted, Rope::default().as_ref());
        let end = bytes.len();
        bytes.extend(encode(&Item::Torn(3), Rope::default().as_ref()));
        let last = bytes.len() - 1;
        for (changed, kinds) in [(bytes[last], 2), (bytes[last] ^ 1, 1)] {
            bytes[last] = changed;
            assert_eq!(Items(&bytes).filter(Result::is_ok).count(), kinds);
        }
        bytes[last - 1] = 200;
        let crc = crc32c(&bytes[end + HEAD_BYTES..]);
        bytes[end + 4..end + HEAD_BYTES].copy_from_slice(&crc.to_le_bytes());
        assert!(Items(&bytes).nth(1).unwrap().is_err());
    }
}
