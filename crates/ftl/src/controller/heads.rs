//! Caches heads of records that were appended since the mount: a replace or delete need not fetch a page to verify its key.
//!
//! ```text
//!   append   place -> set of slots      [place, life of its superblock, key, bytes of the value]      another one is forgotten for it
//!   look-up  place -> set of slots      the same place, life and key: it is the key's               anything else: the page says
//! ```
//!
//! In one life of its superblock a place holds one record, so a cached head always belongs to that record; a miss says nothing. The cache is
//! memory beside the drive's DRAM, for media whose pages are expensive to read: virtual times are the same with and without it. It begins
//! small, and doubles where half of it is used and heads are asked for that it does not have: with memory that the medium gives up of what it has
//! for pages ([`Backing::give_up`]), as far as [`Backing::heads_bytes`].

use crate::layout::address::Grain;
use crate::layout::record::RecordHead;
use kvssd_flash::Backing;
use kvssd_types::Key;

/// The longest key that is kept.
const KEY_BYTES_MAX: usize = 27;

/// The slots that a place may use (associativity).
const WAYS: usize = 4;

/// It begins with 1 / FIRST_SHARE of the most that it may have. An estimate.
const FIRST_SHARE: u64 = 6;

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
    /// Slots that have a head.
    kept: usize,
    /// Heads that were asked for in vain since it has grown.
    missed: usize,
    /// Memory that the medium has given for them, and the most to ask it for.
    given_bytes: u64,
    bytes_max: u64,
}

