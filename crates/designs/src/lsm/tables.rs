//! The pool of all tables: what DRAM knows of each.
//!
//! ```text
//!   Summary: level -> ids ----+
//!   Summary of a version -----+-> pool: id -> first key of each page, last key, where the pages lie, how many summaries have it
//! ```
//!
//! That a Summary has only ids is what makes versions cheap (IterKVSSD, section 4.2).

use super::page::{Entry, TablePage};
use super::table::{Fences, KeyRange, NewTable, TABLE_PAGES_MAX, Table, TableForm, TableId};
use kvssd_flash::rope::RopeRef;
use kvssd_flash::{Blob, PageAddress};
use kvssd_ftl::index::{SectionCounters, Sight};
use kvssd_ftl::{Grain, Io, TablePlace, readable};
use kvssd_types::{KvError, Nanos};
use std::collections::BTreeSet;

/// The pool of all tables.
#[derive(Clone)]
pub(super) struct Tables {
    pub(super) form: TableForm,
    slots: Vec<Option<Table>>,
    free: BTreeSet<TableId>,
    dram_bytes: u64,
    pinned_bytes: u64,
    pages: u64,
    pub(super) counters: SectionCounters,
}

impl Tables {
    pub(super) fn new(form: TableForm) -> Self {
        let counters = SectionCounters::default();
        Tables { form, slots: Vec::new(), free: BTreeSet::new(), dram_bytes: 0, pinned_bytes: 0, pages: 0, counters }
    }

    /// Bytes of DRAM, pinned pages aside.
    pub(super) fn dram_bytes(&self) -> u64 {
        self.dram_bytes
    }

    /// Bytes of pinned pages.
    pub(super) fn pinned_bytes(&self) -> u64 {
        self.pinned_bytes
    }

    pub(super) fn flash_bytes(&self) -> u64 {
        self.pages * u64::from(self.form.page_bytes)
    }

    /// A table that there is.
    pub(super) fn get(&self, id: TableId) -> &Table {
        self.slots[id as usize].as_ref().expect("a summary names tables that there are")
    }

    /// The table, if there is one.
    pub(super) fn find(&self, id: u64) -> Option<&Table> {
        self.slots.get(usize::try_from(id).ok()?)?.as_ref()
    }

    /// All of them, by their ids.
    pub(super) fn all(&self) -> impl Iterator<Item = (TableId, &Table)> {
        self.slots.iter().enumerate().filter_map(|(id, table)| Some((id as TableId, table.as_ref()?)))
    }

    /// Changes a table, and the sums of bytes with it.
    pub(super) fn change<T>(&mut self, id: TableId, change: impl FnOnce(&mut Table) -> T) -> T {
        let table = self.slots[id as usize].as_mut().expect("a summary names tables that there are");
        self.dram_bytes -= table.dram_bytes();
        self.pinned_bytes -= table.pinned_bytes();
        let given = change(table);
        self.dram_bytes += table.dram_bytes();
        self.pinned_bytes += table.pinned_bytes();
        given
    }

    /// Takes a table in, whose place says by which id.
    pub(super) fn add(&mut self, mut table: Table) {
        table.fences = Fences::of(&table.range);
        let id = table.place.table as usize;
        if id >= self.slots.len() {
            self.free.extend(self.slots.len() as TableId..id as TableId);
            self.slots.resize(id + 1, None);
        }
        self.free.remove(&(id as TableId));
        self.dram_bytes += table.dram_bytes();
        self.pinned_bytes += table.pinned_bytes();
        self.pages += table.place.pages.len() as u64;
        let before = self.slots[id].replace(table);
        assert!(before.is_none(), "an id names one table");
    }

    /// Takes a table out.
    pub(super) fn take(&mut self, id: TableId) -> Option<Table> {
        let table = self.slots.get_mut(id as usize)?.take()?;
        self.free.insert(id);
        self.dram_bytes -= table.dram_bytes();
        self.pinned_bytes -= table.pinned_bytes();
        self.pages -= table.place.pages.len() as u64;
        Some(table)
    }

    /// Appends a table to the log; it is in no summary yet.
    pub(super) fn write(&mut self, io: &mut Io<'_>, new: NewTable, level: u8, age: u64) -> Result<TableId, KvError> {
        let id = self.free.first().copied().unwrap_or(self.slots.len() as TableId);
        let mut pages = Vec::with_capacity(new.pages.len());
        for (page, bytes) in new.pages.iter().enumerate() {
            pages.push(self.append(io, number_of(id, page), bytes.clone())?);
        }
        let place = TablePlace { table: id.into(), level, age, pages };
        self.add(Table::new(place, new.range, new.filter));
        Ok(id)
    }

