//! A namespace as a cache: it never refuses a pair for lack of room, but evicts others.
//!
//! ```text
//!   store     admission: worth a write? -> eviction: who leaves? -> delete each -> store; the drive is full all the same: a smaller cache
//!   retrieve  retrieve -> eviction learns of the hit
//! ```
//!
//! The policies are those of `kvssd_cache`, as a replay (`kvssd replay --cache`) shows them. What they remember is in memory alone: a cache that
//! is opened again knows which pairs there are, but not which were asked for. A cache whose namespace was deleted is refused, even if another
//! namespace has that number.
//!
//! Two that evict from one namespace would each count what the other one deletes: of an open store a namespace has one at a time, and none where
//! the drive itself keeps it as a cache.

use crate::lives::{Claim, Living};
use crate::{Error, Namespace, Store};
use kvssd_cache::{CachePlan, Counts, KeyedCache, LeavingPair};
use kvssd_runtime::sync::{Mutex, MutexGuard, PoisonError};
use kvssd_runtime::time::Instant;
use kvssd_types::{Key, NamespaceId, Nanos, OwnedKey, Value};
use std::collections::{BTreeMap, BTreeSet};
use xxhash_rust::xxh3::xxh3_64;

/// A pair of more than this part of the budget is large: the drive is asked whether it could hold it before others leave.
const LARGE_SHARE: u64 = 16;

/// A cache in a namespace, for the threads of one process. It borrows nothing, so that it can be kept where a store cannot be borrowed. Pairs
/// stored in the namespace by other means do no harm, but are not counted until the cache is opened again.
#[derive(Debug)]
pub struct PairCache {
    namespace: NamespaceId,
    /// Of the life of its number: another namespace may get the number.
    claim: Claim,
    value_bytes_max: u64,
    opened: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    cache: KeyedCache,
    /// Pairs that threads are about to store, by the hashes of their keys: a miss of such a key says nothing about it.
    storing: BTreeMap<u64, u32>,
    /// Those of them that may have gone with a pair of the same key, which another thread deleted meanwhile.
    overtaken: BTreeSet<u64>,
    /// Evicted pairs that may still be there, since the drive was not reached. Until they are deleted, no pair is admitted.
    owed: Vec<OwnedKey>,
    /// Counts stores that have ended: what a command found before one of them is out of date.
    stores_ended: u64,
    hits: u64,
    misses: u64,
}

/// What a cache holds, and what happened since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairCacheStats {
    /// Pairs.
    pub pairs: u64,
    /// Bytes of their keys and values.
    pub held_bytes: u64,
    /// The most of these bytes: the plan's, or what a full drive has left of that.
    pub budget_bytes: u64,
    /// Retrieves that found their pair.
    pub hits: u64,
    /// Retrieves that did not.
    pub misses: u64,
    /// Pairs that came in, were kept out, and left.
    pub counts: Counts,
}

impl PairCache {
    /// Opens the cache in a namespace, with the pairs that are there, in the order of the index. Each is asked for its length, which takes some
    /// microseconds. Pairs beyond the plan's budget are evicted. Where a page of an image cannot be read, the cache has the pairs whose keys can be
    /// told all the same. This takes memory for all keys.
    ///
    /// # Errors
    /// [`Error::Refused`] while another cache of this open store is in the namespace (drop that one first), and where the drive keeps it as a cache
    /// ([`Namespace::set_cache`]). And as [`Namespace::retrieve`] and [`Namespace::delete`].
    pub fn open(namespace: Namespace<'_>, plan: &CachePlan) -> Result<Self, Error> {
        namespace.check_owner()?;
        let living = namespace.store_of().lives().hold();
        let cache = PairCache {
            namespace: namespace.id(),
            claim: claim_of(namespace, &living)?,
            // A drive that does not say its limit refuses what is too large.
            value_bytes_max: match namespace.store_of().stats()?.value_bytes_max {
                0 => u64::MAX,
                bytes => bytes,
            },
            opened: Instant::now(),
            state: Mutex::new(State::new(plan)),
        };
        for key in keys_of_all(namespace)? {
            let value_bytes = match namespace.retrieve_into(&key, 0, &mut []) {
                // To be evicted like any other.
                Err(Error::Damaged { .. }) => Some(0),
                value_bytes => value_bytes?,
            };
            // A pair that was deleted meanwhile has no length.
            if let Some(value_bytes) = value_bytes {
                let is_too_large = key.len() as u64 + u64::from(value_bytes) > plan.budget_bytes;
                let leaving = if is_too_large { vec![key] } else { cache.lock().take_in(&key, value_bytes.into()) };
                cache.delete_each(namespace, &leaving)?;
            }
        }
        Ok(cache)
    }

