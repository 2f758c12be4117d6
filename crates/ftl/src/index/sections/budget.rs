//! What sections may take of DRAM, and how they leave it.

use super::cache::{Cached, Ticket};
use super::{SectionForm, Sections};
use crate::io::Io;
use crate::layout::address::Grain;
use kvssd_types::KvError;

/// Sections that are warmed together before they leave the cache.
const LEAVERS_WARM: usize = 32;

impl<F: SectionForm> Sections<F> {
    /// The most that the cache may take.
    pub(crate) fn set_budget(&mut self, bytes: u64) {
        self.budget_bytes = bytes;
        self.surplus_bytes = self.surplus_bytes.min(self.cache.bytes().saturating_sub(self.budget_bytes));
    }

    /// As [`Sections::set_budget`], but what is in DRAM beyond it leaves step by step ([`Sections::wear_off_surplus`]).
    pub(crate) fn set_budget_in_steps(&mut self, bytes: u64) {
        self.budget_bytes = bytes;
        self.surplus_bytes = self.cache.bytes().saturating_sub(bytes);
    }

    /// Whether DRAM has more than the budget, which is to leave step by step.
    pub(crate) fn has_surplus(&self) -> bool {
        self.surplus_bytes > 0
    }

    /// Evicts sections, first in, first out, until the others fit the budget.
    pub(crate) fn keep_to_budget(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        self.evict_for(io, 0)
    }

    /// Evicts sections, first in, first out, until the others and `more_bytes` fit the budget.
    pub(super) fn evict_for(&mut self, io: &mut Io<'_>, more_bytes: u64) -> Result<(), KvError> {
        while !self.held && self.cache.bytes() + more_bytes > self.budget_bytes.saturating_add(self.surplus_bytes) {
            if self.leavers_warm == 0 {
                self.warm_leavers(io);
            }
            self.leavers_warm -= 1;
            let Some(Cached { section, bytes, dirty, moved, forgotten, .. }) = self.cache.pop() else { break };
            let Some(section) = section else { continue };
            self.directory[section as usize].cached = Ticket::NONE;
            if dirty {
                self.write(io, section, bytes, forgotten)?;
            } else if moved {
                self.unwritten.insert(section, bytes);
            } else if self.directory[section as usize].place == Grain(0) {
                // An empty section takes nothing on flash.
                self.count_footprint(0, bytes.len());
            }
        }
        Ok(())
    }

    /// Whether there may be sections that [`Sections::drop_blank`] lets leave.
    pub(crate) fn may_have_blank(&self) -> bool {
        self.first_blank.is_some()
    }

    /// Lets the sections leave that were only looked at and are nowhere on flash. In DRAM they count as if they were there, since the next change
    /// may bring them there. Those that stay keep their order; their tickets change.
    pub(crate) fn drop_blank(&mut self) {
        let Some(first) = self.first_blank.take() else { return };
        for cached in self.cache.take_from(first) {
            let Some(section) = cached.section else {
                self.cache.push(cached);
                continue;
            };
            let is_blank = !cached.dirty && !cached.moved && self.directory[section as usize].place == Grain(0);
            if is_blank {
                self.count_footprint(0, cached.bytes.len());
            }
            self.directory[section as usize].cached = if is_blank { Ticket::NONE } else { self.cache.push(cached) };
        }
    }

    /// A change that concerns several sections begins: none leaves the cache until [`Sections::release`].
    pub(crate) fn hold(&mut self) {
        self.held = true;
    }

    /// The change is made in all sections: they may leave the cache again.
    pub(crate) fn release(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        self.held = false;
        self.keep_to_budget(io)
    }

    /// Lets a page of what is in DRAM beyond the budget leave, with the next eviction.
    pub(crate) fn wear_off_surplus(&mut self) {
        self.surplus_bytes = self.surplus_bytes.saturating_sub(u64::from(self.page_bytes));
    }

    /// Bytes in DRAM beyond the budget, whether they may leave little by little or not.
    pub(crate) fn beyond_budget_bytes(&self) -> u64 {
        self.cache.bytes().saturating_sub(self.budget_bytes)
    }

    /// Lets as much of what is in DRAM beyond the budget leave as one program on each channel takes.
    pub(crate) fn shrink(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        self.surplus_bytes = self.beyond_budget_bytes();
        let geometry = &io.media.space.geometry;
        (0..geometry.channels * geometry.pages_per_program).for_each(|_| self.wear_off_surplus());
        self.keep_to_budget(io)
    }

    /// Lets memory bring closer what the sections that leave next will need.
    fn warm_leavers(&mut self, io: &mut Io<'_>) {
        self.leavers_warm = LEAVERS_WARM;
        let leavers = self.cache.leavers().take(LEAVERS_WARM);
        let numbers = leavers.filter_map(|leaver| leaver.section);
        let places: Vec<Grain> = numbers.map(|number| self.directory[number as usize].place).collect();
        io.warm_fates(&places);
        let leavers = self.cache.leavers().take(LEAVERS_WARM);
        std::hint::black_box(leavers.fold(0, |sum, leaver| sum ^ leaver.bytes[0]));
    }
}
