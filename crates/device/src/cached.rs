//! Namespaces that are caches: a store never finds one full, since other pairs are evicted for it.
//!
//! ```text
//!   store      too old? -> admission: worth a write? -> eviction: who leaves? -> delete each -> store     the drive is full all the same: fewer stay
//!   retrieve   too old? -> retrieve -> eviction learns of the hit
//!
//!   host  ->  Caches  ->  LargeValues  ->  engine       who leaves goes with its segments
//!               |                            ^
//!           kvssd_cache: who comes in, who leaves          what it keeps is charged to the DRAM
//! ```
//!
//! The attributes are the firmware's, and as durable as the namespace. Behind each value stands its **stamp**, the time of its store. What the
//! policies know is in DRAM: after a mount, the first command on a namespace reads keys and stamps, and puts the pairs in the order of the stamps.
//! A mount forgets which pairs were asked for, and what a rule of admission remembered.
//!
//! Not supported: counting the hits of glances, and a time to live for a single pair.

mod changes;
mod clock;
mod known;
mod room;
mod stamps;
#[cfg(test)]
mod tests;
mod whole;

pub(crate) use self::stamps::STAMP_BYTES;
pub(crate) use self::whole::Whole;

use self::clock::Clock;
use self::stamps::Asked;

use crate::records::{Origin, Records};
use kvssd_cache::{CacheAttributes, Counts, KeyedCache, LeavingPair};
use kvssd_types::{Command, Key, KvError, NamespaceId, Nanos, OwnedKey, Reply};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The part of the DRAM that all caches may keep together. An estimate.
const DRAM_SHARE: u64 = 4;

/// DRAM is charged to the caches in steps of this size. An estimate.
const DRAM_PAGE_BYTES: u64 = 4096;

/// The most other pairs that a command deletes because they are too old. An estimate.
const SWEPT_MAX: usize = 32;

/// What a cache of a drive holds, and what happened since the drive was opened or the cache was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheInfo {
    /// What was chosen.
    pub attributes: CacheAttributes,
    /// Bytes of keys and values that it may hold now: the budget, or what is left of it on a full drive.
    pub budget_bytes: u64,
    /// Bytes of keys and values that it holds; 0 before the first command after a mount.
    pub held_bytes: u64,
    /// DRAM that it keeps.
    pub kept_bytes: u64,
    /// Retrieves that found their pair, without those by [`Drive::glance`](crate::Drive::glance).
    pub hits: u64,
    /// Retrieves that did not.
    pub misses: u64,
    /// Pairs that came in, were kept out, and left.
    pub counts: Counts,
}

impl CacheInfo {
    /// The sums of both, with the attributes of the first.
    pub(crate) fn plus(self, other: &CacheInfo) -> CacheInfo {
        CacheInfo {
            attributes: self.attributes,
            budget_bytes: self.budget_bytes + other.budget_bytes,
            held_bytes: self.held_bytes + other.held_bytes,
            kept_bytes: self.kept_bytes + other.kept_bytes,
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            counts: self.counts.plus(other.counts),
        }
    }
}

/// The caches of a drive.
#[derive(Debug)]
pub(crate) struct Caches {
    all: BTreeMap<NamespaceId, OneCache>,
    clock: Clock,
    dram_bytes_max: u64,
    value_bytes_max: u64,
    is_read_only: bool,
    /// Whether the drive is only measured and never mounted: then a stamp need not hold a time where a value is a pattern.
    is_measured: bool,
    /// The evicted keys, if somebody asks for them.
    left: Option<Vec<OwnedKey>>,
    /// Pairs that left since the drive was opened.
    pairs_left: u64,
    /// Pairs that the last command should have evicted and could not.
    overdue: Vec<(NamespaceId, LeavingPair)>,
}

/// A namespace that is a cache.
#[derive(Debug)]
struct OneCache {
    attributes: CacheAttributes,
    quota_bytes: Option<u64>,
    /// Its pairs; `None` before the first command after a mount.
    held: Option<KeyedCache>,
    /// The stamp of its last store: that of a later one is larger.
    stamp: Nanos,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl OneCache {
    fn new(attributes: CacheAttributes, quota_bytes: Option<u64>, held: Option<KeyedCache>) -> Self {
        let (hits, misses) = (AtomicU64::new(0), AtomicU64::new(0));
        OneCache { attributes, quota_bytes, held, stamp: Nanos::ZERO, hits, misses }
    }
}

impl Caches {
    /// Executes a command that comes at `at` by the drive's own clock.
    pub(crate) fn execute_as(
        &mut self,
        records: &mut dyn Records,
        origin: Origin,
        command: Command<'_>,
        at: Nanos,
    ) -> Result<Reply, KvError> {
        self.overdue.clear();
        if !self.concerns(origin.1, &command) {
            return records.execute_as(origin, command);
        }
        if self.is_read_only {
            let asked = Asked::of(&command);
            return asked.without_stamp(records.execute_as(origin, command)?);
        }
        self.clock.advance(at);
        let reply = self.execute(records, origin, command);
        records.keep_beside(self.dram_bytes());
        reply
    }

