//! How a hash index comes back: the directory and the changed sections of a checkpoint, and the journal from there on.
//!
//! A section on flash holds all that was done to it before it was written. So a change is made again only to those of
//! its sections that were not written behind it.

use crate::address::Grain;
use crate::index::cache::Ticket;
use crate::index::hash::{DirectoryEntry, HashIndex};
use crate::index::probe::{Entry, PROBES_MAX};
use crate::index::section::SectionLayout;
use crate::io::Io;
use crate::journal::Change;
use kvssd_flash::Blob;
use kvssd_types::KvError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a checkpoint holds of an index.
#[derive(Serialize, Deserialize)]
struct Saved {
    /// Place and bytes of each section on flash.
    directory: Vec<(Grain, u32)>,
    /// Sections that are not on flash as they are.
    dirty: BTreeMap<u64, Vec<u8>>,
}

/// What a mount knows beside the index itself.
#[derive(Debug, Default)]
pub(super) struct Redo {
    dirty: BTreeMap<u64, Vec<u8>>,
    /// Behind which change each section was written last.
    written: BTreeMap<u64, usize>,
}

impl<L: SectionLayout> HashIndex<L> {
    pub(super) fn saved(&self) -> Vec<u8> {
        let dirty = self.cache.leavers().filter(|cached| cached.dirty);
        let saved = Saved {
            directory: self.directory.iter().map(|entry| (entry.place, entry.bytes)).collect(),
            dirty: dirty.map(|cached| (cached.section, cached.bytes.to_vec())).collect(),
        };
        postcard::to_allocvec(&saved).expect("a directory is plain data")
    }

    pub(super) fn restored(&mut self, bytes: &[u8]) -> Option<()> {
        let Saved { directory, dirty } = postcard::from_bytes(bytes).ok()?;
        let sections = self.directory.len();
        let is_ours = directory.len() == sections
            && directory.iter().all(|&(place, bytes)| place == Grain(0) || self.can_have(bytes))
            && dirty.iter().all(|(&section, bytes)| section < sections as u64 && self.layout.has_form(bytes));
        if !is_ours {
            return None;
        }
        self.directory =
            directory.into_iter().map(|(place, bytes)| DirectoryEntry { place, bytes, cached: Ticket::NONE }).collect();
        self.redo = Redo { dirty, written: BTreeMap::new() };
        Some(())
    }

    /// Whether a section may have so many bytes on flash.
    fn can_have(&self, bytes: u32) -> bool {
        (1..=self.layout.bytes_max()).contains(&bytes)
    }

    pub(super) fn written(&mut self, change: &Change, position: usize) -> Option<()> {
        if let Change::Own { number, place, bytes, .. } = *change {
            if !self.can_have(bytes) {
                return None;
            }
            let entry = self.directory.get_mut(number as usize)?;
            *entry = DirectoryEntry { place, bytes, ..*entry };
            self.redo.dirty.remove(&number);
            self.redo.written.insert(number, position);
        }
        Some(())
    }

    pub(super) fn redone(&mut self, io: &mut Io<'_>, change: &Change, position: usize) -> Result<(), KvError> {
        match *change {
            Change::Bound { tag, probes, pair, old } => {
                if old.is_none() {
                    self.redo_passes(io, tag, probes, position, true)?;
                }
                self.redo_entry(io, tag, position, |entry| Entry { place: pair.place, ..entry })
            }
            Change::Unbound { tag, probes, .. } => {
                self.redo_entry(io, tag, position, |entry| Entry { place: Grain(0), ..entry })?;
                self.redo_passes(io, tag, probes, position, false)
            }
            Change::Moved { tag, to, .. } => self.redo_entry(io, tag, position, |entry| Entry { place: to, ..entry }),
            _ => Ok(()),
        }
    }

    pub(super) fn recovered(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        for (section, bytes) in std::mem::take(&mut self.redo.dirty) {
            if self.directory[section as usize].cached == Ticket::NONE {
                self.take_back(io, section, bytes)?;
            }
        }
        self.redo = Redo::default();
        self.surplus_bytes = self.cache.bytes();
        let shares = self.directory.iter().map(|entry| match entry.cached {
            Ticket::NONE => entry.bytes as usize,
            cached => self.cache.get(cached).bytes.len(),
        });
        self.footprint_bytes = shares.filter(|&bytes| bytes > 0).map(|bytes| self.share_of_page(bytes)).sum();
        Ok(())
    }

    fn redo_passes(
        &mut self,
        io: &mut Io<'_>,
        tag: u64,
        probes: u32,
        position: usize,
        comes: bool,
    ) -> Result<(), KvError> {
        let passes_max = self.layout.passes_max();
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

    fn redo_entry(
        &mut self,
        io: &mut Io<'_>,
        slot: u64,
        position: usize,
        change: impl FnOnce(Entry) -> Entry,
    ) -> Result<(), KvError> {
        let section = self.section_of(slot).0;
        if slot >= self.slots {
            return Err(KvError::Unrecovered("the journal speaks of a slot that the index has not".to_owned()));
        }
        if self.redo.written.get(&section).is_some_and(|&written| written > position) {
            return Ok(());
        }
        if let Some(bytes) = self.redo.dirty.remove(&section) {
            self.take_back(io, section, bytes)?;
        }
        let entry = self.entry(io, slot)?.0;
        self.set_entry(io, slot, change(entry))
    }

    /// Puts a changed section of the checkpoint back into DRAM.
    fn take_back(&mut self, io: &mut Io<'_>, section: u64, bytes: Vec<u8>) -> Result<(), KvError> {
        let ticket = self.admit(io, section, Blob::from(bytes))?;
        self.cache.get_mut(ticket).dirty = true;
        Ok(())
    }
}
