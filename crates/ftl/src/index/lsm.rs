//! `lsm`: a log-structured merge tree of keys and places; the values stay where they were written (IterKVSSD, section 2; PinK).
//!
//! ```text
//!   key -> MemTable -> level 0, newest table first -> level 1 -> ... level 7 -> place -> record
//!          in DRAM     a page of each table that may have it, in DRAM (pinned) or one flash read
//!
//!   MemTable full -> table of level 0 -> merged with the tables that it overlaps in level 1 -> ...
//! ```
//!
//! Keys are kept whole, so that no record is read to compare them, and in their order, so that ranges can be gone along. A store
//! looks its key up first, as with every other index: which pair dies is known at once and the drive's counts are exact. (The papers'
//! drives find out when tables are merged; what that saves them on writes, our pinned levels and filters save in part.)
//!
//! What garbage collection moves comes into the MemTable like any other change.

mod compaction;
mod cursor;
mod memtable;
mod page;
mod plan;
mod redo;
mod summary;
mod table;

use self::cursor::{Cursor, Direction};
use self::memtable::MemTable;
use self::page::{Entry, TablePage};
use self::redo::Redo;
use self::summary::{LEVEL0_TABLES_MAX, LEVELS_MAX, Summary};
use self::table::{TABLE_PAGES_MAX, TableForm, TableId, Tables, number_of};
use crate::address::Grain;
use crate::dram::DramUse;
use crate::index::lookups::Lookups;
use crate::index::plan::Room;
use crate::index::{
    CursorPlan, Fate, Growth, Holds, Index, IndexCounters, IndexFault, Move, OwnRecord, Position, RangeIndex, Seen,
    Survey,
};
use crate::io::{Io, readable};
use crate::journal::{Change, PairPlace};
use kvssd_types::{IteratorId, Key, KvError, OwnedKey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

pub use self::plan::LsmPlan;

/// Bytes that a core copies in a nanosecond. An estimate.
const COPIED_BYTES_PER_NS: u64 = 1;
/// Pages that a step of compaction reads at the most, the part of the DRAM that it takes for them, and tables that it must have room
/// for. Estimates.
const STEP_PAGES_MAX: u32 = 192;
const STEP_SHARE: u64 = 8;
const STEP_TABLES_MIN: usize = 4;

/// The index.
pub struct Lsm {
    plan: LsmPlan,
    memtable: Arc<MemTable>,
    summary: Arc<Summary>,
    tables: Tables,
    /// The key behind which the next step of compaction begins in each level.
    ends: [OwnedKey; LEVELS_MAX],
    /// The age of the next table of level 0.
    age: u64,
    /// Pages that a step of compaction reads at the most.
    step_pages: usize,
    /// No step reads more, however much DRAM there is.
    step_pages_max: usize,
    page_grains: u32,
    budget_bytes: u64,
    /// A table that compaction cannot read: nothing sinks any more.
    unreadable: Option<TableId>,
    /// Pairs that were found to be where they are asked about, in the step of garbage collection that goes on.
    bound: BTreeSet<Grain>,
    cursors: BTreeMap<IteratorId, Cursor>,
    lookups: Lookups,
    redo: Redo,
}

impl Lsm {
    fn new(plan: LsmPlan, room: &Room) -> Self {
        let form = TableForm { page_bytes: room.page_bytes, pages_max: plan.table_pages, filter_bits: plan.bloom_bits };
        Lsm {
            plan,
            memtable: Arc::default(),
            summary: Arc::default(),
            tables: Tables::new(form),
            ends: Default::default(),
            age: 0,
            page_grains: room.page_bytes / room.grain_bytes,
            step_pages: STEP_TABLES_MIN * plan.table_pages as usize,
            step_pages_max: room.superblock_pages.min(STEP_PAGES_MAX) as usize,
            budget_bytes: u64::MAX,
            unreadable: None,
            bound: BTreeSet::new(),
            cursors: BTreeMap::new(),
            lookups: Lookups::default(),
            redo: Redo::default(),
        }
    }

    /// DRAM of the MemTable.
    fn memtable_bytes(&self) -> u64 {
        self.memtable.bytes().max(self.tables.form.table_bytes())
    }

    /// DRAM of a step of compaction: the pages that it reads side by side.
    fn step_bytes(&self) -> u64 {
        self.step_pages as u64 * u64::from(self.tables.form.page_bytes)
    }

    /// All DRAM, pinned pages aside.
    fn dram_bytes(&self) -> u64 {
        let tree_bytes = self.tables.dram_bytes() + self.summary.bytes();
        self.memtable_bytes() + self.step_bytes() + tree_bytes + self.cursor_bytes()
    }

    /// DRAM of cursors: a table for each run that they go along, or two, and the MemTable and the Summary of each version that is not
    /// the present one.
    fn cursor_bytes(&self) -> u64 {
        let buffers: usize = self.cursors.values().map(Cursor::buffers).sum();
        let mut memtables = BTreeMap::from([(Arc::as_ptr(&self.memtable), 0)]);
        let mut summaries = BTreeMap::from([(Arc::as_ptr(&self.summary), 0)]);
        for cursor in self.cursors.values() {
            memtables.entry(Arc::as_ptr(cursor.memtable())).or_insert(cursor.memtable().bytes());
            summaries.entry(Arc::as_ptr(cursor.summary())).or_insert(cursor.summary().bytes());
        }
        let copies: u64 = memtables.into_values().chain(summaries.into_values()).sum();
        buffers as u64 * self.tables.form.table_bytes() + copies
    }

    /// Whether DRAM has no room for what the pool knows of another few tables.
    fn is_short(&self) -> bool {
        let tables = LEVEL0_TABLES_MAX as u64 * 4 * kvssd_types::KEY_BYTES_MAX as u64;
        self.dram_bytes() + tables > self.budget_bytes
    }

    /// The tables that may have a key and the page of each, newest first.
    fn candidate(&self, level: usize, turn: usize, key: &[u8]) -> Option<(TableId, usize)> {
        let tables = self.summary.level(level);
        let id = match level {
            0 => tables[tables.len() - 1 - turn],
            _ => tables[self.summary.behind(&self.tables, level, key).checked_sub(1)?],
        };
        let table = self.tables.get(id);
        let page = table.range.page_of(key)?;
        let may_have = table.filter.as_ref().is_none_or(|filter| filter.may_have(xxh3_64(key)));
        may_have.then_some((id, page))
    }

    /// The runs of tables that a look-up goes through: level, and which of the tables of level 0, newest first.
    fn runs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let level0 = self.summary.level(0).len();
        (0..level0).map(|turn| (0, turn)).chain((1..self.summary.depth()).map(|level| (level, 0)))
    }

    /// What the tree knows of a key, deleted or not.
    fn look_up(&mut self, io: &mut Io<'_>, key: &[u8]) -> Result<Option<Entry>, KvError> {
        io.cpu(io.costs().section_ns);
        if let Some(entry) = self.memtable.get(key) {
            return Ok(Some(entry));
        }
        for (level, turn) in self.runs() {
            io.cpu(io.costs().section_ns);
            let Some((id, page)) = self.candidate(level, turn, key) else { continue };
            self.lookups.access();
            self.tables.fetch(io, &[(id, page)]);
            if let Some(entry) = self.tables.search(io, id, page, key)? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// As [`Lsm::look_up`], of many keys, run by run, the pages of each read side by side. None where that cannot be read.
    fn look_up_all(&mut self, io: &mut Io<'_>, keys: &[&[u8]]) -> Result<Vec<Option<Option<Entry>>>, KvError> {
        let mut found: Vec<Option<Option<Entry>>> = keys.iter().map(|key| Some(self.memtable.get(key))).collect();
        let mut pending: Vec<usize> = (0..keys.len()).filter(|&number| found[number] == Some(None)).collect();
        for (level, turn) in self.runs() {
            let wanted: Vec<_> = pending.iter().map(|&number| self.candidate(level, turn, keys[number])).collect();
            let mut left = Vec::new();
            for (numbers, pages) in pending.chunks(self.step_pages).zip(wanted.chunks(self.step_pages)) {
                self.tables.fetch(io, &pages.iter().flatten().copied().collect::<Vec<_>>());
                for (&number, page) in numbers.iter().zip(pages) {
                    let Some((id, page)) = *page else {
                        left.push(number);
                        continue;
                    };
                    match readable(self.tables.search(io, id, page, keys[number]))? {
                        Some(Some(entry)) => found[number] = Some(Some(entry)),
                        Some(None) => left.push(number),
                        None => found[number] = None,
                    }
                }
            }
            pending = left;
        }
        Ok(found)
    }

    fn change(&mut self, key: &[u8], entry: Entry) {
        Arc::make_mut(&mut self.memtable).insert(key, entry);
    }

    /// Pins what has come into the upper levels, and lets go of what has left them or has no room.
    fn pin(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        if self.plan.pinned_levels == 0 {
            return Ok(());
        }
        let room = self.budget_bytes.saturating_sub(self.dram_bytes());
        let pinned_levels = self.plan.pinned_levels as usize;
        for (level, id) in self.leveled() {
            let is_pinned = !self.tables.get(id).pinned.is_empty();
            if level >= pinned_levels && is_pinned {
                self.tables.change(id, |table| table.pinned.clear());
            }
            if level < pinned_levels
                && !is_pinned
                && self.tables.pinned_bytes() + self.tables.form.table_bytes() <= room
            {
                self.tables.pin(io, id)?;
            }
        }
        Ok(())
    }

    /// Lets go of pinned tables, the deepest first, until the others have room.
    fn keep_to_budget(&mut self) {
        let fixed_bytes = self.dram_bytes();
        let mut upper = self.leveled();
        while fixed_bytes + self.tables.pinned_bytes() > self.budget_bytes
            && let Some((_, id)) = upper.pop()
        {
            self.tables.change(id, |table| table.pinned.clear());
        }
    }

    /// The tables of the pinned levels and of the next, which they sink to.
    fn leveled(&self) -> Vec<(usize, TableId)> {
        let levels = (self.plan.pinned_levels as usize + 1).min(LEVELS_MAX);
        (0..levels).flat_map(|level| self.summary.level(level).iter().map(move |&id| (level, id))).collect()
    }

    /// Brings the tables of the upper levels back into DRAM.
    fn repin(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        let pinned_levels = self.plan.pinned_levels as usize;
        let upper = self.leveled().into_iter().filter(|&(level, _)| level < pinned_levels);
        let wanted: Vec<_> = upper.flat_map(|(_, id)| self.tables.pages_of(id)).collect();
        self.tables.fetch(io, &wanted);
        self.pin(io)
    }

    /// The newest entry of every key of the tree, deleted ones aside, with what is wrong on the way.
    fn everything(&self, io: &mut Io<'_>, faults: &mut Vec<IndexFault>) -> BTreeMap<OwnedKey, Entry> {
        let mut all: BTreeMap<OwnedKey, Entry> = self.memtable.iter().map(|(key, entry)| (key.into(), entry)).collect();
        let newest_first = self.summary.level(0).iter().rev();
        let deeper = (1..LEVELS_MAX).flat_map(|level| self.summary.level(level));
        for &id in newest_first.chain(deeper) {
            let table = self.tables.get(id);
            for (page, &place) in table.place.pages.iter().enumerate() {
                let mut fault = |why: String| {
                    faults.push(IndexFault { number: number_of(id, page), place, why, loses_pairs: true });
                };
                io.read(io.packing().page_of(place), io.index_cause());
                let bytes = match self.tables.content(io, id, page) {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        fault(error.to_string());
                        continue;
                    }
                };
                let read = TablePage::new(&bytes);
                let entries: Option<Vec<(&[u8], Entry)>> = (0..read.count()).map(|index| read.get(index)).collect();
                let is_in_order = |entries: &Vec<(&[u8], Entry)>| {
                    entries.is_sorted_by(|left, right| left.0 < right.0)
                        && entries.first().is_some_and(|(key, _)| *key == &*table.range.firsts[page])
                        && entries.iter().all(|(key, _)| *key <= &*table.range.last)
                };
                let Some(entries) = entries.filter(is_in_order) else {
                    fault("its keys are not in order, or not those that it is known for".to_owned());
                    continue;
                };
                for (key, entry) in entries {
                    all.entry(key.into()).or_insert(entry);
                }
            }
        }
        all.retain(|_, entry| !entry.is_deleted());
        all
    }
}

/// What garbage collection and check know a key by.
fn tag_of(key: &[u8]) -> u64 {
    xxh3_64(key) & u64::from(u32::MAX)
}

/// The key of the record at a place whose page is in the controller, and the bytes of its value.
fn record_at(io: &mut Io<'_>, place: Grain) -> Result<(OwnedKey, u32), KvError> {
    let packing = io.packing();
    let start = packing.byte_in_page(place);
    let data = io.data(packing.page_of(place))?;
    let head = packing.head(data, start)?;
    Ok((head.key(data, start, &mut [0; 255]).into(), head.value_bytes))
}

impl RangeIndex for Lsm {
    fn keys(&mut self, io: &mut Io<'_>, first: &[u8], count: usize) -> Result<Vec<OwnedKey>, KvError> {
        let mut cursor = Cursor::new(Arc::clone(&self.summary), Arc::clone(&self.memtable), Direction::Up, false);
        cursor.seek(io, &mut self.tables, first)?;
        let mut keys = Vec::new();
        while keys.len() < count
            && let Some((key, _)) = cursor.next(io, &mut self.tables)?
        {
            keys.push(key);
        }
        Ok(keys)
    }

    fn open(&mut self, io: &mut Io<'_>, cursor: IteratorId, plan: CursorPlan) -> Result<(), KvError> {
        let direction = if plan.descending { Direction::Down } else { Direction::Up };
        let opened = Cursor::new(Arc::clone(&self.summary), Arc::clone(&self.memtable), direction, plan.reads_ahead);
        // Either of the two is copied when it changes.
        let wanted =
            opened.buffers() as u64 * self.tables.form.table_bytes() + self.memtable_bytes() + self.summary.bytes();
        if self.dram_bytes() + wanted > self.budget_bytes {
            return Err(KvError::TooManyIterators { iterators: self.cursors.len() as u32 });
        }
        io.cpu(self.memtable.bytes() / COPIED_BYTES_PER_NS);
        self.cursors.insert(cursor, opened);
        self.keep_to_budget();
        Ok(())
    }

    fn seek(&mut self, io: &mut Io<'_>, cursor: IteratorId, key: Option<&[u8]>) -> Result<(), KvError> {
        let Lsm { cursors, tables, .. } = self;
        let cursor = cursors.get_mut(&cursor).ok_or(KvError::NoSuchIterator(cursor))?;
        // Nothing is greater than this, and so long.
        cursor.seek(io, tables, key.unwrap_or(&[u8::MAX; kvssd_types::KEY_BYTES_MAX + 1]))
    }

    fn next(&mut self, io: &mut Io<'_>, cursor: IteratorId) -> Result<Option<(OwnedKey, PairPlace)>, KvError> {
        let Lsm { cursors, tables, .. } = self;
        let cursor = cursors.get_mut(&cursor).ok_or(KvError::NoSuchIterator(cursor))?;
        let found = cursor.next(io, tables)?;
        Ok(found.map(|(key, Entry { place, value_bytes })| {
            let key_bytes = key.len() as u32;
            (key, PairPlace { place, key_bytes, value_bytes })
        }))
    }

    fn read_ahead(&mut self, io: &mut Io<'_>, cursor: IteratorId) {
        let Lsm { cursors, tables, .. } = self;
        if let Some(cursor) = cursors.get_mut(&cursor) {
            cursor.read_ahead(io, tables);
        }
    }

    fn close(&mut self, io: &mut Io<'_>, cursor: IteratorId) {
        let Some(summary) = self.cursors.remove(&cursor).map(|cursor| Arc::clone(cursor.summary())) else { return };
        if Arc::strong_count(&summary) == 1 {
            for id in summary.tables() {
                self.give_up(io, id);
            }
        }
    }

    fn kept_for_cursors(&self) -> Vec<(Grain, u32)> {
        let kept = self.tables.all().filter(|(_, table)| !table.is_current);
        let grains =
            |table: &table::Table| table.place.pages.iter().map(|&page| (page, self.page_grains)).collect::<Vec<_>>();
        kept.flat_map(|(_, table)| grains(table)).collect()
    }
}

impl Index for Lsm {
    fn locate(&mut self, io: &mut Io<'_>, key: Key<'_>, _holds: &mut Holds<'_>) -> Result<Position, KvError> {
        self.lookups.begin(self.tables.counters);
        let found = self.look_up(io, key.bytes())?.filter(|entry| !entry.is_deleted());
        self.lookups.end(self.tables.counters);
        let tag = if found.is_none() && self.is_short() { Position::FULL } else { tag_of(key.bytes()) };
        let (place, value_bytes) = found.map(|entry| (entry.place, entry.value_bytes)).unzip();
        Ok(Position { tag, place, hash: tag, probes: 0, value_bytes })
    }

    fn bind(&mut self, _io: &mut Io<'_>, key: Key<'_>, _position: Position, pair: PairPlace) -> Result<(), KvError> {
        self.change(key.bytes(), Entry { place: pair.place, value_bytes: pair.value_bytes });
        Ok(())
    }

    fn unbind(&mut self, _io: &mut Io<'_>, key: Key<'_>, _position: Position) -> Result<(), KvError> {
        self.change(key.bytes(), Entry::DELETED);
        Ok(())
    }

    fn relocate(&mut self, io: &mut Io<'_>, moves: &mut [Move]) -> Result<(), KvError> {
        for pair in moves {
            let Move { tag, from, to, grains, .. } = *pair;
            pair.fate = match readable(self.is_bound(io, tag, from))? {
                Some(true) => Fate::Moved,
                Some(false) => Fate::Dead,
                None => Fate::Unreadable,
            };
            if pair.fate != Fate::Moved {
                continue;
            }
            if self.memtable.is_full(&self.tables.form) {
                self.flush(io)?;
            }
            let (key, value_bytes) = record_at(io, from)?;
            io.note(Change::Key { key: key.clone(), value_bytes });
            io.note(Change::Moved { tag, from, to, grains });
            self.change(&key, Entry { place: to, value_bytes });
        }
        self.bound.clear();
        Ok(())
    }

    fn is_bound(&mut self, io: &mut Io<'_>, tag: u64, place: Grain) -> Result<bool, KvError> {
        if self.bound.contains(&place) {
            return Ok(true);
        }
        let is_bound = self.are_bound(io, &[(tag, place)])?[0];
        is_bound.ok_or_else(|| KvError::Unrecovered("what the index has of a pair cannot be read".to_owned()))
    }

    fn are_bound(&mut self, io: &mut Io<'_>, pairs: &[(u64, Grain)]) -> Result<Vec<Option<bool>>, KvError> {
        let records = pairs.iter().map(|&(_, place)| readable(record_at(io, place)));
        let records = records.collect::<Result<Vec<_>, _>>()?;
        let keys: Vec<&[u8]> = records.iter().map(|record| record.as_ref().map_or(&[][..], |(key, _)| key)).collect();
        let found = self.look_up_all(io, &keys)?;
        let lives = |number: usize| {
            records[number].as_ref()?;
            Some(found[number]?.is_some_and(|entry| entry.place == pairs[number].1))
        };
        let bound: Vec<Option<bool>> = (0..pairs.len()).map(lives).collect();
        let places = pairs.iter().zip(&bound).filter(|(_, lives)| **lives == Some(true));
        self.bound.extend(places.map(|((_, place), _)| *place));
        Ok(bound)
    }

    fn relocate_own(&mut self, io: &mut Io<'_>, number: u64, from: Grain) -> Result<(), KvError> {
        let page_bytes = self.tables.form.page_bytes;
        let is_current = |id: u64| self.tables.find(id).is_some_and(|table| table.is_current);
        let is_noted = is_current(number / u64::from(TABLE_PAGES_MAX));
        if let Some(place) = self.tables.move_page(io, number, from)?.filter(|_| is_noted) {
            io.note(Change::Own { number, place, bytes: page_bytes, old: (from, page_bytes) });
        }
        Ok(())
    }

    fn refuses_changes(&self) -> Option<String> {
        let id = self.unreadable?;
        Some(format!("table {id} of the index cannot be read: the drive takes no changes, and gives what can be read"))
    }

    fn growth(&self) -> Growth {
        if self.unreadable.is_some() {
            return Growth::None;
        }
        let must = self.memtable.is_full(&self.tables.form) || self.summary.level(0).len() >= LEVEL0_TABLES_MAX;
        match (must, self.summary.is_due()) {
            (true, _) => Growth::Foreground,
            (false, true) => Growth::Background,
            (false, false) => Growth::None,
        }
    }

    fn grow(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        if self.memtable.is_full(&self.tables.form) { self.flush(io) } else { self.compact(io) }
    }

    fn list(
        &mut self,
        _io: &mut Io<'_>,
        _from: Option<Position>,
        _count: usize,
        _places: &mut Vec<Grain>,
    ) -> Result<(), KvError> {
        Err(KvError::InvalidCommand("it lists keys in their own order"))
    }

    fn ranges(&mut self) -> Option<&mut dyn RangeIndex> {
        Some(self)
    }

    fn survey(&self, io: &mut Io<'_>) -> Survey {
        let mut survey = Survey::default();
        for (key, entry) in self.everything(io, &mut survey.faults) {
            survey.seen.push(Seen { tag: tag_of(&key), place: entry.place, passes: 0 });
        }
        survey.seen.sort_unstable_by_key(|seen| (seen.tag, seen.place));
        let bytes = self.tables.form.page_bytes;
        for (id, table) in self.tables.all() {
            let pages = table.place.pages.iter().enumerate();
            survey.own.extend(pages.map(|(page, &place)| OwnRecord { number: number_of(id, page), place, bytes }));
        }
        survey
    }

    fn way_to(&self, key: Key<'_>, tag: u64, _way: &mut Vec<u64>) -> bool {
        tag_of(key.bytes()) == tag
    }

    fn set_dram_budget(&mut self, bytes: u64) {
        self.budget_bytes = bytes;
        let TableForm { page_bytes, pages_max, .. } = self.tables.form;
        let share = usize::try_from(bytes / STEP_SHARE / u64::from(page_bytes)).unwrap_or(usize::MAX);
        self.step_pages = share.min(self.step_pages_max).max(STEP_TABLES_MIN * pages_max as usize);
        self.keep_to_budget();
    }

    fn dram(&self, dram: &mut DramUse) {
        dram.add("index_memtable", self.memtable_bytes());
        dram.add("index_compaction", self.step_bytes());
        dram.add("index_tables", self.tables.dram_bytes());
        dram.add("index_summary", self.summary.bytes());
        dram.add("index_pinned", self.tables.pinned_bytes());
        if !self.cursors.is_empty() {
            dram.add("index_cursors", self.cursor_bytes());
        }
    }

    fn footprint_bytes(&self) -> u64 {
        self.tables.flash_bytes() + self.memtable.bytes().next_multiple_of(self.tables.form.page_bytes.into())
    }

    fn counters(&self) -> IndexCounters {
        self.lookups.counters(self.tables.counters)
    }

    fn save(&self) -> Vec<u8> {
        self.saved()
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        self.take_saved(bytes)
    }

    /// All changes are made again in their order, in [`Index::redo`].
    fn redo_own(&mut self, _change: &Change, _position: usize) -> Option<()> {
        Some(())
    }

    fn redo(&mut self, _io: &mut Io<'_>, change: &Change, _position: usize) -> Result<(), KvError> {
        self.again(change).ok_or_else(|| {
            KvError::Unrecovered("the journal speaks of a table or a key that the index has not".to_owned())
        })
    }

    fn end_redo(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        self.end_again(io)
    }
}
