//! Ranges: cursors over versions, and what they take of DRAM.

use super::Lsm;
use super::cursor::{Cursor, Direction};
use super::glance_cursor::OpenCursor;
use super::summary::Summary;
use super::table::Table;
use super::table_reader::{Glancing, Timed};
use kvssd_ftl::index::{CursorPlan, EntryPlace, RangeIndex, Sight};
use kvssd_ftl::{Grain, Io, PairPlace};
use kvssd_types::{IteratorId, KvError, OwnedKey};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Bytes that a core copies in a nanosecond. An estimate.
const COPIED_BYTES_PER_NS: u64 = 1;

impl Lsm {
    /// DRAM of cursors: a table for each run that they go along, or two, and the MemTable and the Summary of each
    /// version that is not the present one.
    pub(super) fn cursor_bytes(&self) -> u64 {
        let cursors = self.cursors.look();
        let buffers: usize = cursors.values().map(|opened| opened.cursor.buffers()).sum();
        let mut memtables = BTreeMap::from([(Arc::as_ptr(&self.memtable), 0)]);
        let mut summaries = BTreeMap::from([(Arc::as_ptr(&self.summary), 0)]);
        for OpenCursor { cursor, .. } in cursors.values() {
            memtables.entry(Arc::as_ptr(cursor.memtable())).or_insert(cursor.memtable().bytes());
            summaries.entry(Arc::as_ptr(cursor.summary())).or_insert(cursor.summary().bytes());
        }
        let copies: u64 = memtables.into_values().chain(summaries.into_values()).sum();
        buffers as u64 * self.tables.form.table_bytes() + copies
    }

    /// A cursor along the present version.
    fn cursor(&self, plan: CursorPlan) -> Cursor {
        let direction = if plan.descending { Direction::Down } else { Direction::Up };
        Cursor::new(Arc::clone(&self.summary), Arc::clone(&self.memtable), direction, plan.reads_ahead)
    }

    /// DRAM that a cursor along the present version may come to take: either part of it is copied when it changes.
    fn wanted_by(&self, cursor: &Cursor) -> u64 {
        let buffers = cursor.buffers() as u64;
        buffers * self.tables.form.table_bytes() + self.memtable_bytes() + self.summary.bytes()
    }

    /// Whether an iterator goes along that version. The count of its owners does not tell: snapshots of the drive are among them.
    pub(super) fn is_iterated(&self, summary: &Arc<Summary>) -> bool {
        self.cursors.look().values().any(|opened| Arc::ptr_eq(opened.summary(), summary))
    }
}

impl RangeIndex for Lsm {
    fn keys(&mut self, io: &mut Io<'_>, first: &[u8], count: usize) -> Result<Vec<OwnedKey>, KvError> {
        let mut cursor = Cursor::new(Arc::clone(&self.summary), Arc::clone(&self.memtable), Direction::Up, false);
        let mut reader = Timed { io, tables: &mut self.tables };
        cursor.seek(&mut reader, first)?;
        let mut keys = Vec::new();
        while keys.len() < count
            && let Some((key, ..)) = cursor.next(&mut reader)?
        {
            keys.push(key);
        }
        Ok(keys)
    }

    fn open(&mut self, io: &mut Io<'_>, cursor: IteratorId, plan: CursorPlan) -> Result<(), KvError> {
        let opened = self.cursor(plan);
        if self.dram_bytes() + self.wanted_by(&opened) > self.budget_bytes {
            return Err(KvError::TooManyIterators { iterators: self.cursors.look().len() as u32 });
        }
        io.cpu(self.memtable.bytes() / COPIED_BYTES_PER_NS);
        self.cursors.get_mut().insert(cursor, OpenCursor::new(opened));
        self.keep_to_budget();
        Ok(())
    }

    fn seek(&mut self, io: &mut Io<'_>, cursor: IteratorId, key: Option<&[u8]>) -> Result<(), KvError> {
        let Lsm { cursors, tables, .. } = self;
        let opened = cursors.get_mut().get_mut(&cursor).ok_or(KvError::NoSuchIterator(cursor))?;
        // One of the two has pages at a time.
        opened.parked.take();
        let cursor = &mut opened.cursor;
        cursor.seek(&mut Timed { io, tables }, key.unwrap_or_else(|| cursor.beginning()))
    }

    fn next(&mut self, io: &mut Io<'_>, cursor: IteratorId) -> Result<Option<(OwnedKey, PairPlace)>, KvError> {
        let Lsm { cursors, tables, .. } = self;
        let OpenCursor { cursor, .. } = cursors.get_mut().get_mut(&cursor).ok_or(KvError::NoSuchIterator(cursor))?;
        Ok(cursor.next(&mut Timed { io, tables })?.map(|(key, pair, _)| (key, pair)))
    }

    fn read_ahead(&mut self, io: &mut Io<'_>, cursor: IteratorId) {
        let Lsm { cursors, tables, .. } = self;
        if let Some(OpenCursor { cursor, .. }) = cursors.get_mut().get_mut(&cursor) {
            cursor.read_ahead(Timed { io, tables });
        }
    }

    fn close(&mut self, io: &mut Io<'_>, cursor: IteratorId) {
        let Some(summary) = self.cursors.get_mut().remove(&cursor).map(|opened| Arc::clone(opened.summary())) else {
            return;
        };
        if !Arc::ptr_eq(&summary, &self.summary) && !self.is_iterated(&summary) {
            for id in summary.tables() {
                io.cpu(io.costs().comparison_ns);
                self.give_up(io, id);
            }
        }
    }

    fn open_beside(&self, id: IteratorId, plan: CursorPlan) -> Option<()> {
        let opened = self.cursor(plan);
        let taken = self.dram_bytes() + self.tables.pinned_bytes() + self.wanted_by(&opened);
        if taken > self.budget_bytes {
            return None;
        }
        self.cursors.change().insert(id, OpenCursor::new(opened));
        Some(())
    }

    fn close_beside(&self, id: IteratorId) -> Option<()> {
        let mut cursors = self.cursors.change();
        let is_present = Arc::ptr_eq(cursors.get(&id)?.summary(), &self.summary);
        is_present.then(|| cursors.remove(&id)).flatten().map(drop)
    }

    fn look_along(
        &self,
        cursor: IteratorId,
        from: Bound<&[u8]>,
        sight: &dyn Sight,
        see: &mut dyn FnMut(OwnedKey, PairPlace, Option<EntryPlace>) -> bool,
    ) -> Option<()> {
        let mut reader = Glancing { sight, tables: &self.tables };
        let mut glance_cursor = self.cursors.look().get(&cursor)?.glance_cursor(from, &self.tables);
        glance_cursor.look_along(&mut reader, from, see)?;
        self.cursors.look().get(&cursor)?.parked.park(glance_cursor);
        Some(())
    }

    fn kept_for_cursors(&self) -> Vec<(Grain, u32)> {
        let kept = self.tables.all().filter(|(_, table)| !table.is_current);
        let grains = |table: &Table| table.place.pages.iter().map(|&page| (page, self.page_grains)).collect::<Vec<_>>();
        kept.flat_map(|(_, table)| grains(table)).collect()
    }
}