    fn append(&mut self, io: &mut Io<'_>, number: u64, page: Blob) -> Result<Grain, KvError> {
        *self.counters.bytes_written.of(io.background) += page.len() as u64;
        io.append_own(number, page)
    }

    /// Garbage collection found a page at `from`; if it is still wanted, it is appended anew. Returns where it is then.
    pub(super) fn move_page(&mut self, io: &mut Io<'_>, number: u64, from: Grain) -> Result<Option<Grain>, KvError> {
        let (id, page) = (number / u64::from(TABLE_PAGES_MAX), (number % u64::from(TABLE_PAGES_MAX)) as usize);
        if self.find(id).and_then(|table| table.place.pages.get(page)) != Some(&from) {
            return Ok(None);
        }
        let page_bytes = self.form.page_bytes as usize;
        *self.counters.bytes_read.of(io.background) += page_bytes as u64;
        let bytes = io.take_last(from, page_bytes)?;
        let to = self.append(io, number, bytes)?;
        self.change(id as TableId, |table| table.place.pages[page] = to);
        io.vacate(from, io.packing().grains_per_page);
        Ok(Some(to))
    }

    /// The pages of a table.
    pub(super) fn pages_of(&self, id: TableId) -> impl ExactSizeIterator<Item = (TableId, usize)> + Clone + use<> {
        (0..self.get(id).place.pages.len()).map(move |page| (id, page))
    }

    /// Has pages in the controller, read side by side.
    pub(super) fn fetch(&mut self, io: &mut Io<'_>, wanted: &[(TableId, usize)]) {
        let pages = self.on_flash(io, wanted);
        if pages.is_empty() {
            return;
        }
        let is_read = io.read_all(&pages, io.index_cause());
        self.count_reads(io, pages.len(), is_read);
    }

    /// As [`Tables::fetch`], without waiting; returns the moment when they are there.
    pub(super) fn fetch_ahead(&mut self, io: &mut Io<'_>, wanted: &[(TableId, usize)]) -> Nanos {
        let pages = self.on_flash(io, wanted);
        let ready = io.read_without_waiting(&pages, io.index_cause());
        self.count_reads(io, pages.len(), ready > io.clock);
        ready
    }

    fn count_reads(&mut self, io: &Io<'_>, pages: usize, is_read: bool) {
        self.counters.misses += pages as u64;
        self.counters.flash_reads += if is_read { pages as u64 } else { 0 };
        *self.counters.bytes_read.of(io.background) += pages as u64 * u64::from(self.form.page_bytes);
    }

