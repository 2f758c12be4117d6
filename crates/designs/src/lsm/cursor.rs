//! A cursor over the keys of one version of the tree, from any key on, in either direction.
//!
//! ```text
//!   MemTable ----+
//!   level 0 table, newest first ---+
//!   level 1 ... level 7: a table at a time ---+-> the least key (or the greatest); of runs that have it, the newest
//! ```
//!
//! Each run of tables has one table in DRAM (IterKVSSD, section 4.1: "one SSTable buffer is allocated for each level").

use super::memtable::MemTable;
use super::page::{Entry, TablePage};
use super::summary::{LEVELS_MAX, Summary};
use super::table::{TableId, Tables, damaged};
use kvssd_flash::Blob;
use kvssd_ftl::{Io, SpentOn};
use kvssd_types::{KvError, Nanos, OwnedKey};
use std::ops::Bound;
use std::sync::Arc;

/// Entries before the end of a table at which the next one is read: what the fastest reader goes along in the time of that read.
const NEAR_ENTRIES: usize = 64;

/// Which way a cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// To greater keys.
    Up,
    /// To lesser keys.
    Down,
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

/// A table in DRAM, and where in it a cursor stands.
#[derive(Clone, Debug)]
struct Loaded {
    /// Which of the level's tables.
    table: usize,
    id: TableId,
    pages: Vec<Blob>,
    page: usize,
    slot: usize,
}

impl Loaded {
    fn entry(&self) -> Result<(&[u8], Entry), KvError> {
        TablePage::new(&self.pages[self.page]).get(self.slot).ok_or_else(|| damaged(self.id))
    }

    /// Whether so few entries are left that the next table may be needed before it could be read.
    fn is_near_end(&self, direction: Direction) -> bool {
        match direction {
            Direction::Up if self.page + 1 < self.pages.len() => false,
            Direction::Up => TablePage::new(&self.pages[self.page]).count() - self.slot <= NEAR_ENTRIES,
            Direction::Down => self.page == 0 && self.slot < NEAR_ENTRIES,
        }
    }

    /// Goes to the next entry, if the table has one.
    fn advance(&mut self, direction: Direction) -> bool {
        match direction {
            Direction::Up if self.slot + 1 < TablePage::new(&self.pages[self.page]).count() => self.slot += 1,
            Direction::Up if self.page + 1 < self.pages.len() => (self.page, self.slot) = (self.page + 1, 0),
            Direction::Down if self.slot > 0 => self.slot -= 1,
            Direction::Down if self.page > 0 => {
                self.page -= 1;
                self.slot = TablePage::new(&self.pages[self.page]).count().saturating_sub(1);
            }
            _ => return false,
        }
        true
    }
}

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
    /// Something could not be read: the cursor has no position until the next seek.
    is_lost: bool,
}

