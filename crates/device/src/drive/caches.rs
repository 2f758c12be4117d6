//! The namespaces of a drive in a file that are caches: made, changed, looked at, and told the time.

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

    /// Makes a namespace another cache, with the pairs that it has; or an empty one a cache, or none any more. A cache never refuses a store that
    /// fits its budget: others leave for it.
    ///
    /// # Errors
    /// As [`Engine::set_cache`].
    pub fn set_cache(&mut self, id: NamespaceId, cache: Option<CacheAttributes>) -> Result<(), KvError> {
        let of_engine = |drive: &Drive| drive.engine().namespaces().into_iter().find(|info| info.id == id);
        let before = of_engine(self).ok_or(KvError::NoSuchNamespace(id))?;
        let known = |drive: &Drive| drive.cache(id).map(|info| info.attributes);
        // What comes again, since its answer was lost, takes nothing from the policy.
        if before.attributes.cache == cache && known(self) == cache {
            return Ok(());
        }
        let made = self.clocked.set_cache(id, cache);
        // Where it ended half-way, the firmware says what the namespace is.
        let is_now = of_engine(self).and_then(|info| info.attributes.cache);
        if known(self) != is_now || made.is_ok() {
            self.set_held(id, is_now)?;
        }
        made
    }

    /// What a namespace holds that is a cache, and what happened; none of another one.
    #[must_use]
    pub fn cache(&self, id: NamespaceId) -> Option<CacheInfo> {
        self.caches.info(id)
    }

    /// Has some pairs leave a cache, of which more is wanted than somebody may have. Gives whether there were any.
    ///
    /// # Errors
    /// What the firmware answers to deletes.
    pub fn let_go(&mut self, id: NamespaceId) -> Result<bool, KvError> {
        let (caches, mut whole) = self.parts();
        caches.let_go(&mut whole, id)
    }

    /// Whether a pair would come in: true but for one that its cache refuses or keeps out, for which nobody is to leave.
    ///
    /// # Errors
    /// What the firmware answers.
    pub fn would_take(&mut self, namespace: NamespaceId, key: Key<'_>, value_bytes: u64) -> Result<bool, KvError> {
        let (caches, mut whole) = self.parts();
        caches.would_take(&mut whole, (namespace, key), value_bytes)
    }

    /// Bytes of the value of a key; none where it has none. Nobody asked for it: no cache counts that.
    ///
    /// # Errors
    /// What the firmware answers.
    pub fn value_bytes_of(&mut self, namespace: NamespaceId, key: Key<'_>) -> Result<Option<u32>, KvError> {
        let at = self.clocked.clock();
        let (caches, mut whole) = self.parts();
        caches.value_bytes_of(&mut whole, (namespace, key), at)
    }

    /// The time since 1970, by which caches let go what is too old, from here on; a drive that is told none takes its own, virtual one. Who keeps a
    /// drive with caches tells it before each command ([`Drive::wants_time`]).
    pub fn tell_time(&mut self, now: Nanos) {
        self.caches.tell_time(now);
    }

    /// Whether there are caches.
    #[must_use]
    pub fn wants_time(&self) -> bool {
        !self.caches.is_empty()
    }
}
