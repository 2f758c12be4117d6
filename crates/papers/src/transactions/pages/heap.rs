//! Where the records of tables are, and where there is room for more.
//!
//! ```text
//!   table, key --index--> page, slot          one B-tree a table, all of it in memory
//!   page       --------> free bytes - bytes that transactions under way gave back
//! ```
//!
//! What a transaction gives back in a page stays reserved until it ends, for undoing it may need the bytes and the slot again (as in
//! Shore). So whatever is undone, is undone where it was done.
//!
//! The index is in memory as a whole, its leaves, too, and is made anew from the pages after a cut of the power: the pages of leaves
//! take neither room in the pool nor writes, which is to the engine's favour. What its changes add to the log is counted
//! ([`super::entry::Entry::bytes`]).

use super::page::{Lsn, PAGE_BYTES, Page, PageId, SLOT_BYTES};
use kvssd_transactions::TransactionId;
use kvssd_types::NamespaceId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A page with that much room, beside the one that is filled, is looked at for new records.
const ROOMY_BYTES: u32 = PAGE_BYTES / 4;
/// No more of them than this for one record.
const ROOMY_PAGES: usize = 8;

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) page: PageId,
    pub(super) slot: u16,
}

#[derive(Debug, Default)]
struct Table {
    index: BTreeMap<Arc<[u8]>, Place>,
    /// The page that is filled.
    open: Option<PageId>,
    roomy: BTreeSet<PageId>,
}

/// All tables.
#[derive(Debug)]
pub(super) struct Heap {
    tables: BTreeMap<NamespaceId, Table>,
    /// Of each page of the data file.
    free_bytes: Vec<u32>,
    pages_max: u32,
    /// Pages that have no table.
    unused: Vec<PageId>,
    reserved: BTreeMap<PageId, Vec<(TransactionId, u32)>>,
}

impl Heap {
    pub(super) fn new(pages_max: u32) -> Self {
        let (tables, reserved) = (BTreeMap::new(), BTreeMap::new());
        Heap { tables, free_bytes: Vec::new(), pages_max, unused: Vec::new(), reserved }
    }

    /// Pages of the data file.
    pub(super) fn pages(&self) -> u32 {
        self.free_bytes.len() as u32
    }

    pub(super) fn find(&self, table: NamespaceId, key: &[u8]) -> Option<Place> {
        self.tables.get(&table)?.index.get(key).copied()
    }

    pub(super) fn bind(&mut self, table: NamespaceId, key: &Arc<[u8]>, place: Place) -> Option<Place> {
        self.tables.entry(table).or_default().index.insert(Arc::clone(key), place)
    }

    pub(super) fn unbind(&mut self, table: NamespaceId, key: &[u8]) {
        self.tables.entry(table).or_default().index.remove(key);
    }

    /// A page that has room for a new record of so many bytes; none when the drive is full.
    pub(super) fn page_for(&mut self, table: NamespaceId, bytes: u32, transaction: TransactionId) -> Option<PageId> {
        let has_room = |page: &PageId| self.fits(*page, bytes, SLOT_BYTES, transaction);
        let known = self.tables.get(&table).and_then(|table| {
            table.open.filter(has_room).or_else(|| table.roomy.iter().take(ROOMY_PAGES).copied().find(has_room))
        });
        if known.is_some() {
            return known;
        }
        let page = self.new_page()?;
        self.tables.entry(table).or_default().open = Some(page);
        Some(page)
    }

    /// Whether a record may grow by so many bytes where it is.
    pub(super) fn may_grow(&self, page: PageId, bytes: u32, transaction: TransactionId) -> bool {
        bytes == 0 || self.fits(page, bytes, 0, transaction)
    }

    /// Whether slots of a page that were given back may be given out again.
    pub(super) fn may_reuse_slots(&self, page: PageId) -> bool {
        !self.reserved.contains_key(&page)
    }

