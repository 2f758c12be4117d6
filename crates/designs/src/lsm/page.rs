//! A page of a table: keys in their order, each with what the tree knows of it.
//!
//! ```text
//!   [count u16] [bytes of each key u8, 0: they differ]
//!   alike:   [key] [entry] [key] [entry] ...
//!   differ:  [start u16] ... [key bytes u8] [key] [entry] ...      start: where in the page the key's bytes begin to be counted
//!   entry:   [place u40] [bytes of the value u24]                  place 0: the key was deleted
//! ```
//!
//! With keys of 4 bytes that is the paper's 12 bytes a pair (IterKVSSD, section 4.2).

use kvssd_flash::Blob;
use kvssd_ftl::Grain;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

const HEAD_BYTES: usize = 3;
/// Keys that a search passes one by one. An estimate: of 170 keys at random few lie farther from where they would be.
const STEPS_MAX: usize = 12;
const PLACE_BYTES: usize = 5;
const VALUE_BYTES: usize = 3;
/// What an entry takes beside its key.
pub(super) const ENTRY_BYTES: usize = PLACE_BYTES + VALUE_BYTES;
/// What it takes more where keys differ in length.
const APART_BYTES: usize = 3;
/// The most that one entry takes.
pub(super) const ENTRY_BYTES_MAX: usize = APART_BYTES + kvssd_types::KEY_BYTES_MAX + ENTRY_BYTES;

/// The first eight bytes of a key as a number: where those of two keys differ, the keys are in their order. Nearly all comparisons end there.
#[inline]
pub(super) fn prefix(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    match key.first_chunk() {
        Some(first) => bytes = *first,
        None => bytes[..key.len()].copy_from_slice(key),
    }
    u64::from_be_bytes(bytes)
}

/// The order of two keys.
#[inline]
pub(super) fn order(left: &[u8], right: &[u8]) -> Ordering {
    prefix(left).cmp(&prefix(right)).then_with(|| left.cmp(right))
}

/// What the tree knows of a key: where its pair lies, or that it was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) place: Grain,
    pub(super) value_bytes: u32,
}

impl Entry {
    /// The key was deleted.
    pub(super) const DELETED: Entry = Entry { place: Grain(0), value_bytes: 0 };

    /// Whether the key was deleted.
    pub(super) fn is_deleted(&self) -> bool {
        self.place == Grain(0)
    }

    fn read(bytes: &[u8]) -> Option<Entry> {
        let word = u64::from_le_bytes(*bytes.first_chunk::<ENTRY_BYTES>()?);
        let place_bits = 8 * PLACE_BYTES;
        Some(Entry { place: Grain(word & ((1 << place_bits) - 1)), value_bytes: (word >> place_bits) as u32 })
    }

    fn write(&self, page: &mut Vec<u8>) {
        let place = self.place.0 & ((1 << (8 * PLACE_BYTES)) - 1);
        page.extend_from_slice(&(place | u64::from(self.value_bytes) << (8 * PLACE_BYTES)).to_le_bytes());
    }
}

/// A page that was read. It may hold anything: nothing is there where it makes no sense.
#[derive(Clone, Copy, Debug)]
pub(super) struct TablePage<'p> {
    bytes: &'p [u8],
    count: usize,
    /// Bytes of each key; 0 when they differ.
    key_bytes: usize,
}

impl<'p> TablePage<'p> {
    /// The page in these bytes.
    pub(super) fn new(bytes: &'p [u8]) -> Self {
        let [low, high, key_bytes] = bytes.first_chunk::<HEAD_BYTES>().copied().unwrap_or_default();
        TablePage { bytes, count: u16::from_le_bytes([low, high]).into(), key_bytes: key_bytes.into() }
    }

    /// The number of its entries.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether all its entries are there.
    pub(super) fn is_whole(&self) -> bool {
        // Where keys are alike the last entry lies behind all others.
        let first = if self.key_bytes > 0 { self.count.saturating_sub(1) } else { 0 };
        (first..self.count).all(|index| self.get(index).is_some())
    }

    /// A key and its entry.
    pub(super) fn get(&self, index: usize) -> Option<(&'p [u8], Entry)> {
        let (key, rest) = self.at(index)?;
        Some((key, Entry::read(rest)?))
    }