    fn execute(
        &mut self,
        records: &mut dyn Records,
        (request, namespace): Origin,
        command: Command<'_>,
    ) -> Result<Reply, KvError> {
        if let Command::Batch { changes } = command {
            return self.batch(records, request, changes);
        }
        self.prepare(records, namespace, command.key())?;
        let asked = Asked::of(&command);
        match command {
            Command::Store { key, value, condition } => {
                self.store(records, (request, namespace), (key, &value, condition))
            }
            Command::Delete { key } => {
                let deleted = records.execute_as((request, namespace), command);
                if matches!(deleted, Ok(_) | Err(KvError::KeyNotFound)) {
                    self.held(namespace).remove(key.bytes());
                }
                deleted
            }
            Command::Retrieve { key, .. } => {
                let reply = match self.is_old(namespace, key) {
                    true => Err(KvError::KeyNotFound),
                    false => records.execute_as((request, namespace), command),
                };
                let now = self.clock.now();
                match &reply {
                    Ok(_) => {
                        self.held(namespace).look(key.bytes(), now);
                        self.all[&namespace].hits.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(KvError::KeyNotFound) => {
                        self.all[&namespace].misses.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(_) => {}
                }
                asked.without_stamp(reply?)
            }
            Command::Exist { key } if self.is_old(namespace, key) => Err(KvError::KeyNotFound),
            command => asked.without_stamp(records.execute_as((request, namespace), command)?),
        }
    }

    /// Bytes of a key's value, if it has one. The policy does not count this as a hit.
    pub(crate) fn value_bytes_of(
        &mut self,
        records: &mut dyn Records,
        (namespace, key): (NamespaceId, Key<'_>),
        at: Nanos,
    ) -> Result<Option<u32>, KvError> {
        let is_cache = self.all.contains_key(&namespace);
        if is_cache && !self.is_read_only {
            self.clock.advance(at);
            self.prepare(records, namespace, Some(key))?;
            if self.is_old(namespace, key) {
                return Ok(None);
            }
        }
        let look = Command::Retrieve { key, offset_bytes: 0, length_bytes: 0 };
        match records.execute(namespace, look) {
            Ok(Reply::Retrieved { value_bytes, .. }) if is_cache => Ok(Some(value_bytes.saturating_sub(STAMP_BYTES))),
            Ok(Reply::Retrieved { value_bytes, .. }) => Ok(Some(value_bytes)),
            Ok(_) | Err(KvError::KeyNotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a command is on a cache.
    fn concerns(&self, namespace: NamespaceId, command: &Command<'_>) -> bool {
        !self.all.is_empty()
            && match command {
                Command::Batch { changes } => changes.iter().any(|change| self.all.contains_key(&change.namespace)),
                Command::Flush => false,
                _ => self.all.contains_key(&namespace),
            }
    }

    /// The answer that `glance` returns, if no policy need learn of it and no pair can be too old.
    pub(crate) fn glance(
        &self,
        namespace: NamespaceId,
        command: &Command<'_>,
        glance: impl FnOnce() -> Option<Result<Reply, KvError>>,
    ) -> Option<Result<Reply, KvError>> {
        let Some(cache) = self.all.get(&namespace) else { return glance() };
        let CacheAttributes { plan, time_to_live_ms } = &cache.attributes;
        let is_asked = plan.eviction.counts_hits || time_to_live_ms.is_some() || cache.held.is_none();
        if !self.is_read_only && is_asked {
            return None;
        }
        let reply = glance()?;
        Some(reply.and_then(|reply| Asked::of(command).without_stamp(reply)))
    }

    /// The pairs of a cache that were looked up.
    fn held(&mut self, namespace: NamespaceId) -> &mut KeyedCache {
        let cache = self.all.get_mut(&namespace).expect("it is a cache");
        cache.held.as_mut().expect("its pairs were looked up")
    }

    /// Before a command on a cache: looks its pairs up, and deletes the key's pair and some others if they are too old.
    fn prepare(
        &mut self,
        records: &mut dyn Records,
        namespace: NamespaceId,
        key: Option<Key<'_>>,
    ) -> Result<(), KvError> {
        self.know(records, namespace)?;
        let now = self.clock.now();
        let held = self.held(namespace);
        let mut old: Vec<LeavingPair> = key.and_then(|key| held.expire(key.bytes(), now)).into_iter().collect();
        while old.len() < SWEPT_MAX
            && let Some(pair) = held.expire_one(now)
        {
            old.push(pair);
        }
        self.leave(records, namespace, old)
    }

    /// Whether a pair is too old but still there, since it could not be deleted: nobody sees it any more.
    fn is_old(&mut self, namespace: NamespaceId, key: Key<'_>) -> bool {
        let now = self.clock.now();
        self.held(namespace).is_old(key.bytes(), now)
    }
}
