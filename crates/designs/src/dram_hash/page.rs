//! A page of the table: slots that are searched one after the other.
//!
//! ```text
//!   | - | a | b | c | - | d | ... |        a search begins at its home slot and goes on to the first free one,
//!         ^ home of a, b and c             behind the last slot from the first on
//! ```
//!
//! When an entry goes, those behind it move up to where searches begin for them: nothing is left behind that a search
//! would have to look at, so that what it costs follows from the load factor alone.

use super::entry::{ENTRY_BYTES, Entry, KeyWord, home, tag_of};
use kvssd_flash::Blob;
use kvssd_ftl::Grain;
use kvssd_ftl::index::{PairChange, SectionEdit, SectionForm, cached_bytes};
use kvssd_types::VALUE_BYTES_MAX;

/// What the directory has for each page: its place of 40 bits, and whether it is in DRAM and changed.
const DIRECTORY_ENTRY_BYTES: u64 = 6;

/// The form of a table's pages.
#[derive(Clone, Copy, Debug)]
pub struct HashPage {
    pub(super) page_bytes: u32,
    /// Pages of the table.
    pub(super) pages: u64,
}

/// What a search found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotSearch {
    /// The slot that was looked for.
    pub(super) slot: Option<usize>,
    /// Entries that were looked at.
    pub(super) looked_at: u32,
    /// Whether it came by all slots and none was free.
    pub(super) is_full: bool,
}

impl HashPage {
    /// Slots of a page.
    pub(super) fn slots(&self) -> usize {
        self.page_bytes as usize / ENTRY_BYTES
    }

    /// The page where a pair with `tag` is.
    pub(super) fn page_of(&self, tag: u64) -> u64 {
        home(tag, self.pages, self.slots()).0
    }

    /// DRAM of the directory.
    pub(super) fn directory_bytes(&self) -> u64 {
        self.pages * DIRECTORY_ENTRY_BYTES
    }

    /// DRAM of all pages.
    pub(super) fn table_bytes(&self) -> u64 {
        self.pages * cached_bytes(self.bytes_max())
    }

    pub(super) fn entry(&self, page: &[u8], slot: usize) -> Option<Entry> {
        Entry::read(&page[slot * ENTRY_BYTES..])
    }

    fn put(&self, page: &mut [u8], slot: usize, entry: Option<Entry>) {
        let bytes = &mut page[slot * ENTRY_BYTES..][..ENTRY_BYTES];
        match entry {
            Some(entry) => entry.write(bytes),
            None => bytes.fill(0),
        }
    }

    fn home(&self, tag: u64) -> usize {
        home(tag, self.pages, self.slots()).1
    }

    /// Goes from where a search for `tag` begins, past the first `begun` slots, to the first entry that `is_it`, or to
    /// a free slot.
    pub(super) fn search(&self, page: &[u8], tag: u64, begun: u32, is_it: impl Fn(&Entry) -> bool) -> SlotSearch {
        let (home, slots) = (self.home(tag), self.slots());
        for distance in begun as usize..slots {
            let slot = (home + distance) % slots;
            let looked_at = distance as u32 + 1;
            match self.entry(page, slot) {
                None => return SlotSearch { slot: None, looked_at, is_full: false },
                Some(entry) if is_it(&entry) => return SlotSearch { slot: Some(slot), looked_at, is_full: false },
                Some(_) => {}
            }
        }
        SlotSearch { slot: None, looked_at: slots as u32, is_full: true }
    }

    /// The entry of a pair, by tag and place.
    pub(super) fn find_pair(&self, page: &[u8], tag: u64, place: Grain) -> SlotSearch {
        self.search(page, tag, 0, |entry| entry.place == place && tag_of(entry.key.word) == tag)
    }

    /// Puts an entry into the first free slot from its home on. Returns false when there is none.
    pub(super) fn insert(&self, page: &mut Blob, entry: Entry) -> bool {
        let (home, slots) = (self.home(entry.key.tag()), self.slots());
        let mut from_home = (0..slots).map(|distance| (home + distance) % slots);
        let free = from_home.find(|&slot| self.entry(page, slot).is_none());
        let Some(slot) = free else { return false };
        self.put(page.make_mut(), slot, Some(entry));
        true
    }

    /// Makes a change in its page: the entries that were looked at to move others up. None when that cannot be.
    pub(super) fn edit(&self, page: &mut SectionEdit<'_, '_>, change: &PairChange<'_>) -> Option<u32> {
        let tag = change.tag();
        let slot_of = |page: &[u8], from| self.find_pair(page, tag, from).slot;
        match *change {
            PairChange::Insert { pair, .. } | PairChange::Update { pair, .. }
                if pair.value_bytes as usize > VALUE_BYTES_MAX =>
            {
                None
            }
            PairChange::Insert { key, pair, .. } => {
                // A tag does not say the key, so that a mount is told of it.
                let key = key.map(KeyWord::of).filter(|key| key.tag() == tag)?;
                let entry = Entry { key, place: pair.place, value_bytes: pair.value_bytes };
                self.insert(page.to_mut(), entry).then_some(0)
            }
            PairChange::Update { from, pair, .. } => {
                let slot = slot_of(page, from)?;
                self.set_pair(page.to_mut(), slot, pair.place, pair.value_bytes);
                Some(0)
            }
            PairChange::Move { from, to, .. } => {
                let slot = slot_of(page, from)?;
                let value_bytes = self.found(page, slot).value_bytes;
                self.set_pair(page.to_mut(), slot, to, value_bytes);
                Some(0)
            }
            PairChange::Remove { from, .. } => {
                let slot = slot_of(page, from)?;
                Some(self.remove(page.to_mut(), slot))
            }
        }
    }

