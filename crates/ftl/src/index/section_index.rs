//! The seam for an index that is cut into sections: what is particular to it.
//! [`Sectioned`](crate::index::Sectioned) does the rest.
//!
//! ```text
//!   Index  <-- Sectioned<I>     sections in DRAM and on flash, collection, liveness, checkpoints, redo, checks, counts
//!                 |
//!                 +-- I: SectionIndex        where a key lives, and how a change is made
//!                        I::Form: SectionForm   what the bytes of a section mean
//! ```
//!
//! # The contract
//!
//! The compiler cannot check it; the conformance suite does.
//!
//! **Tags.** A pair is known by its tag and its place. Several keys may have one tag, and no two pairs have one place.
//! - A tag is below [`SectionIndex::tags`], and stays the same while its key is there.
//! - It follows from the key ([`SectionIndex::HAS_TAGS_OF_KEYS`]: it is the `first_tag` of the key's hash), or from
//!   where the entry lies. In the second case the index brings an [`SectionIndex::audit`] of its own.
//! - [`SectionIndex::entries`] tells the tag of each entry from the section's bytes and number alone.
//!   [`SectionIndex::belongs`] agrees.
//! - The entry of a pair lies in one of the sections that [`SectionIndex::section_at`] names for its tag, and in no
//!   other. Their numbers are below [`SectionIndex::sections`].
//!
//! **Looking up.** [`SectionIndex::locate`] changes nothing: where all is in DRAM, several look up at a time.
//! [`Search::verify`] alone tells whether a record is the key's; it costs a read. Where entries keep keys whole, they tell that themselves: such
//! an index has its keys noted ([`SectionIndex::notes_keys`]), and may give [`Position::value_bytes`].
//! - The answer for a key that is there: its tag, its place, and a note for the change. These stay true while other
//!   keys come and go: a batch looks all of its keys up before it makes its changes.
//! - The answer for a new key: no place, and the tag that it will have, or [`Position::FULL`]. Whether a new key is
//!   refused depends on what the index holds and not on the key: until something goes, a drive that refuses one key
//!   refuses the next. So the limit is a number of pairs, low enough that no bucket overflows before, except for keys that somebody chose by their
//!   hashes.
//!
//! **Changing.** [`SectionIndex::change`] runs when a command or garbage collection makes a change, and again when a
//! mount redoes it.
//! - It changes sections through [`View::edit`] alone. While a change runs, no section leaves DRAM.
//! - At run time what was located, or has room, can be done: the answer `false` is a panic. When a mount redoes, tag
//!   and note come from flash and may be any numbers: what cannot be done is answered by `false`, without a panic.
//! - When a mount redoes, [`View::edit`] answers `true` for a section that was written behind the change or cannot be read, and does not
//!   say whether the pair was in it. So a change that may concern several sections edits each of them.
//! - It takes no other pair to another section, as the kicks of a cuckoo hash would: where the one section was written behind the change
//!   and the other was not, a mount has no way to tell which pair went. What has no room lies in a section of another level, or in DRAM.
//! - What the index counts in DRAM follows from the changes alone, and it counts each of them both times. It is in
//!   [`SectionIndex::save`] and [`SectionIndex::restore`]; a check compares [`SectionIndex::pairs`] with the entries.
//! - A redone change has no key, except for [`PairChange::Insert`] where [`SectionIndex::notes_keys`] says so.
//!
//! **Lists.** The order stays as it is while no key comes or goes. Who lists page by page while keys come sees all that stay: a split moves no
//! pair from behind such a page to before it. The list that comes along goes by the numbers of sections, and orders pairs of one tag by
//! place: two of these change places when garbage collection moves one.
//!
//! **DRAM.** What the index keeps beside cached sections is in [`SectionIndex::dram`], under names that begin with
//! `index_`.
//!
//! # What is called when
//!
//! ```text
//!   new index     restore -> redo_section, redo_split, in order -> change, in order -> end_redo         a mount
//!   a command     prepare -> locate -> reserve, of a new key -> change
//!   a list        prepare -> list
//!   collection    prepare -> known -> find -> change(Move), of pairs that live
//!   in between    grow, while growth says so; save, for a checkpoint; entries and contents, for a check
//! ```

use crate::dram::DramUse;
use crate::index::sections::SavedSections;
use crate::index::{
    Audit, DramTable, Growth, Index, IndexContents, IndexCounters, IndexEntry, PairChange, Position, Search,
    SectionForm, View, audit_tags,
};
use crate::layout::address::Grain;
use kvssd_types::{Key, KvError};
use xxhash_rust::xxh3::xxh3_64;

