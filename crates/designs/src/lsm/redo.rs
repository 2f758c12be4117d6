//! How the tree comes back: tables and MemTable of a checkpoint, and the journal from there on, in order.

use super::Lsm;
use super::page::Entry;
use super::summary::LEVELS_MAX;
use super::table::{KeyRange, NewTable, TABLE_PAGES_MAX, Table, TableId};
use kvssd_flash::Blob;
use kvssd_ftl::{Change, Grain, Io, PairPlace, TablePlace, readable};
use kvssd_types::{Key, KvError, OwnedKey};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// No tree comes to be so old: what says so is damaged, and the next ages could not be counted.
const AGE_MAX: u64 = 1 << 48;

/// What a checkpoint holds of the tree.
#[derive(Serialize, Deserialize)]
struct Saved {
    tables: Vec<Table>,
    memtable: Vec<(OwnedKey, Entry)>,
    age: u64,
}

/// What a mount remembers from one change to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Redo {
    key: Option<(OwnedKey, u32)>,
    ranges: BTreeMap<u64, KeyRange>,
    /// Tables that came, whose filters are not known.
    made: BTreeSet<TableId>,
}

impl Lsm {
    pub(super) fn saved(&self) -> Vec<u8> {
        let tables = self.summary.tables().map(|id| self.tables.get(id).clone()).collect();
        let memtable = self.memtable.iter().map(|(key, entry)| (key.into(), entry)).collect();
        let saved = Saved { tables, memtable, age: self.age };
        postcard::to_allocvec(&saved).expect("a tree is plain data")
    }

    pub(super) fn restore_saved(&mut self, bytes: &[u8]) -> Option<()> {
        let Saved { tables, memtable, age } = postcard::from_bytes(bytes).ok()?;
        for table in tables {
            self.add_table(table)?;
        }
        for (key, entry) in memtable {
            Key::new(&key).ok()?;
            Arc::make_mut(&mut self.memtable).insert(&key, entry);
        }
        self.age = age;
        (age <= AGE_MAX).then_some(())
    }

    /// Adds a table to the pool and the Summary. None when there can be no such table.
    fn add_table(&mut self, mut table: Table) -> Option<()> {
        let TablePlace { table: number, level, age, pages } = &table.place;
        // There are no more tables than pages.
        let id = TableId::try_from(*number)
            .ok()
            .filter(|&id| u64::from(id) * u64::from(self.page_grains) < self.room.grains)?;
        let is_possible = usize::from(*level) < LEVELS_MAX
            && *age < AGE_MAX
            && (1..=TABLE_PAGES_MAX as usize).contains(&pages.len())
            && table.range.firsts.len() == pages.len()
            && pages.iter().all(|page| page.0 < self.room.grains && page.0.is_multiple_of(self.page_grains.into()))
            && self.tables.find(id.into()).is_none();
        (table.summaries, table.is_current) = (1, true);
        is_possible.then(|| self.tables.add(table))?;
        Arc::make_mut(&mut self.summary).insert(&self.tables, id);
        Some(())
    }

    /// Makes a change again. None when it cannot have been.
    pub(super) fn redo_change(&mut self, change: &Change) -> Option<()> {
        match change {
            Change::Key { key, value_bytes } => self.redo.key = Some((key.clone(), *value_bytes)),
            Change::Bound { pair: PairPlace { place, .. }, .. } | Change::Moved { to: place, .. } => {
                let (key, value_bytes) = self.redo.key.take()?;
                Arc::make_mut(&mut self.memtable).insert(&key, Entry { place: *place, value_bytes });
            }
            // One without its key goes with the only table that had it.
            Change::Unbound { .. } => {
                if let Some((key, _)) = self.redo.key.take() {
                    Arc::make_mut(&mut self.memtable).insert(&key, Entry::DELETED);
                }
            }
            Change::Range { table, firsts, last } => {
                self.redo.ranges.insert(*table, KeyRange { firsts: firsts.clone(), last: last.clone() });
            }
            Change::Own { number, place, old: (old, _), .. } => self.redo_page_move(*number, *old, *place)?,
            Change::Merged { taken, made } => self.redo_merge(taken, made)?,
            _ => {}
        }
        Some(())
    }