    /// Where those lie that are not pinned, in the order of the flash.
    fn on_flash(&self, io: &Io<'_>, wanted: &[(TableId, usize)]) -> Vec<PageAddress> {
        let packing = io.packing();
        let unpinned =
            wanted.iter().map(|&(id, page)| (self.get(id), page)).filter(|(table, _)| table.pinned.is_empty());
        let mut pages: Vec<PageAddress> =
            unpinned.filter_map(|(table, page)| Some(packing.page_of(*table.place.pages.get(page)?))).collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// The bytes of a page that is in the controller.
    pub(super) fn content(&self, io: &mut Io<'_>, id: TableId, page: usize) -> Result<Blob, KvError> {
        let table = self.get(id);
        if let Some(pinned) = table.pinned.get(page) {
            return Ok(pinned.clone());
        }
        let damaged = || KvError::Unrecovered(format!("page {page} of table {id} of the index is none"));
        let address = io.packing().page_of(*table.place.pages.get(page).ok_or_else(damaged)?);
        io.data(address)?.whole_blob(0..self.form.page_bytes as usize).ok_or_else(damaged)
    }

    /// As [`Tables::content`], of a page that is to be seen without changing anything.
    pub(super) fn seen_content(&self, sight: &dyn Sight, id: TableId, page: usize) -> Option<Blob> {
        let table = self.get(id);
        if let Some(pinned) = table.pinned.get(page) {
            return Some(pinned.clone());
        }
        let mut bytes = None;
        sight.look(*table.place.pages.get(page)?, &mut |data| {
            bytes = data.whole_blob(0..self.form.page_bytes as usize);
        });
        bytes
    }

    /// What a page says of a key.
    pub(super) fn search(
        &self,
        io: &mut Io<'_>,
        id: TableId,
        page: usize,
        key: &[u8],
    ) -> Result<Option<Entry>, KvError> {
        let ends = self.get(id).fences.ends(page);
        let find = |bytes: &[u8]| {
            let page = TablePage::new(bytes);
            (page.count(), page.find(key, ends))
        };
        let (count, found) = match self.get(id).pinned.get(page) {
            Some(pinned) => find(pinned),
            None => {
                let place = *self.get(id).place.pages.get(page).ok_or_else(|| damaged(id))?;
                let data = io.data(io.packing().page_of(place))?;
                self.in_page(data, find).ok_or_else(|| damaged(id))?
            }
        };
        io.cpu(u64::from(count.checked_ilog2().unwrap_or(0) + 1) * io.costs().comparison_ns);
        found.ok_or_else(|| damaged(id))
    }

    /// As [`Tables::search`], of a page that is to be seen without changing anything.
    pub(super) fn glance(&self, sight: &dyn Sight, id: TableId, page: usize, key: &[u8]) -> Option<Option<Entry>> {
        let table = self.get(id);
        let ends = table.fences.ends(page);
        if let Some(pinned) = table.pinned.get(page) {
            return TablePage::new(pinned).find(key, ends);
        }
        let mut found = None;
        sight.look(*table.place.pages.get(page)?, &mut |data| {
            found = self.in_page(data, |bytes| TablePage::new(bytes).find(key, ends)).flatten();
        });
        found
    }

    /// Looks at the bytes of a page where they lie, if they lie in one piece.
    fn in_page<T>(&self, data: RopeRef<'_>, look: impl Fn(&[u8]) -> T) -> Option<T> {
        let whole = 0..self.form.page_bytes as usize;
        match data.in_one_piece(whole.clone()) {
            Some(bytes) => Some(look(bytes)),
            None => data.whole_blob(whole).map(|bytes| look(&bytes)),
        }
    }

    /// Keeps the pages of a table in DRAM, except for those that cannot be read.
    pub(super) fn pin(&mut self, io: &mut Io<'_>, id: TableId) -> Result<(), KvError> {
        let pages = self.pages_of(id).map(|(id, page)| readable(self.content(io, id, page)));
        let pages = pages.collect::<Result<Option<Vec<_>>, _>>()?;
        self.change(id, |table| table.pinned = pages.unwrap_or_default());
        Ok(())
    }

    /// Whether a table may have a key of a range.
    pub(super) fn overlaps(&self, id: TableId, range: &KeyRange) -> bool {
        self.get(id).range.overlaps(range)
    }
}

/// The number by which the log knows a page of a table.
pub(super) fn number_of(id: TableId, page: usize) -> u64 {
    u64::from(id) * u64::from(TABLE_PAGES_MAX) + page as u64
}

/// A page of a table makes no sense.
pub(super) fn damaged(id: TableId) -> KvError {
    KvError::Unrecovered(format!("a page of table {id} of the index makes no sense"))
}

#[cfg(test)]
mod tests {
    use super::super::summary::Summary;
    use super::*;
    use kvssd_types::OwnedKey;
    use proptest::prelude::*;

    proptest! {
        /// Keys that are alike in their first eight bytes among others: what prefixes tell is what keys tell.
        #[test]
        fn prefixes_lead_to_the_table_and_the_page_that_keys_do(
            keys in prop::collection::btree_set((0u8..4, prop::collection::vec(0u8..2, 0..3)), 4..60),
            pages_max in 1u32..=4,
            sought in (0u8..5, prop::collection::vec(0u8..3, 0..4)),
        ) {
            let key_of = |(first, rest): &(u8, Vec<u8>)| [&[b'k', 0, 0, 0, 0, 0, 0, *first][..], rest].concat();
            let keys: BTreeSet<Vec<u8>> = keys.iter().map(key_of).collect();
            let keys: Vec<OwnedKey> = keys.into_iter().map(Into::into).collect();
            let (mut tables, mut summary) = (Tables::new(TableForm { page_bytes: 4096, pages_max, filter_bits: 0 }), Summary::default());
            for (id, keys) in keys.chunks(2 * pages_max as usize).enumerate() {
                let range = KeyRange { firsts: keys.chunks(2).map(|page| page[0].clone()).collect(), last: keys[keys.len() - 1].clone() };
                let place = TablePlace { table: id as u64, level: 1, age: 0, pages: vec![Grain(1); range.firsts.len()] };
                tables.add(Table::new(place, range, None));
                summary.insert(&tables, id as TableId);
            }
            let sought = key_of(&sought);
            let level = summary.level(1);
            prop_assert_eq!(summary.behind(&tables, 1, &sought), level.iter().filter(|&&id| tables.get(id).range.first() <= &*sought).count());
            for &id in level {
                prop_assert_eq!(tables.get(id).page_of(&sought, 0), tables.get(id).range.page_of(&sought));
            }
        }
    }
}
