//! What an index of sections sees while a command, a task or a mount is at work: its sections, by way of an I/O
//! context.
//!
//! What [`View::bytes`] gives is good until the next section is loaded or edited: that may evict this one.

use crate::index::lookups::Lookups;
use crate::index::sections::{SectionEdit, SectionForm, Sections, Ticket};
use crate::io::{Io, readable};
use kvssd_flash::Blob;
use kvssd_types::KvError;

/// Sections, and the clock of the command or task that uses them.
pub struct View<'v, 'm, F> {
    /// The clock.
    pub io: &'v mut Io<'m>,
    pub(super) sections: &'v mut Sections<F>,
    pub(super) lookups: &'v mut Lookups,
    /// The position in the journal of the change that a mount redoes.
    pub(super) redo: Option<usize>,
    pub(super) budget_bytes: u64,
}

impl<F: SectionForm> View<'_, '_, F> {
    /// What the sections look like.
    #[must_use]
    pub fn form(&self) -> &F {
        self.sections.form()
    }

    /// Charges a core for finding a section by the directory.
    pub fn look_up_directory(&mut self) {
        self.io.cpu(self.io.costs().section_ns);
    }

    /// Charges a core for comparing so many entries.
    pub fn compare(&mut self, entries: u64) {
        self.io.cpu(entries * self.io.costs().comparison_ns);
    }

    /// Brings a section into DRAM. Another one may leave it. While a mount redoes a change, the section may be as it is behind later ones.
    ///
    /// # Errors
    /// What the flash operations answer.
    pub fn load(&mut self, section: u64) -> Result<Ticket, KvError> {
        if let Some(position) = self.redo {
            self.sections.redo_wants(self.io, section, position)?;
        }
        self.sections.load(self.io, section)
    }

    /// The bytes of the section that was loaded.
    #[must_use]
    pub fn bytes(&self, ticket: Ticket) -> &Blob {
        self.sections.bytes(ticket)
    }

    /// Whether the directory tells that a section is empty: it need not be loaded.
    #[must_use]
    pub fn is_nowhere(&self, section: u64) -> bool {
        self.sections.is_nowhere(section)
    }

    /// Edits a section. `edit` returns the comparisons that it takes, or `None` if the edit cannot be done: it must know that
    /// before it calls [`SectionEdit::to_mut`].
    ///
    /// Returns whether the edit is done. If a mount redoes a change and the section was written behind it, `edit` is not
    /// called and the result is `true`: the section has the change already, if the change concerns it at all. It is `true` as well if the section
    /// cannot be read.
    ///
    /// # Errors
    /// What the flash operations answer.
    pub fn edit(
        &mut self,
        section: u64,
        edit: impl FnOnce(&F, &mut SectionEdit<'_, '_>) -> Option<u32>,
    ) -> Result<bool, KvError> {
        if let Some(position) = self.redo
            && !self.sections.redo_wants(self.io, section, position)?
        {
            return Ok(true);
        }
        let edited = self.sections.edit(self.io, section, edit);
        // A mount goes on without a section that is damaged: its keys cannot be read, as if the drive had been closed.
        let edited = if self.is_redo() { readable(edited)? } else { Some(edited?) };
        let Some(comparisons) = edited else { return Ok(true) };
        self.compare(comparisons.unwrap_or(0).into());
        self.sections.keep_to_budget(self.io)?;
        Ok(comparisons.is_some())
    }

    /// Whether a mount redoes the change.
    #[must_use]
    pub fn is_redo(&self) -> bool {
        self.redo.is_some()
    }

    /// How many sections stay in DRAM for sure when they are loaded together.
    #[must_use]
    pub fn at_once(&self) -> usize {
        self.sections.at_once(self.io)
    }

    /// Brings several sections into DRAM, read side by side, except for those that cannot be read.
    ///
    /// # Errors
    /// What the flash operations answer.
    pub fn load_all(&mut self, sections: &[u64]) -> Result<(), KvError> {
        if let Some(position) = self.redo {
            sections.iter().try_for_each(|&section| self.sections.redo_wants(self.io, section, position).map(drop))?;
        }
        self.sections.load_all(self.io, sections)
    }

    /// The sections that are on flash and not in DRAM.
    #[must_use]
    pub fn missing(&self) -> Vec<u64> {
        self.sections.missing()
    }

    /// Pages of a superblock.
    #[must_use]
    pub fn superblock_pages(&self) -> usize {
        self.io.media.space.geometry.pages_per_superblock() as usize
    }

    /// Bytes of flash that the sections take.
    #[must_use]
    pub fn footprint_bytes(&self) -> u64 {
        self.sections.footprint_bytes()
    }

    /// The DRAM that the index and its sections may take together.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// Extends the directory to `sections` sections, and limits the cache to `cache_bytes_max`.
    pub fn resize(&mut self, sections: u64, cache_bytes_max: u64) {
        self.sections.grow(sections);
        self.sections.set_budget(cache_bytes_max);
    }

    /// Replaces a section that is in DRAM ([`View::load`]) by two others with these bytes, which are appended to the log at once. They
    /// hold all changes that the one before them held, and are of one length. Both have new numbers, neither that of the section which is
    /// split: there is none of that number any more. The directory knows both ([`View::resize`]).
    ///
    /// # Panics
    /// If it does not, the lengths differ, or the index does not say that [its sections split](crate::index::SectionIndex::SPLITS).
    ///
    /// # Errors
    /// What the flash operations answer.
    pub fn split(&mut self, section: u64, halves: [u64; 2], parts: [Blob; 2]) -> Result<(), KvError> {
        self.sections.split(self.io, section, halves, parts)
    }
}
