//! Which namespaces are caches, and what is in them.

use super::clock::{Clock, read_stamp};
use super::{CacheInfo, Caches, DRAM_PAGE_BYTES, DRAM_SHARE, OneCache, STAMP_BYTES};
use crate::large::{each_key, told_keys};
use crate::records::Records;
use kvssd_cache::{CacheAttributes, KeyedCache, LeavingPair};
use kvssd_ftl::{Engine, NamespaceInfo};
use kvssd_types::{Command, Key, KvError, NamespaceId, Nanos, OwnedKey, Reply};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// A pair of a cache: its stamp, its key, and the bytes of key and value.
type Found = (u64, OwnedKey, u64);

impl Caches {
    /// The caches of a drive with values of up to so many bytes.
    pub(crate) fn open(engine: &Engine, value_bytes_max: u64, is_read_only: bool) -> Self {
        let mut caches = Caches {
            all: BTreeMap::new(),
            clock: Clock::default(),
            dram_bytes_max: engine.dram_budget_bytes() / DRAM_SHARE,
            value_bytes_max,
            is_read_only,
            is_measured: false,
            left: None,
            pairs_left: 0,
            overdue: Vec::new(),
        };
        for info in engine.namespaces() {
            if let Some(attributes) = info.attributes.cache {
                caches.all.insert(info.id, OneCache::new(attributes, info.attributes.quota_bytes, None));
            }
        }
        caches
    }

