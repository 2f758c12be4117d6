//! Which keys are changed by those who use this open store, so that to pop one is one step.
//!
//! ```text
//!   store, delete, batch, commit    share the locks of their keys      side by side
//!   pop                             has the lock of its key alone      none of them changes the key between its look and its delete
//! ```
//!
//! Caches on the store share these locks. Who else has the drive open does not.

use crate::errors::of_atomic;
use crate::locks::{alone, shared};
use kvssd_host::tx::{Port, Record, TransactionOptions, Transactions};
use kvssd_host::{Error, NamespaceId, Store};
use kvssd_types::{BatchChange, Value};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Locks that keys are spread over.
const LOCKS: usize = 64;

/// The locks of a store's keys.
pub(crate) struct Keys {
    hash: RandomState,
    locks: [RwLock<()>; LOCKS],
}

impl Keys {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Keys { hash: RandomState::new(), locks: std::array::from_fn(|_| RwLock::default()) })
    }

    /// Keeps others from popping a key.
    pub(crate) fn share(&self, namespace: NamespaceId, key: &[u8]) -> Result<RwLockReadGuard<'_, ()>, Error> {
        shared(&self.locks[self.number_of(namespace, key)])
    }

    /// Keeps others from popping any of these keys.
    pub(crate) fn share_each<'k>(
        &self,
        keys: impl Iterator<Item = (NamespaceId, &'k [u8])>,
    ) -> Result<Vec<RwLockReadGuard<'_, ()>>, Error> {
        // In one order: no two wait for each other.
        let numbers: BTreeSet<usize> = keys.map(|(namespace, key)| self.number_of(namespace, key)).collect();
        numbers.into_iter().map(|number| shared(&self.locks[number])).collect()
    }

    /// Keeps others from changing a key.
    pub(crate) fn take(&self, namespace: NamespaceId, key: &[u8]) -> Result<RwLockWriteGuard<'_, ()>, Error> {
        alone(&self.locks[self.number_of(namespace, key)])
    }

    fn number_of(&self, namespace: NamespaceId, key: &[u8]) -> usize {
        self.hash.hash_one((namespace, key)) as usize % LOCKS
    }
}

/// A store as its transactions see it.
pub(crate) struct KeyedStore {
    store: Arc<Store>,
    keys: Arc<Keys>,
}

/// The manager of a store's transactions.
pub(crate) type Manager = Transactions<KeyedStore>;

/// Makes one.
pub(crate) fn manager_of(store: &Arc<Store>, keys: &Arc<Keys>) -> Arc<Manager> {
    // Nothing is kept from one transaction to the next, since others may change the store past them.
    let options = TransactionOptions { cache_bytes: 0, ..TransactionOptions::default() };
    Arc::new(Transactions::new(KeyedStore { store: Arc::clone(store), keys: Arc::clone(keys) }, &options))
}

impl Port for KeyedStore {
    type View = <Store as Port>::View;

    fn get(&self, record: Record<'_>) -> Result<Option<Value>, Error> {
        Port::get(&self.store, record)
    }

    fn put(&self, changes: &[BatchChange<'_>]) -> Result<(), Error> {
        let _keys = self.keys.share_each(changes.iter().map(|change| (change.namespace, change.key.bytes())))?;
        of_atomic(&self.store, self.store.put(changes))
    }

    fn create_view(&self) -> Result<Self::View, Error> {
        self.store.create_view()
    }

    fn get_in_view(&self, view: &Self::View, record: Record<'_>) -> Result<Option<Value>, Error> {
        self.store.get_in_view(view, record)
    }

    fn destroy_view(&self, view: Self::View) {
        self.store.destroy_view(view);
    }
}
