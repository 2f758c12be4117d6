//! Packed sections: as many bits for each pair as tell it apart, and not one that the section's number tells already.
//!
//! ```text
//!   tag      [bucket u5 | fingerprint | low bits, as many as the section is deep]
//!   section  [depth u8] [entries of each bucket u8 x 32] [entry] [entry] ... [zeros to the next 16 bytes]
//!   entry    [fingerprint | place], bit behind bit; those of a bucket lie together
//! ```
//!
//! A section that is split gives each half a bit of the fingerprints of its entries, which is the low bit of all tags there.
//! So a drive of few large pairs tells them apart by more bits than one of many small pairs, and no key is read again.

use kvssd_flash::Blob;
use kvssd_ftl::Grain;
use kvssd_ftl::index::{PairChange, SectionEdit, SectionForm, SplitForm};
use kvssd_types::KvError;

/// Bits of a tag that choose a bucket.
pub(crate) const BUCKET_BITS: u32 = 5;
const BUCKETS: usize = 1 << BUCKET_BITS;
const HEAD_BYTES: usize = 1 + BUCKETS;
/// What the length of a section is a multiple of.
const STEP_BYTES: usize = 16;
/// The memory of a section grows by so much at a time.
const MEMORY_STEP_BYTES: usize = 256;
/// The most bits of an entry: with those before it in its first byte they fit a word.
pub(crate) const ENTRY_BITS_MAX: u32 = 57;
/// What the directory has for each section: its place, its depth, and what fills the word.
const DIRECTORY_ENTRY_BYTES: u64 = 8;

/// Sections for the places and tags of a drive.
#[derive(Clone, Copy, Debug)]
pub struct PackedSections {
    pub(crate) place_bits: u32,
    pub(crate) tag_bits: u32,
    /// The deepest that a section can be.
    pub(crate) depth_max: u32,
    /// A section that would become longer is split.
    pub(crate) section_bytes: u32,
    /// A section becomes no longer, even where it cannot be split any more.
    pub(crate) page_bytes: u32,
}

/// An entry: its number in the section, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    fingerprint: u64,
    place: Grain,
}

impl PackedSections {
    /// Bits of a tag below those of the bucket.
    fn low_bits(&self) -> u32 {
        self.tag_bits - BUCKET_BITS
    }

    /// Bits of an entry of a section of that depth.
    fn entry_bits(&self, depth: u32) -> u32 {
        self.place_bits + self.low_bits() - depth
    }

    fn bucket(&self, tag: u64) -> usize {
        (tag >> self.low_bits()) as usize % BUCKETS
    }

    fn fingerprint(&self, tag: u64, depth: u32) -> u64 {
        (tag & ((1 << self.low_bits()) - 1)) >> depth
    }

    /// The bytes of a section with so many entries.
    fn bytes_for(&self, entries: usize, depth: u32) -> usize {
        (HEAD_BYTES + (entries * self.entry_bits(depth) as usize).div_ceil(8)).next_multiple_of(STEP_BYTES)
    }

    /// How many sections so many pairs have, the bytes of one on average, and how deep the deepest is: hashes put pairs into sections as
    /// a normal distribution has it, and those that are too full are split once more.
    pub(crate) fn sections_of(&self, pairs: u64) -> (f64, f64, u32) {
        let fits = |depth: &u32| self.bytes_for((pairs >> depth) as usize, *depth) <= self.section_bytes as usize;
        let depth = (self.depth_min()..self.depth_max).find(fits).unwrap_or(self.depth_max);
        let (sections, mean) = ((1u64 << depth) as f64, pairs as f64 / (1u64 << depth) as f64);
        let entry_bytes = f64::from(self.entry_bits(depth)) / 8.0;
        let room = (f64::from(self.section_bytes) - HEAD_BYTES as f64) / entry_bytes;
        // The logistic curve lies within 0.01 of the normal distribution's.
        let too_full =
            if depth == self.depth_max { 0.0 } else { 1.0 / (1.0 + (1.702 * (room - mean) / mean.sqrt()).exp()) };
        let sections = sections * (1.0 + too_full);
        let padding = STEP_BYTES as f64 / 2.0;
        let deepest = if too_full * sections >= 1.0 { depth + 1 } else { depth };
        (sections, HEAD_BYTES as f64 + padding + pairs as f64 / sections * entry_bytes, deepest)
    }

