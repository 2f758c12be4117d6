//! `dram-hash`: a hash table in the device's DRAM (KAML, section IV-C).
//!
//! ```text
//!   key -> word -> page of the table -> slot, slot, ... -> place -> record
//!                  all in DRAM           entries of 16 bytes, which know keys of 8 bytes whole
//!                    |  ^
//!        budget taken v  | first use with enough of it
//!                  pages in the map log
//! ```
//!
//! The table has a fixed number of slots, and what a search costs rises with their load factor: each entry that it
//! looks at takes a comparison. Searches stay in a page of the table, which is a page of flash. When the budget is less
//! than the table, pages leave in steps of the index's own work, those that have changed to the map log; with a budget
//! of nothing, the table is swapped out. A page that is not in DRAM is read when it is wanted, and with a budget for
//! all of them the first use reads all, side by side.
//!
//! What it does not do: grow. A table of which [`DramHashPlan::load_percent_max`] is taken takes no more keys, nor does
//! a page that is full. The paper swaps whole tables alone; here, a budget between nothing and the table holds a part
//! of the pages, and is kept.

mod entry;
mod page;
mod plan;

use self::entry::{Entry, KeyKind, KeyWord, TAGS, tag_of};
use self::page::{HashPage, SlotSearch};
use kvssd_ftl::Grain;
use kvssd_ftl::index::{
    DramTable, IndexCounters, IndexEntry, PairChange, Position, SavedSections, Search, SectionForm, SectionIndex,
    Ticket, View,
};
use kvssd_types::{Key, KvError};
use serde::{Deserialize, Serialize};

pub use self::plan::DramHashPlan;

/// Pages that it has room for at least while it is on flash. An estimate.
const LEAST_PAGES: u64 = 4;

/// The index.
#[derive(Clone)]
pub struct DramHash {
    form: HashPage,
    plan: DramHashPlan,
    pairs: u64,
    /// Whether all of the table may be in DRAM.
    has_room: bool,
    /// Whether no page is on flash alone, as far as is known.
    is_whole: bool,
}

/// What a checkpoint holds of it.
#[derive(Serialize, Deserialize)]
struct Saved {
    pairs: u64,
    pages: SavedSections,
}

type Pages<'v, 'm> = View<'v, 'm, HashPage>;

impl DramHash {
    fn new(plan: DramHashPlan, form: HashPage) -> Self {
        DramHash { form, plan, pairs: 0, has_room: true, is_whole: true }
    }

    fn slots(&self) -> u64 {
        self.form.pages * self.form.slots() as u64
    }

    /// Whether the table takes no more keys.
    fn is_full(&self) -> bool {
        self.pairs * 100 >= self.slots() * u64::from(self.plan.load_percent_max)
    }

    /// Looks for a key in its page, first at the home slot; returns the entry, if it is there, and what the search was.
    fn search(
        &self,
        pages: &mut impl Search<HashPage>,
        ticket: Ticket,
        key: KeyWord,
    ) -> Result<(Option<Entry>, SlotSearch), KvError> {
        let mut begun = 0;
        loop {
            let search = self.form.search(pages.bytes(ticket), key.tag(), begun, |entry| entry.key == key);
            let Some(slot) = search.slot else {
                pages.compare(u64::from(search.looked_at));
                return Ok((None, search));
            };
            let found = self.form.entry(pages.bytes(ticket), slot).expect("a slot that was found has an entry");
            if key.kind == KeyKind::Whole || pages.verify(found.place)? {
                pages.compare(u64::from(search.looked_at));
                return Ok((Some(found), search));
            }
            begun = search.looked_at;
        }
    }
}

impl SectionIndex for DramHash {
    type Form = HashPage;

    const SHRINKS_IN_STEPS: bool = true;

    fn form(&self) -> HashPage {
        self.form
    }

    fn sections(&self) -> u64 {
        self.form.pages
    }

    fn tags(&self) -> u64 {
        TAGS
    }

    fn section_of(&self, tag: u64) -> u64 {
        self.form.page_of(tag)
    }

