//! Living mappings only, in a two-level table that grows by a grain at a time (Plus, section IV-B).
//!
//! ```text
//!   root, 4 grains    [leaves u8] [form u8] [entries u16] [separator u32] x 60
//!   leaf, 1 grain     [entry u64] x 8, unsorted; empty places are 0 and come last
//!   entry             [place u40 | passes u15 | slot u9]
//! ```
//!
//! Separator i is the highest slot of leaf i; the last leaf takes all that is higher. A leaf that is full has the
//! section sorted and split anew, and when all leaves are full the section grows by one. A section that has grown to a
//! page is laid out by offset instead, as a fixed one: its leaves are then one array with a place for every slot.

use crate::probe::Entry;
use crate::section::SectionLayout;
use kvssd_flash::Blob;
use kvssd_ftl::Grain;
use kvssd_ftl::index::SectionForm;

/// Sections of 6 to 64 grains.
#[derive(Clone, Copy, Debug)]
pub struct CompactLayout {
    grain_bytes: usize,
    /// Leaves of a section that has grown to a page.
    leaves_max: usize,
}

const ENTRY_BYTES: usize = 8;
const ROOT_GRAINS: usize = 4;
const SEPARATOR_BYTES: usize = 4;
const LEAVES_MIN: usize = 2;
const SLOT_BITS: u32 = 9;
const PASSES_BITS: u32 = 15;
const BY_OFFSET: u8 = 1;
/// Of the largest pages that a profile may have.
const PAGE_BYTES_LOG_MAX: u32 = 16;

impl CompactLayout {
    /// For pages of `page_bytes`, grown by `grain_bytes`; none when the root's separators, or the slots of a section,
    /// do not fit their fields.
    #[must_use]
    pub fn new(page_bytes: u32, grain_bytes: u32) -> Option<Self> {
        let grain_bytes = grain_bytes as usize;
        let leaves_max = (page_bytes as usize / grain_bytes).checked_sub(ROOT_GRAINS)?;
        let layout = CompactLayout { grain_bytes, leaves_max };
        let root_holds = ROOT_GRAINS * grain_bytes >= SEPARATOR_BYTES * (1 + leaves_max);
        ((LEAVES_MIN..256).contains(&leaves_max) && root_holds && layout.slots() <= 1 << SLOT_BITS).then_some(layout)
    }

    /// The largest pages that have sections of such grains; none where no page has.
    #[must_use]
    pub fn page_bytes_max(grain_bytes: u32) -> Option<u32> {
        (9..=PAGE_BYTES_LOG_MAX)
            .rev()
            .map(|log| 1 << log)
            .find(|&bytes| CompactLayout::new(bytes, grain_bytes).is_some())
    }

    fn leaf_entries(&self) -> usize {
        self.grain_bytes / ENTRY_BYTES
    }

    fn root_bytes(&self) -> usize {
        ROOT_GRAINS * self.grain_bytes
    }

