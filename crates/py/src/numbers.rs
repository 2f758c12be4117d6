//! Which namespace a number means: a store that deletes one and makes another may give the number again.
//!
//! ```text
//!   thread 1    store in number 2, life 1         waits for the interpreter             refused: number 2 is in life 3
//!   thread 2                              delete 2: life 2       make another: 2, life 3
//! ```
//!
//! A life is compared when a call begins, and no namespace is made or deleted until the call is done. Those that other hosts of a drive on the wire
//! make and delete the client tells apart.

use crate::locks::{alone, shared};
use kvssd_host::{Error, NamespaceId};
use parking_lot::{RwLock, RwLockReadGuard};
use std::collections::BTreeMap;

/// The number of a namespace, and how often this store had made or deleted one of that number by then.
pub(crate) type Meant = (u32, u64);

/// How often this store has made or deleted a namespace of each number.
#[derive(Default)]
pub(crate) struct Numbers(RwLock<BTreeMap<u32, u64>>);

/// A guard: while it is held, no namespace is made or deleted.
pub(crate) struct Held<'a>(RwLockReadGuard<'a, BTreeMap<u32, u64>>);

impl Numbers {
    /// Keeps the meaning of all numbers while the guard is held.
    pub(crate) fn hold(&self) -> Result<Held<'_>, Error> {
        Ok(Held(shared(&self.0)?))
    }

    /// Makes or deletes a namespace, once no guard is held. The store has such a lock, too, on which a handler would wait.
    pub(crate) fn change(&self, change: impl FnOnce() -> Result<NamespaceId, Error>) -> Result<Meant, Error> {
        let mut changed = alone(&self.0)?;
        let number = change()?.0;
        let life = changed.entry(number).or_default();
        *life += 1;
        Ok((number, *life))
    }
}

impl Held<'_> {
    /// What a number means.
    pub(crate) fn meant(&self, number: NamespaceId) -> Meant {
        (number.0, self.0.get(&number.0).copied().unwrap_or(0))
    }

    /// The number, if it still means that.
    pub(crate) fn check(&self, meant: Meant) -> Result<NamespaceId, Error> {
        let number = NamespaceId(meant.0);
        let name = || format!("{number} any more: it was deleted, and another one may have its number");
        if self.meant(number) == meant { Ok(number) } else { Err(Error::NoNamespace { name: name() }) }
    }
}
