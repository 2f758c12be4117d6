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
//! The table has a fixed number of slots, and what a search costs rises with their load factor: each entry that it looks at takes a
//! comparison. Searches stay in a page of the table, which is a page of flash. When the budget is less than the table, pages leave in
//! steps of the index's own work, those that have changed to the map log; with a budget of nothing, the table is swapped out. A
//! page that is not in DRAM is read when it is wanted, and with a budget for all of them the first use reads all, side by side.
//!
//! What it does not do: grow. A table of which [`DramHashPlan::load_percent_max`] is taken takes no more keys, nor does a page that is
//! full. The paper swaps whole tables alone; here, a budget between nothing and the table holds a part of the pages, and is kept.

mod entry;
mod page;
mod plan;
mod redo;

use self::entry::{Entry, KeyKind, KeyWord, tag_of};
use self::page::{HashPage, Search};
use crate::address::Grain;
use crate::dram::DramUse;
use crate::index::lookups::Lookups;
use crate::index::sections::{SectionForm, Sections};
use crate::index::{
    DramTable, Fate, Growth, Holds, Index, IndexCounters, IndexFault, Move, OwnRecord, Position, Seen, Survey,
};
use crate::io::{Io, readable};
use crate::journal::{Change, PairPlace};
use kvssd_flash::Blob;
use kvssd_types::{Key, KvError};

pub use self::plan::DramHashPlan;

/// Pages that it has room for at least while it is on flash. An estimate.
const LEAST_PAGES: u64 = 4;

/// The index.
pub struct DramHash {
    pages: Sections<HashPage>,
    plan: DramHashPlan,
    pairs: u64,
    /// What directory and pages may take together.
    budget_bytes: u64,
    /// Whether no page is on flash alone, as far as is known.
    is_whole: bool,
    lookups: Lookups,
    slots_scanned: u64,
    /// The key of the change that a mount will make again next.
    redo_key: Option<KeyWord>,
}

impl DramHash {
    fn new(plan: DramHashPlan, form: HashPage) -> Self {
        DramHash {
            pages: Sections::new(form, form.pages, form.page_bytes),
            plan,
            pairs: 0,
            budget_bytes: u64::MAX,
            is_whole: true,
            lookups: Lookups::default(),
            slots_scanned: 0,
            redo_key: None,
        }
    }

    fn directory_bytes(form: &HashPage) -> u64 {
        form.pages * form.directory_entry_bytes()
    }

    fn table_bytes(form: &HashPage) -> u64 {
        Sections::<HashPage>::dram_bytes_of(form, form.pages)
    }

    fn form(&self) -> HashPage {
        *self.pages.form()
    }

    fn slots(&self) -> u64 {
        self.form().pages * self.form().slots() as u64
    }

    /// Whether the table takes no more keys.
    fn is_full(&self) -> bool {
        self.pairs * 100 >= self.slots() * u64::from(self.plan.load_percent_max)
    }

    /// Whether all of the table may be in DRAM.
    fn has_room(&self) -> bool {
        self.budget_bytes >= Self::directory_bytes(&self.form()) + Self::table_bytes(&self.form())
    }

    /// Brings the whole table into DRAM when it may be there.
    fn come_in(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        if !self.is_whole && self.has_room() {
            for numbers in self.pages.missing().chunks(self.pages.at_once(io)) {
                self.pages.load_all(io, numbers)?;
            }
            self.is_whole = true;
        }
        Ok(())
    }