    /// Whether the section takes another entry with that tag without becoming longer than `bytes_max`.
    fn has_room_within(&self, section: &[u8], tag: u64, depth: u32, bytes_max: u32) -> bool {
        let is_countable = section[1 + self.bucket(tag)] < u8::MAX;
        is_countable && self.bytes_for(count(section) + 1, depth) <= bytes_max as usize
    }

    fn entry_at(&self, section: &[u8], number: usize, depth: u32) -> Entry {
        let bits = self.entry_bits(depth);
        let word = word_at(section, number * bits as usize) & ((1 << bits) - 1);
        Entry { fingerprint: word >> self.place_bits, place: Grain(word & ((1 << self.place_bits) - 1)) }
    }

    fn put(&self, section: &mut [u8], number: usize, depth: u32, entry: Entry) {
        let bits = self.entry_bits(depth);
        let (at, mask) = (number * bits as usize, (1 << bits) - 1);
        let (word, shift) = (entry.fingerprint << self.place_bits | entry.place.0, at % 8);
        put_word(section, at, mask << shift, word << shift);
    }

    /// The numbers of the entries with that tag.
    fn numbers(&self, section: &[u8], tag: u64) -> impl Iterator<Item = usize> {
        let (depth, bucket) = (depth(section), self.bucket(tag));
        let (first, fingerprint) = (first_of(section, bucket), self.fingerprint(tag, depth));
        let all = first..first + usize::from(section[1 + bucket]);
        all.filter(move |&number| self.entry_at(section, number, depth).fingerprint == fingerprint)
    }

    /// The places of the pairs with that tag.
    pub(crate) fn places(&self, section: &[u8], tag: u64) -> impl Iterator<Item = Grain> {
        self.numbers(section, tag).map(|number| self.entry_at(section, number, depth(section)).place)
    }

    /// How many entries are compared to find a tag.
    pub(crate) fn comparisons(&self, section: &[u8], tag: u64) -> u32 {
        section[1 + self.bucket(tag)].into()
    }

    /// Tag and place of all pairs of the section whose tags have these low bits.
    pub(crate) fn entries(&self, section: &[u8], low: u64) -> impl Iterator<Item = (u64, Grain)> {
        let depth = depth(section);
        let buckets = (0..BUCKETS).flat_map(|bucket| (0..section[1 + bucket]).map(move |_| bucket as u64));
        buckets.enumerate().map(move |(number, bucket)| {
            let Entry { fingerprint, place } = self.entry_at(section, number, depth);
            (bucket << self.low_bits() | fingerprint << depth | low, place)
        })
    }

    /// Makes a change in its section, which is of that depth. None when that cannot be.
    pub(crate) fn edit(&self, section: &mut SectionEdit<'_, '_>, change: &PairChange<'_>, depth: u32) -> Option<u32> {
        let tag = change.tag();
        if tag >> self.tag_bits != 0 || count(section) > 0 && self::depth(section) != depth {
            return None;
        }
        let number = match change.from() {
            Some(from) => {
                let mut numbers = self.numbers(section, tag);
                Some(numbers.find(|&number| self.entry_at(section, number, depth).place == from)?)
            }
            None if self.has_room_within(section, tag, depth, self.page_bytes) => None,
            None => return None,
        };
        let to = change.to().filter(|to| to.0 >> self.place_bits == 0);
        if to != change.to() {
            return None;
        }
        match (number, to) {
            (Some(number), Some(place)) => {
                let fingerprint = self.fingerprint(tag, depth);
                self.put(section.to_mut().make_mut(), number, depth, Entry { fingerprint, place });
            }
            (Some(number), None) => self.remove(section.to_mut(), self.bucket(tag), number),
            (None, Some(place)) => self.insert(section.to_mut(), tag, place, depth),
            (None, None) => return None,
        }
        Some(0)
    }

    /// Inserts an entry, for which there is room. Each bucket behind its own hands its first entry to its end.
    fn insert(&self, section: &mut Blob, tag: u64, place: Grain, depth: u32) {
        self.resize(section, count(section) + 1, depth);
        let (bucket, bytes) = (self.bucket(tag), section.make_mut());
        bytes[0] = depth as u8;
        let mut free = count(bytes);
        for behind in (bucket + 1..BUCKETS).rev() {
            let entries = usize::from(bytes[1 + behind]);
            if entries > 0 {
                let first = free - entries;
                self.put(bytes, free, depth, self.entry_at(bytes, first, depth));
                free = first;
            }
        }
        self.put(bytes, free, depth, Entry { fingerprint: self.fingerprint(tag, depth), place });
        bytes[1 + bucket] += 1;
    }

