//! A cache that knows the keys of its pairs, so that whoever must leave can be deleted.

use crate::cache::{Cache, Counts, Held};
use crate::pair::PairId;
use crate::plan::CachePlan;
use kvssd_types::{Nanos, OwnedKey};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// A pair that is to be removed where it is kept, and what the policy knew of it.
#[derive(Clone, Debug)]
pub struct LeavingPair {
    /// Its key.
    pub key: OwnedKey,
    held: Held,
}

impl LeavingPair {
    /// One that never came in.
    #[must_use]
    pub fn new(key: OwnedKey, bytes: u64, expires: Nanos) -> Self {
        let held = Held { bytes, expires, key_bytes: key.len() as u8 };
        LeavingPair { key, held }
    }
}

/// A cache, and the keys of its pairs. Two keys of one hash are never both in.
#[derive(Debug)]
pub struct KeyedCache {
    cache: Cache,
    keys: BTreeMap<PairId, OwnedKey>,
}

impl KeyedCache {
    /// An empty one that keeps no more than so many bytes of memory, as a drive would.
    #[must_use]
    pub fn within(plan: &CachePlan, kept_bytes_max: u64) -> Self {
        KeyedCache { cache: Cache::within(plan, kept_bytes_max), keys: BTreeMap::new() }
    }

    /// Its pairs.
    #[must_use]
    pub fn pairs(&self) -> u64 {
        self.keys.len() as u64
    }

    /// As [`Cache::budget_bytes`].
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        self.cache.budget_bytes()
    }

    /// As [`Cache::held_bytes`].
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.cache.held_bytes()
    }

    /// As [`Cache::kept_bytes`].
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        self.cache.kept_bytes()
    }

    /// The most bytes of memory that it keeps, from here on. What a rule remembers that takes too much is forgotten; gives the pairs that must
    /// leave.
    pub fn set_kept_bytes_max(&mut self, bytes: u64) -> Vec<LeavingPair> {
        let leaving = self.cache.set_kept_bytes_max(bytes);
        self.named(leaving)
    }

    /// As [`Cache::counts`].
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.cache.counts()
    }

    /// Whether that key is in.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.keys.get(&id(key)).is_some_and(|known| **known == *key)
    }

    /// As [`Cache::look`].
    pub fn look(&mut self, key: &[u8], now: Nanos) -> bool {
        self.contains(key) && self.cache.look(id(key), now)
    }

    /// Whether a key is in and too old.
    #[must_use]
    pub fn is_old(&self, key: &[u8], now: Nanos) -> bool {
        self.contains(key) && self.cache.is_old(id(key), now)
    }

    /// As [`Cache::admits`].
    pub fn admits(&mut self, key: &[u8], bytes: u64, now: Nanos) -> bool {
        self.cache.admits(id(key), bytes, now)
    }

    /// As [`Cache::would_admit`].
    #[must_use]
    pub fn would_admit(&self, key: &[u8], bytes: u64, now: Nanos) -> bool {
        self.cache.would_admit(id(key), bytes, now)
    }

    /// Bytes of a pair that is in, key and value; 0 of another one.
    #[must_use]
    pub fn pair_bytes(&self, key: &[u8]) -> u64 {
        if self.contains(key) { self.cache.held(id(key)).unwrap_or(0) } else { 0 }
    }

    /// Whether a pair of so many bytes would have others leave.
    #[must_use]
    pub fn is_full_for(&self, key: &[u8], bytes: u64) -> bool {
        self.held_bytes() - self.pair_bytes(key) + bytes > self.budget_bytes()
    }

    /// As [`Cache::insert`]; gives those that leave, of two keys with one hash the older.
    pub fn insert(&mut self, key: &[u8], bytes: u64, expires: Nanos) -> Vec<LeavingPair> {
        let is_other = self.keys.get(&id(key)).is_some_and(|known| **known != *key);
        let other = if is_other { self.take(id(key)) } else { None };
        let leaving = self.cache.insert_with(id(key), bytes, expires, key.len() as u8);
        let mut leaving = self.named(leaving);
        leaving.extend(other);
        self.keys.insert(id(key), key.into());
        leaving
    }

    /// As [`Cache::shrink`].
    pub fn shrink(&mut self) -> Vec<LeavingPair> {
        let leaving = self.cache.take_some();
        self.named(leaving)
    }

    /// Some leave for somebody who may have no more, whatever the drive takes; none when nobody is left.
    pub fn evict_some(&mut self) -> Vec<LeavingPair> {
        let leaving = self.cache.evict_some();
        self.named(leaving)
    }

    fn take(&mut self, pair: PairId) -> Option<LeavingPair> {
        let held = self.cache.take(pair)?;
        self.keys.remove(&pair).map(|key| LeavingPair { key, held })
    }

    fn named(&mut self, leaving: Vec<(PairId, Held)>) -> Vec<LeavingPair> {
        leaving
            .into_iter()
            .filter_map(|(pair, held)| Some(LeavingPair { key: self.keys.remove(&pair)?, held }))
            .collect()
    }

    /// Pairs that left are there all the same, since what they left for did not come: they are the first to leave again, in that order.
    pub fn put_back(&mut self, left: Vec<LeavingPair>) {
        let left: Vec<LeavingPair> = left.into_iter().filter(|pair| !self.keys.contains_key(&id(&pair.key))).collect();
        self.cache.put_back(left.iter().map(|pair| (id(&pair.key), pair.held)));
        self.keys.extend(left.into_iter().map(|pair| (id(&pair.key), pair.key)));
    }

    /// A pair that left is there all the same, since it could not be removed: that is tried again when its turn to leave comes once more, or
    /// somebody asks for it.
    pub fn keep(&mut self, left: LeavingPair) {
        if !self.keys.contains_key(&id(&left.key)) {
            self.cache.keep(id(&left.key), left.held);
            self.keys.insert(id(&left.key), left.key);
        }
    }

    /// As [`Cache::remove`].
    pub fn remove(&mut self, key: &[u8]) -> bool {
        self.contains(key) && self.keys.remove(&id(key)).is_some() && self.cache.remove(id(key))
    }

    /// As [`Cache::expire_one`].
    pub fn expire_one(&mut self, now: Nanos) -> Option<LeavingPair> {
        let (pair, held) = self.cache.take_oldest(now)?;
        self.keys.remove(&pair).map(|key| LeavingPair { key, held })
    }

    /// As [`Cache::expire`].
    pub fn expire(&mut self, key: &[u8], now: Nanos) -> Option<LeavingPair> {
        let held = if self.contains(key) { self.cache.take_old(id(key), now)? } else { return None };
        self.keys.remove(&id(key)).map(|key| LeavingPair { key, held })
    }
}

/// What the policies know a key by.
fn id(key: &[u8]) -> PairId {
    PairId(xxh3_64(key))
}
