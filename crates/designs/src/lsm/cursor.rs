//! A cursor over the keys of one version of the tree, from any key on, in either direction.
//!
//! ```text
//!   MemTable ----+
//!   level 0, each age, newest first ---+
//!   level 1 ... level 7: a table at a time ---+-> the least key (or the greatest); of runs that have it, the newest
//! ```
//!
//! Each run of tables has one table in DRAM (IterKVSSD, section 4.1: "one SSTable buffer is allocated for each level"). The runs are kept in
//! the order of the keys that they stand at, so that going on compares the keys of two of them as a rule.

use super::memtable::MemTable;
use super::page::{Entry, TablePage, order, prefix};
use super::summary::Summary;
use super::table::{Table, TableId};
use super::table_reader::{TableReader, Timed};
use super::tables::{Tables, damaged};
use kvssd_flash::Blob;
use kvssd_ftl::index::EntryPlace;
use kvssd_ftl::{Grain, PairPlace};
use kvssd_types::{KEY_BYTES_MAX, KvError, Nanos, OwnedKey};
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

/// Entries before the end of a table at which the next one is read: what the fastest reader goes along in the time of that read.
const NEAR_ENTRIES: usize = 64;

/// Nothing is greater than this, and so long.
const BEHIND_ALL: &[u8] = &[u8::MAX; KEY_BYTES_MAX + 1];

/// Which way a cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// To greater keys.
    Up,
    /// To lesser keys.
    Down,
}

impl Direction {
    /// Which of two keys comes first.
    fn order(self, left: &[u8], right: &[u8]) -> Ordering {
        self.directed(order(left, right))
    }

    /// The order of two keys that are in this order upwards.
    fn directed(self, upwards: Ordering) -> Ordering {
        match self {
            Direction::Up => upwards,
            Direction::Down => upwards.reverse(),
        }
    }
}

/// Tables that do not overlap, in the order of their keys.
#[derive(Clone, Debug)]
struct Run {
    level: usize,
    /// Which of the level's tables.
    tables: std::ops::Range<usize>,
    loaded: Option<Loaded>,
    /// The table that is read ahead, and when it is there.
    ahead: Option<(usize, Nanos)>,
}

/// A table in DRAM, and where in it a cursor stands. The bytes of a page are at hand when the cursor has come to it.
#[derive(Clone, Debug)]
struct Loaded {
    /// Which of the level's tables.
    table: usize,
    id: TableId,
    pages: usize,
    page: usize,
    /// Where the page lay when its bytes were fetched.
    place: Grain,
    bytes: Blob,
    slot: usize,
}