    /// Removes an entry of a bucket. Each bucket from its own on fills the gap before it with its last entry.
    fn remove(&self, section: &mut Blob, bucket: usize, number: usize) {
        let depth = depth(section);
        let bytes = section.make_mut();
        let (mut gap, mut end) = (number, first_of(bytes, bucket));
        for behind in bucket..BUCKETS {
            let entries = usize::from(bytes[1 + behind]);
            end += entries;
            if entries > 0 {
                self.put(bytes, gap, depth, self.entry_at(bytes, end - 1, depth));
                gap = end - 1;
            }
        }
        self.put(bytes, gap, depth, Entry { fingerprint: 0, place: Grain(0) });
        bytes[1 + bucket] -= 1;
        self.resize(section, count(section), depth);
    }

    /// Gives the section the length for so many entries.
    fn resize(&self, section: &mut Blob, entries: usize, depth: u32) {
        let bytes = self.bytes_for(entries, depth);
        if bytes != section.len() {
            let mut resized = section[..section.len().min(bytes)].to_vec();
            resized.resize(bytes, 0);
            *section = Blob::with_steps(&resized, MEMORY_STEP_BYTES);
        }
    }
}

/// Refuses a section that is not of that depth.
pub(crate) fn check_depth(section: &[u8], depth: u32) -> Result<(), KvError> {
    let is_it = count(section) == 0 || self::depth(section) == depth;
    is_it.then_some(()).ok_or_else(|| KvError::Unrecovered("a section is not as deep as the directory says".to_owned()))
}

/// How deep a section is that has entries.
pub(crate) fn depth(section: &[u8]) -> u32 {
    section[0].into()
}

/// Entries of a section.
pub(crate) fn count(section: &[u8]) -> usize {
    first_of(section, BUCKETS)
}

/// The number of the first entry of a bucket.
fn first_of(section: &[u8], bucket: usize) -> usize {
    section[1..=bucket].iter().map(|&entries| usize::from(entries)).sum()
}

/// The word at a bit of the entries.
fn word_at(section: &[u8], bit: usize) -> u64 {
    let from = &section[HEAD_BYTES + bit / 8..];
    let mut word = [0; 8];
    let bytes = from.len().min(8);
    word[..bytes].copy_from_slice(&from[..bytes]);
    u64::from_le_bytes(word) >> (bit % 8)
}

/// Replaces the bits in `mask` of the word that holds a bit of the entries.
fn put_word(section: &mut [u8], bit: usize, mask: u64, bits: u64) {
    let to = &mut section[HEAD_BYTES + bit / 8..];
    let bytes = to.len().min(8);
    let mut word = [0; 8];
    word[..bytes].copy_from_slice(&to[..bytes]);
    let word = (u64::from_le_bytes(word) & !mask | bits).to_le_bytes();
    to[..bytes].copy_from_slice(&word[..bytes]);
}

impl SectionForm for PackedSections {
    fn empty(&self) -> Blob {
        let mut bytes = vec![0; self.bytes_for(0, self.depth_min())];
        bytes[0] = self.depth_min() as u8;
        bytes.into()
    }

    fn bytes_max(&self) -> u32 {
        self.page_bytes
    }

    fn directory_entry_bytes(&self) -> u64 {
        DIRECTORY_ENTRY_BYTES
    }

    fn has_form(&self, section: &[u8]) -> bool {
        section.len() >= HEAD_BYTES
            && section.len() <= self.page_bytes as usize
            && (self.depth_min()..=self.depth_max).contains(&depth(section))
            && self.bytes_for(count(section), depth(section)) <= section.len()
    }

    fn fault(&self, section: &[u8]) -> Option<&'static str> {
        if !self.has_form(section) {
            return Some("its depth and counts are not those of its length");
        }
        let places = self.entries(section, 0).map(|(_, place)| place);
        places.into_iter().any(|place| place == Grain(0)).then_some("it has an entry without a place")
    }
}

impl SplitForm for PackedSections {
    /// The least depth at which an entry fits a word.
    fn depth_min(&self) -> u32 {
        (self.low_bits() + self.place_bits).saturating_sub(ENTRY_BITS_MAX)
    }

