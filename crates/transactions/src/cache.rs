//! The cache: pairs of any length in a bounded number of bytes, all as they are on the drive.
//!
//! ```text
//!   namespace, key -> hash table -> entry       entries in a ring:  [a] [b'] [ ] [c'] [d]
//!                                                                        ^ hand, ' = used since it came by
//! ```
//!
//! Which pair goes is said by CLOCK (Corbató 1968): the hand passes over entries that were used since it came by last, and takes
//! the first that was not. That a key is not there is kept as well, as a pair without a value.
//!
//! What transactions write is not here before it is on the drive: nothing has to be written back to make room, and who aborts
//! leaves all as it was.

use crate::Record;
use hashbrown::HashTable;
use kvssd_types::{Key, NamespaceId, OwnedKey, Value};

/// What an entry takes beside its key and value: itself, its place in the table at the fullest (5 bytes at 7 of 16), and the
/// counts before the bytes of a value.
pub(crate) const ENTRY_BYTES: usize = size_of::<Option<Entry>>() + 12 + 16;

/// Pairs.
#[derive(Debug)]
pub(crate) struct Cache {
    bytes_max: u64,
    bytes: u64,
    table: HashTable<u32>,
    ring: Vec<Option<Entry>>,
    vacant: Vec<u32>,
    hand: usize,
    counters: CacheCounters,
}

/// What a cache did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Looks that found what they were for.
    pub hits: u64,
    /// Looks that did not.
    pub misses: u64,
    /// Pairs that made room for others.
    pub evictions: u64,
}

#[derive(Debug)]
struct Entry {
    namespace: NamespaceId,
    key: OwnedKey,
    cached: Cached,
    was_used: bool,
}

/// What is known of a record.
#[derive(Clone, Debug)]
pub(crate) struct Cached {
    /// Its value; none when it is not there.
    pub(crate) value: Option<Value>,
    /// It has not been changed since this commit.
    pub(crate) as_of: u64,
}

impl Entry {
    fn record(&self) -> Record<'_> {
        Record { namespace: self.namespace, key: Key::new(&self.key).expect("it was one") }
    }

    fn bytes(&self) -> u64 {
        bytes_of(self.record(), &self.cached)
    }
}

fn bytes_of(record: Record<'_>, cached: &Cached) -> u64 {
    (ENTRY_BYTES + record.key.bytes().len() + cached.value.as_ref().map_or(0, Value::len)) as u64
}

impl Cache {
    /// An empty one, of at most `bytes_max` bytes with all that entries take.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Cache {
            bytes_max,
            bytes: 0,
            table: HashTable::new(),
            ring: Vec::new(),
            vacant: Vec::new(),
            hand: 0,
            counters: CacheCounters::default(),
        }
    }

    /// What is known of the record.
    pub(crate) fn get(&mut self, record: Record<'_>) -> Option<&Cached> {
        let Some(place) = self.place_of(record) else {
            self.counters.misses += 1;
            return None;
        };
        self.counters.hits += 1;
        let entry = self.ring[place].as_mut().expect("the table names entries");
        entry.was_used = true;
        Some(&entry.cached)
    }

    /// Keeps what is known of the record now, if it fits.
    pub(crate) fn put(&mut self, record: Record<'_>, cached: Cached) {
        let bytes = bytes_of(record, &cached);
        if bytes > self.bytes_max {
            return self.forget(record);
        }
        if let Some(place) = self.place_of(record) {
            let entry = self.ring[place].as_mut().expect("the table names entries");
            self.bytes = self.bytes - entry.bytes() + bytes;
            entry.cached = cached;
            entry.was_used = true;
        } else {
            self.evict_to(self.bytes_max - bytes);
            self.add(Entry { namespace: record.namespace, key: record.key.bytes().into(), cached, was_used: false });
        }
        self.evict_to(self.bytes_max);
    }

    pub(crate) fn forget(&mut self, record: Record<'_>) {
        if let Some(place) = self.place_of(record) {
            self.remove_at(place);
        }
    }

    /// Forgets all records.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.ring.clear();
        self.vacant.clear();
        (self.bytes, self.hand) = (0, 0);
    }

    /// Bytes that are taken.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn counters(&self) -> CacheCounters {
        self.counters
    }

    fn add(&mut self, entry: Entry) {
        let hash = entry.record().hash();
        self.bytes += entry.bytes();
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.ring.push(None);
            u32::try_from(self.ring.len() - 1).expect("entries are counted with 32 bits")
        });
        self.ring[place as usize] = Some(entry);
        let ring = &self.ring;
        self.table.insert_unique(hash, place, |&place| record_at(ring, place).hash());
    }

    fn evict_to(&mut self, bytes_max: u64) {
        while self.bytes > bytes_max {
            let place = self.hand;
            self.hand = (self.hand + 1) % self.ring.len();
            match &mut self.ring[place] {
                Some(entry) if entry.was_used => entry.was_used = false,
                Some(_) => {
                    self.remove_at(place);
                    self.counters.evictions += 1;
                }
                None => {}
            }
        }
    }

    fn remove_at(&mut self, place: usize) {
        let entry = self.ring[place].take().expect("it is there");
        self.bytes -= entry.bytes();
        let found = self.table.find_entry(entry.record().hash(), |&other| other as usize == place);
        found.expect("every entry is in the table").remove();
        self.vacant.push(place as u32);
    }

    fn place_of(&self, record: Record<'_>) -> Option<usize> {
        let is_it = |&place: &u32| record_at(&self.ring, place) == record;
        self.table.find(record.hash(), is_it).map(|&place| place as usize)
    }
}

