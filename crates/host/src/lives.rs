//! Which namespace a number means, for who keeps a number for long: a store that deletes one and makes another may give it the same number.
//!
//! ```text
//!   cache in namespace 2, life 0     delete 2     create -> 2, life 1     the cache is refused: its 2 is gone
//! ```
//!
//! Namespaces of a drive on the wire that other hosts replaced are told apart by the client (`kvssd_nvme_client`, `meant.rs`).

use crate::Error;
use kvssd_runtime::sync::{PoisonError, RwLock, RwLockReadGuard};
use kvssd_types::NamespaceId;
use std::collections::BTreeMap;

/// How often this store made a namespace of each number.
#[derive(Debug, Default)]
pub(crate) struct Lives(RwLock<BTreeMap<NamespaceId, u64>>);

/// While it is held, no namespace is made.
pub(crate) struct Living<'a> {
    made: RwLockReadGuard<'a, BTreeMap<NamespaceId, u64>>,
}

impl Lives {
    /// Holds all numbers to what they mean now.
    pub(crate) fn hold(&self) -> Living<'_> {
        Living { made: self.0.read().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Makes a namespace, when nobody holds numbers.
    pub(crate) fn make(&self, make: impl FnOnce() -> Result<NamespaceId, Error>) -> Result<NamespaceId, Error> {
        let mut made = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let id = make()?;
        *made.entry(id).or_default() += 1;
        Ok(id)
    }
}

impl Living<'_> {
    /// Which life of its number a namespace has.
    pub(crate) fn life_of(&self, id: NamespaceId) -> u64 {
        self.made.get(&id).copied().unwrap_or(0)
    }
}