impl Heads {
    /// A cache of up to `bytes_max` bytes; with 0 bytes it is off.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Heads { bytes_max, ..Heads::default() }
    }

    /// Whether any can be kept.
    pub(crate) fn is_on(&self) -> bool {
        self.bytes_max > 0
    }

    /// A pair was appended.
    pub(crate) fn note(&mut self, record: Record, key: Key<'_>, value_bytes: u32, backing: &dyn Backing) {
        let bytes = key.bytes();
        if bytes.len() > KEY_BYTES_MAX {
            return;
        }
        let mut slot = Slot { record, value_bytes, key_bytes: bytes.len() as u8, ..EMPTY };
        slot.key[..bytes.len()].copy_from_slice(bytes);
        if self.is_wanted_larger() {
            self.grow(backing);
        }
        self.put(slot);
    }

    /// Whether half of it is used, so that places begin to be in each other's way, and so many heads were asked for in vain that more of them would
    /// serve.
    fn is_wanted_larger(&self) -> bool {
        let slots = WAYS * self.sets.len();
        2 * self.kept >= slots && 4 * self.missed >= slots
    }

    /// Takes twice the room, or as much more as the medium gives.
    fn grow(&mut self, backing: &dyn Backing) {
        let bytes = (2 * self.bytes()).clamp(self.bytes_max / FIRST_SHARE, self.bytes_max);
        while self.given_bytes < bytes {
            match backing.give_up() {
                0 => break,
                more => self.given_bytes += more,
            }
        }
        let before = self.sets.len();
        let sets = self.given_bytes.min(bytes) as usize / size_of::<Set>();
        if sets <= before {
            return;
        }
        self.sets.resize(sets, [EMPTY; WAYS]);
        (self.kept, self.missed) = (0, 0);
        // A place's set has a higher number than before, or the same: the sets behind this one have been emptied.
        for number in (0..before).rev() {
            let set = std::mem::replace(&mut self.sets[number], [EMPTY; WAYS]);
            set.into_iter().filter(|slot| slot.key_bytes > 0).for_each(|slot| self.put(slot));
        }
    }

    fn bytes(&self) -> u64 {
        size_of_val(self.sets.as_slice()) as u64
    }

    /// A record was copied.
    pub(crate) fn copy(&mut self, from: Record, to: Record) {
        let set = self.number_of(from).map(|number| &self.sets[number]);
        if let Some(&slot) = set.and_then(|set| set.iter().find(|slot| slot.key_bytes > 0 && slot.record == from)) {
            self.put(Slot { record: to, ..slot });
        }
    }

    /// The head of a record, if it is known to be the key's.
    pub(crate) fn find(&mut self, record: Record, key: Key<'_>) -> Option<RecordHead> {
        let set = self.number_of(record).map(|number| &self.sets[number]);
        let Some(slot) = set.and_then(|set| set.iter().find(|slot| slot.record == record)) else {
            self.missed += 1;
            return None;
        };
        let is_it = slot.key[..usize::from(slot.key_bytes)] == *key.bytes();
        is_it.then_some(RecordHead { key_bytes: slot.key_bytes.into(), value_bytes: slot.value_bytes })
    }

    /// Drops the head at a place whose pair is gone, so that others may use the slot.
    pub(crate) fn forget(&mut self, place: Grain) {
        if let Some(number) = self.number_of(Record { place, generation: 0 })
            && let Some(slot) = self.sets[number].iter_mut().find(|slot| slot.record.place == place)
        {
            *slot = EMPTY;
            self.kept -= 1;
        }
    }

    /// Fills the slot that the place used in another life, else an empty one, else any.
    fn put(&mut self, slot: Slot) {
        let Some(number) = self.number_of(slot.record) else { return };
        let set = &mut self.sets[number];
        let own = set.iter().position(|other| other.record.place == slot.record.place);
        let free = || set.iter().position(|other| other.key_bytes == 0);
        let way = own.or_else(free).unwrap_or(slot.record.place.0 as usize % WAYS);
        self.kept += usize::from(set[way].key_bytes == 0);
        set[way] = slot;
    }

    /// The set of a record's place. The place is hashed, since many are a whole number of grains apart.
    fn number_of(&self, record: Record) -> Option<usize> {
        let spread = record.place.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let number = ((u128::from(spread) * self.sets.len() as u128) >> 64) as usize;
        (number < self.sets.len()).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_flash::{Profile, RopeBacking};

    fn key(bytes: &[u8]) -> Key<'_> {
        Key::new(bytes).unwrap()
    }

    fn record(place: u64, generation: u64) -> Record {
        Record { place: Grain(place), generation }
    }

    /// A medium with so many bytes to give.
    fn medium(bytes: u64) -> RopeBacking {
        let small = ("geometry.blocks_per_die".to_owned(), "16".to_owned());
        RopeBacking::new(Profile::load("kvvirt", &[small]).unwrap().geometry).giving(bytes)
    }

    #[test]
    fn only_the_record_of_that_place_life_and_key_is_found() {
        let medium = medium(1 << 20);
        let mut heads = Heads::new(1 << 16);
        heads.note(record(130, 7), key(b"one"), 4096, &medium);
        let known = |heads: &mut Heads, place, life, bytes: &[u8]| heads.find(record(place, life), key(bytes));
        assert_eq!(known(&mut heads, 130, 7, b"one"), Some(RecordHead { key_bytes: 3, value_bytes: 4096 }));
        for (place, life, bytes) in [(131, 7, &b"one"[..]), (130, 8, b"one"), (130, 7, b"on"), (130, 7, b"onf")] {
            assert_eq!(known(&mut heads, place, life, bytes), None);
        }
        // In the next life of its superblock another record lies there, and what is left of a longer key is none of it.
        heads.note(record(130, 8), key(b"a longer key"), 1, &medium);
        heads.note(record(130, 9), key(b"two"), 2, &medium);
        assert_eq!(known(&mut heads, 130, 7, b"one"), None);
        assert_eq!(known(&mut heads, 130, 9, b"two"), Some(RecordHead { key_bytes: 3, value_bytes: 2 }));
        assert_eq!(known(&mut heads, 130, 9, b"two longer k"), None);
        heads.copy(record(130, 8), record(500, 1));
        heads.copy(record(130, 9), record(700, 4));
        assert_eq!((known(&mut heads, 500, 1, b"two"), known(&mut heads, 700, 3, b"two")), (None, None));
        assert_eq!(known(&mut heads, 700, 4, b"two"), known(&mut heads, 130, 9, b"two"));
        heads.forget(Grain(700));
        assert_eq!(known(&mut heads, 700, 4, b"two"), None);
    }

    /// How many of these places' records are known.
    fn known(heads: &mut Heads, places: std::ops::Range<u64>) -> usize {
        places.filter(|&place| heads.find(record(65 * place, 0), key(&place.to_le_bytes())).is_some()).count()
    }

    fn note(heads: &mut Heads, places: std::ops::Range<u64>, medium: &RopeBacking) {
        places.for_each(|place| heads.note(record(65 * place, 0), key(&place.to_le_bytes()), 1, medium));
    }

    #[test]
    fn as_many_are_known_as_there_is_room_for_and_who_is_gone_makes_room() {
        let medium = medium(1 << 20);
        let mut heads = Heads::new(256 * size_of::<Slot>() as u64);
        for _ in 0..8 {
            // So many that are asked for in vain, that it takes all room.
            note(&mut heads, 0..128, &medium);
            known(&mut heads, 10_000..10_200);
        }
        assert_eq!(heads.sets.len() * WAYS, 256);
        note(&mut heads, 0..128, &medium);
        assert!(known(&mut heads, 0..128) > 120, "{}", known(&mut heads, 0..128));
        (0..128).for_each(|place| heads.forget(Grain(65 * place)));
        assert_eq!(heads.kept, 0);
        note(&mut heads, 128..10_000, &medium);
        assert_eq!((known(&mut heads, 0..128), known(&mut heads, 0..10_000), heads.kept), (0, 256, 256));
        let mut none = Heads::new(0);
        none.note(record(1, 0), key(b"key"), 1, &medium);
        none.forget(Grain(1));
        heads.note(record(1, 1), key(&[7; KEY_BYTES_MAX + 1]), 1, &medium);
        assert_eq!(none.find(record(1, 0), key(b"key")), None);
        assert_eq!(heads.find(record(1, 1), key(&[7; KEY_BYTES_MAX + 1])), None);
    }

    #[test]
    fn it_grows_where_more_heads_are_asked_for_and_keeps_what_it_knows() {
        let (medium, most) = (medium(1 << 20), 4096 * size_of::<Slot>() as u64);
        let mut heads = Heads::new(most);
        note(&mut heads, 0..4000, &medium);
        let free = heads.bytes();
        let first = most / FIRST_SHARE;
        assert!((first - 200..=first).contains(&free), "{free} of {most} bytes that nobody has missed");
        while heads.bytes() < most {
            let before = known(&mut heads, 0..4000);
            known(&mut heads, 10_000..11_000);
            heads.grow(&medium);
            assert!(known(&mut heads, 0..4000) == before && heads.kept == before, "{before} were known");
        }
        note(&mut heads, 0..3000, &medium);
        assert!(known(&mut heads, 0..3000) > 2700);
        // A medium that has less to give.
        let mut heads = Heads::new(most);
        let poor = self::medium(16_384);
        note(&mut heads, 0..4000, &poor);
        known(&mut heads, 10_000..14_000);
        note(&mut heads, 4000..8000, &poor);
        assert!(heads.bytes() <= 16_384 && heads.bytes() > 16_000, "{}", heads.bytes());
    }
}
