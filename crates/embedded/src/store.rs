//! What a store must be able to do to be measured.

use kvssd_types::named_enum;
use std::error::Error;
use std::path::Path;

named_enum! {
    /// What a put or a delete that has returned outlives.
    pub enum Durability: "durability" {
        /// The end of the process, `kill -9` included: what was written is with the system, and nothing is synced.
        Process = "process",
        /// The end of the machine, power loss included: what was written is on the disk, with at least one fsync for each commit. Calls
        /// that wait at the same time may share a commit, where the store can do that.
        Sync = "sync",
    }
}

impl Durability {
    /// What it says of a write, for a table.
    pub(crate) fn promise(self) -> &'static str {
        match self {
            Durability::Process => "a returned write survives kill -9 (no fsync)",
            Durability::Sync => "a returned write survives power loss (fsync at each commit)",
        }
    }
}

/// How a store is opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// An empty folder of its own.
    pub folder: &'a Path,
    /// What a returned write must outlive.
    pub durability: Durability,
    /// Bytes of all keys and values that it will hold at a time.
    pub pair_bytes: u64,
    /// Bytes of memory for its cache, where that can be set.
    pub cache_bytes: u64,
}

/// What a store says is wrong.
pub type StoreError = Box<dyn Error + Send + Sync>;

/// A store under measurement. Called by several threads at a time.
pub trait EmbeddedStore: Sync {
    /// Binds `value` to `key`, whether or not the key is there. When it returns, the store's durability holds for it.
    ///
    /// # Errors
    /// The store failed; nothing is measured any more.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// Shows the value of `key` to `see`, once, wherever it lies; gives whether there is one. It is the value of the last put of
    /// that key that has returned, or of one that has not returned yet.
    ///
    /// # Errors
    /// As [`EmbeddedStore::put`].
    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError>;

    /// Removes `key`, which is there, and its value. When it returns, the store's durability holds for it.
    ///
    /// # Errors
    /// As [`EmbeddedStore::put`].
    fn delete(&self, key: &[u8]) -> Result<(), StoreError>;

    /// Whether it keeps keys in their order, and has scans.
    fn is_ordered(&self) -> bool {
        true
    }

    /// Shows the pairs from the key `from` on to `see`, in the order of their keys, `count` at most. Nobody changes them meanwhile.
    ///
    /// # Errors
    /// As [`EmbeddedStore::put`], and where keys have no order.
    fn scan(&self, from: &[u8], count: usize, see: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError>;

    /// Whether work goes on in the background that earlier calls have left.
    fn is_busy(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durabilities_are_read_as_they_are_named() {
        assert!(Durability::ALL.iter().all(|durability| durability.to_string().parse() == Ok(*durability)));
        let refused = "none".parse::<Durability>().unwrap_err().to_string();
        assert!(refused.ends_with("choose one of process, sync"), "{refused}");
    }
}
