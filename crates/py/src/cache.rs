//! A namespace as a cache.

#![expect(
    clippy::needless_pass_by_value,
    reason = "what Python hands over is owned, and bytes stay where Python has them"
)]

use crate::bytes::{Bytes, bytes_of};
use crate::dicts::dict_of;
use crate::errors::{ClosedError, InvalidError, check_owner, of_store};
use crate::locks::{alone, shared};
use crate::numbers::Meant;
use crate::signals::heeding_signals;
use crate::store::RawStore;
use kvssd_host::{AdmissionRule, CachePlan, Error as StoreError, EvictionPolicy, NamespaceId, PairCache, Store};
use parking_lot::RwLock;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// A cache, and the store that it is in.
#[pyclass(frozen, module = "kvssd._kvssd")]
pub(crate) struct RawCache {
    store: Py<RawStore>,
    namespace: NamespaceId,
    /// None once it is closed.
    cache: RwLock<Option<PairCache>>,
}

#[pymethods]
impl RawCache {
    /// The cache in a namespace, with what is there.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        store: Py<RawStore>,
        namespace: Meant,
        budget_bytes: u64,
        eviction: &str,
        admission: Vec<String>,
    ) -> PyResult<Self> {
        let wrong = || InvalidError::new_err(format!("eviction is fifo, lru or s3-fifo, not {eviction:?}"));
        // Pairs of a store have no time to live.
        let kind = eviction.parse().ok().filter(|kind: &EvictionPolicy| *kind != EvictionPolicy::TIME_TO_LIVE);
        let eviction = kind.ok_or_else(wrong)?;
        let rules = admission.iter().map(|rule| rule.parse::<AdmissionRule>());
        let admission = rules.collect::<Result<_, _>>().map_err(|why| InvalidError::new_err(why.to_string()))?;
        let plan = CachePlan { budget_bytes, eviction, admission };
        let cache = store.get().on_pairs(py, namespace, |pairs| PairCache::open(pairs, &plan))?;
        Ok(RawCache { store, namespace: NamespaceId(namespace.0), cache: RwLock::new(Some(cache)) })
    }

    /// Another one may be opened in the namespace. Closing twice is no error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        check_owner(&self.store.get().owner)?;
        heeding_signals(py, || {
            alone(&self.cache).map_err(|error| of_store(&error))?.take();
            Ok(())
        })
    }

    fn store(&self, py: Python<'_>, key: Bytes, value: Bytes) -> PyResult<bool> {
        self.change(py, &key, |store, cache| cache.store(store, &key, &value))
    }

    fn retrieve<'py>(&self, py: Python<'py>, key: Bytes) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let read = |store: &Store| self.with(|cache| cache.retrieve_value(store, &key));
        let value = open(self.store.get().on_cache(py, read)?)?;
        Ok(value.map(|value| bytes_of(py, &value)))
    }

    fn contains(&self, py: Python<'_>, key: Bytes) -> PyResult<bool> {
        open(self.store.get().on_store(py, |_| self.with(|cache| Ok(cache.contains(&key))))?)
    }

    fn delete(&self, py: Python<'_>, key: Bytes) -> PyResult<bool> {
        self.change(py, &key, |store, cache| cache.delete(store, &key))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = open(self.store.get().on_store(py, |_| self.with(|cache| Ok(cache.stats())))?)?;
        let dict = dict_of!(py, stats; pairs, held_bytes, budget_bytes, hits, misses);
        dict.update(dict_of!(py, stats.counts; admitted, kept_out, evicted).as_mapping())?;
        Ok(dict)
    }
}

impl RawCache {
    fn change<T: Send>(
        &self,
        py: Python<'_>,
        key: &[u8],
        work: impl FnOnce(&Store, &PairCache) -> Result<T, StoreError> + Send,
    ) -> PyResult<T> {
        let raw = self.store.get();
        open(raw.on_cache(py, |store| {
            let _key = raw.keys.share(self.namespace, key)?;
            self.with(|cache| work(store, cache))
        })?)
    }

    /// Does something with the cache, which is not closed meanwhile; none if it was.
    fn with<T>(&self, work: impl FnOnce(&PairCache) -> Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        shared(&self.cache)?.as_ref().map(work).transpose()
    }
}

/// What a cache said that was open.
fn open<T>(said: Option<T>) -> PyResult<T> {
    said.ok_or_else(|| ClosedError::new_err("the cache is closed"))
}