impl Cursor {
    pub(super) fn new(summary: Arc<Summary>, memtable: Arc<MemTable>, direction: Direction, reads_ahead: bool) -> Self {
        let run = |level, tables| Run { level, tables, loaded: None, ahead: None };
        let newest_first = (0..summary.level(0).len()).rev().map(|table| run(0, table..table + 1));
        let deeper = (1..LEVELS_MAX).map(|level| run(level, 0..summary.level(level).len()));
        let runs = newest_first.chain(deeper.filter(|run| !run.tables.is_empty())).collect();
        Cursor { memtable, direction, reads_ahead, in_memory: None, runs, is_lost: false, summary }
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

    /// Goes to the first key that is not below `key`, or the last that is not above. The tables of all levels are read
    /// side by side.
    pub(super) fn seek(&mut self, io: &mut Io<'_>, tables: &mut Tables, key: &[u8]) -> Result<(), KvError> {
        let is_up = self.direction == Direction::Up;
        self.is_lost = true;
        self.in_memory = owned(self.memtable.from(Bound::Included(key), is_up));
        let mut wanted = Vec::new();
        for run in &mut self.runs {
            (run.loaded, run.ahead) = (None, None);
            let ids = &self.summary.level(run.level)[run.tables.clone()];
            let found = if is_up {
                ids.partition_point(|&id| *tables.get(id).range.last < *key)
            } else {
                ids.partition_point(|&id| tables.get(id).range.first() <= key).wrapping_sub(1)
            };
            let Some(&id) = ids.get(found) else { continue };
            wanted.extend(tables.pages_of(id));
            run.ahead = Some((run.tables.start + found, io.clock));
        }
        tables.fetch(io, &wanted);
        for run in &mut self.runs {
            if let Some((table, _)) = run.ahead.take() {
                run.take(io, tables, &self.summary, table)?;
                run.go_to(tables, key, self.direction)?;
            }
        }
        self.is_lost = false;
        Ok(())
    }

    /// Has the next table of each run read when the cursor comes near the end of the one before (section 4.4).
    pub(super) fn read_ahead(&mut self, io: &mut Io<'_>, tables: &mut Tables) {
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

    /// The entry that it stands at, of the newest run that has the key; deleted keys too. Goes on to the next key.
    fn step(&mut self, io: &mut Io<'_>, tables: &mut Tables) -> Result<Option<(OwnedKey, Entry)>, KvError> {
        let is_up = self.direction == Direction::Up;
        io.cpu(self.runs.len() as u64 * io.costs().comparison_ns);
        let mut best = self.in_memory.as_ref().map(|(key, entry)| (&**key, *entry));
        for run in &self.runs {
            let Some(loaded) = &run.loaded else { continue };
            let (key, entry) = loaded.entry()?;
            // Of equal keys the newest run's, which came first.
            if best.is_none_or(|(other, _)| if is_up { key < other } else { key > other }) {
                best = Some((key, entry));
            }
        }
        let Some((key, entry)) = best.map(|(key, entry)| (OwnedKey::from(key), entry)) else { return Ok(None) };
        if self.in_memory.as_ref().is_some_and(|(other, _)| *other == key) {
            self.in_memory = owned(self.memtable.from(Bound::Excluded(&key), is_up));
        }
        for run in &mut self.runs {
            let Some(loaded) = &mut run.loaded else { continue };
            if *loaded.entry()?.0 == *key && !loaded.advance(self.direction) {
                run.turn(io, tables, &self.summary, self.direction)?;
            }
        }
        Ok(Some((key, entry)))
    }

    /// The next key that was not deleted, and what is known of it.
    pub(super) fn next(&mut self, io: &mut Io<'_>, tables: &mut Tables) -> Result<Option<(OwnedKey, Entry)>, KvError> {
        if std::mem::replace(&mut self.is_lost, true) {
            return Err(KvError::Unrecovered(
                "the range has come to what cannot be read: seek to another key".to_owned(),
            ));
        }
        loop {
            match self.step(io, tables)? {
                Some((_, entry)) if entry.is_deleted() => {}
                other => {
                    self.is_lost = false;
                    return Ok(other);
                }
            }
        }
    }
}

impl Run {
    /// Takes a table that is in the controller.
    fn take(&mut self, io: &mut Io<'_>, tables: &Tables, summary: &Summary, table: usize) -> Result<(), KvError> {
        let id = summary.level(self.level)[table];
        let pages =
            tables.pages_of(id).map(|(id, page)| tables.content(io, id, page)).collect::<Result<Vec<_>, _>>()?;
        self.loaded = Some(Loaded { table, id, pages, page: 0, slot: 0 });
        Ok(())
    }

    /// Goes to a key, or behind it, within the table.
    fn go_to(&mut self, tables: &Tables, key: &[u8], direction: Direction) -> Result<(), KvError> {
        let Some(loaded) = &mut self.loaded else { return Ok(()) };
        let range = &tables.get(loaded.id).range;
        loaded.page = range.firsts.partition_point(|first| **first <= *key).saturating_sub(1);
        let page = TablePage::new(&loaded.pages[loaded.page]);
        loaded.slot = page.lower_bound(key).ok_or_else(|| damaged(loaded.id))?;
        match direction {
            Direction::Up if loaded.slot == page.count() => {
                // It is between two pages.
                (loaded.page, loaded.slot) = (loaded.page + 1, 0);
                if loaded.page == loaded.pages.len() {
                    self.loaded = None;
                }
            }
            Direction::Down if page.get(loaded.slot).is_none_or(|(found, _)| found > key) => {
                loaded.slot = loaded.slot.checked_sub(1).ok_or_else(|| damaged(loaded.id))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The table has no more: goes on to the next one.
    fn turn(
        &mut self,
        io: &mut Io<'_>,
        tables: &mut Tables,
        summary: &Summary,
        direction: Direction,
    ) -> Result<(), KvError> {
        let next = self.next_table(direction);
        self.loaded = None;
        let Some(next) = next else { return Ok(()) };
        match self.ahead.take() {
            Some((table, ready)) if table == next => io.wait_for_flash(ready, SpentOn::Map),
            _ => {
                let pages: Vec<_> = tables.pages_of(summary.level(self.level)[next]).collect();
                tables.fetch(io, &pages);
            }
        }
        self.take(io, tables, summary, next)?;
        if direction == Direction::Down
            && let Some(loaded) = &mut self.loaded
        {
            loaded.page = loaded.pages.len() - 1;
            loaded.slot = TablePage::new(&loaded.pages[loaded.page]).count().saturating_sub(1);
        }
        Ok(())
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
