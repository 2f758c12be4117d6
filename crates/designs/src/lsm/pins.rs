//! Pinned tables: those of the upper levels stay in DRAM, as far as there is room (PinK).

use super::Lsm;
use super::summary::LEVELS_MAX;
use super::table::TableId;
use kvssd_ftl::Io;
use kvssd_types::KvError;

impl Lsm {
    /// Pins what has come into the upper levels, and lets go of what has left them or has no room.
    pub(super) fn pin(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
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
                let pages: Vec<_> = self.tables.pages_of(id).collect();
                self.tables.fetch(io, &pages);
                self.tables.pin(io, id)?;
            }
        }
        Ok(())
    }

    /// Lets go of pinned tables, the deepest first, until the others have room.
    pub(super) fn keep_to_budget(&mut self) {
        let fixed_bytes = self.dram_bytes();
        let mut upper = self.leveled();
        while fixed_bytes + self.tables.pinned_bytes() > self.budget_bytes
            && let Some((_, id)) = upper.pop()
        {
            self.tables.change(id, |table| table.pinned.clear());
        }
    }

    /// The tables of the pinned levels and of the next, which they sink to.
    pub(super) fn leveled(&self) -> Vec<(usize, TableId)> {
        let levels = (self.plan.pinned_levels as usize + 1).min(LEVELS_MAX);
        (0..levels).flat_map(|level| self.summary.level(level).iter().map(move |&id| (level, id))).collect()
    }

    /// Brings the tables of the upper levels back into DRAM.
    pub(super) fn repin(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        let pinned_levels = self.plan.pinned_levels as usize;
        let upper = self.leveled().into_iter().filter(|&(level, _)| level < pinned_levels);
        let wanted: Vec<_> = upper.flat_map(|(_, id)| self.tables.pages_of(id)).collect();
        self.tables.fetch(io, &wanted);
        self.pin(io)
    }
}
