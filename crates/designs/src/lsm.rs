//! `lsm`: a log-structured merge tree of keys and places; the values stay where they were written (IterKVSSD, section
//! 2; PinK).
//!
//! ```text
//!   key -> MemTable -> level 0, newest table first -> level 1 -> ... level 7 -> place -> record
//!          in DRAM     a page of each table that may have it, in DRAM (pinned) or one flash read
//!
//!   MemTable full -> tables of level 0 -> merged with the tables that it overlaps in level 1 -> ...
//! ```
//!
//! Keys are kept whole, so that no record is read to compare them, and in their order, so that there are iterators. A
//! store looks its key up first, as with every other index: which pair dies is known at once and the drive's counts are
//! exact. (The papers' drives find out when tables are merged; what that saves them on writes, our pinned levels and
//! filters save in part.)
//!
//! What garbage collection moves comes into the MemTable like any other change.

mod compaction;
mod contents;
mod cursor;
mod forecast;
mod glance_cursor;
mod memtable;
mod page;
mod pins;
mod plan;
mod ranges;
mod redo;
mod removal;
mod search;
mod shape;
mod summary;
mod table;
mod table_reader;
mod tables;

use self::glance_cursor::OpenCursor;
use self::memtable::MemTable;
use self::page::Entry;
use self::redo::Redo;
use self::shape::Shape;
use self::summary::{Progress, Summary};
use self::table::{TABLE_PAGES_MAX, TableForm, TableId};
use self::tables::{Tables, number_of};
use kvssd_ftl::index::{
    Fate, Growth, Index, IndexContents, IndexCounters, IndexEntry, Lookups, Move, OwnRecord, Position, RangeIndex,
    Room, Shared, Sight, VerifyKey,
};
use kvssd_ftl::{Change, DramUse, Grain, Io, PairPlace, readable};
use kvssd_types::{IteratorId, Key, KvError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

pub use self::plan::LsmPlan;

/// Full tables that a step of compaction reads at the most. An estimate; with more the step might not fit into a page of the journal.
const STEP_TABLES_MAX: usize = 40;
/// A step takes 1 / STEP_SHARE of the DRAM for the tables that it reads. An estimate.
const STEP_SHARE: u64 = 8;
/// Full tables that a step may read however little DRAM there is. An estimate.
const STEP_TABLES_MIN: usize = 4;

/// Tables that a change may bring, at the least: DRAM must have room for what the pool knows of so many. An estimate.
const FEW_TABLES: u64 = 8;

/// The index.
#[derive(Clone)]
pub struct Lsm {
    plan: LsmPlan,
    memtable: Arc<MemTable>,
    summary: Arc<Summary>,
    tables: Tables,
    shape: Shape,
    progress: Progress,
    /// The age of the next table of level 0.
    age: u64,
    /// Pages that a step of compaction reads at the most.
    step_pages: usize,
    /// No step reads more, however much DRAM there is.
    step_pages_max: usize,
    page_grains: u32,
    room: Room,
    budget_bytes: u64,
    /// A table that compaction cannot read: nothing sinks any more.
    unreadable: Option<TableId>,
    /// Pairs that were found to be bound, in the current step of garbage collection.
    bound: BTreeSet<Grain>,
    cursors: Shared<BTreeMap<IteratorId, OpenCursor>>,
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
            shape: Shape::of(&plan, &form, room, 0),
            progress: Progress::default(),
            age: 0,
            page_grains: room.page_bytes / room.grain_bytes,
            room: *room,
            step_pages: STEP_TABLES_MIN * plan.table_pages as usize,
            step_pages_max: room.superblock_pages.min(STEP_TABLES_MAX as u32 * plan.table_pages) as usize,
            budget_bytes: u64::MAX,
            unreadable: None,
            bound: BTreeSet::new(),
            cursors: Shared::default(),
            lookups: Lookups::default(),
            redo: Redo::default(),
        }
    }

    /// DRAM of the MemTable.
    fn memtable_bytes(&self) -> u64 {
        self.memtable.bytes().max(u64::from(self.shape.memtable_tables) * self.tables.form.table_bytes())
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

    /// Whether DRAM has no room for what the pool knows of another few tables.
    fn is_short(&self) -> bool {
        let tables = FEW_TABLES.max(self.shape.memtable_tables.into());
        self.dram_bytes() + tables * 4 * kvssd_types::KEY_BYTES_MAX as u64 > self.budget_bytes
    }

    /// The position of a key of which the tree knows that.
    fn position(&self, key: Key<'_>, found: Option<Entry>) -> Position {
        let found = found.filter(|entry| !entry.is_deleted());
        let tag = if found.is_none() && self.is_short() { Position::FULL } else { tag_of(key.bytes()) };
        let (place, value_bytes) = found.map(|entry| (entry.place, entry.value_bytes)).unzip();
        Position { tag, place, hash: tag, note: 0, value_bytes }
    }

    fn memtable_is_full(&self) -> bool {
        self.is_full_for(self.shape.memtable_tables)
    }

    fn is_full_for(&self, tables: u32) -> bool {
        self.memtable.is_full(&self.tables.form, tables)
    }

    fn change(&mut self, key: &[u8], entry: Entry) {
        Arc::make_mut(&mut self.memtable).insert(key, entry);
    }
}