impl Loaded {
    fn page(&self) -> TablePage<'_> {
        TablePage::new(&self.bytes)
    }

    fn entry(&self) -> Result<(&[u8], Entry), KvError> {
        self.page().get(self.slot).ok_or_else(|| damaged(self.id))
    }

    fn entry_place(&self) -> EntryPlace {
        EntryPlace { page: self.place, number: self.slot as u32 }
    }

    /// Whether so few entries are left that the next table may be needed before it could be read.
    fn is_near_end(&self, direction: Direction) -> bool {
        match direction {
            Direction::Up if self.page + 1 < self.pages => false,
            Direction::Up => self.page().count() - self.slot <= NEAR_ENTRIES,
            Direction::Down => self.page == 0 && self.slot < NEAR_ENTRIES,
        }
    }

    /// Goes to the first entry of a page, or the last.
    fn turn_page(&mut self, reader: &mut impl TableReader, page: usize, is_last: bool) -> Result<(), KvError> {
        self.bytes = reader.content(self.id, page)?;
        self.place = reader.tables().get(self.id).place.pages[page];
        self.page = page;
        self.slot = if is_last { self.page().count().saturating_sub(1) } else { 0 };
        Ok(())
    }

    /// Goes to the next entry, if the table has one.
    fn advance(&mut self, reader: &mut impl TableReader, direction: Direction) -> Result<bool, KvError> {
        match direction {
            Direction::Up if self.slot + 1 < self.page().count() => self.slot += 1,
            Direction::Up if self.page + 1 < self.pages => self.turn_page(reader, self.page + 1, false)?,
            Direction::Down if self.slot > 0 => self.slot -= 1,
            Direction::Down if self.page > 0 => self.turn_page(reader, self.page - 1, true)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A run that has a key.
#[derive(Clone, Copy, Debug)]
struct Standing {
    number: usize,
    /// The [`prefix`] of the key, so that most comparisons do not read it.
    prefix: u64,
}

/// A key, where its pair is, and where the entry that says so is, if that is on flash.
pub(super) type FoundPair = (OwnedKey, PairPlace, Option<EntryPlace>);

/// The cursor. It has nothing before it was sent somewhere.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    summary: Arc<Summary>,
    memtable: Arc<MemTable>,
    direction: Direction,
    /// Whether each run may have a second table in DRAM.
    reads_ahead: bool,
    in_memory: Option<(OwnedKey, Entry)>,
    runs: Vec<Run>,
    /// Those that have a key, by that key, the next one behind all others; of equal keys the newest is behind.
    order: Vec<Standing>,
    /// Something could not be read: the cursor has no position until the next seek.
    is_lost: bool,
}

impl Cursor {
    pub(super) fn new(summary: Arc<Summary>, memtable: Arc<MemTable>, direction: Direction, reads_ahead: bool) -> Self {
        let there = summary.runs().filter(|(_, tables)| !tables.is_empty());
        let runs = there.map(|(level, tables)| Run { level, tables, loaded: None, ahead: None }).collect();
        Cursor { memtable, direction, reads_ahead, in_memory: None, runs, order: Vec::new(), is_lost: false, summary }
    }

    /// Another one along the same version.
    pub(super) fn anew(&self) -> Cursor {
        Cursor::new(Arc::clone(&self.summary), Arc::clone(&self.memtable), self.direction, false)
    }

    /// The version that it goes along.
    pub(super) fn summary(&self) -> &Arc<Summary> {
        &self.summary
    }

    /// The copy of the MemTable that it goes along.
    pub(super) fn memtable(&self) -> &Arc<MemTable> {
        &self.memtable
    }

    /// Tables that it may have in DRAM at a time.
    pub(super) fn buffers(&self) -> usize {
        self.runs.len() * if self.reads_ahead { 2 } else { 1 }
    }

    /// Whether the pages at hand lie where they did when they were fetched.
    pub(super) fn is_in_place(&self, tables: &Tables) -> bool {
        let lies_there = |loaded: &Loaded| tables.get(loaded.id).place.pages.get(loaded.page) == Some(&loaded.place);
        self.runs.iter().filter_map(|run| run.loaded.as_ref()).all(lies_there)
    }

    /// What to seek to for the first of all keys in its direction.
    pub(super) fn beginning(&self) -> &'static [u8] {
        match self.direction {
            Direction::Up => &[],
            Direction::Down => BEHIND_ALL,
        }
    }

    /// Goes to the first key that is not below `key`, or the last that is not above. The tables of all levels are read
    /// side by side.
    pub(super) fn seek(&mut self, reader: &mut impl TableReader, key: &[u8]) -> Result<(), KvError> {
        let is_up = self.direction == Direction::Up;
        self.is_lost = true;
        self.in_memory = owned(self.memtable.from(Bound::Included(key), is_up));
        let (mut found, mut wanted) = (Vec::with_capacity(self.runs.len()), Vec::new());
        for (number, run) in self.runs.iter_mut().enumerate() {
            (run.loaded, run.ahead) = (None, None);
            let tables = reader.tables();
            let ids = &self.summary.level(run.level)[run.tables.clone()];
            let range = |table: usize| &tables.get(ids[table]).range;
            let behind = self.summary.behind_in(tables, run.level, run.tables.clone(), key);
            // The last that begins at or before the key; upwards the next one, if that has no key from there on.
            let table = match behind.checked_sub(1) {
                Some(last) if !is_up || *range(last).last >= *key => last,
                _ if is_up => behind,
                _ => continue,
            };
            let Some(&id) = ids.get(table) else { continue };
            wanted.extend(tables.pages_of(id));
            found.push((number, run.tables.start + table));
        }
        reader.fetch(&wanted);
        self.order.clear();
        for (number, table) in found {
            self.runs[number].go_to(reader, &self.summary, (table, key), self.direction)?;
            self.line_up(number)?;
        }
        self.is_lost = false;
        Ok(())
    }

    /// Has the next table of each run read when the cursor comes near the end of the one before (section 4.4).
    pub(super) fn read_ahead(&mut self, Timed { io, tables }: Timed<'_, '_>) {
        for run in &mut self.runs {
            let is_due =
                run.ahead.is_none() && run.loaded.as_ref().is_some_and(|loaded| loaded.is_near_end(self.direction));
            if let Some(next) = run.next_table(self.direction).filter(|_| is_due) {
                let pages: Vec<_> = tables.pages_of(self.summary.level(run.level)[next]).collect();
                io.settle();
                run.ahead = Some((next, tables.fetch_ahead(io, &pages)));
            }
        }
    }

    /// Puts a run in its place in the order, if it has a key.
    fn line_up(&mut self, number: usize) -> Result<(), KvError> {
        let Some(loaded) = &self.runs[number].loaded else { return Ok(()) };
        let (key, _) = loaded.entry()?;
        let standing = Standing { number, prefix: prefix(key) };
        let mut place = self.order.len();
        while let Some(other) = place.checked_sub(1).and_then(|before| self.order.get(before)) {
            let mut order = standing.prefix.cmp(&other.prefix);
            if order.is_eq() {
                let Some(loaded) = &self.runs[other.number].loaded else { break };
                order = key.cmp(loaded.entry()?.0);
            }
            if self.direction.directed(order).then(number.cmp(&other.number)).is_lt() {
                break;
            }
            place -= 1;
        }
        self.order.insert(place, standing);
        Ok(())
    }

    /// The table that has the next key of all tables.
    fn first_of_tables(&self) -> Option<&Loaded> {
        self.order.last().and_then(|standing| self.runs[standing.number].loaded.as_ref())
    }

    /// The run that comes next, if it stands at this key.
    fn next_at(&self, key: &[u8], key_prefix: u64) -> Result<Option<usize>, KvError> {
        let Some(standing) = self.order.last().filter(|standing| standing.prefix == key_prefix) else {
            return Ok(None);
        };
        let Some(loaded) = &self.runs[standing.number].loaded else { return Ok(None) };
        Ok((*loaded.entry()?.0 == *key).then_some(standing.number))
    }

    /// The entry that it stands at, of the newest run that has the key, and where that is on flash; deleted keys too. Goes on to the next key.
    fn step(
        &mut self,
        reader: &mut impl TableReader,
    ) -> Result<Option<(OwnedKey, Entry, Option<EntryPlace>)>, KvError> {
        reader.compare(self.runs.len());
        let in_tables = match self.first_of_tables() {
            Some(loaded) => Some((loaded.entry()?, loaded.entry_place())),
            None => None,
        };
        // Of equal keys that in memory is the newest.
        let is_of_tables = match (&self.in_memory, in_tables) {
            (Some((key, _)), Some(((first, _), _))) => self.direction.order(key, first).is_gt(),
            (in_memory, _) => in_memory.is_none(),
        };
        let (key, entry, at) = match in_tables.filter(|_| is_of_tables) {
            Some(((key, entry), at)) => (OwnedKey::from(key), entry, Some(at)),
            None => {
                let Some((key, entry)) = self.in_memory.take() else { return Ok(None) };
                let is_up = self.direction == Direction::Up;
                self.in_memory = owned(self.memtable.from(Bound::Excluded(&key), is_up));
                (key, entry, None)
            }
        };
        let key_prefix = prefix(&key);
        while let Some(number) = self.next_at(&key, key_prefix)? {
            self.order.pop();
            self.runs[number].advance(reader, &self.summary, self.direction)?;
            self.line_up(number)?;
        }
        Ok(Some((key, entry, at)))
    }

    /// The next key that was not deleted, and what is known of it.
    pub(super) fn next(&mut self, reader: &mut impl TableReader) -> Result<Option<FoundPair>, KvError> {
        if std::mem::replace(&mut self.is_lost, true) {
            return Err(KvError::Unrecovered(
                "the range has come to what cannot be read: seek to another key".to_owned(),
            ));
        }
        loop {
            match self.step(reader)? {
                Some((_, entry, _)) if entry.is_deleted() => {}
                found => {
                    self.is_lost = false;
                    return Ok(found.map(|(key, Entry { place, value_bytes }, entry)| {
                        let key_bytes = key.len() as u32;
                        (key, PairPlace { place, key_bytes, value_bytes }, entry)
                    }));
                }
            }
        }
    }
}