    /// A transaction has changed a page: its records take so many bytes more, or less.
    pub(super) fn changed(&mut self, id: PageId, page: &Page, growth_bytes: i64, transaction: TransactionId) {
        self.note(id, page);
        let reserved = self.reserved.entry(id).or_default();
        if !reserved.iter().any(|(of, _)| *of == transaction) {
            reserved.push((transaction, 0));
        }
        // The most that undoing will need more than there is now.
        let (_, bytes) = reserved.iter_mut().find(|(of, _)| *of == transaction).expect("it was put there");
        *bytes = (i64::from(*bytes) - growth_bytes).max(0) as u32;
    }

    /// What a page is like.
    pub(super) fn note(&mut self, id: PageId, page: &Page) {
        let free_bytes = page.free_bytes();
        self.free_bytes[id.0 as usize] = free_bytes;
        let Some(table) = page.table else { return };
        let roomy = &mut self.tables.entry(table).or_default().roomy;
        if free_bytes >= ROOMY_BYTES {
            roomy.insert(id);
        } else {
            roomy.remove(&id);
        }
    }

    /// A transaction has ended.
    pub(super) fn release(&mut self, transaction: TransactionId, pages: &BTreeSet<PageId>) {
        for page in pages {
            if let Some(reserved) = self.reserved.get_mut(page) {
                reserved.retain(|(of, _)| *of != transaction);
                if reserved.is_empty() {
                    self.reserved.remove(page);
                }
            }
        }
    }

    /// Another page; none when the drive is full.
    pub(super) fn new_page(&mut self) -> Option<PageId> {
        if let Some(page) = self.unused.pop() {
            return Some(page);
        }
        let page = PageId(self.pages());
        (page.0 < self.pages_max).then(|| {
            self.free_bytes.push(Page::default().free_bytes());
            page
        })
    }

    /// Takes in a page that recovery found.
    pub(super) fn adopt(&mut self, id: PageId, page: &Page) {
        self.free_bytes.resize(self.free_bytes.len().max(id.0 as usize + 1), Page::default().free_bytes());
        self.note(id, page);
        match page.table {
            None => {
                assert_eq!(page.lsn, Lsn::default(), "a page that was changed has a table");
                self.unused.push(id);
            }
            Some(table) => {
                for (slot, record) in page.records() {
                    let known = self.bind(table, &record.key, Place { page: id, slot });
                    assert_eq!(known, None, "a key has one record");
                }
            }
        }
    }

    /// Whether a page has room for so many bytes of record, which may be what the transaction gave back, and of slot.
    fn fits(&self, page: PageId, bytes: u32, slot_bytes: u32, transaction: TransactionId) -> bool {
        let reserved = self.reserved.get(&page).into_iter().flatten();
        let needed = reserved.fold((bytes, 0), |(own, others), (of, reserved)| match *of == transaction {
            true => (own.max(*reserved), others),
            false => (own, others + reserved),
        });
        needed.0 + needed.1 + slot_bytes <= self.free_bytes[page.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::Record;
    use super::*;
    use kvssd_types::{Pattern, Value};

    const TABLE: NamespaceId = NamespaceId::FIRST;

    #[test]
    fn what_a_transaction_gave_back_is_nobody_elses() {
        let mut heap = Heap::new(10);
        let id = heap.page_for(TABLE, 8000, TransactionId(1)).unwrap();
        let value = Value::Pattern(Pattern { seed: 0, offset: 0, length: 7900 });
        let record = Record { key: Arc::from(&b"key"[..]), value };
        let bytes = i64::from(record.bytes());
        let mut page = Page::of(TABLE);
        page.set(0, Some(record));
        heap.changed(id, &page, bytes, TransactionId(1));
        heap.release(TransactionId(1), &BTreeSet::from([id]));
        assert!(heap.may_reuse_slots(id));
        page.set(0, None);
        heap.changed(id, &page, -bytes, TransactionId(2));
        assert!(!heap.may_grow(id, 1000, TransactionId(3)) && heap.may_grow(id, 1000, TransactionId(2)));
        assert!(!heap.may_reuse_slots(id));
        assert_ne!(heap.page_for(TABLE, 1000, TransactionId(3)), Some(id));
        heap.release(TransactionId(2), &BTreeSet::from([id]));
        assert!(heap.may_grow(id, 1000, TransactionId(3)));
    }
}