/// What garbage collection and check know a key by.
fn tag_of(key: &[u8]) -> u64 {
    xxh3_64(key) & u64::from(u32::MAX)
}

impl Index for Lsm {
    fn locate(&mut self, io: &mut Io<'_>, key: Key<'_>, _verify: &mut VerifyKey<'_>) -> Result<Position, KvError> {
        self.lookups.begin(self.tables.counters);
        let found = self.look_up(io, key.bytes())?;
        self.lookups.end(self.tables.counters);
        Ok(self.position(key, found))
    }

    fn glance(&self, key: Key<'_>, sight: &mut dyn Sight) -> Option<Position> {
        Some(self.position(key, self.glance_at(sight, key.bytes())?))
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
            // One with more than a flush takes waits for the room of a step of its own: here each move would flush.
            if self.memtable_is_full() && !self.is_full_for(self.shape.flushed_tables_max) {
                self.flush(io)?;
            }
            let (PairPlace { value_bytes, .. }, key) = io.key_at(from)?;
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
        let records = pairs.iter().map(|&(_, place)| readable(io.key_at(place)));
        let records = records.collect::<Result<Vec<_>, _>>()?;
        let keys: Vec<&[u8]> = records.iter().map(|record| record.as_ref().map_or(&[][..], |(_, key)| key)).collect();
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
            // A flush reads nothing.
            return if self.memtable_is_full() { Growth::Changes } else { Growth::None };
        }
        let must = self.memtable_is_full() || self.summary.level(0).len() >= self.shape.level0_tables_max();
        match (must, self.summary.is_due(&self.shape)) {
            (true, _) => Growth::Changes,
            (false, true) => Growth::Background,
            (false, false) => Growth::None,
        }
    }

    fn grow(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        if self.memtable_is_full() { self.flush(io) } else { self.compact(io) }
    }

    fn list(&mut self, _io: &mut Io<'_>, _from: Option<Position>, _count: usize) -> Result<Vec<Grain>, KvError> {
        Err(KvError::InvalidCommand("it lists keys in their own order"))
    }

    fn ranges(&mut self) -> Option<&mut dyn RangeIndex> {
        Some(self)
    }

    fn ranges_beside(&self) -> Option<&dyn RangeIndex> {
        Some(self)
    }

    fn remove_part(&mut self, io: &mut Io<'_>) -> Result<bool, KvError> {
        self.remove_deepest(io)
    }

    fn own_records(&self) -> Vec<OwnRecord> {
        let bytes = self.tables.form.page_bytes;
        let pages = |(id, table): (TableId, &table::Table)| {
            let pages = table.place.pages.iter().enumerate();
            pages.map(|(page, &place)| OwnRecord { number: number_of(id, page), place, bytes }).collect::<Vec<_>>()
        };
        self.tables.all().flat_map(pages).collect()
    }

    fn contents(&self, io: &mut Io<'_>) -> IndexContents {
        let mut contents = IndexContents::default();
        for (key, entry) in self.everything(io, &mut contents.faults) {
            contents.entries.push(IndexEntry { tag: tag_of(&key), place: entry.place, note: 0 });
        }
        contents.sort();
        contents
    }

    fn tag_of(&self, key: Key<'_>) -> Option<u64> {
        Some(tag_of(key.bytes()))
    }

    fn set_dram_budget(&mut self, bytes: u64) {
        self.budget_bytes = bytes;
        let TableForm { page_bytes, pages_max, .. } = self.tables.form;
        let share = usize::try_from(bytes / STEP_SHARE / u64::from(page_bytes)).unwrap_or(usize::MAX);
        self.step_pages = share.min(self.step_pages_max).max(STEP_TABLES_MIN * pages_max as usize);
        self.shape = Shape::of(&self.plan, &self.tables.form, &self.room, bytes);
        self.keep_to_budget();
    }

    fn dram(&self, dram: &mut DramUse) {
        dram.add("index_memtable", self.memtable_bytes());
        dram.add("index_compaction", self.step_bytes());
        dram.add("index_tables", self.tables.dram_bytes());
        dram.add("index_summary", self.summary.bytes());
        dram.add("index_pinned", self.tables.pinned_bytes());
        if !self.cursors.look().is_empty() {
            dram.add("index_cursors", self.cursor_bytes());
        }
    }

    fn footprint_bytes(&self) -> u64 {
        let come_bytes = self.shape.tables_to_come(self.summary.level(0).len()) as u64 * self.tables.form.table_bytes();
        let memtable_bytes = self.memtable.bytes().next_multiple_of(self.tables.form.page_bytes.into());
        self.tables.flash_bytes() + come_bytes.max(memtable_bytes)
    }

    fn counters(&self) -> IndexCounters {
        self.lookups.counters(self.tables.counters)
    }

    fn save(&self) -> Vec<u8> {
        self.saved()
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        self.restore_saved(bytes)
    }

    /// All changes are made again in their order, in [`Index::redo`].
    fn redo_own(&mut self, _change: &Change, _position: usize) -> Option<()> {
        Some(())
    }

    fn redo(&mut self, _io: &mut Io<'_>, change: &Change, _position: usize) -> Result<(), KvError> {
        self.redo_change(change).ok_or_else(|| {
            KvError::Unrecovered("the journal speaks of a table or a key that the index has not".to_owned())
        })
    }

    fn end_redo(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        self.finish_redo(io)
    }
}
