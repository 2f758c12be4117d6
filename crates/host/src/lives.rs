//! Which namespace a number means, for code that keeps a number for long: a store that deletes one and makes another may reuse its number.
//!
//! ```text
//!   cache in namespace 2, life 0     delete 2     create -> 2, life 1     the cache is refused: its 2 is gone
//!   another one in 2, life 0: refused while the first is there                another one in 2, life 1: let in
//! ```
//!
//! The client tells apart namespaces that other hosts replaced on the wire (`kvssd_nvme_client`, `meant.rs`).

use crate::Error;
use kvssd_flash::Owner;
use kvssd_runtime::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use kvssd_types::NamespaceId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Namespaces that a cache of this store is open in, each with its life.
type Claimed = Mutex<BTreeSet<(NamespaceId, u64)>>;

/// How often this store made a namespace of each number, and which of them have a cache.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    made: RwLock<BTreeMap<NamespaceId, u64>>,
    claimed: Arc<Claimed>,
    ended: AtomicU64,
}

/// A guard: while it is held, no namespace is made.
pub(crate) struct Living<'a> {
    made: RwLockReadGuard<'a, BTreeMap<NamespaceId, u64>>,
    claimed: &'a Arc<Claimed>,
}

/// A cache's right to a namespace, until it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    owner: Owner,
    claimed: Arc<Claimed>,
    namespace: (NamespaceId, u64),
}

impl Lives {
    /// Keeps the meaning of all numbers while the guard is held.
    pub(crate) fn hold(&self) -> Living<'_> {
        Living { made: self.made.read().unwrap_or_else(PoisonError::into_inner), claimed: &self.claimed }
    }

    /// Makes a namespace, once no guard is held.
    pub(crate) fn make(&self, make: impl FnOnce() -> Result<NamespaceId, Error>) -> Result<NamespaceId, Error> {
        let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
        let id = make()?;
        *made.entry(id).or_default() += 1;
        Ok(id)
    }

    /// Deletes a namespace, which may be gone even if that fails. No other one gets its number before [`Lives::ended`] tells of it.
    pub(crate) fn end(&self, delete: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let _living = self.hold();
        let deleted = delete();
        self.ended.fetch_add(1, Ordering::SeqCst);
        deleted
    }

    /// How often a namespace was deleted.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::SeqCst)
    }
}

impl Living<'_> {
    /// The life of its number that a namespace is in.
    pub(crate) fn life_of(&self, id: NamespaceId) -> u64 {
        self.made.get(&id).copied().unwrap_or(0)
    }

    /// The right to be the cache of a namespace; none while another one has it.
    pub(crate) fn claim(&self, id: NamespaceId) -> Option<Claim> {
        let namespace = (id, self.life_of(id));
        let is_free = self.claimed.lock().unwrap_or_else(PoisonError::into_inner).insert(namespace);
        is_free.then(|| Claim { owner: Owner::here(), claimed: Arc::clone(self.claimed), namespace })
    }

    /// Whether a cache has that right.
    pub(crate) fn is_claimed(&self, id: NamespaceId) -> bool {
        let namespace = (id, self.life_of(id));
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner).contains(&namespace)
    }
}

impl Claim {
    /// The life of the namespace's number.
    pub(crate) fn life(&self) -> u64 {
        self.namespace.1
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // In a child that was forked, a thread that it does not have may hold the lock.
        if self.owner.is_here() {
            self.claimed.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.namespace);
        }
    }
}