    /// The leaf that `slot` belongs to, and the comparisons of the binary search for it.
    fn leaf_of(&self, section: &[u8], slot: u32) -> (usize, u32) {
        let separators = &section[SEPARATOR_BYTES..];
        let (mut low, mut high, mut comparisons) = (0, leaves(section) - 1, 0);
        while low < high {
            let middle = (low + high) / 2;
            comparisons += 1;
            let mut separator = [0; SEPARATOR_BYTES];
            separator.copy_from_slice(&separators[middle * SEPARATOR_BYTES..][..SEPARATOR_BYTES]);
            if slot <= u32::from_le_bytes(separator) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        (low, comparisons)
    }

    /// The number of the first place in `leaf` that holds `slot`, or is empty; and the comparisons.
    fn find_in_leaf(&self, section: &[u8], leaf: usize, slot: u32) -> (Option<usize>, u32) {
        let first = leaf * self.leaf_entries();
        for index in 0..self.leaf_entries() {
            let entry = self.entry_at(section, first + index);
            if entry == 0 || slot_of(entry) == slot {
                return (Some(first + index), index as u32 + 1);
            }
        }
        (None, self.leaf_entries() as u32)
    }

    fn entry_at(&self, section: &[u8], index: usize) -> u64 {
        let mut entry = [0; ENTRY_BYTES];
        entry.copy_from_slice(&section[self.root_bytes() + index * ENTRY_BYTES..][..ENTRY_BYTES]);
        u64::from_le_bytes(entry)
    }

    fn put_at(&self, section: &mut Blob, index: usize, entry: u64) {
        let at = self.root_bytes() + index * ENTRY_BYTES;
        section.make_mut()[at..at + ENTRY_BYTES].copy_from_slice(&entry.to_le_bytes());
    }

    /// All entries but that of slot `without`, sorted by slot.
    fn entries(&self, section: &[u8], without: Option<u32>) -> Vec<u64> {
        let words = section[self.root_bytes()..].chunks_exact(ENTRY_BYTES).enumerate();
        let mut entries: Vec<u64> = words
            .map(|(index, _)| self.entry_at(section, index))
            .filter(|&entry| entry != 0 && Some(slot_of(entry)) != without)
            .filter(|&entry| u64::from(slot_of(entry)) < self.slots())
            .collect();
        entries.sort_unstable_by_key(|&entry| slot_of(entry));
        entries
    }

    /// A section of these entries, sorted by slot, with room for one more in at least one leaf if it can be.
    fn build(&self, entries: &[u64]) -> Blob {
        let leaf_entries = self.leaf_entries();
        let leaves = entries.len().div_ceil(leaf_entries).max(LEAVES_MIN);
        let mut bytes = vec![0; self.root_bytes() + leaves * self.grain_bytes];
        bytes[0] = leaves as u8;
        bytes[2..4].copy_from_slice(&(entries.len() as u16).to_le_bytes());
        if leaves == self.leaves_max {
            bytes[1] = BY_OFFSET;
            for &entry in entries {
                let at = self.root_bytes() + slot_of(entry) as usize * ENTRY_BYTES;
                bytes[at..at + ENTRY_BYTES].copy_from_slice(&entry.to_le_bytes());
            }
            return self.blob(&bytes);
        }
        let mut taken = 0;
        for leaf in 0..leaves {
            let until = entries.len() * (leaf + 1) / leaves;
            let at = self.root_bytes() + leaf * self.grain_bytes;
            for (index, entry) in entries[taken..until].iter().enumerate() {
                bytes[at + index * ENTRY_BYTES..][..ENTRY_BYTES].copy_from_slice(&entry.to_le_bytes());
            }
            let separator = entries[..until].last().map_or(0, |&entry| slot_of(entry));
            bytes[SEPARATOR_BYTES * (leaf + 1)..][..SEPARATOR_BYTES].copy_from_slice(&separator.to_le_bytes());
            taken = until;
        }
        self.blob(&bytes)
    }

    /// A section's memory grows by four grains at a time, though the section grows by one.
    fn blob(&self, bytes: &[u8]) -> Blob {
        Blob::with_steps(bytes, ROOT_GRAINS * self.grain_bytes)
    }

    /// Removes what lies in place `index` and shrinks a section that has become two leaves too large.
    fn remove(&self, section: &mut Blob, index: usize) {
        let count = count(section).saturating_sub(1);
        let by_offset = is_by_offset(section);
        let gone = slot_of(self.entry_at(section, index));
        // A margin of two leaves, and of a fifth for the change of form: no insertion right behind undoes it.
        let small = count + 2 * self.leaf_entries() <= leaves(section) * self.leaf_entries();
        if small && leaves(section) > LEAVES_MIN && (!by_offset || count * 5 <= self.slots() as usize * 4) {
            *section = self.build(&self.entries(section, Some(gone)));
            return;
        }
        let last = if by_offset {
            index
        } else {
            let end = (index / self.leaf_entries() + 1) * self.leaf_entries();
            (index + 1..end).take_while(|&next| self.entry_at(section, next) != 0).last().unwrap_or(index)
        };
        let moved = self.entry_at(section, last);
        self.put_at(section, index, moved);
        self.put_at(section, last, 0);
        set_count(section, count);
    }
}

impl SectionForm for CompactLayout {
    fn empty(&self) -> Blob {
        self.build(&[])
    }

    fn bytes_max(&self) -> u32 {
        (self.root_bytes() + self.leaves_max * self.grain_bytes) as u32
    }

    fn directory_entry_bytes(&self) -> u64 {
        6
    }

    fn has_form(&self, section: &[u8]) -> bool {
        let Some(bytes) = section.len().checked_sub(self.root_bytes()) else { return false };
        let leaves = leaves(section);
        (LEAVES_MIN..=self.leaves_max).contains(&leaves)
            && bytes == leaves * self.grain_bytes
            && section[1] == if leaves == self.leaves_max { BY_OFFSET } else { 0 }
    }

