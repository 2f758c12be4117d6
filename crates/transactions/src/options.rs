//! How transactions are managed, and what came of it.

use crate::cache::ENTRY_BYTES;
use crate::planted::PlantedBug;
use crate::{CacheCounters, Granularity, LockCounters};

/// How transactions are managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionOptions {
    /// The most that the cache may take, with all that it takes for an entry. Private copies of transactions come on top.
    pub cache_bytes: u64,
    /// Records a lock.
    pub granularity: Granularity,
    /// A bug to be found by a test.
    pub planted: Option<PlantedBug>,
}

impl Default for TransactionOptions {
    /// 64 MiB, a record a lock.
    fn default() -> Self {
        TransactionOptions { cache_bytes: 64 << 20, granularity: Granularity::default(), planted: None }
    }
}

impl TransactionOptions {
    /// The [`TransactionOptions::cache_bytes`] that so many pairs of one size take.
    #[must_use]
    pub fn cache_bytes_of(pairs: u64, key_bytes: u32, value_bytes: u32) -> u64 {
        pairs * (ENTRY_BYTES as u64 + u64::from(key_bytes) + u64::from(value_bytes))
    }
}

/// What transactions did since their manager was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionCounters {
    /// Transactions that were committed.
    pub committed: u64,
    /// That ended because of a deadlock.
    pub deadlocks: u64,
    /// That ended because what they had read was changed.
    pub conflicts: u64,
    /// That ended for another reason.
    pub other_aborts: u64,
    /// Of locks.
    pub locks: LockCounters,
    /// Of the cache.
    pub cache: CacheCounters,
}
