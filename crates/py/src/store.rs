//! The store, as calls with the number of a namespace.

#![expect(
    clippy::needless_pass_by_value,
    reason = "what Python hands over is owned, and bytes stay where Python has them"
)]

pub(crate) mod cursors;

use self::cursors::{RawCursor, RawRange};
use crate::bytes::{Bytes, bytes_of};
use crate::dicts::{dict_of_cache, dict_of_namespace, dict_of_stats};
use crate::errors::{InvalidError, RefusedError, check_owner, closed, of_atomic, of_opening, of_store};
use crate::keys::{Keys, Manager, manager_of};
use crate::locks::{alone, shared};
use crate::numbers::{Meant, Numbers};
use crate::signals::heeding_signals;
use crate::transaction::RawTransaction;
use kvssd_host::{
    AttributesError, Batch, CacheAttributes, Error as StoreError, IteratorOptions, KeyCursor, Missing, Namespace,
    NamespaceAttributes, NamespaceId, Options, Owner, RangeCursor, Store, StoreCondition,
};
use parking_lot::RwLock;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

/// A change of a batch: the namespace, the key, and the value unless it is deleted.
type Change = (Meant, Bytes, Option<Bytes>);

/// What is read of a value at first for a buffer that has room for it: most values are no larger.
const FIRST_BYTES: usize = 2 << 20;

/// A store that is open, or was.
#[pyclass(frozen, module = "kvssd._kvssd")]
pub(crate) struct RawStore {
    pub(crate) owner: Owner,
    /// None once it is closed.
    open: RwLock<Option<Open>>,
    numbers: Arc<Numbers>,
    pub(crate) keys: Arc<Keys>,
}

struct Open {
    store: Arc<Store>,
    /// Made when the first transaction begins.
    transactions: OnceLock<Arc<Manager>>,
}

#[pymethods]
impl RawStore {
    /// Opens the drive in an image, or at a URL.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "they are the store's options, each with a name in Python")]
    fn open(
        py: Python<'_>,
        drive: PathBuf,
        missing: &str,
        create_bytes: u64,
        design: String,
        value_bytes_max: Option<u32>,
        partitions: u32,
        preallocate: bool,
        sync: bool,
        read_only: bool,
        cache_bytes: u64,
    ) -> PyResult<Self> {
        let missing = match missing {
            "create" => Missing::Create,
            "fail" => Missing::Fail,
            "create_new" => Missing::CreateNew,
            other => {
                let line = format!("missing is \"create\", \"fail\" or \"create_new\", not {other:?}");
                return Err(PyValueError::new_err(line));
            }
        };
        let options = Options {
            missing,
            create_bytes,
            design,
            value_bytes_max,
            partitions,
            preallocate,
            sync,
            read_only,
            cache_bytes,
            ..Options::default()
        };
        let opened = || kvssd_host::open(drive, options).map_err(|error| of_opening(&error, read_only));
        let store = heeding_signals(py, opened)?;
        let open = Open { store: Arc::new(store), transactions: OnceLock::new() };
        Ok(RawStore { owner: Owner::here(), open: RwLock::new(Some(open)), numbers: Arc::default(), keys: Keys::new() })
    }

