//! The seam for an index whose sections split as they fill, as extendible hashing has it: what is particular to it.
//!
//! ```text
//!   Index  <-- Sectioned<I>   <-- I: SectionIndex   <-- I: SplitIndex      splitting, room, lists, redo, counts, what is saved
//!                                                         |
//!                                                         +-- I::Form: SplitForm      when a section is full, what its halves are
//!                                                         +-- SplitDirectory          which section a tag belongs to
//! ```

use crate::dram::DramUse;
use crate::index::{
    Growth, IndexEntry, PairChange, Position, SavedSections, Search, SectionForm, SectionIndex, SplitDirectory, View,
    list_in_split_order,
};
use crate::layout::address::Grain;
use kvssd_flash::Blob;
use kvssd_types::{Key, KvError};

/// Sections that can be split.
pub trait SplitForm: SectionForm {
    /// A section of this depth is split no further, at most [`SplitDirectory::DEPTH_MAX`]: with no room in it, the index is full.
    fn depth_max(&self) -> u32 {
        SplitDirectory::DEPTH_MAX
    }

    /// The sections of an empty index are so deep.
    fn depth_min(&self) -> u32 {
        0
    }

    /// Whether a section of that depth takes one more pair with `tag`.
    fn has_room(&self, section: &Blob, tag: u64, depth: u32) -> bool;

    /// The halves of a section of that depth, of one length: the pairs whose tag has a 0 in bit `depth`, and those with a 1.
    /// Also how many entries that looks at.
    ///
    /// # Errors
    /// [`KvError::Unrecovered`] when the bytes, which come from flash, are not those of a section of that depth.
    fn split(&self, section: &Blob, depth: u32) -> Result<([Blob; 2], u64), KvError>;
}

/// An index whose sections split: a [`SectionIndex`] by what is particular to it. The contract is that one's.
pub trait SplitIndex: Clone + Send + Sync {
    /// What its sections look like.
    type Form: SplitForm + Copy;

    /// What its sections look like.
    fn form(&self) -> Self::Form;

    /// Which section a tag belongs to, and how many pairs there are.
    fn directory(&self) -> &SplitDirectory;

    /// The same, to be changed.
    fn directory_mut(&mut self) -> &mut SplitDirectory;

    /// As [`SectionIndex::tags`].
    fn tags(&self) -> u64;

    /// As [`SectionIndex::first_tag`]: by default the low bits of the hash, where [`SplitIndex::tags`] is a power of two.
    fn first_tag(&self, hash: u64) -> u64 {
        hash & (self.tags() - 1)
    }

    /// As [`SectionIndex::find`].
    fn find(&self, section: &[u8], tag: u64, place: Grain) -> (bool, u32);

    /// As [`SectionIndex::place_of`].
    fn place_of(&self, section: &[u8], tag: u64) -> Option<Grain>;

    /// As [`SectionIndex::entries`].
    fn entries(&self, number: u64, section: &[u8]) -> impl Iterator<Item = IndexEntry>;