    fn fault(&self, section: &[u8]) -> Option<&'static str> {
        if !self.has_form(section) {
            return Some("its root does not say what its length says");
        }
        let words: Vec<u64> =
            section[self.root_bytes()..].as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let entries = words.iter().enumerate().filter(|&(_, &word)| word != 0);
        if entries.clone().count() != count(section) {
            return Some("its root counts other entries than there are");
        }
        if entries.clone().any(|(_, &word)| u64::from(slot_of(word)) >= self.slots() || entry_of(word).is_end()) {
            return Some("it has an entry of a slot that it has not");
        }
        if is_by_offset(section) {
            let is_there = |(index, &word): (usize, &u64)| slot_of(word) as usize == index;
            return (!entries.clone().all(is_there)).then_some("an entry lies at another slot's offset");
        }
        let is_found = |(index, &word): (usize, &u64)| {
            self.find_in_leaf(section, self.leaf_of(section, slot_of(word)).0, slot_of(word)).0 == Some(index)
        };
        (!entries.clone().all(is_found)).then_some("a search does not come to one of its entries")
    }
}

impl SectionLayout for CompactLayout {
    fn slots(&self) -> u64 {
        (self.leaves_max * self.leaf_entries()) as u64
    }

    fn passes_max(&self) -> u32 {
        (1 << PASSES_BITS) - 1
    }

    fn get(&self, section: &[u8], slot: u32) -> (Entry, u32) {
        if is_by_offset(section) {
            return (entry_of(self.entry_at(section, slot as usize)), 1);
        }
        let (leaf, comparisons) = self.leaf_of(section, slot);
        let (index, more) = self.find_in_leaf(section, leaf, slot);
        let word = index.map_or(0, |index| self.entry_at(section, index));
        (entry_of(word), comparisons + more)
    }

    fn set(&self, section: &mut Blob, slot: u32, entry: Entry) -> u32 {
        let word = word_of(slot, entry);
        let (index, comparisons) = if is_by_offset(section) {
            (Some(slot as usize), 1)
        } else {
            let (leaf, comparisons) = self.leaf_of(section, slot);
            let (index, more) = self.find_in_leaf(section, leaf, slot);
            (index, comparisons + more)
        };
        let Some(index) = index else {
            if entry.is_end() {
                return 0;
            }
            let mut entries = self.entries(section, None);
            let at = entries.partition_point(|&other| slot_of(other) < slot);
            entries.insert(at, word);
            *section = self.build(&entries);
            return comparisons + entries.len() as u32;
        };
        let there = self.entry_at(section, index) != 0;
        match (there, entry.is_end()) {
            (false, true) => {}
            (true, true) => self.remove(section, index),
            (there, false) => {
                self.put_at(section, index, word);
                if !there {
                    let count = count(section).saturating_add(1);
                    set_count(section, count);
                }
            }
        }
        0
    }

    /// Leaves are full when a section is built anew, and the last of them is begun.
    fn bytes_of(&self, pairs: f64) -> f64 {
        let leaves = (pairs / self.leaf_entries() as f64 + 0.6).clamp(LEAVES_MIN as f64, self.leaves_max as f64);
        self.root_bytes() as f64 + leaves * self.grain_bytes as f64
    }

    fn next(&self, section: &[u8], slot: u32) -> Option<(u32, Entry)> {
        let words = (0..(section.len() - self.root_bytes()) / ENTRY_BYTES).map(|index| self.entry_at(section, index));
        let pairs = words.map(|word| (slot_of(word), entry_of(word)));
        pairs.filter(|(at, entry)| *at >= slot && entry.place != Grain(0)).min_by_key(|(at, _)| *at)
    }
}

fn leaves(section: &[u8]) -> usize {
    usize::from(section[0])
}

fn is_by_offset(section: &[u8]) -> bool {
    section[1] == BY_OFFSET
}

fn count(section: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([section[2], section[3]]))
}

fn set_count(section: &mut Blob, count: usize) {
    section.make_mut()[2..4].copy_from_slice(&(count as u16).to_le_bytes());
}

fn slot_of(word: u64) -> u32 {
    (word & ((1 << SLOT_BITS) - 1)) as u32
}

fn entry_of(word: u64) -> Entry {
    let passes = (word >> SLOT_BITS) as u32 & ((1 << PASSES_BITS) - 1);
    Entry { place: Grain(word >> (SLOT_BITS + PASSES_BITS)), passes }
}