    /// Ends in order. Closing twice is no error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        check_owner(&self.owner)?;
        heeding_signals(py, || {
            let mut place = alone(&self.open).map_err(|error| of_store(&error))?;
            let transactions = place.as_mut().and_then(|open| open.transactions.take());
            if let Some(Err(busy)) = transactions.map(Arc::try_unwrap) {
                place.as_mut().map(|open| open.transactions.set(busy));
                return Err(RefusedError::new_err("a transaction is open: end it before the store is closed"));
            }
            let Some(Open { store, .. }) = place.take() else { return Ok(()) };
            // Nobody else can have it: calls hold the lock, and transactions are gone.
            Arc::into_inner(store).map_or(Ok(()), Store::close).map_err(|error| of_store(&error))
        })
    }

    /// The number of the namespace that the store's own keys are in.
    fn own_namespace(&self, py: Python<'_>) -> PyResult<Meant> {
        self.on_store(py, |store| Ok(self.numbers.hold()?.meant(store.own_namespace().id())))
    }

    /// Refuses a namespace whose number means another one by now.
    fn check(&self, py: Python<'_>, namespace: Meant) -> PyResult<()> {
        self.on_store(py, |_| self.numbers.hold()?.check(namespace).map(drop))
    }

    fn namespaces<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let infos = self.on_store(py, Store::namespaces)?;
        infos.iter().map(|info| dict_of_namespace(py, info)).collect()
    }

    fn namespace_info<'py>(&self, py: Python<'py>, namespace: Meant) -> PyResult<Bound<'py, PyDict>> {
        let info = self.on_pairs(py, namespace, |pairs| pairs.info())?;
        dict_of_namespace(py, &info)
    }

    fn count(&self, py: Python<'_>, namespace: Meant) -> PyResult<u64> {
        self.on_pairs(py, namespace, |pairs| pairs.count())
    }

    fn find_namespace(&self, py: Python<'_>, name: &str) -> PyResult<Meant> {
        self.on_store(py, |store| {
            let numbers = self.numbers.hold()?;
            Ok(numbers.meant(store.namespace(name)?.id()))
        })
    }

    fn create_namespace(
        &self,
        py: Python<'_>,
        name: Option<String>,
        ordered: bool,
        index: Option<String>,
        parameters: Vec<(String, String)>,
        bounds: (Option<u64>, Option<String>),
    ) -> PyResult<Meant> {
        let (quota_bytes, cache) = bounds;
        let cache = cache.as_deref().map(cache_of).transpose()?;
        let attributes =
            NamespaceAttributes { name, index, parameters, quota_bytes, logs: None, is_ordered: ordered, cache };
        self.on_store(py, |store| self.numbers.change(|| Ok(store.create_namespace(attributes)?.id())))
    }

    fn set_cache(&self, py: Python<'_>, namespace: Meant, cache: Option<&str>) -> PyResult<()> {
        let cache = cache.map(cache_of).transpose()?;
        self.on_pairs(py, namespace, |pairs| pairs.set_cache(cache.as_ref()))
    }

    fn cache_info<'py>(&self, py: Python<'py>, namespace: Meant) -> PyResult<Option<Bound<'py, PyDict>>> {
        let info = self.on_pairs(py, namespace, |pairs| pairs.cache())?;
        info.map(|info| dict_of_cache(py, &info)).transpose()
    }

    fn delete_namespace(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.on_store(py, |store| {
            let deleted = self.numbers.change(|| {
                let number = store.namespace(name)?.id();
                store.delete_namespace(name).map(|()| number)
            });
            deleted.map(drop)
        })
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.on_store(py, Store::stats)?;
        dict_of_stats(py, &stats)
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.on_store(py, Store::flush)
    }

    /// Gives false when the key is there, and it was to be absent.
    fn store(&self, py: Python<'_>, namespace: Meant, key: Bytes, value: Bytes, if_absent: bool) -> PyResult<bool> {
        let condition = if if_absent { StoreCondition::IfAbsent } else { StoreCondition::Always };
        self.on_pairs(py, namespace, |pairs| {
            let _key = self.keys.share(pairs.id(), &key)?;
            match pairs.store_if(&key, &value, condition) {
                Ok(()) => Ok(true),
                Err(StoreError::KeyExists) => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    fn retrieve<'py>(&self, py: Python<'py>, namespace: Meant, key: Bytes) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let value = self.on_pairs(py, namespace, |pairs| pairs.retrieve_value(&key))?;
        Ok(value.map(|value| bytes_of(py, &value)))
    }

    /// The first bytes of a value, and the length of the whole one.
    fn retrieve_first<'py>(
        &self,
        py: Python<'py>,
        namespace: Meant,
        key: Bytes,
        bytes_max: usize,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, u32)>> {
        let found = self.on_pairs(py, namespace, |pairs| {
            // The caller's buffer may be larger than the memory: a mapping of a file, say.
            let mut first = vec![0; bytes_max.min(FIRST_BYTES)];
            loop {
                let Some(value_bytes) = pairs.retrieve_into(&key, 0, &mut first)? else { return Ok(None) };
                let wanted = bytes_max.min(value_bytes as usize);
                if wanted <= first.len() {
                    first.truncate(wanted);
                    return Ok(Some((first, value_bytes)));
                }
                // All of it again: a rest could be another value's.
                first = vec![0; wanted];
            }
        })?;
        Ok(found.map(|(first, value_bytes)| (PyBytes::new(py, &first), value_bytes)))
    }

    /// The values of keys, as many under way at a time as the drive takes.
    fn retrieve_many<'py>(
        &self,
        py: Python<'py>,
        namespace: Meant,
        keys: Vec<Bytes>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let values = self.on_pairs(py, namespace, |pairs| {
            let mut values = vec![None; keys.len()];
            pairs.retrieve_each(keys.iter().map(|key| &**key), |number, value| values[number] = value)?;
            Ok(values)
        })?;
        Ok(values.into_iter().map(|value| value.map(|value| PyBytes::new(py, &value))).collect())
    }

    fn delete(&self, py: Python<'_>, namespace: Meant, key: Bytes) -> PyResult<bool> {
        self.on_pairs(py, namespace, |pairs| {
            let _key = self.keys.share(pairs.id(), &key)?;
            pairs.delete(&key)
        })
    }

    /// Removes a key and gives its value. Nobody who uses this open store changes it in between.
    fn pop<'py>(&self, py: Python<'py>, namespace: Meant, key: Bytes) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let value = self.on_pairs(py, namespace, |pairs| {
            let _key = self.keys.take(pairs.id(), &key)?;
            let value = pairs.retrieve_value(&key)?;
            // Who else has the drive open may have been quicker.
            let was_there = value.is_some() && pairs.delete(&key)?;
            Ok(value.filter(|_| was_there))
        })?;
        Ok(value.map(|value| bytes_of(py, &value)))
    }

    fn exist(&self, py: Python<'_>, namespace: Meant, key: Bytes) -> PyResult<bool> {
        self.on_pairs(py, namespace, |pairs| pairs.exist(&key))
    }

    /// The key that iteration meets first.
    fn first_key<'py>(&self, py: Python<'py>, namespace: Meant) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let keys = self.on_pairs(py, namespace, |pairs| pairs.list(None, 1))?;
        Ok(keys.first().map(|key| PyBytes::new(py, key)))
    }

    /// A cursor before the first key from `start` on.
    fn keys(slf: Py<Self>, namespace: Meant, start: Option<Bytes>) -> RawCursor {
        let cursor = Mutex::new(KeyCursor::new(start.as_deref()));
        RawCursor { store: slf, namespace, cursor }
    }

    /// The pairs of an ordered namespace whose keys begin with `prefix` and lie from `start` on and before `stop`, as they are now.
    fn range(
        slf: Py<Self>,
        py: Python<'_>,
        namespace: Meant,
        prefix: Bytes,
        start: Option<Bytes>,
        stop: Option<Bytes>,
    ) -> PyResult<RawRange> {
        let first = start.as_deref().unwrap_or_default();
        let options = IteratorOptions { prefix: &prefix, first, end: stop.as_deref(), ..IteratorOptions::default() };
        let cursor = slf.get().on_pairs(py, namespace, |pairs| RangeCursor::new(pairs, &options))?;
        Ok(RawRange { store: slf, namespace, cursor: Mutex::new(Some(cursor)) })
    }

    /// Makes changes: all or none, or each by itself.
    fn batch(&self, py: Python<'_>, changes: Vec<Change>, atomic: bool) -> PyResult<()> {
        self.on_store(py, |store| {
            let numbers = self.numbers.hold()?;
            let _keys =
                self.keys.share_each(changes.iter().map(|(namespace, key, _)| (NamespaceId(namespace.0), &**key)))?;
            let mut batch = Batch::new();
            for (namespace, key, value) in &changes {
                let namespace = numbers.check(*namespace)?;
                match value {
                    Some(value) => batch.store_in(namespace, key, value),
                    None => batch.delete_in(namespace, key),
                };
            }
            if atomic { of_atomic(store, store.batch(&batch)) } else { store.bulk(&batch) }
        })
    }

    /// Begins a transaction.
    fn begin(&self, py: Python<'_>, isolation: &str) -> PyResult<RawTransaction> {
        check_owner(&self.owner)?;
        let manager = heeding_signals(py, || {
            let place = shared(&self.open).map_err(|error| of_store(&error))?;
            let open = place.as_ref().ok_or_else(closed)?;
            Ok(Arc::clone(open.transactions.get_or_init(|| manager_of(&open.store, &self.keys))))
        })?;
        RawTransaction::begin(py, manager, &self.numbers, isolation)
    }
}