    /// As [`SectionIndex::locate`]. [`Position::FULL`] is for a new key whose section is full and as deep as [`SplitForm::depth_max`].
    fn locate(&self, sections: &mut impl Search<Self::Form>, key: Key<'_>, hash: u64) -> Result<Position, KvError>;

    /// What [`SectionIndex::change`] does beside counting the pairs; at run time behind [`SplitIndex::split_until_room`].
    ///
    /// # Errors
    /// As [`SectionIndex::change`].
    fn change_section(&mut self, view: &mut View<'_, '_, Self::Form>, change: &PairChange<'_>)
    -> Result<bool, KvError>;

    /// As [`SectionIndex::pairs`].
    fn pairs(&self) -> Option<u64> {
        Some(self.directory().pairs())
    }

    /// As [`SectionIndex::growth`].
    fn growth(&self) -> Growth {
        Growth::None
    }

    /// As [`SectionIndex::grow`].
    fn grow(&mut self, view: &mut View<'_, '_, Self::Form>) -> Result<(), KvError> {
        let _ = view;
        Ok(())
    }

    /// As [`SectionIndex::save`]: the directory and the sections.
    fn save(&self, sections: SavedSections) -> Vec<u8> {
        postcard::to_allocvec(&(self.directory(), sections)).expect("a directory is plain data")
    }

    /// As [`SectionIndex::restore`], whose directory is no deeper and no shallower than the form's.
    fn restore(&mut self, bytes: &[u8]) -> Option<SavedSections> {
        let (directory, sections): (SplitDirectory, _) = postcard::from_bytes(bytes).ok()?;
        *self.directory_mut() = directory;
        Some(sections)
    }

    /// As [`SectionIndex::end_redo`].
    fn end_redo(&mut self, view: &mut View<'_, '_, Self::Form>) -> Result<(), KvError> {
        let _ = view;
        Ok(())
    }

    /// Splits the section of `tag` until it takes one more pair.
    ///
    /// # Errors
    /// [`KvError::CapacityExceeded`] when it can be split no further; what the flash operations answer.
    fn split_until_room(&mut self, view: &mut View<'_, '_, Self::Form>, tag: u64) -> Result<(), KvError> {
        loop {
            let section = self.directory().section_of(tag);
            let depth = SplitDirectory::depth_of(section);
            let ticket = view.load(section)?;
            if view.form().has_room(view.bytes(ticket), tag, depth) {
                return Ok(());
            }
            if depth >= view.form().depth_max() {
                return Err(KvError::CapacityExceeded);
            }
            self.split_section(view, section)?;
        }
    }

    /// Replaces a section by its halves.
    ///
    /// # Errors
    /// What [`SplitForm::split`] and the flash operations answer.
    fn split_section(&mut self, view: &mut View<'_, '_, Self::Form>, section: u64) -> Result<(), KvError> {
        let ticket = view.load(section)?;
        let (parts, entries) = view.form().split(view.bytes(ticket), SplitDirectory::depth_of(section))?;
        view.compare(entries);
        self.directory_mut().split(section);
        view.resize(self.directory().numbers(), self.cache_bytes_max(view.budget_bytes()));
        view.split(section, SplitDirectory::halves_of(section), parts)
    }
}

impl<I: SplitIndex> SectionIndex for I {
    type Form = I::Form;

    const SPLITS: bool = true;

    fn form(&self) -> I::Form {
        SplitIndex::form(self)
    }

    fn sections(&self) -> u64 {
        self.directory().numbers()
    }

    fn tags(&self) -> u64 {
        SplitIndex::tags(self)
    }

    fn section_of(&self, tag: u64) -> u64 {
        self.directory().section_of(tag)
    }

    fn find(&self, section: &[u8], tag: u64, place: Grain) -> (bool, u32) {
        SplitIndex::find(self, section, tag, place)
    }

    fn place_of(&self, section: &[u8], tag: u64) -> Option<Grain> {
        SplitIndex::place_of(self, section, tag)
    }

    fn entries(&self, number: u64, section: &[u8]) -> impl Iterator<Item = IndexEntry> {
        SplitIndex::entries(self, number, section)
    }

    fn first_tag(&self, hash: u64) -> u64 {
        SplitIndex::first_tag(self, hash)
    }

    fn locate(&self, sections: &mut impl Search<I::Form>, key: Key<'_>, hash: u64) -> Result<Position, KvError> {
        SplitIndex::locate(self, sections, key, hash)
    }

    fn reserve(&mut self, view: &mut View<'_, '_, I::Form>, tag: u64) -> Result<(), KvError> {
        self.split_until_room(view, tag)
    }

    fn change(&mut self, view: &mut View<'_, '_, I::Form>, change: &PairChange<'_>) -> Result<bool, KvError> {
        let directory = self.directory_mut();
        directory.recount(change.count(directory.pairs()));
        self.change_section(view, change)
    }

    /// In an order that no split changes.
    fn list(
        &mut self,
        view: &mut View<'_, '_, I::Form>,
        from: Option<Position>,
        count: usize,
    ) -> Result<Vec<Grain>, KvError> {
        list_in_split_order(self, view, from, count)
    }

    fn save(&self, sections: SavedSections) -> Vec<u8> {
        SplitIndex::save(self, sections)
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<SavedSections> {
        let sections = SplitIndex::restore(self, bytes)?;
        let form = SplitIndex::form(self);
        self.directory().is_between(form.depth_min(), form.depth_max()).then_some(sections)
    }

    fn dram(&self, dram: &mut DramUse) {
        dram.add("index_directory", self.directory().entries() * SplitIndex::form(self).directory_entry_bytes());
    }

    fn growth(&self) -> Growth {
        SplitIndex::growth(self)
    }

    fn grow(&mut self, view: &mut View<'_, '_, I::Form>) -> Result<(), KvError> {
        SplitIndex::grow(self, view)
    }

    fn redo_section(&mut self, number: u64) -> bool {
        self.directory().has(number)
    }

    fn redo_split(&mut self, number: u64) -> Option<[u64; 2]> {
        let depth_max = SplitIndex::form(self).depth_max();
        let directory = self.directory_mut();
        let can_be = directory.has(number) && SplitDirectory::depth_of(number) < depth_max;
        can_be.then(|| {
            directory.split(number);
            SplitDirectory::halves_of(number)
        })
    }

    fn end_redo(&mut self, view: &mut View<'_, '_, I::Form>) -> Result<(), KvError> {
        SplitIndex::end_redo(self, view)
    }

    fn pairs(&self) -> Option<u64> {
        SplitIndex::pairs(self)
    }
}
