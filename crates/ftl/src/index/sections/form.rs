//! What a section looks like in bytes, and how it is edited.

use super::cache::Cached;
use crate::io::Io;
use crate::layout::address::Grain;
use kvssd_flash::Blob;
use std::ops::Deref;

/// What a section looks like in bytes.
pub trait SectionForm: Send + Sync {
    /// A section without entries. It has a byte at the least, as every section does; an edit may change how many there are.
    fn empty(&self) -> Blob;

    /// The most bytes that a section takes.
    fn bytes_max(&self) -> u32;

    /// What the directory keeps in DRAM for each section: the place on flash, and the size where that differs.
    fn directory_entry_bytes(&self) -> u64;

    /// Whether a section from flash has the form of one, so that it can be searched and changed.
    fn has_form(&self, section: &[u8]) -> bool;

    /// What is wrong with a section's counts, order or entries, if anything.
    fn fault(&self, section: &[u8]) -> Option<&'static str>;
}

/// A section that is edited.
pub struct SectionEdit<'s, 'm> {
    cached: &'s mut Cached,
    on_flash: Grain,
    io: &'s mut Io<'m>,
}

impl<'s, 'm> SectionEdit<'s, 'm> {
    pub(super) fn new(cached: &'s mut Cached, on_flash: Grain, io: &'s mut Io<'m>) -> Self {
        SectionEdit { cached, on_flash, io }
    }

    /// Its bytes, to be changed, or replaced by more or fewer. Memory lets go of the section on flash: nobody will read that again.
    #[inline]
    pub fn to_mut(&mut self) -> &mut Blob {
        if self.io.moves_dirty_nothing() && !self.cached.dirty && self.on_flash != Grain(0) {
            self.cached.moved = true;
            return &mut self.cached.bytes;
        }
        if !self.cached.dirty && self.on_flash != Grain(0) {
            self.cached.forgotten = self.io.forget(self.on_flash);
        }
        self.cached.dirty = true;
        &mut self.cached.bytes
    }
}

impl Deref for SectionEdit<'_, '_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.cached.bytes
    }
}