    fn depth_max(&self) -> u32 {
        self.depth_max
    }

    /// The deepest may become as long as a page.
    fn has_room(&self, section: &Blob, tag: u64, depth: u32) -> bool {
        let bytes_max = if depth == self.depth_max { self.page_bytes } else { self.section_bytes };
        self.has_room_within(section, tag, depth, bytes_max)
    }

    fn split(&self, section: &Blob, depth: u32) -> Result<([Blob; 2], u64), KvError> {
        check_depth(section, depth)?;
        let mut halves = [0, 1].map(|half| {
            let mut part = self.empty();
            let entries = self.entries(section, 0).filter(|(tag, _)| tag >> depth & 1 == half);
            entries.for_each(|(tag, place)| self.insert(&mut part, tag, place, depth + 1));
            part
        });
        let longest = halves.iter().map(|half| half.len()).max().unwrap_or_default();
        for half in &mut halves {
            let mut bytes = half.to_vec();
            bytes.resize(longest, 0);
            *half = Blob::with_steps(&bytes, MEMORY_STEP_BYTES);
        }
        Ok((halves, count(section) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_types::Random;

    fn form() -> PackedSections {
        PackedSections { place_bits: 23, tag_bits: 27, depth_max: 16, section_bytes: 1024, page_bytes: 4096 }
    }

    /// Sections against a list, split when they are full: what a drive does with one that it fills.
    #[test]
    fn sections_are_lists_of_tags_and_places_also_when_they_split() {
        let form = form();
        let mut random = Random::new(7);
        let mut sections = vec![(0, 0, form.empty())];
        let mut model: Vec<(u64, Grain)> = Vec::new();
        for step in 0..6000u64 {
            if random.below(10) < 7 || model.is_empty() {
                let (tag, place) = (random.below(1 << form.tag_bits), Grain(1 + random.below((1 << 23) - 1)));
                let at = sections.iter().position(|&(low, depth, _)| tag & ((1 << depth) - 1) == low).unwrap();
                let (low, depth, section) = &mut sections[at];
                if !form.has_room(section, tag, *depth) {
                    let (low, depth) = (*low, *depth);
                    let (halves, _) = form.split(section, depth).unwrap();
                    assert_eq!(halves[0].len(), halves[1].len());
                    for (half, bytes) in (0..).zip(halves) {
                        assert_eq!(form.fault(&bytes), None);
                        sections.push((low | half << depth, depth + 1, bytes));
                    }
                    sections.swap_remove(at);
                    continue;
                }
                form.insert(section, tag, place, *depth);
                assert!(*low == tag & ((1 << *depth) - 1) && section.len() <= 1024);
                model.push((tag, place));
            } else {
                let (tag, place) = model.swap_remove(random.below(model.len() as u64) as usize);
                let (_, depth, section) =
                    sections.iter_mut().find(|(low, depth, _)| tag & ((1 << depth) - 1) == *low).unwrap();
                let number =
                    form.numbers(section, tag).find(|&number| form.entry_at(section, number, *depth).place == place);
                form.remove(section, form.bucket(tag), number.unwrap());
                assert_eq!(form.bytes_for(count(section), *depth), section.len());
            }
            if step % 200 == 0 {
                let entries = sections.iter().flat_map(|(low, _, section)| form.entries(section, *low));
                let mut found: Vec<(u64, Grain)> = entries.collect();
                found.sort_unstable();
                model.sort_unstable();
                assert_eq!(found, model);
                assert!(sections.iter().all(|(_, _, section)| form.fault(section).is_none()));
            }
        }
        assert!(sections.len() > 8, "{} sections", sections.len());
    }

    #[test]
    fn pairs_take_about_as_many_bytes_as_their_bits() {
        let form = form();
        let mut section = form.empty();
        let mut random = Random::new(1);
        let mut tags = std::iter::repeat_with(|| random.below(1 << form.tag_bits));
        let entries = tags.by_ref().take_while(|&tag| {
            let has_room = form.has_room(&section, tag, 12);
            if has_room {
                form.insert(&mut section, tag, Grain(1), 12);
            }
            has_room
        });
        // 23 bits of place and 10 of fingerprint.
        assert_eq!((entries.count(), section.len()), (240, 1024));
    }
}
