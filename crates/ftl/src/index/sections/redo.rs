//! How sections come back: the directory and the changed sections of a checkpoint, and the journal from there on.
//!
//! A section on flash holds all that was done to it before it was written. So a change is made again only to those of
//! its sections that were not written behind it.

use crate::index::sections::{DirectoryEntry, SectionForm, Sections, Ticket};
use crate::io::Io;
use crate::layout::address::Grain;
use kvssd_flash::Blob;
use kvssd_types::KvError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a checkpoint holds of sections.
#[derive(Serialize, Deserialize)]
pub struct SavedSections {
    /// Place and bytes of each section on flash.
    directory: Vec<(Grain, u32)>,
    /// Sections that are not on flash as they are.
    dirty: BTreeMap<u64, Vec<u8>>,
}

/// What a mount knows beside the sections themselves.
#[derive(Clone, Debug, Default)]
pub(super) struct Redo {
    dirty: BTreeMap<u64, Vec<u8>>,
    /// Behind which change each section was written last.
    written: BTreeMap<u64, usize>,
}

impl Redo {
    /// Whether the checkpoint holds the bytes of a section that no change has wanted yet.
    pub(super) fn has(&self, number: u64) -> bool {
        self.dirty.contains_key(&number)
    }
}

impl<F: SectionForm> Sections<F> {
    /// As [`Index::save`](crate::index::Index::save).
    pub(crate) fn save(&self) -> SavedSections {
        let dirty = self.cache.leavers().filter(|cached| cached.dirty);
        SavedSections {
            directory: self.directory.iter().map(|entry| (entry.place, entry.bytes)).collect(),
            dirty: dirty.filter_map(|cached| Some((cached.section?, cached.bytes.to_vec()))).collect(),
        }
    }

    /// As [`Index::restore`](crate::index::Index::restore).
    pub(crate) fn restore(&mut self, saved: SavedSections) -> Option<()> {
        let SavedSections { directory, dirty } = saved;
        let sections = self.directory.len();
        let is_ours = directory.len() == sections
            && directory.iter().all(|&(place, bytes)| place == Grain(0) || self.can_have(bytes))
            && dirty.iter().all(|(&section, bytes)| section < sections as u64 && self.form.has_form(bytes));
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
        (1..=self.form.bytes_max()).contains(&bytes)
    }

    /// A section was written as change number `position`. None when there can be no such section.
    pub(crate) fn redo_written(&mut self, number: u64, place: Grain, bytes: u32, position: usize) -> Option<()> {
        if !self.can_have(bytes) {
            return None;
        }
        let entry = self.directory.get_mut(number as usize)?;
        *entry = DirectoryEntry { place, bytes, ..*entry };
        self.redo.dirty.remove(&number);
        self.redo.written.insert(number, position);
        Some(())
    }

    /// A section was replaced by two others as change number `position`. None when there can be no such sections.
    pub(crate) fn redo_split(
        &mut self,
        number: u64,
        halves: [u64; 2],
        places: [Grain; 2],
        bytes: u32,
        position: usize,
    ) -> Option<()> {
        for (half, place) in halves.into_iter().zip(places) {
            self.redo_written(half, place, bytes, position)?;
        }
        self.redo.dirty.remove(&number);
        *self.directory.get_mut(number as usize)? = DirectoryEntry::NOWHERE;
        Some(())
    }

    /// Whether change number `position` has to be made again to a section, which is as it was before then: in flash, or
    /// in DRAM.
    pub(crate) fn redo_wants(&mut self, io: &mut Io<'_>, number: u64, position: usize) -> Result<bool, KvError> {
        if self.redo.written.get(&number).is_some_and(|&written| written > position) {
            return Ok(false);
        }
        if let Some(bytes) = self.redo.dirty.remove(&number) {
            self.take_back(io, number, bytes)?;
        }
        Ok(true)
    }

    /// As [`Index::end_redo`](crate::index::Index::end_redo).
    pub(crate) fn end_redo(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        // What was only looked at leaves: were it changed beyond the budget, the next checkpoint would not fit what is kept for it.
        self.first_blank = None;
        let mut brought = std::mem::take(&mut self.cache);
        while let Some(cached) = brought.pop() {
            let Some(number) = cached.section else { continue };
            let is_changed = cached.dirty || cached.moved;
            self.directory[number as usize].cached = if is_changed { self.cache.push(cached) } else { Ticket::NONE };
        }
        for (number, bytes) in std::mem::take(&mut self.redo.dirty) {
            if self.directory[number as usize].cached == Ticket::NONE {
                self.take_back(io, number, bytes)?;
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

    /// Puts a changed section of the checkpoint back into DRAM.
    fn take_back(&mut self, io: &mut Io<'_>, number: u64, bytes: Vec<u8>) -> Result<(), KvError> {
        let ticket = self.admit(io, number, Blob::from(bytes))?;
        self.cache.get_mut(ticket).dirty = true;
        Ok(())
    }
}
