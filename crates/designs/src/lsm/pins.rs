//! Pinned tables: those of the upper levels stay in DRAM, as far as there is room (PinK).

use super::Lsm;
use super::summary::LEVELS_MAX;
use super::table::TableId;
use kvssd_ftl::Io;
use kvssd_types::KvError;

impl Lsm {
    /// Pins what has come into the upper levels, the highest first, and lets go of what has left them or lies deeper and is in the way.
    pub(super) fn pin(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        if self.plan.pinned_levels == 0 {
            return Ok(());
        }
        let room = self.budget_bytes.saturating_sub(self.dram_bytes());
        let pinned_levels = self.plan.pinned_levels as usize;
        let leveled = self.leveled();
        // Those that are pinned, the deepest last: they make room for higher ones.
        let mut pinned: Vec<(usize, TableId)> =
            leveled.iter().copied().filter(|&(_, id)| !self.tables.get(id).pinned.is_empty()).collect();
        while let Some(&(_, id)) = pinned.last().filter(|&&(level, _)| level >= pinned_levels) {
            self.tables.change(id, |table| table.pinned.clear());
            pinned.pop();
        }
        for (level, id) in leveled {
            if level >= pinned_levels || !self.tables.get(id).pinned.is_empty() {
                continue;
            }
            let fits = |index: &Self| index.tables.pinned_bytes() + index.tables.form.table_bytes() <= room;
            while !fits(self)
                && let Some((_, deepest)) = pinned.pop_if(|(other, _)| *other > level)
            {
                self.tables.change(deepest, |table| table.pinned.clear());
            }
            if fits(self) {
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
        if fixed_bytes + self.tables.pinned_bytes() <= self.budget_bytes {
            return;
        }
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