    /// Brings those pages into DRAM, side by side, in which pairs with these tags are, and looks at the pairs, page by page.
    fn each_pair(
        &mut self,
        io: &mut Io<'_>,
        tags: &[u64],
        mut look: impl FnMut(&mut Self, &mut Io<'_>, usize) -> Result<(), KvError>,
    ) -> Result<(), KvError> {
        self.come_in(io)?;
        let form = self.form();
        let mut order: Vec<usize> = (0..tags.len()).collect();
        order.sort_by_key(|&number| tags[number]);
        for numbers in order.chunks(self.pages.at_once(io)) {
            let pages: Vec<u64> = numbers.iter().map(|&number| form.page_of(tags[number])).collect();
            self.pages.load_all(io, &pages)?;
            numbers.iter().try_for_each(|&number| look(self, io, number))?;
        }
        Ok(())
    }

    /// Looks for the pair with `tag` at `place`.
    fn find(&mut self, io: &mut Io<'_>, tag: u64, place: Grain) -> Result<Search, KvError> {
        let form = self.form();
        let ticket = self.pages.load(io, form.page_of(tag))?;
        Ok(form.find_pair(self.pages.bytes(ticket), tag, place))
    }

    /// As [`DramHash::find`], for garbage collection: a command has a pointer to what it located.
    fn look_up(&mut self, io: &mut Io<'_>, tag: u64, place: Grain) -> Result<Search, KvError> {
        io.cpu(io.costs().section_ns);
        let search = self.find(io, tag, place)?;
        io.cpu(u64::from(search.looked_at) * io.costs().comparison_ns);
        Ok(search)
    }

    /// Changes the page that has the pair with `tag` at `place`, if it is there; gives whether it was.
    fn change_pair(
        &mut self,
        io: &mut Io<'_>,
        (tag, place): (u64, Grain),
        change: impl FnOnce(&HashPage, &mut Blob, usize),
    ) -> Result<bool, KvError> {
        let Some(slot) = self.find(io, tag, place)?.slot else { return Ok(false) };
        self.change(io, tag, |form, page| change(form, page, slot))?;
        Ok(true)
    }

    /// Changes the page of a tag.
    fn change<T>(
        &mut self,
        io: &mut Io<'_>,
        tag: u64,
        change: impl FnOnce(&HashPage, &mut Blob) -> T,
    ) -> Result<T, KvError> {
        let given = self.pages.change(io, self.form().page_of(tag), change)?;
        self.pages.keep_to_budget(io)?;
        Ok(given)
    }

    fn insert(&mut self, io: &mut Io<'_>, key: KeyWord, pair: PairPlace) -> Result<bool, KvError> {
        let entry = Entry { key, place: pair.place, value_bytes: pair.value_bytes };
        self.change(io, key.tag(), |form, page| form.insert(page, entry))
    }

    fn remove(&mut self, io: &mut Io<'_>, tag: u64, place: Grain) -> Result<bool, KvError> {
        let mut looked_at = 0;
        let is_done = self.change_pair(io, (tag, place), |form, page, slot| looked_at = form.remove(page, slot))?;
        io.cpu(u64::from(looked_at) * io.costs().comparison_ns);
        Ok(is_done)
    }

    fn count(&mut self, comes: bool) {
        self.pairs = if comes { self.pairs + 1 } else { self.pairs.saturating_sub(1) };
    }

    /// The entries of a page in the order of lists: pages have tags in order, and a page its entries by word.
    fn listed(&self, page: &[u8], first: (u64, Grain)) -> Vec<(u64, Grain)> {
        let form = self.form();
        let entries = form.entries(page).map(|entry| (entry.key.word, entry.place));
        let mut listed: Vec<_> = entries.filter(|entry| *entry >= first).collect();
        listed.sort_unstable();
        listed
    }
}

impl Index for DramHash {
    fn locate(&mut self, io: &mut Io<'_>, key: Key<'_>, holds: &mut Holds<'_>) -> Result<Position, KvError> {
        self.lookups.begin(self.pages.counters());
        self.pages.wear_off_surplus();
        self.come_in(io)?;
        io.cpu(io.costs().hash_ns + io.costs().section_ns);
        let (key, form) = (KeyWord::of(key), self.form());
        let ticket = self.pages.load(io, form.page_of(key.tag()))?;
        self.lookups.access();
        let (mut found, mut failed) = (None, None);
        let comparison_ns = io.costs().comparison_ns;
        let search = form.search(self.pages.bytes(ticket), key.tag(), |entry| {
            io.cpu(comparison_ns);
            if entry.key != key {
                return false;
            }
            let is_it = key.kind == KeyKind::Whole
                || holds(io, entry.place).unwrap_or_else(|error| {
                    failed = Some(error);
                    true
                });
            if is_it {
                found = Some(*entry);
            } else {
                self.lookups.collide();
            }
            is_it
        });
        io.cpu(if search.slot.is_none() { comparison_ns } else { 0 });
        self.slots_scanned += u64::from(search.looked_at);
        self.lookups.end(self.pages.counters());
        if let Some(error) = failed {
            return Err(error);
        }
        let is_refused = found.is_none() && (search.is_full || self.is_full());
        Ok(Position {
            tag: if is_refused { Position::FULL } else { key.tag() },
            place: found.map(|entry| entry.place),
            hash: key.word,
            probes: search.looked_at,
            value_bytes: found.filter(|_| key.kind == KeyKind::Whole).map(|entry| entry.value_bytes),
        })
    }