fn record_at(ring: &[Option<Entry>], place: u32) -> Record<'_> {
    ring[place as usize].as_ref().expect("the table names entries").record()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_types::Pattern;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn record(key: &[u8; 1]) -> Record<'_> {
        Record { namespace: NamespaceId::FIRST, key: Key::new(key).unwrap() }
    }

    fn cached(length: u32, as_of: u64) -> Cached {
        Cached { value: Some(Value::Pattern(Pattern { seed: as_of, offset: 0, length })), as_of }
    }

    fn entry_bytes(length: u64) -> u64 {
        ENTRY_BYTES as u64 + 1 + length
    }

    #[test]
    fn the_hand_passes_over_what_was_used() {
        let mut cache = Cache::new(3 * entry_bytes(100));
        for key in [b"a", b"b", b"c"] {
            cache.put(record(key), cached(100, 0));
        }
        assert!(cache.get(record(b"a")).is_some());
        cache.put(record(b"d"), cached(100, 0));
        let is_there = [b"a", b"b", b"c", b"d"].map(|key| cache.get(record(key)).is_some());
        assert_eq!(is_there, [true, false, true, true]);
        assert_eq!(cache.counters(), CacheCounters { hits: 4, misses: 1, evictions: 1 });
    }

    #[test]
    fn a_cache_that_was_cleared_has_nothing_and_goes_on() {
        let mut cache = Cache::new(2 * entry_bytes(100));
        for key in [b"a", b"b", b"c"] {
            cache.put(record(key), cached(100, 0));
        }
        cache.clear();
        assert!([b"a", b"b", b"c"].iter().all(|key| cache.get(record(key)).is_none()));
        assert_eq!(cache.bytes(), 0);
        for key in [b"d", b"e", b"f"] {
            cache.put(record(key), cached(100, 1));
        }
        let is_there = [b"d", b"e", b"f"].map(|key| cache.get(record(key)).is_some());
        assert_eq!(is_there, [false, true, true]);
    }

    #[test]
    fn what_is_larger_than_the_cache_is_not_kept_and_takes_no_room() {
        let mut cache = Cache::new(entry_bytes(100));
        cache.put(record(b"a"), cached(100, 0));
        cache.put(record(b"b"), cached(101, 0));
        assert!(cache.get(record(b"a")).is_some() && cache.get(record(b"b")).is_none());
        cache.put(record(b"a"), cached(101, 1));
        assert!(cache.get(record(b"a")).is_none(), "an old value would be left");
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_was_put_last_within_the_bound(
            steps in prop::collection::vec((any::<[u8; 1]>(), 0u32..400, 0u8..8), 1..400), bytes_max in 0u64..4000,
        ) {
            let mut cache = Cache::new(bytes_max);
            let mut model = BTreeMap::new();
            for (number, (key, length, what)) in steps.into_iter().enumerate() {
                let key = [key[0] % 40];
                match what {
                    0 => cache.forget(record(&key)),
                    1..4 => {
                        model.insert(key, (length, number as u64));
                        cache.put(record(&key), cached(length, number as u64));
                    }
                    _ => if let Some(found) = cache.get(record(&key)) {
                        let (length, as_of) = model[&key];
                        prop_assert_eq!((found.as_of, &found.value), (as_of, &cached(length, as_of).value));
                    }
                }
                let taken: u64 = cache.ring.iter().flatten().map(Entry::bytes).sum();
                prop_assert_eq!(taken, cache.bytes());
                prop_assert!(taken <= bytes_max);
                prop_assert_eq!(cache.table.len(), cache.ring.iter().flatten().count());
            }
        }
    }
}