impl RawStore {
    /// Does something with the store, without the interpreter's lock.
    pub(crate) fn on_store<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send,
    ) -> PyResult<T> {
        check_owner(&self.owner)?;
        heeding_signals(py, || {
            // It is not closed meanwhile.
            let open = shared(&self.open).map_err(|error| of_store(&error))?;
            work(&open.as_ref().ok_or_else(closed)?.store).map_err(|error| of_store(&error))
        })
    }

    /// As [`RawStore::on_store`], for a cache: no namespace is made or deleted meanwhile.
    pub(crate) fn on_cache<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send,
    ) -> PyResult<T> {
        self.on_store(py, |store| {
            let _numbers = self.numbers.hold()?;
            work(store)
        })
    }

    /// As [`RawStore::on_store`], for the pairs of a namespace, if its number still means it.
    pub(crate) fn on_pairs<T: Send>(
        &self,
        py: Python<'_>,
        namespace: Meant,
        work: impl FnOnce(Namespace<'_>) -> Result<T, StoreError> + Send,
    ) -> PyResult<T> {
        self.on_store(py, |store| {
            let numbers = self.numbers.hold()?;
            work(store.namespace_at(numbers.check(namespace)?))
        })
    }

    /// As [`RawStore::on_pairs`], but nothing where it cannot be done; only what a handler has raised is an error.
    fn on_pairs_if_open(
        &self,
        py: Python<'_>,
        namespace: Meant,
        work: impl FnOnce(Namespace<'_>) + Send,
    ) -> PyResult<()> {
        if !self.owner.is_here() {
            return Ok(());
        }
        heeding_signals(py, || {
            let Ok(open) = shared(&self.open) else { return Ok(()) };
            let Ok(numbers) = self.numbers.hold() else { return Ok(()) };
            if let (Some(open), Ok(number)) = (open.as_ref(), numbers.check(namespace)) {
                work(open.store.namespace_at(number));
            }
            Ok(())
        })
    }
}

/// A cache as text.
fn cache_of(text: &str) -> PyResult<CacheAttributes> {
    text.parse().map_err(|error: AttributesError| InvalidError::new_err(error.to_string()))
}