    fn bind(&mut self, io: &mut Io<'_>, key: Key<'_>, position: Position, pair: PairPlace) -> Result<(), KvError> {
        let is_done = match position.place {
            Some(old) => self.change_pair(io, (position.tag, old), |form, page, slot| {
                form.set_pair(page, slot, pair.place, pair.value_bytes);
            })?,
            None => self.insert(io, KeyWord::of(key), pair)?,
        };
        assert!(is_done, "what was located, or has room, can be bound");
        if position.place.is_none() {
            self.count(true);
        }
        Ok(())
    }

    fn unbind(&mut self, io: &mut Io<'_>, _key: Key<'_>, position: Position) -> Result<(), KvError> {
        let is_done = match position.place {
            Some(place) => self.remove(io, position.tag, place)?,
            None => false,
        };
        assert!(is_done, "what was located can be unbound");
        self.count(false);
        Ok(())
    }

    fn relocate(&mut self, io: &mut Io<'_>, moves: &mut [Move]) -> Result<(), KvError> {
        let tags: Vec<u64> = moves.iter().map(|pair| pair.tag).collect();
        self.each_pair(io, &tags, |index, io, number| {
            let Move { tag, from, to, grains, .. } = moves[number];
            moves[number].fate = match readable(index.look_up(io, tag, from))? {
                None => Fate::Unreadable,
                Some(Search { slot: None, .. }) => Fate::Dead,
                Some(Search { slot: Some(slot), .. }) => {
                    io.note(Change::Moved { tag, from, to, grains });
                    index.change(io, tag, |form, page| form.set_place(page, slot, to))?;
                    Fate::Moved
                }
            };
            Ok(())
        })
    }

    fn is_bound(&mut self, io: &mut Io<'_>, tag: u64, place: Grain) -> Result<bool, KvError> {
        Ok(self.look_up(io, tag, place)?.slot.is_some())
    }

    fn are_bound(&mut self, io: &mut Io<'_>, pairs: &[(u64, Grain)]) -> Result<Vec<Option<bool>>, KvError> {
        let tags: Vec<u64> = pairs.iter().map(|&(tag, _)| tag).collect();
        let mut bound = vec![None; pairs.len()];
        self.each_pair(io, &tags, |index, io, number| {
            let (tag, place) = pairs[number];
            bound[number] = readable(index.is_bound(io, tag, place))?;
            Ok(())
        })?;
        Ok(bound)
    }

    fn relocate_own(&mut self, io: &mut Io<'_>, number: u64, from: Grain) -> Result<(), KvError> {
        self.pages.relocate_own(io, number, from)
    }

    fn growth(&self) -> Growth {
        if self.pages.has_surplus() { Growth::Background } else { Growth::None }
    }

    /// Some pages that are in DRAM beyond the budget leave.
    fn grow(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        let stripe = io.media.geometry.channels * io.media.geometry.pages_per_program;
        (0..stripe).for_each(|_| self.pages.wear_off_surplus());
        self.pages.keep_to_budget(io)
    }

    fn expect(&self, io: &Io<'_>, keys: &[Key<'_>]) {
        let form = self.form();
        let keys = keys.iter().map(|&key| KeyWord::of(key));
        let found: Vec<(KeyWord, u64)> = keys.map(|key| (key, form.page_of(key.tag()))).collect();
        self.pages.expect(io, found.iter().map(|&(_, page)| page));
        let place = |&(key, page): &(KeyWord, u64)| {
            let bytes = self.pages.peek(io, page).filter(|bytes| form.has_form(bytes))?;
            let slot = form.search(bytes, key.tag(), |entry| entry.key == key).slot?;
            form.entry(bytes, slot).map(|entry| entry.place)
        };
        let records: Vec<Grain> = found.iter().filter_map(place).collect();
        io.warm(&records);
        io.warm_fates(&records);
    }

