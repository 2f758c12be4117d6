//! Caches heads of records that were appended since the mount: a replace or delete need not fetch a page to verify its key.
//!
//! ```text
//!   append   place -> set of slots      [place, life of its superblock, key, bytes of the value]      another one is forgotten for it
//!   look-up  place -> set of slots      the same place, life and key: it is the key's               anything else: the page says
//! ```
//!
//! In one life of its superblock a place holds one record, so a cached head always belongs to that record; a miss says nothing. The cache is
//! memory beside the drive's DRAM, for media whose pages are expensive to read ([`Backing::heads_bytes`](kvssd_flash::Backing::heads_bytes)):
//! virtual times are the same with and without it.

use crate::layout::address::Grain;
use crate::layout::record::RecordHead;
use kvssd_types::Key;

/// The longest key that is kept.
const KEY_BYTES_MAX: usize = 27;

/// The slots that a place may use (associativity).
const WAYS: usize = 4;

/// A record: where it lies, and in which life of its superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) place: Grain,
    pub(crate) generation: u64,
}

/// What is known of a record.
#[derive(Clone, Copy, Debug)]
struct Slot {
    record: Record,
    value_bytes: u32,
    /// Length of the key; 0 for an empty slot.
    key_bytes: u8,
    key: [u8; KEY_BYTES_MAX],
}

type Set = [Slot; WAYS];

const EMPTY: Slot = Slot {
    record: Record { place: Grain(u64::MAX), generation: 0 },
    value_bytes: 0,
    key_bytes: 0,
    key: [0; KEY_BYTES_MAX],
};

/// The heads that are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heads {
    sets: Vec<Set>,
}

impl Heads {
    /// A cache of `bytes` bytes; with 0 bytes it is off.
    pub(crate) fn new(bytes: u64) -> Self {
        let sets = bytes as usize / size_of::<Set>();
        Heads { sets: vec![[EMPTY; WAYS]; sets] }
    }

    /// Whether any can be kept.
    pub(crate) fn is_on(&self) -> bool {
        !self.sets.is_empty()
    }

    /// A pair was appended.
    pub(crate) fn note(&mut self, record: Record, key: Key<'_>, value_bytes: u32) {
        let bytes = key.bytes();
        if bytes.len() > KEY_BYTES_MAX {
            return;
        }
        let mut slot = Slot { record, value_bytes, key_bytes: bytes.len() as u8, ..EMPTY };
        slot.key[..bytes.len()].copy_from_slice(bytes);
        self.put(slot);
    }

    /// A record was copied.
    pub(crate) fn copy(&mut self, from: Record, to: Record) {
        let set = self.number_of(from).map(|number| &self.sets[number]);
        if let Some(&slot) = set.and_then(|set| set.iter().find(|slot| slot.key_bytes > 0 && slot.record == from)) {
            self.put(Slot { record: to, ..slot });
        }
    }

    /// The head of a record, if it is known to be the key's.
    pub(crate) fn find(&self, record: Record, key: Key<'_>) -> Option<RecordHead> {
        let slot = self.sets[self.number_of(record)?].iter().find(|slot| slot.record == record)?;
        let is_it = slot.key[..usize::from(slot.key_bytes)] == *key.bytes();
        is_it.then_some(RecordHead { key_bytes: slot.key_bytes.into(), value_bytes: slot.value_bytes })
    }

    /// Drops the head at a place whose pair is gone, so that others may use the slot.
    pub(crate) fn forget(&mut self, place: Grain) {
        if let Some(number) = self.number_of(Record { place, generation: 0 }) {
            self.sets[number].iter_mut().filter(|slot| slot.record.place == place).for_each(|slot| *slot = EMPTY);
        }
    }

    /// Fills the slot that the place used in another life, else an empty one, else any.
    fn put(&mut self, slot: Slot) {
        let Some(number) = self.number_of(slot.record) else { return };
        let set = &mut self.sets[number];
        let own = set.iter().position(|other| other.record.place == slot.record.place);
        let free = || set.iter().position(|other| other.key_bytes == 0);
        let way = own.or_else(free).unwrap_or(slot.record.place.0 as usize % WAYS);
        set[way] = slot;
    }

    /// The set of a record's place. The place is hashed, since many are a whole number of grains apart.
    fn number_of(&self, record: Record) -> Option<usize> {
        let spread = record.place.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let number = ((u128::from(spread) * self.sets.len() as u128) >> 64) as usize;
        self.is_on().then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(bytes: &[u8]) -> Key<'_> {
        Key::new(bytes).unwrap()
    }

    fn record(place: u64, generation: u64) -> Record {
        Record { place: Grain(place), generation }
    }

    #[test]
    fn only_the_record_of_that_place_life_and_key_is_found() {
        let mut heads = Heads::new(1 << 16);
        heads.note(record(130, 7), key(b"one"), 4096);
        let known = |heads: &Heads, place, life, bytes: &[u8]| heads.find(record(place, life), key(bytes));
        assert_eq!(known(&heads, 130, 7, b"one"), Some(RecordHead { key_bytes: 3, value_bytes: 4096 }));
        for (place, life, bytes) in [(131, 7, &b"one"[..]), (130, 8, b"one"), (130, 7, b"on"), (130, 7, b"onf")] {
            assert_eq!(known(&heads, place, life, bytes), None);
        }
        // In the next life of its superblock another record lies there, and what is left of a longer key is none of it.
        heads.note(record(130, 8), key(b"a longer key"), 1);
        heads.note(record(130, 9), key(b"two"), 2);
        assert_eq!(known(&heads, 130, 7, b"one"), None);
        assert_eq!(known(&heads, 130, 9, b"two"), Some(RecordHead { key_bytes: 3, value_bytes: 2 }));
        assert_eq!(known(&heads, 130, 9, b"two longer k"), None);
        heads.copy(record(130, 8), record(500, 1));
        heads.copy(record(130, 9), record(700, 4));
        assert_eq!((known(&heads, 500, 1, b"two"), known(&heads, 700, 3, b"two")), (None, None));
        assert_eq!(known(&heads, 700, 4, b"two"), known(&heads, 130, 9, b"two"));
        heads.forget(Grain(700));
        assert_eq!(known(&heads, 700, 4, b"two"), None);
    }

    #[test]
    fn as_many_are_known_as_there_is_room_for_and_who_is_gone_makes_room() {
        let mut heads = Heads::new(256 * size_of::<Slot>() as u64);
        let known = |heads: &Heads, places: std::ops::Range<u64>| {
            places.filter(|&place| heads.find(record(65 * place, 0), key(&place.to_le_bytes())).is_some()).count()
        };
        for place in 0..128 {
            heads.note(record(65 * place, 0), key(&place.to_le_bytes()), 1);
        }
        assert!(known(&heads, 0..128) > 120, "{}", known(&heads, 0..128));
        (0..128).for_each(|place| heads.forget(Grain(65 * place)));
        for place in 128..10_000 {
            heads.note(record(65 * place, 0), key(&place.to_le_bytes()), 1);
        }
        assert_eq!((known(&heads, 0..128), known(&heads, 0..10_000)), (0, 256));
        let mut none = Heads::new(0);
        none.note(record(1, 0), key(b"key"), 1);
        none.forget(Grain(1));
        heads.note(record(1, 1), key(&[7; KEY_BYTES_MAX + 1]), 1);
        assert_eq!(none.find(record(1, 0), key(b"key")), None);
        assert_eq!(heads.find(record(1, 1), key(&[7; KEY_BYTES_MAX + 1])), None);
    }
}
