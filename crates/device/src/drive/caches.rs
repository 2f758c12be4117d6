//! The namespaces of a drive in a file that are caches: they are made, changed, looked at, and told the time.

use super::Drive;
use crate::cached::{CacheInfo, Caches};
use crate::clocked::Clocked;
use crate::large::LargeValues;
use crate::records::Records;
use kvssd_cache::CacheAttributes;
use kvssd_types::{Key, KvError, NamespaceId, Nanos};

pub(super) fn of(clocked: &Clocked, large: Option<&LargeValues>, is_read_only: bool) -> Caches {
    let engine = clocked.device.engine();
    let value_bytes_max = large.map_or(engine.value_bytes_max(), |large| large.value_bytes_max.into());
    Caches::open(engine, value_bytes_max, is_read_only)
}

impl Drive {
    pub(super) fn set_held(&mut self, id: NamespaceId, cache: Option<CacheAttributes>) -> Result<(), KvError> {
        let of_engine = self.engine().namespaces().into_iter().find(|info| info.id == id);
        let quota_bytes = of_engine.and_then(|info| info.attributes.quota_bytes);
        let (caches, mut whole) = self.parts();
        caches.set(id, cache, quota_bytes);
        let shared = caches.share_dram(&mut whole);
        whole.keep_beside(caches.dram_bytes());
        shared
    }

    /// Sets which cache a namespace is. A cache keeps its pairs; a namespace must be empty to become a cache or to stop being one. A cache never
    /// refuses a store that fits its budget: other pairs are evicted for it.
    ///
    /// # Errors
    /// As [`Engine::set_cache`](kvssd_ftl::Engine::set_cache).
    pub fn set_cache(&mut self, id: NamespaceId, cache: Option<CacheAttributes>) -> Result<(), KvError> {
        let of_engine = |drive: &Drive| drive.engine().namespaces().into_iter().find(|info| info.id == id);
        let before = of_engine(self).ok_or(KvError::NoSuchNamespace(id))?;
        let known = |drive: &Drive| drive.cache(id).map(|info| info.attributes);
        // A repeated call, whose first answer was lost, takes nothing from the policy.
        if before.attributes.cache == cache && known(self) == cache {
            return Ok(());
        }
        let made = self.clocked.set_cache(id, cache);
        // If it failed half-way, the firmware says what the namespace is now.
        let is_now = of_engine(self).and_then(|info| info.attributes.cache);
        if known(self) != is_now || made.is_ok() {
            self.set_held(id, is_now)?;
        }
        made
    }

    /// What a namespace that is a cache holds, and what happened; `None` for any other.
    #[must_use]
    pub fn cache(&self, id: NamespaceId) -> Option<CacheInfo> {
        self.caches.info(id)
    }

    /// How many pairs have left caches since the drive was opened: a command that only reads lets those leave that are too old or too many.
    #[must_use]
    pub fn pairs_left(&self) -> u64 {
        self.caches.pairs_left()
    }

    /// Evicts some pairs of a cache, so that a host keeps within its quota. Returns whether there were any.
    ///
    /// # Errors
    /// What the firmware answers to deletes.
    pub fn let_go(&mut self, id: NamespaceId) -> Result<bool, KvError> {
        let (caches, mut whole) = self.parts();
        caches.let_go(&mut whole, id)
    }

    /// Whether a store of a pair would be admitted: true unless its namespace is a cache that refuses it or keeps it out. For such a pair
    /// nothing needs to be evicted.
    ///
    /// # Errors
    /// What the firmware answers.
    pub fn would_take(&mut self, namespace: NamespaceId, key: Key<'_>, value_bytes: u64) -> Result<bool, KvError> {
        let (caches, mut whole) = self.parts();
        caches.would_take(&mut whole, (namespace, key), value_bytes)
    }

    /// Bytes of a key's value; `None` if it has none. No cache counts this as a hit.
    ///
    /// # Errors
    /// What the firmware answers.
    pub fn value_bytes_of(&mut self, namespace: NamespaceId, key: Key<'_>) -> Result<Option<u32>, KvError> {
        let at = self.clocked.clock();
        let (caches, mut whole) = self.parts();
        caches.value_bytes_of(&mut whole, (namespace, key), at)
    }

    /// Sets the time since 1970, by which caches evict pairs that are too old. A drive that is told no time uses its own, virtual one. The owner of a
    /// drive with caches calls this before each command ([`Drive::wants_time`]).
    pub fn tell_time(&mut self, now: Nanos) {
        self.caches.tell_time(now);
    }

    /// Whether there are caches.
    #[must_use]
    pub fn wants_time(&self) -> bool {
        !self.caches.is_empty()
    }
}