    /// A key, and the bytes behind it.
    fn at(&self, index: usize) -> Option<(&'p [u8], &'p [u8])> {
        if index >= self.count {
            return None;
        }
        let (start, key_bytes) = match self.key_bytes {
            0 => {
                let start = self.bytes.get(HEAD_BYTES + 2 * index..)?.first_chunk()?;
                let start = usize::from(u16::from_le_bytes(*start));
                (start + 1, usize::from(*self.bytes.get(start)?))
            }
            key_bytes => (HEAD_BYTES + index * (key_bytes + ENTRY_BYTES), key_bytes),
        };
        self.bytes.get(start..)?.split_at_checked(key_bytes)
    }

    /// The index of the first key that is not below `key`; the count when all are. None when the page makes no sense.
    fn lower_bound(&self, key: &[u8]) -> Option<usize> {
        self.lower_bound_within(key, (0, self.count))
    }

    fn lower_bound_within(&self, key: &[u8], (mut low, mut high): (usize, usize)) -> Option<usize> {
        while low < high {
            let middle = (low + high) / 2;
            if order(self.at(middle)?.0, key).is_lt() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// As [`TablePage::lower_bound`], of a page of whose first key and of one behind all its keys the [`prefix`]es are known: from where the
    /// key would be if all were spread evenly, as they mostly are, step by step. Each half that a search by halves goes to is a miss of the
    /// processor's caches, and the next key as a rule is not.
    pub(super) fn lower_bound_between(&self, key: &[u8], (first, behind): (u64, u64)) -> Option<usize> {
        let wanted = prefix(key);
        if self.count <= 2 * STEPS_MAX || !(first..behind).contains(&wanted) {
            return self.lower_bound(key);
        }
        let share = (wanted - first) as f64 / (behind - first) as f64;
        let guess = ((share * self.count as f64) as usize).min(self.count - 1);
        let is_below = |index: usize| Some(order(self.at(index)?.0, key).is_lt());
        if is_below(guess)? {
            let most = (guess + STEPS_MAX).min(self.count);
            for index in guess + 1..most {
                if !is_below(index)? {
                    return Some(index);
                }
            }
            self.lower_bound_within(key, (most, self.count))
        } else {
            let least = guess.saturating_sub(STEPS_MAX);
            for index in (least..guess).rev() {
                if is_below(index)? {
                    return Some(index + 1);
                }
            }
            self.lower_bound_within(key, (0, least))
        }
    }

    /// The entry of a key, if it is there, in a page between such [`prefix`]es. None when the page makes no sense.
    pub(super) fn find(&self, key: &[u8], ends: (u64, u64)) -> Option<Option<Entry>> {
        let index = self.lower_bound_between(key, ends)?;
        if index == self.count {
            return Some(None);
        }
        let (found, entry) = self.get(index)?;
        Some((found == key).then_some(entry))
    }
}

/// A page that is being written.
#[derive(Debug)]
pub(super) struct PageWriter<'k> {
    page_bytes: usize,
    entries: Vec<(&'k [u8], Entry)>,
    key_bytes: usize,
    are_alike: bool,
}

impl<'k> PageWriter<'k> {
    pub(super) fn new(page_bytes: u32) -> Self {
        PageWriter { page_bytes: page_bytes as usize, entries: Vec::new(), key_bytes: 0, are_alike: true }
    }

    /// Puts in a key that comes after all others, if it fits. Returns whether it does.
    pub(super) fn push(&mut self, key: &'k [u8], entry: Entry) -> bool {
        let are_alike = self.are_alike && self.entries.first().is_none_or(|(first, _)| first.len() == key.len());
        let (count, key_bytes) = (self.entries.len() + 1, self.key_bytes + key.len());
        let apart = if are_alike { 0 } else { APART_BYTES * count };
        if HEAD_BYTES + key_bytes + ENTRY_BYTES * count + apart > self.page_bytes {
            return false;
        }
        self.entries.push((key, entry));
        (self.key_bytes, self.are_alike) = (key_bytes, are_alike);
        true
    }

    /// The first key and the last, if there are any.
    pub(super) fn ends(&self) -> Option<(&'k [u8], &'k [u8])> {
        Some((self.entries.first()?.0, self.entries.last()?.0))
    }

    /// The page's bytes; the next one is empty.
    pub(super) fn finish(&mut self) -> Blob {
        let mut page = Vec::with_capacity(self.page_bytes);
        page.extend_from_slice(&(self.entries.len() as u16).to_le_bytes());
        let alike_bytes = self.entries.first().filter(|_| self.are_alike).map_or(0, |(key, _)| key.len());
        page.push(alike_bytes as u8);
        if alike_bytes == 0 {
            let mut start = HEAD_BYTES + 2 * self.entries.len();
            for (key, _) in &self.entries {
                page.extend_from_slice(&(start as u16).to_le_bytes());
                start += 1 + key.len() + ENTRY_BYTES;
            }
        }
        for (key, entry) in &self.entries {
            if alike_bytes == 0 {
                page.push(key.len() as u8);
            }
            page.extend_from_slice(key);
            entry.write(&mut page);
        }
        page.resize(self.page_bytes, 0);
        *self = PageWriter::new(self.page_bytes as u32);
        page.into()
    }
}

/// Pairs with keys of `key_bytes` each that `pages` pages take.
pub(super) fn entries_of(pages: u32, page_bytes: u32, key_bytes: usize) -> usize {
    pages as usize * ((page_bytes as usize - HEAD_BYTES) / (key_bytes + ENTRY_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn keys_are_found_where_they_are(
            keys in prop::collection::btree_map(prop::collection::vec(any::<u8>(), 1..12), (0u64..1 << 40, 0u32..1 << 22), 1..120),
            others in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 0..20),
            are_alike: bool,
        ) {
            let widen = |key: &[u8]| if are_alike { let mut key = key.to_vec(); key.resize(12, 0); key } else { key.to_vec() };
            let keys: BTreeMap<Vec<u8>, Entry> = keys
                .iter()
                .map(|(key, &(place, value_bytes))| (widen(key), Entry { place: Grain(place), value_bytes }))
                .collect();
            let mut writer = PageWriter::new(4096);
            for (key, &entry) in &keys {
                prop_assert!(writer.push(key, entry));
            }
            let bytes = writer.finish();
            prop_assert_eq!(bytes.len(), 4096);
            let page = TablePage::new(&bytes);
            prop_assert_eq!(page.count(), keys.len());
            let (first, last) = (prefix(keys.keys().next().unwrap()), prefix(keys.keys().next_back().unwrap()));
            // Those of the page, one that is not known, and wrong ones.
            let ends = [(first, last), (first, u64::MAX), (last, first), (last, u64::MAX)];
            for (index, (key, &entry)) in keys.iter().enumerate() {
                prop_assert_eq!(page.get(index), Some((key.as_slice(), entry)));
                for ends in &ends {
                    prop_assert_eq!(page.find(key, *ends), Some(Some(entry)));
                }
            }
            for other in others {
                for ends in &ends {
                    prop_assert_eq!(page.find(&other, *ends), Some(keys.get(&other).copied()));
                }
                let before = keys.range(..other.clone()).count();
                for ends in &ends {
                    prop_assert_eq!(page.lower_bound_between(&other, *ends), Some(before));
                }
            }
        }

        #[test]
        fn keys_have_their_order(left in prop::collection::vec(0u8..3, 0..12), right in prop::collection::vec(0u8..3, 0..12)) {
            prop_assert_eq!(order(&left, &right), left.cmp(&right));
            prop_assert!(left > right || prefix(&left) <= prefix(&right));
        }

        #[test]
        fn any_bytes_are_a_page_or_make_no_sense(bytes in prop::collection::vec(any::<u8>(), 0..200), key in prop::collection::vec(any::<u8>(), 0..9)) {
            let page = TablePage::new(&bytes);
            let _ = (page.find(&key, (0, u64::MAX)), page.get(3), page.get(usize::from(u16::MAX)));
            prop_assert_eq!(page.is_whole(), (0..page.count()).all(|index| page.get(index).is_some()));
        }
    }

    #[test]
    fn a_page_of_short_keys_has_the_papers_twelve_bytes_a_pair() {
        let mut writer = PageWriter::new(16_384);
        let keys: Vec<[u8; 4]> = (0..2000u32).map(u32::to_be_bytes).collect();
        let fitted = keys.iter().take_while(|key| writer.push(*key, Entry::DELETED)).count();
        assert_eq!(fitted, 16_381 / 12);
        assert_eq!(entries_of(3, 16_384, 4), 3 * fitted);
    }
}
