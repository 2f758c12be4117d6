//! Which namespace a number means, for code that keeps a number for long: a store that deletes one and makes another may reuse its number.
//!
//! ```text
//!   cache in namespace 2, life 0     delete 2     create -> 2, life 1     the cache is refused: its 2 is gone
//! ```
//!
//! The client tells apart namespaces that other hosts replaced on the wire (`kvssd_nvme_client`, `meant.rs`).

use crate::Error;
use kvssd_runtime::sync::{PoisonError, RwLock, RwLockReadGuard};
use kvssd_types::NamespaceId;
use std::collections::BTreeMap;

/// How often this store made a namespace of each number.
#[derive(Debug, Default)]
pub(crate) struct Lives(RwLock<BTreeMap<NamespaceId, u64>>);

/// A guard: while it is held, no namespace is made.
pub(crate) struct Living<'a> {
    made: RwLockReadGuard<'a, BTreeMap<NamespaceId, u64>>,
}

impl Lives {
    /// Keeps the meaning of all numbers while the guard is held.
    pub(crate) fn hold(&self) -> Living<'_> {
        Living { made: self.0.read().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Makes a namespace, once no guard is held.
    pub(crate) fn make(&self, make: impl FnOnce() -> Result<NamespaceId, Error>) -> Result<NamespaceId, Error> {
        let mut made = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let id = make()?;
        *made.entry(id).or_default() += 1;
        Ok(id)
    }
}

impl Living<'_> {
    /// The life of its number that a namespace is in.
    pub(crate) fn life_of(&self, id: NamespaceId) -> u64 {
        self.made.get(&id).copied().unwrap_or(0)
    }
}