impl Run {
    /// Takes a table that is in the controller, and stands at the first entry of a page, or the last.
    fn take(
        &mut self,
        reader: &mut impl TableReader,
        summary: &Summary,
        (table, page, is_last): (usize, usize, bool),
    ) -> Result<&mut Loaded, KvError> {
        let id = summary.level(self.level)[table];
        let pages = reader.tables().pages_of(id).len();
        let mut loaded = Loaded { table, id, pages, page, place: Grain(0), bytes: Blob::default(), slot: 0 };
        loaded.turn_page(reader, page, is_last)?;
        Ok(self.loaded.insert(loaded))
    }

    /// Goes to a key, or behind it, within a table that is in the controller.
    fn go_to(
        &mut self,
        reader: &mut impl TableReader,
        summary: &Summary,
        (table, key): (usize, &[u8]),
        direction: Direction,
    ) -> Result<(), KvError> {
        let Table { range, fences, .. } = reader.tables().get(summary.level(self.level)[table]);
        let page = range.firsts.partition_point(|first| **first <= *key).saturating_sub(1);
        let ends = fences.ends(page);
        let loaded = self.take(reader, summary, (table, page, false))?;
        loaded.slot = loaded.page().lower_bound_between(key, ends).ok_or_else(|| damaged(loaded.id))?;
        match direction {
            // It is between two pages.
            Direction::Up if loaded.slot == loaded.page().count() => match page + 1 < loaded.pages {
                true => loaded.turn_page(reader, page + 1, false)?,
                false => self.loaded = None,
            },
            Direction::Down if loaded.page().get(loaded.slot).is_none_or(|(found, _)| found > key) => {
                loaded.slot = loaded.slot.checked_sub(1).ok_or_else(|| damaged(loaded.id))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Goes on to the next entry, in the next table if this one has no more.
    fn advance(
        &mut self,
        reader: &mut impl TableReader,
        summary: &Summary,
        direction: Direction,
    ) -> Result<(), KvError> {
        let Some(loaded) = &mut self.loaded else { return Ok(()) };
        if loaded.advance(reader, direction)? {
            return Ok(());
        }
        let next = self.next_table(direction);
        self.loaded = None;
        let Some(next) = next else { return Ok(()) };
        let pages = reader.tables().pages_of(summary.level(self.level)[next]);
        match self.ahead.take() {
            Some((table, ready)) if table == next => reader.wait(ready),
            _ => reader.fetch(&pages.clone().collect::<Vec<_>>()),
        }
        let is_last = direction == Direction::Down;
        let page = if is_last { pages.len().saturating_sub(1) } else { 0 };
        self.take(reader, summary, (next, page, is_last)).map(|_| ())
    }

    fn next_table(&self, direction: Direction) -> Option<usize> {
        let table = self.loaded.as_ref()?.table;
        let next = match direction {
            Direction::Up => table + 1,
            Direction::Down => table.checked_sub(1)?,
        };
        self.tables.contains(&next).then_some(next)
    }
}

fn owned(found: Option<(&[u8], Entry)>) -> Option<(OwnedKey, Entry)> {
    found.map(|(key, entry)| (key.into(), entry))
}