    fn redo_page_move(&mut self, number: u64, from: Grain, to: Grain) -> Option<()> {
        let (id, page) = (number / u64::from(TABLE_PAGES_MAX), (number % u64::from(TABLE_PAGES_MAX)) as usize);
        let is_there = self.tables.find(id)?.place.pages.get(page) == Some(&from);
        is_there.then(|| self.tables.change(id as TableId, |table| table.place.pages[page] = to))
    }

    fn redo_merge(&mut self, taken: &[TablePlace], made: &[TablePlace]) -> Option<()> {
        let mut before = BTreeMap::new();
        for place in taken {
            let known = self.tables.find(place.table).filter(|known| known.place == *place)?;
            Arc::make_mut(&mut self.summary).remove(known.place.level.into(), place.table as TableId);
            before.insert(place.table, self.tables.take(place.table as TableId)?);
        }
        if taken.is_empty() {
            // All that the MemTable had, up to the last of these keys, is in the tables.
            let ranges = made.iter().map(|place| self.redo.ranges.get(&place.table));
            let last = ranges.map(|range| range.map(|range| &range.last)).max()??;
            self.memtable = Arc::new(self.memtable.behind(last));
        }
        for place in made {
            self.age = self.age.max(place.age.saturating_add(1));
            // One that only sank is what it was.
            if let Some(table) = before.remove(&place.table).filter(|known| known.place.pages == place.pages) {
                self.add_table(Table { place: place.clone(), ..table })?;
                continue;
            }
            let range = self.redo.ranges.remove(&place.table)?;
            self.redo.made.insert(place.table as TableId);
            self.add_table(Table::new(place.clone(), range, None))?;
        }
        Some(())
    }

    /// All changes were made again: filters are made anew from the tables, except for those that cannot be read.
    pub(super) fn finish_redo(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        for id in std::mem::take(&mut self.redo).made {
            if self.tables.form.filter_bits == 0 || self.tables.find(id.into()).is_none() {
                continue;
            }
            let pages: Vec<_> = self.tables.pages_of(id).collect();
            self.tables.fetch(io, &pages);
            let contents = pages.iter().map(|&(id, page)| readable(self.tables.content(io, id, page)));
            let Some(contents) = contents.collect::<Result<Option<Vec<Blob>>, _>>()? else { continue };
            let entries = super::compaction::entries_of(id, &contents);
            let Some(entries) = readable(entries)? else { continue };
            let written: Vec<NewTable> = super::table::write_tables(&self.tables.form, entries.into_iter());
            let filter = written.into_iter().next().and_then(|table| table.filter);
            self.tables.change(id, |table| table.filter = filter);
        }
        self.repin(io)
    }
}

#[cfg(test)]
mod tests {
    use super::super::LsmPlan;
    use super::super::shape::ROOM;
    use super::*;
    use kvssd_ftl::index::{Index, Room};

    /// A tree of tables of that age in level 0, as many as are merged.
    fn saved(table_age: u64, age: u64) -> Vec<u8> {
        let table = |number: u64| {
            let place = TablePlace { table: number, level: 0, age: table_age, pages: vec![Grain(64 * number)] };
            Table::new(place, KeyRange { firsts: vec![[number as u8].into()], last: [number as u8].into() }, None)
        };
        let saved = Saved { tables: (0..200).map(table).collect(), memtable: Vec::new(), age };
        postcard::to_allocvec(&saved).unwrap()
    }

    #[test]
    fn a_tree_of_impossible_ages_is_refused() {
        let room = Room { merges_by_ranges: true, ..ROOM };
        let restored = |bytes: &[u8]| {
            let mut index = Lsm::new(LsmPlan { table_pages: 3, pinned_levels: 0, bloom_bits: 6 }, &room);
            index.set_dram_budget(1 << 20);
            index.restore(bytes)?;
            let Lsm { summary, tables, shape, progress, .. } = &mut index;
            Some(summary.choose(tables, shape, progress, 40).is_some())
        };
        assert_eq!(restored(&saved(3, 4)), Some(true));
        assert_eq!(restored(&saved(u64::MAX, 4)), None);
        assert_eq!(restored(&saved(3, u64::MAX)), None);
    }
}