/// An empty entry is 0, whatever its slot.
fn word_of(slot: u32, entry: Entry) -> u64 {
    if entry.is_end() {
        return 0;
    }
    entry.place.0 << (SLOT_BITS + PASSES_BITS) | u64::from(entry.passes) << SLOT_BITS | u64::from(slot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::FixedLayout;
    use kvssd_types::Random;

    fn compact() -> CompactLayout {
        CompactLayout::new(4096, 64).unwrap()
    }

    fn entry(place: u64) -> Entry {
        Entry { place: Grain(place), passes: 0 }
    }

    #[test]
    fn the_papers_sizes_come_out() {
        let layout = compact();
        assert_eq!((layout.slots(), layout.bytes_max(), layout.empty().len()), (480, 4096, 6 * 64));
        assert!(CompactLayout::new(4096, 1024).is_none(), "no leaves");
        assert!(CompactLayout::new(16384, 64).is_none(), "too many slots for their field");
    }

    /// The root's four grains are the paper's (section IV-B). At the load of its pairs of 1000 bytes they are half of a section, and
    /// a mapping takes twice what it takes in `original`; with pairs of 50 bytes it takes less than there.
    #[test]
    fn a_mapping_takes_twice_the_dram_of_the_original_where_sections_are_nearly_empty() {
        const DRIVE_BYTES: f64 = (128u64 << 30) as f64;
        let layout = compact();
        let compact = |pairs: f64| {
            let mappings = pairs / (DRIVE_BYTES / 64.0) * layout.slots() as f64;
            layout.bytes_of(mappings) / mappings
        };
        let original = |pairs: f64| 4.0 * DRIVE_BYTES / 512.0 / pairs;
        let (large, small) = (100e6, 4.0 * 330e6);
        assert!((20.0..22.0).contains(&compact(large)) && (1.9..2.1).contains(&(compact(large) / original(large))));
        assert!(compact(small) < 9.5, "{}", compact(small));
    }

    #[test]
    fn every_layout_is_a_map_from_slots_to_entries() {
        let layouts: [&dyn SectionLayout; 3] =
            [&compact(), &FixedLayout::new(4096, 1 << 28), &FixedLayout::new(4096, 1 << 31)];
        for layout in layouts {
            let mut random = Random::new(5);
            let mut model = vec![Entry::default(); layout.slots() as usize];
            let mut section = layout.empty();
            // Fill, thin out, fill again: sections grow to a page, change form and shrink.
            for step in 0..60_000u64 {
                let slot = random.below(layout.slots()) as u32;
                let fills = step / 6000 % 2 == 0;
                let new = if random.below(10) < if fills { 9 } else { 2 } {
                    Entry { place: Grain(1 + random.below((1 << 28) - 1)), passes: random.below(16) as u32 }
                } else {
                    Entry { place: Grain(0), passes: random.below(2) as u32 }
                };
                layout.set(&mut section, slot, new);
                model[slot as usize] = new;
                assert_eq!(layout.get(&section, slot).0, new);
                assert!(section.len() <= layout.bytes_max() as usize);
                if step % 500 == 0 {
                    for (slot, expected) in model.iter().enumerate() {
                        assert_eq!(layout.get(&section, slot as u32).0, *expected, "slot {slot} at step {step}");
                    }
                    let mut listed = Vec::new();
                    let mut from = 0;
                    while let Some((slot, entry)) = layout.next(&section, from) {
                        listed.push((slot, entry));
                        from = slot + 1;
                    }
                    let expected: Vec<_> =
                        model.iter().enumerate().filter(|(_, entry)| entry.place != Grain(0)).collect();
                    assert!(listed.iter().map(|(slot, entry)| (*slot as usize, entry)).eq(expected.into_iter()));
                }
            }
        }
    }

    #[test]
    fn sections_grow_by_a_grain_and_end_in_the_offset_form() {
        let layout = compact();
        let mut section = layout.empty();
        let mut sizes = vec![section.len()];
        for slot in 0..480u32 {
            layout.set(&mut section, slot * 7 % 480, entry(u64::from(slot) + 1));
            if sizes.last() != Some(&section.len()) {
                sizes.push(section.len());
            }
        }
        assert_eq!(sizes, (6..=64).map(|grains| grains * 64).collect::<Vec<_>>());
        assert!(is_by_offset(&section));
        assert_eq!(layout.get(&section, 7).1, 1);
    }

    /// Plus, section IV-B: about 10 comparisons in a full section, against 256 for a linear search.
    #[test]
    fn a_search_of_a_full_two_level_section_compares_about_ten_times() {
        let layout = compact();
        let mut section = layout.empty();
        (0..472).for_each(|slot| {
            layout.set(&mut section, slot, entry(1));
        });
        assert_eq!(section.len(), 63 * 64);
        let comparisons: u32 = (0..472).map(|slot| layout.get(&section, slot).1).sum();
        let mean = f64::from(comparisons) / 472.0;
        assert!((9.0..11.5).contains(&mean), "{mean}");
    }
}