    fn warm(&self, numbers: &[u64]) {
        self.pages.warm(numbers);
    }

    fn list(
        &mut self,
        io: &mut Io<'_>,
        from: Option<Position>,
        count: usize,
        places: &mut Vec<Grain>,
    ) -> Result<(), KvError> {
        self.come_in(io)?;
        let first = from.map_or((0, Grain(0)), |from| (from.hash, from.place.unwrap_or(Grain(0))));
        for page in self.form().page_of(tag_of(first.0))..self.form().pages {
            if places.len() >= count {
                break;
            }
            if self.pages.is_nowhere(page) {
                continue;
            }
            let ticket = self.pages.load(io, page)?;
            let listed = self.listed(self.pages.bytes(ticket), first);
            io.cpu(listed.len() as u64 * io.costs().comparison_ns);
            places.extend(listed.into_iter().take(count - places.len()).map(|(_, place)| place));
        }
        Ok(())
    }

    fn own_records(&self) -> Vec<OwnRecord> {
        self.pages.own_records().collect()
    }

    fn survey(&self, io: &mut Io<'_>) -> Survey {
        let mut survey = Survey::default();
        let form = self.form();
        self.pages.survey(io, &mut survey, |number, page, survey| {
            for entry in form.entries(page) {
                let (tag, place) = (entry.key.tag(), entry.place);
                survey.seen.push(Seen { tag, place, passes: 0 });
                if form.page_of(tag) != number {
                    let why = "it has an entry that belongs to another page".to_owned();
                    survey.faults.push(IndexFault { number, place, why, loses_pairs: true });
                }
            }
        });
        if survey.faults.is_empty() && survey.seen.len() as u64 != self.pairs {
            let why = format!("its table has {} pairs, and it counts {}", survey.seen.len(), self.pairs);
            survey.faults.push(IndexFault { number: 0, place: Grain(0), why, loses_pairs: false });
        }
        survey.seen.sort_unstable_by_key(|seen| (seen.tag, seen.place));
        survey
    }

    fn way_to(&self, key: Key<'_>, tag: u64, _way: &mut Vec<u64>) -> bool {
        KeyWord::of(key).tag() == tag
    }

    fn tag_of(&self, key: Key<'_>) -> Option<u64> {
        Some(KeyWord::of(key).tag())
    }

    fn notes_keys(&mut self) -> bool {
        true
    }

    fn dram_table(&self) -> Option<DramTable> {
        let form = self.form();
        let directory_bytes = Self::directory_bytes(&form);
        Some(DramTable {
            least_bytes: directory_bytes + LEAST_PAGES * u64::from(form.bytes_max()),
            whole_bytes: directory_bytes + Self::table_bytes(&form),
        })
    }

    fn set_dram_budget(&mut self, bytes: u64) {
        self.budget_bytes = bytes;
        self.is_whole &= self.has_room();
        self.pages.set_budget_in_steps(bytes.saturating_sub(Self::directory_bytes(&self.form())));
    }

    fn dram(&self, dram: &mut DramUse) {
        dram.add("index_directory", Self::directory_bytes(&self.form()));
        self.pages.dram(dram);
    }

    fn footprint_bytes(&self) -> u64 {
        self.pages.footprint_bytes()
    }

    fn counters(&self) -> IndexCounters {
        let (slots, slots_taken, slots_scanned) = (self.slots(), self.pairs, self.slots_scanned);
        IndexCounters { slots, slots_taken, slots_scanned, ..self.lookups.counters(self.pages.counters()) }
    }

    fn save(&self) -> Vec<u8> {
        self.saved()
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        self.restore_from(bytes)
    }

    fn redo_own(&mut self, change: &Change, position: usize) -> Option<()> {
        match *change {
            Change::Own { number, place, bytes, .. } => self.pages.redo_written(number, place, bytes, position),
            Change::Split { .. } => None,
            _ => Some(()),
        }
    }

    fn redo(&mut self, io: &mut Io<'_>, change: &Change, position: usize) -> Result<(), KvError> {
        self.redo_change(io, change, position)
    }

    fn end_redo(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        self.pages.end_redo(io)
    }
}

#[cfg(test)]
mod tests;
