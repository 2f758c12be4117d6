//! Which namespaces a drive has while it is served, and how hosts are told of them.

use crate::lock::lock;
use kvssd_device::CacheInfo;
use kvssd_ftl::NamespaceInfo;
use kvssd_nvme_spec::named::{
    CacheEntry, FLAG_CACHE, FLAG_ORDERED, NamespaceEntry, caches_page, namespaces_page, told_birth,
};
use kvssd_nvme_spec::write_text;
use kvssd_runtime::sync::{Mutex, PoisonError, RwLock};
use kvssd_types::NamespaceId;
use std::collections::BTreeMap;

/// The numbers of all namespaces, and which one each is.
pub(crate) struct Namespaces {
    living: RwLock<BTreeMap<u32, Living>>,
    born: Mutex<u64>,
}

#[derive(Clone, Copy)]
struct Living {
    /// A number that no other namespace of this service has.
    born: u64,
    /// What hosts are told of its birth.
    birth: u32,
}

impl Namespaces {
    /// With those that there are when the service begins.
    pub(crate) fn new(infos: &[NamespaceInfo]) -> Self {
        let living = |info: &NamespaceInfo| (info.id.0, Living { born: 0, birth: told_birth(info.birth) });
        Namespaces { living: RwLock::new(infos.iter().map(living).collect()), born: Mutex::new(0) }
    }

    /// Whether there is a namespace of that number.
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.living.read().unwrap_or_else(PoisonError::into_inner).contains_key(&id)
    }

    /// What hosts are told of the birth of the one that has that number.
    pub(crate) fn birth(&self, id: u32) -> Option<u32> {
        self.living.read().unwrap_or_else(PoisonError::into_inner).get(&id).map(|living| living.birth)
    }

    /// All of them.
    pub(crate) fn living(&self) -> BTreeMap<u32, u64> {
        let living = self.living.read().unwrap_or_else(PoisonError::into_inner);
        living.iter().map(|(&id, living)| (id, living.born)).collect()
    }

    pub(crate) fn add(&self, id: u32, birth: u32) {
        let mut born = lock(&self.born);
        *born += 1;
        self.living.write().unwrap_or_else(PoisonError::into_inner).insert(id, Living { born: *born, birth });
    }

    pub(crate) fn remove(&self, id: u32) {
        self.living.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}

/// Log page C1h.
pub(crate) fn page_of(namespaces: &[NamespaceInfo]) -> Vec<u8> {
    let entries: Vec<NamespaceEntry> = namespaces.iter().map(entry_of).collect();
    namespaces_page(&entries)
}

/// Log page C2h.
pub(crate) fn caches_page_of(caches: &[(NamespaceId, CacheInfo)]) -> Vec<u8> {
    let entries: Vec<CacheEntry> = caches.iter().map(|(id, cache)| cache_entry(*id, cache)).collect();
    caches_page(&entries)
}

fn cache_entry(id: NamespaceId, cache: &CacheInfo) -> CacheEntry {
    let mut entry = CacheEntry::zeroed();
    entry.number = id.0.into();
    entry.budget_bytes = cache.budget_bytes.into();
    entry.held_bytes = cache.held_bytes.into();
    entry.dram_bytes = cache.kept_bytes.into();
    (entry.hits, entry.misses) = (cache.hits.into(), cache.misses.into());
    (entry.admitted, entry.kept_out) = (cache.counts.admitted.into(), cache.counts.kept_out.into());
    (entry.evicted, entry.expired) = (cache.counts.evicted.into(), cache.counts.expired.into());
    write_text(&mut entry.cache, &cache.attributes.to_string());
    entry
}

fn entry_of(info: &NamespaceInfo) -> NamespaceEntry {
    let mut entry = NamespaceEntry::zeroed();
    entry.number = info.id.0.into();
    let is_cache = info.attributes.cache.is_some();
    let flags = [(info.is_ordered, FLAG_ORDERED), (is_cache, FLAG_CACHE)];
    entry.flags = flags.iter().filter(|(is_so, _)| *is_so).map(|(_, flag)| flag).sum::<u32>().into();
    entry.set_birth(info.birth);
    entry.pairs = info.utilization.pairs.into();
    entry.pair_bytes = info.utilization.pair_bytes.into();
    entry.live_bytes = info.utilization.live_bytes.into();
    entry.quota_bytes = info.attributes.quota_bytes.unwrap_or(0).into();
    entry.capacity_bytes = info.utilization.capacity_bytes.into();
    write_text(&mut entry.name, info.attributes.name.as_deref().unwrap_or(""));
    write_text(&mut entry.index, &info.index);
    entry
}