    /// Stores a pair, if it is worth a write; others may be evicted for it. Returns whether it is in. If it is kept out, the key's old pair is
    /// deleted.
    ///
    /// # Errors
    /// As [`Namespace::store`], but [`Error::Full`] only if the drive is full of other data than this cache's. [`Error::NoNamespace`] says what to do
    /// when the namespace was deleted: no other namespace gets the pair.
    pub fn store(&self, store: &Store, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.living(store, |namespace| self.store_living(namespace, key, value))
    }

    /// Does something in the namespace, if it is the one that the cache was opened in.
    fn living<T>(&self, store: &Store, act: impl FnOnce(Namespace<'_>) -> Result<T, Error>) -> Result<T, Error> {
        store.check_owner()?;
        let living = store.lives().hold();
        let number = self.namespace.to_string();
        let done = match living.life_of(self.namespace) == self.claim.life() {
            true => act(store.namespace_at(self.namespace)),
            false => Err(Error::NoNamespace { name: number.clone() }),
        };
        done.map_err(|error| match error {
            // The wire says more if another namespace has its number.
            Error::NoNamespace { name } if name == number => Error::NoNamespace {
                name: format!(
                    "{number} any more: it was deleted, and this cache with it; open a cache in one that is there"
                ),
            },
            other => other,
        })
    }

    fn store_living(&self, namespace: Namespace<'_>, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let value_bytes = value.len() as u64;
        // Nothing is evicted for a pair that no drive takes.
        Key::new(key)?;
        if value_bytes > self.value_bytes_max {
            return Err(Error::InvalidValue { value_bytes, value_bytes_max: self.value_bytes_max });
        }
        let now = self.now();
        let bytes = key.len() as u64 + value_bytes;
        let is_large = {
            let state = self.settled(namespace)?;
            bytes > state.cache.budget_bytes() / LARGE_SHARE && state.cache.is_full_for(key, bytes)
        };
        if is_large && !self.could_hold(namespace, bytes)? {
            self.delete_living(namespace, key)?;
            return Err(Error::Full);
        }
        let leaving = {
            let mut state = self.settled(namespace)?;
            state.cache.admits(key, bytes, now).then(|| {
                *state.storing.entry(id(key)).or_default() += 1;
                state.take_in(key, value_bytes)
            })
        };
        let Some(leaving) = leaving else {
            self.delete_living(namespace, key)?;
            return Ok(false);
        };
        let stored = self.delete_each(namespace, &leaving).and_then(|()| self.store_in(namespace, key, value));
        let is_gone = self.lock().stored(key, stored.is_ok());
        // The pair was evicted before it was stored, or what is stored is out of date.
        let deleted = if is_gone { self.remove(namespace, key).map(drop) } else { Ok(()) };
        stored.and_then(|is_in| deleted.map(|()| is_in))
    }

    /// Whether the drive had room for a pair of so many bytes if all others left the cache. If not, none is to leave for it.
    fn could_hold(&self, namespace: Namespace<'_>, bytes: u64) -> Result<bool, Error> {
        let (drive, own) = (namespace.store_of().stats()?, namespace.info()?.utilization);
        let of_others = drive.live_bytes.saturating_sub(own.live_bytes);
        // A drive that is not kvssd may say nothing.
        let is_known = drive.capacity_bytes > 0 && own.capacity_bytes > 0;
        Ok(!is_known || bytes <= own.capacity_bytes.min(drive.capacity_bytes.saturating_sub(of_others)))
    }

    /// Whether a drive that is full would have room for so many bytes if others left the cache: what they took themselves must do, since nobody
    /// knows how much of the rest can be had.
    fn could_replace(&self, namespace: Namespace<'_>, bytes: u64) -> Result<bool, Error> {
        let own = namespace.info()?.utilization;
        let is_known = own.capacity_bytes > 0;
        Ok((!is_known || bytes <= own.live_bytes) && self.could_hold(namespace, bytes)?)
    }

    /// Stores an admitted pair; while the drive is full, others are evicted. Returns whether it is in.
    fn store_in(&self, namespace: Namespace<'_>, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let mut could_hold = None;
        loop {
            match namespace.store(key, value) {
                Ok(()) => return Ok(true),
                Err(full @ (Error::Full | Error::QuotaFull)) => {
                    let bytes = (key.len() + value.len()) as u64;
                    if could_hold.is_none() && !*could_hold.insert(self.could_replace(namespace, bytes)?) {
                        return Err(full);
                    }
                    let (leaving, is_empty) = {
                        let mut state = self.lock();
                        (keys_of(state.cache.shrink()), state.cache.pairs() == 0)
                    };
                    let is_in = !leaving.is_empty() && !leaving.iter().any(|other| **other == *key);
                    self.delete_each(namespace, &leaving)?;
                    match is_in {
                        true => {}
                        false if is_empty => return Err(full),
                        false => return Ok(false),
                    }
                }
                Err(other) => return Err(other),
            }
        }
    }

    /// Whether `key` is in, and not about to be stored. It asks no drive and counts no hit.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        let state = self.lock();
        state.cache.contains(key) && !state.storing.contains_key(&id(key))
    }