/// What is particular to an index of sections.
pub trait SectionIndex: Clone + Send + Sync + Sized {
    /// What its sections look like.
    type Form: SectionForm + Copy;

    /// As [`IndexPlan::has_tags_of_keys`](crate::index::IndexPlan::has_tags_of_keys).
    const HAS_TAGS_OF_KEYS: bool = true;

    /// Whether its sections split ([`View::split`]). Campaigns of power cuts see to it that splits are made again.
    const SPLITS: bool = false;

    /// Whether sections that no longer fit the DRAM budget leave step by step, as work of the index's own.
    const SHRINKS_IN_STEPS: bool = false;

    /// What its sections look like.
    fn form(&self) -> Self::Form;

    /// How many sections there are. It never becomes less; [`View::resize`] makes it more.
    fn sections(&self) -> u64;

    /// The exclusive upper bound of all tags.
    fn tags(&self) -> u64;

    /// The section of a pair with this tag; with several levels, that of the first one.
    fn section_of(&self, tag: u64) -> u64;

    /// Whether a section has the pair with that tag and place, and how many comparisons that takes. It is not told
    /// which section it is.
    fn find(&self, section: &[u8], tag: u64, place: Grain) -> (bool, u32);

    /// The place of a pair with that tag in a section. A hint: it may be wrong.
    fn place_of(&self, section: &[u8], tag: u64) -> Option<Grain>;

    /// The entries of section `number`, in the order in which they lie.
    fn entries(&self, number: u64, section: &[u8]) -> impl Iterator<Item = IndexEntry>;

    /// The hash by which the index knows a key.
    fn hash(&self, key: Key<'_>) -> u64 {
        xxh3_64(key.bytes())
    }

    /// The tag at which a search for a key with that hash begins.
    fn first_tag(&self, hash: u64) -> u64;

    /// Finds `key`, which has that hash. [`Search::verify`] reads the record at a candidate place and compares the whole key.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn locate(&self, sections: &mut impl Search<Self::Form>, key: Key<'_>, hash: u64) -> Result<Position, KvError>;

    /// As [`Index::position_uncompared`].
    fn position_uncompared(&self, key: Key<'_>, hash: u64) -> Option<Position> {
        let _ = (key, hash);
        None
    }