    /// The caches of a measured drive: it is never mounted, and reports evicted keys.
    pub(crate) fn measured(engine: &Engine, value_bytes_max: u64) -> Self {
        Caches { is_measured: true, left: Some(Vec::new()), ..Caches::open(engine, value_bytes_max, false) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Sets the time from here on.
    pub(crate) fn tell_time(&mut self, now: Nanos) {
        self.clock.tell(now);
    }

    /// How many pairs have left since the drive was opened.
    pub(crate) fn pairs_left(&self) -> u64 {
        self.pairs_left
    }

    /// The keys that were evicted since the last call.
    pub(crate) fn take_left(&mut self) -> Vec<OwnedKey> {
        self.left.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes that an empty namespace became a cache, that a namespace is none any more, or that a cache with its pairs got other attributes. Then
    /// all caches [share the memory](Self::share_dram) anew.
    pub(crate) fn set(&mut self, id: NamespaceId, attributes: Option<CacheAttributes>, quota_bytes: Option<u64>) {
        let before = self.all.remove(&id);
        if let Some(attributes) = attributes {
            let share = self.dram_bytes_max / (self.all.len() as u64 + 1);
            let held = before.is_none().then(|| KeyedCache::within(&attributes.plan, share));
            self.all.insert(id, OneCache::new(attributes, quota_bytes, held));
        }
    }

    /// DRAM that they take, rounded up to whole pages, so that not every pair makes the drive share it anew.
    pub(crate) fn dram_bytes(&self) -> u64 {
        let held = self.all.values().filter_map(|cache| cache.held.as_ref());
        held.map(KeyedCache::kept_bytes).sum::<u64>().next_multiple_of(DRAM_PAGE_BYTES)
    }

    /// What a cache is and holds; `None` if the namespace is no cache.
    pub(crate) fn info(&self, id: NamespaceId) -> Option<CacheInfo> {
        let OneCache { attributes, held, hits, misses, .. } = self.all.get(&id)?;
        Some(CacheInfo {
            attributes: attributes.clone(),
            budget_bytes: held.as_ref().map_or(attributes.plan.budget_bytes, KeyedCache::budget_bytes),
            held_bytes: held.as_ref().map_or(0, KeyedCache::held_bytes),
            kept_bytes: held.as_ref().map_or(0, KeyedCache::kept_bytes),
            hits: hits.load(Ordering::Relaxed),
            misses: misses.load(Ordering::Relaxed),
            counts: held.as_ref().map(KeyedCache::counts).unwrap_or_default(),
        })
    }

    /// Namespaces as hosts are told of them: without stamps, which are no part of the pairs.
    pub(crate) fn without_stamps(&self, mut infos: Vec<NamespaceInfo>) -> Vec<NamespaceInfo> {
        for info in infos.iter_mut().filter(|info| self.all.contains_key(&info.id)) {
            let stamps = info.utilization.pairs * u64::from(STAMP_BYTES);
            info.utilization.pair_bytes = info.utilization.pair_bytes.saturating_sub(stamps);
        }
        infos
    }

    /// Looks up the pairs of a cache, if that was not done since the mount. They are admitted in the order of their stores; surplus pairs leave,
    /// and, where there is a time to live, all if the age of one is not known: the clock went back while the drive was closed, for nobody knows
    /// how long. Pairs whose keys cannot be read are not among them: they stay until they are stored or deleted.
    pub(super) fn know(&mut self, records: &mut dyn Records, namespace: NamespaceId) -> Result<(), KvError> {
        let cache = self.all.get(&namespace).expect("it is a cache");
        if cache.held.is_some() {
            return Ok(());
        }
        let attributes = cache.attributes.clone();
        let mut found = all_of(records, namespace)?;
        records.then();
        found.sort();
        let knows_ages = found.iter().all(|(stamp, ..)| self.expires_of(namespace, Nanos(*stamp)) > Nanos::ZERO);
        let mut held = KeyedCache::within(&attributes.plan, self.dram_share());
        let (mut leaving, mut last) = (Vec::new(), Nanos::ZERO);
        for (stamp, key, bytes) in found {
            let expires = if knows_ages { self.expires_of(namespace, Nanos(stamp)) } else { Nanos::ZERO };
            if expires == Nanos::ZERO || bytes > attributes.plan.budget_bytes {
                leaving.push(LeavingPair::new(key, bytes, expires));
            } else {
                last = Nanos(stamp);
                leaving.extend(held.insert(&key, bytes, expires));
            }
        }
        let cache = self.all.get_mut(&namespace).expect("it is a cache");
        (cache.held, cache.stamp) = (Some(held), last.max(cache.stamp));
        self.leave(records, namespace, leaving)
    }
}

/// All pairs of a namespace. If a page cannot be read, those whose keys can be told all the same.
fn all_of(records: &mut dyn Records, namespace: NamespaceId) -> Result<Vec<Found>, KvError> {
    let mut found = Vec::new();
    let listed = each_key(records, namespace, |records, key| {
        found.push(look_at(records, namespace, key)?);
        Ok(())
    });
    let Err(unread @ KvError::Unrecovered(_)) = listed else { return listed.map(|()| found) };
    let Some(keys) = told_keys(records, namespace)? else { return Err(unread) };
    keys.iter().map(|key| look_at(records, namespace, Key::new(key)?)).collect()
}

/// When a pair was stored, and its bytes. A pair that cannot be read counts as the oldest.
pub(super) fn look_at(records: &mut dyn Records, namespace: NamespaceId, key: Key<'_>) -> Result<Found, KvError> {
    let part = |records: &mut dyn Records, offset_bytes, length_bytes| match records
        .execute(namespace, Command::Retrieve { key, offset_bytes, length_bytes })
    {
        Ok(Reply::Retrieved { value, value_bytes }) => Ok(Some((value, value_bytes))),
        Err(error) if error.is_fatal() => Err(error),
        _ => Ok(None),
    };
    let key_bytes = key.bytes().len() as u64;
    let unknown = (0, key.bytes().into(), key_bytes);
    let Some((_, record_bytes)) = part(records, 0, 0)? else { return Ok(unknown) };
    let Some(value_bytes) = record_bytes.checked_sub(STAMP_BYTES) else { return Ok(unknown) };
    let Some((stamp, _)) = part(records, value_bytes, STAMP_BYTES)? else { return Ok(unknown) };
    Ok((read_stamp(&stamp.to_vec()), key.bytes().into(), key_bytes + u64::from(value_bytes)))
}
