//! A cache that knows the keys of its pairs, so that whoever must leave can be deleted.

use crate::cache::{Cache, Counts};
use crate::pair::PairId;
use crate::plan::CachePlan;
use kvssd_types::{Nanos, OwnedKey};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

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

    /// As [`Cache::set_kept_bytes_max`].
    pub fn set_kept_bytes_max(&mut self, bytes: u64) {
        self.cache.set_kept_bytes_max(bytes);
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

    /// As [`Cache::insert`]; gives the keys of those that leave, of two keys with one hash the older.
    pub fn insert(&mut self, key: &[u8], bytes: u64, expires: Nanos) -> Vec<OwnedKey> {
        let leaving = self.cache.insert_with(id(key), bytes, expires, key.len() as u8);
        let mut keys: Vec<OwnedKey> = leaving.into_iter().filter_map(|pair| self.keys.remove(&pair)).collect();
        let before = self.keys.insert(id(key), key.into());
        keys.extend(before.filter(|before| **before != *key));
        keys
    }

    /// As [`Cache::shrink`], with the keys.
    pub fn shrink(&mut self) -> Vec<OwnedKey> {
        self.cache.shrink().into_iter().filter_map(|pair| self.keys.remove(&pair)).collect()
    }

    /// As [`Cache::remove`].
    pub fn remove(&mut self, key: &[u8]) -> bool {
        self.contains(key) && self.keys.remove(&id(key)).is_some() && self.cache.remove(id(key))
    }

    /// As [`Cache::expire_one`], with the key.
    pub fn expire_one(&mut self, now: Nanos) -> Option<OwnedKey> {
        let pair = self.cache.expire_one(now)?;
        self.keys.remove(&pair)
    }

    /// As [`Cache::expire`].
    pub fn expire(&mut self, key: &[u8], now: Nanos) -> bool {
        let is_old = self.contains(key) && self.cache.expire(id(key), now);
        if is_old {
            self.keys.remove(&id(key));
        }
        is_old
    }
}

/// What the policies know a key by.
fn id(key: &[u8]) -> PairId {
    PairId(xxh3_64(key))
}
