//! A change of the journal, made again in the slots that it concerns.

use crate::index::hash::HashIndex;
use crate::index::probe::{Entry, PROBES_MAX};
use crate::index::section::SectionLayout;
use crate::io::Io;
use kvssd_types::KvError;

impl<L: SectionLayout> HashIndex<L> {
    pub(super) fn redo_passes(
        &mut self,
        io: &mut Io<'_>,
        tag: u64,
        probes: u32,
        position: usize,
        comes: bool,
    ) -> Result<(), KvError> {
        let passes_max = self.sections.form().passes_max();
        if probes > PROBES_MAX {
            return Err(KvError::Unrecovered("the journal speaks of a search that was too long".to_owned()));
        }
        let first = self.probe.first_of(tag, probes);
        for count in 0..probes {
            self.redo_entry(io, self.probe.slot(first, count), position, |entry| Entry {
                passes: match entry.passes {
                    passes if passes == passes_max => passes,
                    passes if comes => passes + 1,
                    passes => passes.saturating_sub(1),
                },
                ..entry
            })?;
        }
        Ok(())
    }

    pub(super) fn redo_entry(
        &mut self,
        io: &mut Io<'_>,
        slot: u64,
        position: usize,
        change: impl FnOnce(Entry) -> Entry,
    ) -> Result<(), KvError> {
        if slot >= self.slots {
            return Err(KvError::Unrecovered("the journal speaks of a slot that the index has not".to_owned()));
        }
        if self.sections.redo_wants(io, self.section_of(slot).0, position)? {
            let entry = self.entry(io, slot)?.0;
            self.set_entry(io, slot, change(entry))?;
        }
        Ok(())
    }
}