    /// Has the entry in a slot say that its pair is another.
    fn set_pair(&self, page: &mut Blob, slot: usize, place: Grain, value_bytes: u32) {
        let entry = self.found(page, slot);
        self.put(page.make_mut(), slot, Some(Entry { place, value_bytes, ..entry }));
    }

    fn found(&self, page: &[u8], slot: usize) -> Entry {
        self.entry(page, slot).expect("a slot that was found has an entry")
    }

    /// Takes the entry out of a slot, and moves those up that were put behind it. Returns how many were looked at.
    pub(super) fn remove(&self, page: &mut Blob, slot: usize) -> u32 {
        let (page, slots) = (page.make_mut(), self.slots());
        let (mut hole, mut looked_at) = (slot, 0);
        for distance in 1..slots {
            let next = (slot + distance) % slots;
            let Some(entry) = self.entry(page, next) else { break };
            looked_at += 1;
            // It may move up as far as its home.
            let from_home = (next + slots - self.home(entry.key.tag())) % slots;
            if from_home >= (next + slots - hole) % slots {
                self.put(page, hole, Some(entry));
                hole = next;
            }
        }
        self.put(page, hole, None);
        looked_at
    }

    /// All entries, in the order of their slots.
    pub(super) fn entries(&self, page: &[u8]) -> impl Iterator<Item = Entry> {
        (0..self.slots()).filter_map(|slot| self.entry(page, slot))
    }
}

impl SectionForm for HashPage {
    fn empty(&self) -> Blob {
        Blob::from(vec![0; self.page_bytes as usize])
    }

    fn bytes_max(&self) -> u32 {
        self.page_bytes
    }

    fn directory_entry_bytes(&self) -> u64 {
        DIRECTORY_ENTRY_BYTES
    }

    fn has_form(&self, section: &[u8]) -> bool {
        section.len() == self.page_bytes as usize
    }

    fn fault(&self, section: &[u8]) -> Option<&'static str> {
        if !self.has_form(section) {
            return Some("its page is of another size");
        }
        for slot in 0..self.slots() {
            let Some(entry) = self.entry(section, slot) else {
                let bytes = &section[slot * ENTRY_BYTES..][..ENTRY_BYTES];
                if bytes.iter().any(|&byte| byte != 0) {
                    return Some("a slot is neither free nor an entry");
                }
                continue;
            };
            let tag = entry.key.tag();
            if self.find_pair(section, tag, entry.place).slot != Some(slot) {
                return Some("a search does not come to one of its entries, or another one is like it");
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::KeyKind;
    use super::*;
    use proptest::prelude::*;

    const FORM: HashPage = HashPage { page_bytes: 512, pages: 1 };

    fn entry(word: u64, place: u64) -> Entry {
        Entry { key: KeyWord { kind: KeyKind::Hashed, word }, place: Grain(place), value_bytes: 7 }
    }

    #[test]
    fn a_search_in_a_full_page_ends() {
        let mut page = FORM.empty();
        for number in 0..FORM.slots() as u64 {
            assert!(FORM.insert(&mut page, entry(number << 32, number + 1)));
        }
        assert!(!FORM.insert(&mut page, entry(5, 99)) && FORM.fault(&page).is_none());
        assert_eq!(FORM.find_pair(&page, 5, Grain(99)), SlotSearch { slot: None, looked_at: 32, is_full: true });
    }

    proptest! {
        /// Entries of few homes, so that searches run into one another and over the end.
        #[test]
        fn what_was_put_in_is_found_and_what_was_taken_out_is_not(steps in prop::collection::vec((0u64..48, any::<bool>()), 1..200)) {
            let mut page = FORM.empty();
            let mut model = std::collections::BTreeMap::new();
            for (place, (number, comes)) in (1..).zip(steps) {
                let key = (number % 6) << 59 | number << 8;
                match model.get(&key) {
                    Some(&old) if !comes => {
                        let slot = FORM.find_pair(&page, tag_of(key), Grain(old)).slot.unwrap();
                        FORM.remove(&mut page, slot);
                        model.remove(&key);
                    }
                    Some(&old) => {
                        let slot = FORM.find_pair(&page, tag_of(key), Grain(old)).slot.unwrap();
                        FORM.set_pair(&mut page, slot, Grain(place), 9);
                        model.insert(key, place);
                    }
                    None if comes => {
                        let inserted = FORM.insert(&mut page, entry(key, place));
                        prop_assert_eq!(inserted, model.len() < FORM.slots());
                        if inserted {
                            model.insert(key, place);
                        }
                    }
                    None => prop_assert_eq!(FORM.search(&page, tag_of(key), 0, |entry| entry.key.word == key).slot, None),
                }
                prop_assert_eq!(FORM.fault(&page), None);
                let mut entries: Vec<_> = FORM.entries(&page).map(|entry| (entry.key.word, entry.place.0)).collect();
                entries.sort_unstable();
                prop_assert!(entries.into_iter().eq(model.iter().map(|(&key, &place)| (key, place))));
            }
        }
    }
}