    /// As [`Index::compare`], of these tags or of some.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn compare(&mut self, view: &mut View<'_, '_, Self::Form>, tags: Option<&[u64]>) -> Result<(), KvError> {
        let _ = (view, tags);
        Ok(())
    }

    /// As [`Index::uncompared`].
    fn uncompared(&self) -> Vec<Grain> {
        Vec::new()
    }

    /// Makes a change, now or once more for a mount ([`View::is_redo`]); returns whether it can be made.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn change(&mut self, view: &mut View<'_, '_, Self::Form>, change: &PairChange<'_>) -> Result<bool, KvError>;

    /// As [`Index::tag_of`].
    fn tag_of(&self, key: Key<'_>) -> Option<u64> {
        Self::HAS_TAGS_OF_KEYS.then(|| self.first_tag(self.hash(key)))
    }

    /// As [`Index::list`]: section by section, and in each by tag and place. Where there are levels, the note of a
    /// position must be the level of its section; that of a key that is gone may be another than it had, and then a list that goes on from it
    /// misses keys: an index that must not has an order of its own.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn list(
        &mut self,
        view: &mut View<'_, '_, Self::Form>,
        from: Option<Position>,
        count: usize,
    ) -> Result<Vec<Grain>, KvError> {
        let start = from.map(|from| (from.note, self.first_tag(from.hash), from.place.unwrap_or(Grain(0))));
        let first = start.map_or(0, |(level, tag, _)| self.section_at(tag, level.min(self.levels() - 1)));
        let mut places = Vec::new();
        for section in first..self.sections() {
            if places.len() >= count {
                break;
            }
            if view.is_nowhere(section) {
                continue;
            }
            let ticket = view.load(section)?;
            let entries = self.entries(section, view.bytes(ticket)).map(|entry| (entry.tag, entry.place));
            let is_next =
                |entry: &(u64, Grain)| section > first || start.is_none_or(|(_, tag, place)| *entry >= (tag, place));
            let mut listed: Vec<(u64, Grain)> = entries.filter(is_next).collect();
            listed.sort_unstable();
            view.compare(listed.len() as u64);
            places.extend(listed.into_iter().take(count - places.len()).map(|(_, place)| place));
        }
        Ok(places)
    }

    /// Encodes the state of the index that only DRAM holds, with its sections, for a checkpoint.
    fn save(&self, sections: SavedSections) -> Vec<u8> {
        postcard::to_allocvec(&sections).expect("a directory is plain data")
    }

    /// Restores what [`SectionIndex::save`] encoded, and returns the sections. `None` if the bytes, which come from flash, are
    /// not those of such an index.
    fn restore(&mut self, bytes: &[u8]) -> Option<SavedSections> {
        postcard::from_bytes(bytes).ok()
    }

    /// Charges what it keeps in DRAM except for sections in the cache.
    fn dram(&self, dram: &mut DramUse) {
        dram.add("index_directory", self.sections() * self.form().directory_entry_bytes());
    }

    /// The most that sections in the cache may take of a budget for all that the index keeps in DRAM.
    fn cache_bytes_max(&mut self, budget_bytes: u64) -> u64 {
        let mut own = DramUse::default();
        self.dram(&mut own);
        budget_bytes.saturating_sub(own.total_bytes())
    }

    /// A command, a list or a step of garbage collection begins: an index that is to be in DRAM as a whole loads
    /// itself.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn prepare(&mut self, view: &mut View<'_, '_, Self::Form>) -> Result<(), KvError> {
        let _ = view;
        Ok(())
    }

    /// As [`Index::reserve`].
    ///
    /// # Errors
    /// What the flash operations answer.
    fn reserve(&mut self, view: &mut View<'_, '_, Self::Form>, tag: u64) -> Result<(), KvError> {
        let _ = (view, tag);
        Ok(())
    }

    /// In how many sections a pair may lie: one in each level.
    fn levels(&self) -> u32 {
        1
    }

    /// The section of a level in which a pair with that tag would lie.
    fn section_at(&self, tag: u64, level: u32) -> u64 {
        let _ = level;
        self.section_of(tag)
    }

    /// The sort key by which pairs are visited section by section: the section, or something finer.
    fn order(&self, tag: u64, level: u32) -> u64 {
        self.section_at(tag, level)
    }

    /// Whether the index has a pair, if DRAM knows that without its sections.
    fn known(&self, tag: u64, place: Grain) -> Option<bool> {
        let _ = (tag, place);
        None
    }

    /// As [`Index::growth`].
    fn growth(&self) -> Growth {
        Growth::None
    }

    /// As [`Index::grow`].
    ///
    /// # Errors
    /// What the flash operations answer.
    fn grow(&mut self, view: &mut View<'_, '_, Self::Form>) -> Result<(), KvError> {
        let _ = view;
        Ok(())
    }

    /// A mount finds that a section with that number was written; returns whether the index can have it.
    fn redo_section(&mut self, number: u64) -> bool {
        number < self.sections()
    }

    /// A mount finds that a section was split; returns its halves, the same two new numbers that [`View::split`] was given: neither is
    /// `number`. None when the index cannot have that.
    fn redo_split(&mut self, number: u64) -> Option<[u64; 2]> {
        let _ = number;
        None
    }

    /// A mount has made all changes again.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn end_redo(&mut self, view: &mut View<'_, '_, Self::Form>) -> Result<(), KvError> {
        let _ = view;
        Ok(())
    }

    /// Whether an entry with `tag` may lie in a section.
    fn belongs(&self, tag: u64, section: u64) -> bool {
        (0..self.levels()).any(|level| self.section_at(tag, level) == section)
    }

    /// The number of pairs, if the index counts them. A check compares it with the contents.
    fn pairs(&self) -> Option<u64> {
        None
    }

    /// Adds what the index holds beside its sections.
    fn contents(&self, contents: &mut IndexContents) {
        let _ = contents;
    }

    /// As [`Index::audit`].
    fn audit(&self, contents: IndexContents) -> Box<dyn Audit + '_> {
        let _ = contents;
        audit_tags(|key| self.tag_of(key))
    }

    /// Adds its own counts.
    fn count(&self, counters: &mut IndexCounters) {
        let _ = counters;
    }

    /// As [`Index::notes_keys`].
    fn notes_keys(&self) -> bool {
        false
    }

    /// As [`Index::dram_table`].
    fn dram_table(&self) -> Option<DramTable> {
        None
    }

    /// A second index that this one uses. The log knows its records by numbers from [`SECOND_FIRST_NUMBER`] on.
    fn second(&self) -> Option<&dyn Index> {
        None
    }

    /// The same, to be changed.
    fn second_mut(&mut self) -> Option<&mut dyn Index> {
        None
    }
}

/// The number of the first record of a second index ([`SectionIndex::second`]).
pub const SECOND_FIRST_NUMBER: u64 = 1 << 40;
