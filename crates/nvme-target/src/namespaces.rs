//! Which namespaces a drive has while it is served, and how hosts are told of them.

use crate::lock::lock;
use kvssd_ftl::NamespaceInfo;
use kvssd_nvme_spec::named::{FLAG_ORDERED, NamespaceEntry, namespaces_page};
use kvssd_nvme_spec::write_text;
use kvssd_runtime::sync::{Mutex, PoisonError, RwLock};
use std::collections::BTreeMap;

/// The numbers of all namespaces, each with a number that no other namespace of this service has.
pub(crate) struct Namespaces {
    living: RwLock<BTreeMap<u32, u64>>,
    born: Mutex<u64>,
}

impl Namespaces {
    /// With those that there are when the service begins.
    pub(crate) fn new(living: impl IntoIterator<Item = u32>) -> Self {
        Namespaces { living: RwLock::new(living.into_iter().map(|id| (id, 0)).collect()), born: Mutex::new(0) }
    }

    /// Whether there is a namespace of that number.
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.living.read().unwrap_or_else(PoisonError::into_inner).contains_key(&id)
    }

    /// All of them.
    pub(crate) fn living(&self) -> BTreeMap<u32, u64> {
        self.living.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn add(&self, id: u32) {
        let mut born = lock(&self.born);
        *born += 1;
        self.living.write().unwrap_or_else(PoisonError::into_inner).insert(id, *born);
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

fn entry_of(info: &NamespaceInfo) -> NamespaceEntry {
    let mut entry = NamespaceEntry::zeroed();
    entry.number = info.id.0.into();
    entry.flags = if info.is_ordered { FLAG_ORDERED } else { 0 }.into();
    entry.pairs = info.utilization.pairs.into();
    entry.pair_bytes = info.utilization.pair_bytes.into();
    entry.live_bytes = info.utilization.live_bytes.into();
    entry.quota_bytes = info.attributes.quota_bytes.unwrap_or(0).into();
    entry.capacity_bytes = info.utilization.capacity_bytes.into();
    write_text(&mut entry.name, info.attributes.name.as_deref().unwrap_or(""));
    write_text(&mut entry.index, &info.index);
    entry
}
