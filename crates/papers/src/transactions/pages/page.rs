//! Pages with slots, and the records in them.
//!
//! ```text
//!   | head: LSN, table, counts | record 2 | record 0 | ...      free      ... | slot 2 | slot 1 | slot 0 |
//! ```
//!
//! A record keeps its slot as long as it lives in the page; its bytes may move. Slots are given out again, pages too.

use kvssd_types::{NamespaceId, Value};
use std::sync::Arc;

/// Bytes of a page (KAML, section V-D: Shore-MT's default).
pub const PAGE_BYTES: u32 = 8192;
/// LSN, table, number of slots, where the free bytes begin, checksum. An estimate.
const HEAD_BYTES: u32 = 64;
/// Where a record begins and how long it is.
pub(super) const SLOT_BYTES: u32 = 4;
/// Lengths of key and value.
const RECORD_HEAD_BYTES: u32 = 8;

/// Names a page by its number in the data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PageId(pub(super) u32);

/// Where a log record begins, in bytes from the beginning of all log. No record begins at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Lsn(pub(super) u64);

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) key: Arc<[u8]>,
    pub(super) value: Value,
}

impl Record {
    /// Bytes in a page or in the log.
    pub(super) fn bytes(&self) -> u32 {
        RECORD_HEAD_BYTES + self.key.len() as u32 + self.value.len() as u32
    }
}

/// A page. All its bytes are what lies on the drive; they are kept as what they say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Page {
    /// The last change that is in it.
    pub(super) lsn: Lsn,
    /// Whose records it has, once it had one.
    pub(super) table: Option<NamespaceId>,
    slots: Vec<Option<Record>>,
    record_bytes: u32,
}

impl Page {
    /// Room in a page that has nothing for one record.
    pub(super) const RECORD_BYTES_MAX: u32 = PAGE_BYTES - HEAD_BYTES - SLOT_BYTES;

    /// An empty one of a table.
    pub(super) fn of(table: NamespaceId) -> Self {
        Page { table: Some(table), ..Page::default() }
    }

    /// Bytes that neither head nor slots nor records take.
    pub(super) fn free_bytes(&self) -> u32 {
        PAGE_BYTES - HEAD_BYTES - SLOT_BYTES * self.slots.len() as u32 - self.record_bytes
    }

    /// The record in a slot.
    pub(super) fn record(&self, slot: u16) -> Option<&Record> {
        self.slots.get(usize::from(slot))?.as_ref()
    }

    /// The records, with their slots.
    pub(super) fn records(&self) -> impl Iterator<Item = (u16, &Record)> {
        (0..).zip(&self.slots).filter_map(|(slot, record)| Some((slot, record.as_ref()?)))
    }

    /// A slot for a new record: one that was given back, if those may be taken, or another.
    pub(super) fn free_slot(&self, takes_used: bool) -> u16 {
        let used = self.slots.iter().position(|slot| takes_used && slot.is_none());
        used.unwrap_or(self.slots.len()) as u16
    }

    /// Whether there is room for another record, wherever it may lie.
    pub(super) fn fits_new(&self, record: &Record) -> bool {
        record.bytes() + SLOT_BYTES <= self.free_bytes()
    }

    /// Puts a record into a slot, or takes out what is there.
    ///
    /// # Panics
    /// When it does not fit.
    pub(super) fn set(&mut self, slot: u16, record: Option<Record>) {
        let slot = usize::from(slot);
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, None);
        }
        self.record_bytes += record.as_ref().map_or(0, Record::bytes);
        self.record_bytes -= self.slots[slot].as_ref().map_or(0, Record::bytes);
        self.slots[slot] = record;
        let taken = HEAD_BYTES + SLOT_BYTES * self.slots.len() as u32 + self.record_bytes;
        assert!(taken <= PAGE_BYTES, "a record was put into a page that has no room for it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_types::Pattern;

    fn record(bytes: u32) -> Record {
        let length = bytes - RECORD_HEAD_BYTES - 3;
        Record { key: Arc::from(&b"key"[..]), value: Value::Pattern(Pattern { seed: 1, offset: 0, length }) }
    }

    #[test]
    fn what_is_taken_out_is_free_but_for_its_slot() {
        let mut page = Page::default();
        let empty = page.free_bytes();
        page.set(0, Some(record(100)));
        page.set(1, Some(record(200)));
        assert_eq!(page.free_bytes(), empty - 300 - 2 * SLOT_BYTES);
        page.set(0, None);
        assert_eq!(page.free_bytes(), empty - 200 - 2 * SLOT_BYTES);
        assert_eq!((page.free_slot(true), page.free_slot(false)), (0, 2));
        page.set(1, Some(record(50)));
        assert_eq!(page.records().map(|(slot, record)| (slot, record.bytes())).collect::<Vec<_>>(), [(1, 50)]);
    }

    #[test]
    fn the_largest_record_fits_a_page_of_its_own() {
        Page::default().set(0, Some(record(Page::RECORD_BYTES_MAX)));
    }
}
