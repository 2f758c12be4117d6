//! Ranges: cursors over versions, and what they take of DRAM.

use super::Lsm;
use super::cursor::{Cursor, Direction};
use super::page::Entry;
use super::summary::Summary;
use super::table::Table;
use kvssd_ftl::index::{CursorPlan, RangeIndex};
use kvssd_ftl::{Grain, Io, PairPlace};
use kvssd_types::{IteratorId, KEY_BYTES_MAX, KvError, OwnedKey};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes that a core copies in a nanosecond. An estimate.
const COPIED_BYTES_PER_NS: u64 = 1;

impl Lsm {
    /// DRAM of cursors: a table for each run that they go along, or two, and the MemTable and the Summary of each
    /// version that is not the present one.
    pub(super) fn cursor_bytes(&self) -> u64 {
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

    /// Whether an iterator goes along that version. The count of its owners does not tell: snapshots of the drive are among them.
    pub(super) fn is_iterated(&self, summary: &Arc<Summary>) -> bool {
        self.cursors.values().any(|cursor| Arc::ptr_eq(cursor.summary(), summary))
    }
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
        cursor.seek(io, tables, key.unwrap_or(&[u8::MAX; KEY_BYTES_MAX + 1]))
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
        if !Arc::ptr_eq(&summary, &self.summary) && !self.is_iterated(&summary) {
            for id in summary.tables() {
                io.cpu(io.costs().comparison_ns);
                self.give_up(io, id);
            }
        }
    }

    fn kept_for_cursors(&self) -> Vec<(Grain, u32)> {
        let kept = self.tables.all().filter(|(_, table)| !table.is_current);
        let grains = |table: &Table| table.place.pages.iter().map(|&page| (page, self.page_grains)).collect::<Vec<_>>();
        kept.flat_map(|(_, table)| grains(table)).collect()
    }
}