    /// Pages have tags in order.
    fn order(&self, tag: u64, _level: u32) -> u64 {
        tag
    }

    fn find(&self, page: &[u8], tag: u64, place: Grain) -> (bool, u32) {
        let search = self.form.find_pair(page, tag, place);
        (search.slot.is_some(), search.looked_at)
    }

    fn place_of(&self, page: &[u8], tag: u64) -> Option<Grain> {
        let slot = self.form.search(page, tag, 0, |entry| entry.key.tag() == tag).slot?;
        self.form.entry(page, slot).map(|entry| entry.place)
    }

    fn entries(&self, _number: u64, page: &[u8]) -> impl Iterator<Item = IndexEntry> {
        self.form.entries(page).map(|entry| IndexEntry { tag: entry.key.tag(), place: entry.place, note: 0 })
    }

    /// Brings the whole table into DRAM when it may be there.
    fn prepare(&mut self, pages: &mut Pages<'_, '_>) -> Result<(), KvError> {
        if !self.is_whole && self.has_room {
            for numbers in pages.missing().chunks(pages.at_once()) {
                pages.load_all(numbers)?;
            }
            self.is_whole = true;
        }
        Ok(())
    }

    fn locate(&self, pages: &mut impl Search<HashPage>, key: Key<'_>, _hash: u64) -> Result<Position, KvError> {
        pages.look_up_directory();
        let key = KeyWord::of(key);
        let ticket = pages.search(self.form.page_of(key.tag()))?;
        let (found, search) = self.search(pages, ticket, key)?;
        pages.scan(search.looked_at.into());
        let is_refused = found.is_none() && (search.is_full || self.is_full());
        Ok(Position {
            tag: if is_refused { Position::FULL } else { key.tag() },
            place: found.map(|entry| entry.place),
            hash: key.word,
            note: search.looked_at,
            value_bytes: found.filter(|_| key.kind == KeyKind::Whole).map(|entry| entry.value_bytes),
        })
    }

    fn change(&mut self, pages: &mut Pages<'_, '_>, change: &PairChange<'_>) -> Result<bool, KvError> {
        self.pairs = change.count(self.pairs);
        if matches!(change, PairChange::Insert { .. }) {
            pages.io.cpu(pages.io.costs().new_entry_ns);
        }
        pages.edit(self.form.page_of(change.tag()), |form, page| form.edit(page, change))
    }

    fn hash(&self, key: Key<'_>) -> u64 {
        KeyWord::of(key).word
    }

    fn first_tag(&self, hash: u64) -> u64 {
        tag_of(hash)
    }

    fn pairs(&self) -> Option<u64> {
        Some(self.pairs)
    }

    fn notes_keys(&self) -> bool {
        true
    }

    fn dram_table(&self) -> Option<DramTable> {
        let (directory_bytes, form) = (self.form.directory_bytes(), &self.form);
        Some(DramTable {
            least_bytes: directory_bytes + LEAST_PAGES * u64::from(form.bytes_max()),
            whole_bytes: directory_bytes + form.table_bytes(),
        })
    }

    fn cache_bytes_max(&mut self, budget_bytes: u64) -> u64 {
        let cache_bytes_max = budget_bytes.saturating_sub(self.form.directory_bytes());
        self.has_room = cache_bytes_max >= self.form.table_bytes();
        self.is_whole &= self.has_room;
        cache_bytes_max
    }

    fn count(&self, counters: &mut IndexCounters) {
        *counters = IndexCounters { slots: self.slots(), slots_taken: self.pairs, ..*counters };
    }

    fn save(&self, pages: SavedSections) -> Vec<u8> {
        postcard::to_allocvec(&Saved { pairs: self.pairs, pages }).expect("a directory and pages are plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<SavedSections> {
        let Saved { pairs, pages } = postcard::from_bytes(bytes).ok()?;
        self.pairs = Some(pairs).filter(|&pairs| pairs <= self.slots())?;
        self.is_whole = false;
        Some(pages)
    }
}

#[cfg(test)]
mod tests;
