//! Entries of the table, and where a search for one begins.
//!
//! ```text
//!   word 0, u64   a key of 8 bytes, mixed: all of it       or    the hash of a key of another length
//!   word 1, u64   [kind u2] [bytes of the value u22] [place u40]           0 for a free slot
//!
//!   tag           word 0 without its lowest byte, 56 bits: where the search for it begins
//! ```
//!
//! Mixing is a bijection: two keys of 8 bytes never have the same word, so that none has to be compared in its record.
//! A mixed key and a hash that are the same number are of two kinds, and two entries.

use kvssd_ftl::Grain;
use kvssd_types::{Key, VALUE_BYTES_MAX};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of an entry (KAML, section V-B: 64 million in 1024 MB).
pub(super) const ENTRY_BYTES: usize = 16;
/// No place is as high.
pub(super) const PLACES: u64 = 1 << PLACE_BITS;
/// No tag is as high.
pub(super) const TAGS: u64 = 1 << 56;

const PLACE_BITS: u32 = 40;
const VALUE_BITS: u32 = 22;
const _: () = assert!(VALUE_BYTES_MAX < 1 << VALUE_BITS, "an entry has room for the length of every value");

/// What the first word of an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyKind {
    /// A key of 8 bytes, all of it.
    Whole,
    /// A hash: the key is in the record.
    Hashed,
}

/// What the table knows a key by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyWord {
    pub(super) kind: KeyKind,
    pub(super) word: u64,
}

impl KeyWord {
    pub(super) fn of(key: Key<'_>) -> Self {
        match <[u8; 8]>::try_from(key.bytes()) {
            Ok(bytes) => KeyWord { kind: KeyKind::Whole, word: mix(u64::from_le_bytes(bytes)) },
            Err(_) => KeyWord { kind: KeyKind::Hashed, word: xxh3_64(key.bytes()) },
        }
    }

    /// What a pair is found by without its key.
    pub(super) fn tag(self) -> u64 {
        tag_of(self.word)
    }
}

/// The tag of an entry with this first word.
pub(super) fn tag_of(word: u64) -> u64 {
    word >> 8
}

/// The page where a pair with `tag` is, of `pages`, and the slot where the search begins, of `slots`.
pub(super) fn home(tag: u64, pages: u64, slots: usize) -> (u64, usize) {
    let product = u128::from(tag << 8) * u128::from(pages);
    let within = u128::from(product as u64) * slots as u128;
    ((product >> 64) as u64, (within >> 64) as usize)
}

/// A pair of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: KeyWord,
    pub(super) place: Grain,
    pub(super) value_bytes: u32,
}

impl Entry {
    /// The entry of these bytes; none for those of a free slot.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (word, meaning) = bytes[..ENTRY_BYTES].split_at(8);
        let [word, meaning] = [word, meaning].map(|half| u64::from_le_bytes(half.try_into().expect("half an entry")));
        let kind = match meaning >> (PLACE_BITS + VALUE_BITS) {
            1 => KeyKind::Whole,
            2 => KeyKind::Hashed,
            _ => return None,
        };
        Some(Entry {
            key: KeyWord { kind, word },
            place: Grain(meaning & (PLACES - 1)),
            value_bytes: (meaning >> PLACE_BITS) as u32 & ((1 << VALUE_BITS) - 1),
        })
    }

    pub(super) fn write(&self, bytes: &mut [u8]) {
        let kind = match self.key.kind {
            KeyKind::Whole => 1,
            KeyKind::Hashed => 2u64,
        };
        let meaning = kind << (PLACE_BITS + VALUE_BITS) | u64::from(self.value_bytes) << PLACE_BITS | self.place.0;
        bytes[..8].copy_from_slice(&self.key.word.to_le_bytes());
        bytes[8..ENTRY_BYTES].copy_from_slice(&meaning.to_le_bytes());
    }
}

/// The finalizer of MurmurHash3, a bijection in which every bit of the key turns every bit of the word.
fn mix(key: u64) -> u64 {
    let key = (key ^ key >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let key = (key ^ key >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    key ^ key >> 33
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The key of a word.
    fn unmix(word: u64) -> u64 {
        let key = (word ^ word >> 33).wrapping_mul(0x9cb4_b2f8_1293_37db);
        let key = (key ^ key >> 33).wrapping_mul(0x4f74_430c_22a5_4005);
        key ^ key >> 33
    }

    proptest! {
        #[test]
        fn an_entry_reads_back(key in prop::collection::vec(any::<u8>(), 1..256), place in 1..PLACES, value_bytes in 0..=VALUE_BYTES_MAX as u32) {
            let key = KeyWord::of(Key::new(&key).unwrap());
            let entry = Entry { key, place: Grain(place), value_bytes };
            let mut bytes = [0; ENTRY_BYTES];
            entry.write(&mut bytes);
            prop_assert_eq!(Entry::read(&bytes), Some(entry));
        }

        #[test]
        fn a_word_says_the_whole_key(key: u64) {
            prop_assert_eq!(unmix(mix(key)), key);
        }

        #[test]
        fn every_tag_has_a_home_and_pages_are_in_the_order_of_tags(one in 0..TAGS, other in 0..TAGS, pages in 1u64..1 << 32, slots in 32usize..4096) {
            let homes = [one.min(other), one.max(other)].map(|tag| home(tag, pages, slots));
            prop_assert!(homes.iter().all(|&(page, slot)| page < pages && slot < slots));
            prop_assert!(homes[0] <= homes[1]);
        }
    }

    #[test]
    fn a_free_slot_has_no_entry() {
        assert_eq!(Entry::read(&[0; ENTRY_BYTES]), None);
    }
}
