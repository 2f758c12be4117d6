//! Control blocks of transactions (KAML, section III-D: XCB).

use crate::cache::Cached;
use crate::{Record, RecordMap, TransactionState, Transition, WriteSet};
use kvssd_types::{NamespaceId, OwnedKey, Value};

/// What a transaction is kept apart from others by; chosen when it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Serializable, by strong strict two-phase locking: waits, and ends because of deadlocks (KAML, section III-D).
    #[default]
    TwoPhaseLocking,
    /// Serializable, by backward validation: reads wait for nobody, and what was changed since it was read aborts the transaction, at its
    /// next read of another record or its commit (Kung and Robinson 1981; record by record as in Silo, SOSP 2013). A record that is
    /// read again is as it was.
    Optimistic,
    /// Reads only, all of one moment. It waits for nobody once it has begun, and nobody waits for it.
    Snapshot,
}

/// Why nothing is left of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortReason {
    /// It was asked to.
    Asked,
    /// It waited for one that waited for it, and was the youngest.
    Deadlock,
    /// What it had read was changed before it could commit.
    Conflict,
    /// The drive refused its writes, or to look at a moment.
    Refused,
    /// The drive failed in the middle of its Put: whether its writes are there is to be asked of the drive when it is back.
    InDoubt,
}

/// What is known of one transaction.
#[derive(Debug, Default)]
pub(crate) struct ControlBlock {
    pub(crate) state: TransactionState,
    pub(crate) isolation: Isolation,
    pub(crate) aborted: Option<AbortReason>,
    /// Private copies.
    pub(crate) writes: WriteSet,
    /// Of an optimistic one: what it has read, which it is given again.
    pub(crate) reads: RecordMap<Cached>,
    /// No commit up to this one has changed what it has read.
    pub(crate) valid_to: u64,
    /// The last commit that surely is in what it asks the drive for.
    pub(crate) fetches_as_of: u64,
    /// What the drive gave, until it is used.
    pub(crate) fetched: Option<Fetched>,
    /// Of one whose Put is under way.
    pub(crate) commit: Option<u64>,
    /// Of a snapshot: the last commit that it sees.
    pub(crate) sees: Option<u64>,
}

/// A record that came from the drive.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) namespace: NamespaceId,
    pub(crate) key: OwnedKey,
    pub(crate) cached: Cached,
}

impl ControlBlock {
    /// Goes on to another state.
    ///
    /// # Panics
    /// When there is no way.
    pub(crate) fn go(&mut self, transition: Transition) {
        self.state = match self.state.after(transition) {
            Some(next) => next,
            None => panic!("a transaction in state {:?} has no {transition:?}", self.state),
        };
    }

    /// What it has written or read of the record itself.
    pub(crate) fn own(&self, record: Record<'_>) -> Option<&Option<Value>> {
        self.writes.get(record).or_else(|| Some(&self.reads.get(record)?.value))
    }

    /// Keeps what an optimistic one has read first of a record.
    pub(crate) fn keep(&mut self, record: Record<'_>, cached: Cached) {
        self.valid_to = self.valid_to.min(cached.as_of);
        self.reads.insert(record, cached);
    }

    /// Takes what came from the drive, if it is this record.
    pub(crate) fn take_fetched(&mut self, record: Record<'_>) -> Option<Cached> {
        let is_it =
            |fetched: &mut Fetched| fetched.namespace == record.namespace && *fetched.key == *record.key.bytes();
        Some(self.fetched.take_if(is_it)?.cached)
    }
}
