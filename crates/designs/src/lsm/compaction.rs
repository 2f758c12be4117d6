//! Flush and compaction: how the MemTable becomes a table, and tables sink from level to level, a bounded step at a
//! time.
//!
//! ```text
//!   upper tables, newest first --+
//!   lower tables ----------------+-> merged, the newest of each key -> new lower tables
//!                                     from the cut on -> the upper tables again, shorter
//! ```
//!
//! A step is one change of the journal ([`Change::Merged`]): it happened whole or not at all.

use super::Lsm;
use super::page::{Entry, TablePage, order};
use super::summary::Choice;
use super::table::{NewTable, TableId, write_tables};
use super::tables::damaged;
use kvssd_flash::Blob;
use kvssd_ftl::{Change, Io, TablePlace, readable};
use kvssd_types::KvError;
use std::sync::Arc;

/// The part of the DRAM above which the pool gets no more filters. An estimate.
const FILTERED_SHARE: u64 = 4;

impl Lsm {
    /// Makes tables of level 0 of the MemTable, of one age: of its first keys, if it has more than a flush takes.
    pub(super) fn flush(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        let mut new = write_tables(&self.tables.form, self.memtable.iter());
        new.truncate(self.shape.flushed_tables_max as usize);
        let Some(last) = new.last().map(|table| table.range.last.clone()) else { return Ok(()) };
        let made = self.write(io, new, 0, self.age)?;
        self.age += 1;
        self.replace(io, &[], &made)?;
        self.memtable = Arc::new(self.memtable.behind(&last));
        Ok(())
    }

    /// Does a step of compaction, if one is due.
    pub(super) fn compact(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        let Lsm { summary, tables, shape, progress, .. } = self;
        let Some(choice) = summary.choose(tables, shape, progress, self.step_pages) else { return Ok(()) };
        if let ([only], [], None) = (&choice.upper[..], &choice.lower[..], &choice.cut) {
            return self.sink(io, *only, choice.level);
        }
        let inputs: Vec<TableId> = choice.upper.iter().chain(&choice.lower).copied().collect();
        let Some(pages) = self.read(io, &inputs)? else { return Ok(()) };
        let (upper, lower) = pages.split_at(choice.upper.len());
        let entries: u64 = pages.iter().flatten().map(|page| TablePage::new(page).count() as u64).sum();
        io.cpu(entries * io.costs().comparison_ns);
        let mut made = Vec::new();
        let (level, cut) = (choice.level as u8, choice.cut.as_deref());
        if let Some(cut) = cut {
            for (&id, pages) in choice.upper.iter().zip(upper) {
                let rest = entries_of(id, pages)?.into_iter().filter(|(key, _)| *key >= cut);
                let age = self.tables.get(id).place.age;
                let rest = write_tables(&self.tables.form, rest);
                made.extend(self.write(io, rest, level, age)?);
            }
        }
        let sunk = self.merge(&choice, upper, lower)?;
        made.extend(self.write(io, sunk, level + 1, 0)?);
        let last = |id: &TableId| self.tables.get(*id).range.last.clone();
        self.progress.ends[choice.level] =
            choice.cut.clone().or(choice.upper.iter().map(last).max()).unwrap_or_default();
        self.replace(io, &inputs, &made)
    }

    /// The newest of each key below the cut. What was deleted is left out where nothing deeper can have it.
    fn merge(&self, choice: &Choice, upper: &[Vec<Blob>], lower: &[Vec<Blob>]) -> Result<Vec<NewTable>, KvError> {
        let is_last = self.summary.depth() <= choice.level + 2;
        let mut all: Vec<(&[u8], Entry)> = Vec::new();
        for (&id, pages) in choice.upper.iter().zip(upper) {
            let cut = choice.cut.as_deref();
            let sinking = |(key, _): &(&[u8], Entry)| cut.is_none_or(|cut| *key < cut);
            all.extend(entries_of(id, pages)?.into_iter().filter(sinking));
        }
        for (&id, pages) in choice.lower.iter().zip(lower) {
            all.extend(entries_of(id, pages)?);
        }
        // A stable sort of runs that are sorted: newer ones stay before older ones.
        all.sort_by(|(left, _), (right, _)| order(left, right));
        all.dedup_by(|(left, _), (right, _)| order(left, right).is_eq());
        let kept = all.into_iter().filter(|(_, entry)| !(is_last && entry.is_deleted()));
        Ok(write_tables(&self.tables.form, kept))
    }

    /// Moves a table that overlaps nothing below to the next level as it is.
    fn sink(&mut self, io: &mut Io<'_>, id: TableId, level: usize) -> Result<(), KvError> {
        self.progress.ends[level] = self.tables.get(id).range.last.clone();
        let before = self.tables.get(id).place.clone();
        let after = TablePlace { level: before.level + 1, age: 0, ..before.clone() };
        self.note_merged(io, vec![before], vec![after.clone()]);
        let summary = self.summary_to_change(io);
        summary.remove(level, id);
        self.tables.change(id, |table| table.place = after);
        Arc::make_mut(&mut self.summary).insert(&self.tables, id);
        self.pin(io)
    }