    /// The value of `key`, if it is in.
    ///
    /// # Errors
    /// As [`Namespace::retrieve`].
    pub fn retrieve(&self, store: &Store, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.retrieve_value(store, key)?.map(|value| value.to_vec()))
    }

    /// [`PairCache::retrieve`] without a copy.
    ///
    /// # Errors
    /// As [`Namespace::retrieve`].
    pub fn retrieve_value(&self, store: &Store, key: &[u8]) -> Result<Option<Value>, Error> {
        let stores_ended = self.lock().stores_ended;
        let value = self.living(store, |namespace| namespace.retrieve_value(key))?;
        let now = self.now();
        let mut state = self.lock();
        match &value {
            Some(_) => {
                state.hits += 1;
                state.cache.look(key, now);
            }
            None => {
                state.misses += 1;
                if state.stores_ended == stores_ended && !state.storing.contains_key(&id(key)) {
                    state.cache.remove(key);
                }
            }
        }
        Ok(value)
    }

    /// Removes `key` and its value; returns whether it was in.
    ///
    /// # Errors
    /// As [`Namespace::delete`].
    pub fn delete(&self, store: &Store, key: &[u8]) -> Result<bool, Error> {
        self.living(store, |namespace| self.delete_living(namespace, key))
    }

    fn delete_living(&self, namespace: Namespace<'_>, key: &[u8]) -> Result<bool, Error> {
        self.settled(namespace)?.cache.remove(key);
        self.remove(namespace, key)
    }

    /// What it holds, and what happened.
    #[must_use]
    pub fn stats(&self) -> PairCacheStats {
        let state = self.lock();
        PairCacheStats {
            pairs: state.cache.pairs(),
            held_bytes: state.cache.held_bytes(),
            budget_bytes: state.cache.budget_bytes(),
            hits: state.hits,
            misses: state.misses,
            counts: state.cache.counts(),
        }
    }

    fn delete_each(&self, namespace: Namespace<'_>, leaving: &[Box<[u8]>]) -> Result<(), Error> {
        let delete = |key: &[u8]| match self.remove(namespace, key) {
            // Nobody can read it either, and other pairs need not wait for it.
            Err(Error::Damaged { .. }) => Ok(()),
            deleted => deleted.map(drop),
        };
        // If one fails, the others are deleted all the same.
        leaving.iter().map(|key| delete(key)).fold(Ok(()), Result::and)
    }

    /// Deletes a pair that the policy does not know any more. One that another thread has stored meanwhile may have gone with it: it is evicted.
    fn remove(&self, namespace: Namespace<'_>, key: &[u8]) -> Result<bool, Error> {
        let mut is_deleted = false;
        loop {
            is_deleted |= namespace.delete(key).inspect_err(|error| {
                if matches!(error, Error::Unreachable { .. } | Error::InDoubt { .. }) {
                    self.lock().owed.push(key.into());
                }
            })?;
            if !self.lock().deleted(key) {
                return Ok(is_deleted);
            }
        }
    }

    /// The state, once all evicted pairs are deleted.
    fn settled(&self, namespace: Namespace<'_>) -> Result<MutexGuard<'_, State>, Error> {
        loop {
            let mut state = self.lock();
            let Some(key) = state.owed.pop() else { return Ok(state) };
            drop(state);
            self.remove(namespace, &key)?;
        }
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.opened.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(plan: &CachePlan) -> Self {
        State {
            cache: KeyedCache::within(plan, u64::MAX),
            storing: BTreeMap::new(),
            overtaken: BTreeSet::new(),
            owed: Vec::new(),
            stores_ended: 0,
            hits: 0,
            misses: 0,
        }
    }

    /// Admits a pair. Returns the keys that are evicted.
    fn take_in(&mut self, key: &[u8], value_bytes: u64) -> Vec<Box<[u8]>> {
        keys_of(self.cache.insert(key, key.len() as u64 + value_bytes, Nanos::MAX))
    }

    /// A thread has deleted a pair. Returns whether a newer pair of its key, which came in meanwhile, has to be deleted as well.
    fn deleted(&mut self, key: &[u8]) -> bool {
        let is_stored_now = self.storing.contains_key(&id(key));
        if is_stored_now {
            self.overtaken.insert(id(key));
        }
        !is_stored_now && self.cache.remove(key)
    }

    /// A thread has stored a pair, or failed to. Returns whether a pair may be there that the policy does not know.
    fn stored(&mut self, key: &[u8], is_stored: bool) -> bool {
        let is_overtaken = self.overtaken.contains(&id(key));
        let storing = self.storing.get_mut(&id(key)).expect("it said that it would");
        *storing -= 1;
        if *storing == 0 {
            self.storing.remove(&id(key));
            self.overtaken.remove(&id(key));
        }
        self.stores_ended += 1;
        if !is_stored || is_overtaken {
            self.cache.remove(key);
        }
        !self.cache.contains(key)
    }
}

/// The right to a namespace that nobody else keeps as a cache.
fn claim_of(namespace: Namespace<'_>, living: &Living<'_>) -> Result<Claim, Error> {
    let refused = |why: &str| Error::Refused { why: format!("namespace {}: {why}", namespace.id()) };
    let claim = living.claim(namespace.id());
    let claim = claim.ok_or_else(|| refused("this store has a cache open in it already; close that one first"))?;
    match namespace.info()?.attributes.cache {
        Some(_) => {
            Err(refused("the drive keeps it as a cache by itself; use it as it is, or a namespace that is none"))
        }
        None => Ok(claim),
    }
}

/// All keys of a namespace. If a page of an image cannot be read, those that can be told all the same.
fn keys_of_all(namespace: Namespace<'_>) -> Result<Vec<OwnedKey>, Error> {
    match namespace.keys(None).collect() {
        Err(damaged @ Error::Damaged { .. }) => match namespace.salvage_keys() {
            Ok(keys) => Ok(keys.into_iter().collect()),
            Err(_) => Err(damaged),
        },
        keys => keys,
    }
}

fn keys_of(leaving: Vec<LeavingPair>) -> Vec<OwnedKey> {
    leaving.into_iter().map(|pair| pair.key).collect()
}

fn id(key: &[u8]) -> u64 {
    xxh3_64(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_cache::EvictionPolicy;

    /// Who evicts a pair deletes it when another thread may have stored one of its key.
    #[test]
    fn a_pair_that_came_before_one_of_its_key_was_deleted_is_deleted_too() {
        let plan = CachePlan { budget_bytes: 1000, eviction: EvictionPolicy::LRU, admission: Vec::new() };
        let mut state = State::new(&plan);
        let begin = |state: &mut State| {
            *state.storing.entry(id(b"key")).or_default() += 1;
            assert!(state.take_in(b"key", 10).is_empty());
        };
        begin(&mut state);
        assert!(!state.stored(b"key", true));
        assert!(state.deleted(b"key"));
        assert!(!state.deleted(b"key") && !state.cache.contains(b"key"));
        begin(&mut state);
        assert!(!state.deleted(b"key"), "who is storing it sees to it");
        assert!(state.stored(b"key", true) && !state.cache.contains(b"key"));
        begin(&mut state);
        assert!(!state.stored(b"key", true), "that was another time");
        assert_eq!((state.cache.pairs(), state.storing.len(), state.overtaken.len()), (1, 0, 0));
    }
}