    /// All pages of tables, read side by side. None when one cannot be read: from then on the index refuses changes.
    pub(super) fn read(&mut self, io: &mut Io<'_>, ids: &[TableId]) -> Result<Option<Vec<Vec<Blob>>>, KvError> {
        let wanted: Vec<(TableId, usize)> = ids.iter().flat_map(|&id| self.tables.pages_of(id)).collect();
        self.tables.fetch(io, &wanted);
        let mut read = Vec::with_capacity(ids.len());
        for &id in ids {
            let pages = self.tables.pages_of(id).map(|(id, page)| self.tables.content(io, id, page));
            let pages = pages.collect::<Result<Vec<Blob>, _>>();
            let is_whole = pages.and_then(|pages| {
                let are_whole = pages.iter().all(|page| TablePage::new(page).is_whole());
                are_whole.then_some(pages).ok_or_else(|| damaged(id))
            });
            match readable(is_whole)? {
                Some(pages) => read.push(pages),
                None => {
                    self.unreadable = Some(id);
                    return Ok(None);
                }
            }
        }
        Ok(Some(read))
    }

    fn write(&mut self, io: &mut Io<'_>, new: Vec<NewTable>, level: u8, age: u64) -> Result<Vec<TableId>, KvError> {
        let mut written = Vec::with_capacity(new.len());
        for mut table in new {
            // A filter only saves time: a tree that has much of the DRAM without takes no more for one.
            table.filter = table.filter.filter(|_| self.tables.dram_bytes() < self.budget_bytes / FILTERED_SHARE);
            written.push(self.tables.write(io, table, level, age)?);
        }
        Ok(written)
    }

    /// Puts tables that were made in the place of others.
    pub(super) fn replace(&mut self, io: &mut Io<'_>, taken: &[TableId], made: &[TableId]) -> Result<(), KvError> {
        let places = |ids: &[TableId]| ids.iter().map(|id| self.tables.get(*id).place.clone()).collect::<Vec<_>>();
        let (before, after) = (places(taken), places(made));
        for id in made {
            let (table, range) = ((*id).into(), self.tables.get(*id).range.clone());
            io.note(Change::Range { table, firsts: range.firsts, last: range.last });
        }
        self.note_merged(io, before.clone(), after);
        let summary = self.summary_to_change(io);
        for (id, place) in taken.iter().zip(&before) {
            summary.remove(place.level.into(), *id);
        }
        for id in taken {
            self.tables.change(*id, |table| {
                table.is_current = false;
                table.pinned.clear();
            });
            self.give_up(io, *id);
        }
        for id in made {
            self.tables.change(*id, |table| (table.summaries, table.is_current) = (1, true));
            Arc::make_mut(&mut self.summary).insert(&self.tables, *id);
        }
        self.pin(io)
    }

    fn note_merged(&self, io: &mut Io<'_>, taken: Vec<TablePlace>, made: Vec<TablePlace>) {
        io.note(Change::Merged { taken, made });
    }

    /// The Summary, to be changed: a version that has it as well keeps what it has, and is counted for it.
    fn summary_to_change(&mut self, io: &mut Io<'_>) -> &mut super::summary::Summary {
        if self.is_iterated(&self.summary) {
            for id in self.summary.tables() {
                io.cpu(io.costs().comparison_ns);
                self.tables.change(id, |table| table.summaries += 1);
            }
        }
        Arc::make_mut(&mut self.summary)
    }

    /// A summary gives a table up; the last one to do so frees its pages.
    pub(super) fn give_up(&mut self, io: &mut Io<'_>, id: TableId) {
        if self.tables.change(id, |table| {
            table.summaries -= 1;
            table.summaries > 0
        }) {
            return;
        }
        for page in self.tables.take(id).map_or(Vec::new(), |table| table.place.pages) {
            io.discard(page, io.packing().grains_per_page);
        }
    }
}

/// The entries of a table's pages, in order.
pub(super) fn entries_of(id: TableId, pages: &[Blob]) -> Result<Vec<(&[u8], Entry)>, KvError> {
    let count = pages.iter().map(|bytes| TablePage::new(bytes).count()).sum();
    let mut entries = Vec::with_capacity(count);
    for bytes in pages {
        let page = TablePage::new(bytes);
        for index in 0..page.count() {
            entries.push(page.get(index).ok_or_else(|| damaged(id))?);
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::super::LsmPlan;
    use super::super::shape::ROOM;
    use super::*;
    use kvssd_ftl::index::{Growth, Index, Room};
    use kvssd_ftl::{Grain, Testbed};
    use kvssd_types::Nanos;

    #[test]
    fn a_memtable_of_an_earlier_release_is_flushed_part_by_part() {
        let design = crate::named("iter").unwrap();
        let profile = design.tiny_profile(&[("memory.power_loss", "protected")]).unwrap();
        let mut bed = Testbed::new(&design, &profile);
        let filled = || {
            let room = Room { superblock_pages: profile.geometry.pages_per_superblock(), ..ROOM };
            let mut index = Lsm::new(LsmPlan { table_pages: 1, pinned_levels: 0, bloom_bits: 0 }, &room);
            index.set_dram_budget(1 << 20);
            for number in 0..9000u64 {
                let key = [&number.to_be_bytes()[..], &[0; 240]].concat();
                index.change(&key, Entry { place: Grain(64 * (number + 1)), value_bytes: 7 });
            }
            index
        };
        let (mut index, mut again) = (filled(), filled());
        let mut flushed = 0;
        while index.growth() == Growth::Changes && index.memtable_is_full() {
            index.grow(&mut bed.io(Nanos::ZERO, true)).unwrap();
            flushed += 1;
            // A mount in the middle finds the same tree.
            bed.noted().iter().for_each(|change| again.redo_change(change).unwrap());
            assert!(again.saved() == index.saved(), "another tree behind flush {flushed}");
        }
        assert!(flushed > 9, "{flushed} flushes");
        assert_eq!(index.everything(&mut bed.io(Nanos::ZERO, true), &mut Vec::new()).len(), 9000);
    }
}
