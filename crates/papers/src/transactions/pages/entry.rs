//! Log records: what was done, so that it can be done again and undone.

use super::page::{Lsn, PageId, Record};
use kvssd_transactions::TransactionId;
use kvssd_types::NamespaceId;
use std::collections::BTreeMap;

/// Length, kind, transaction, its record before, page, checksum. Estimate: of Shore's records.
const HEAD_BYTES: u64 = 48;
/// A page, and where its redo begins; or a transaction, and its records.
const CHECKPOINT_ITEM_BYTES: u64 = 24;

/// What became of one slot of one page: physical to a page, logical within it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) table: NamespaceId,
    pub(super) page: PageId,
    pub(super) slot: u16,
    /// What was there: not in a compensation, which is never undone.
    pub(super) before: Option<Record>,
    pub(super) after: Option<Record>,
}

/// What a transaction that has not ended has in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trail {
    /// Its first record.
    pub(super) first: Lsn,
    pub(super) last: Lsn,
    /// The last of its changes that is not undone, if one is not.
    pub(super) undo_next: Option<Lsn>,
}

/// What recovery must know of the time before.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Checkpoint {
    /// Transactions that have neither committed nor ended.
    pub(super) active: BTreeMap<TransactionId, Trail>,
    /// Pages that may lie on the drive without what was done from there on.
    pub(super) dirty: BTreeMap<PageId, Lsn>,
    /// Pages of the data file.
    pub(super) pages: u32,
}

impl Checkpoint {
    /// The first record that recovery may need, of those before the checkpoint's own at `own`.
    pub(super) fn horizon(&self, own: Lsn) -> Lsn {
        self.dirty.values().copied().chain(self.active.values().map(|trail| trail.first)).fold(own, Lsn::min)
    }
}

/// What a log record says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Body {
    /// Is done again, or undone.
    Change(Change),
    /// Undoes a change, and is itself only done again. What is to be undone next lies before that change.
    Compensation(Change, Option<Lsn>),
    /// All of the transaction counts.
    Commit,
    /// All of the transaction is undone.
    End,
    /// Stands for all before it.
    Checkpoint(Checkpoint),
}

/// A log record.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// Whose it is; a checkpoint is nobody's.
    pub(super) transaction: Option<TransactionId>,
    /// The one before it of the same transaction.
    pub(super) previous: Option<Lsn>,
    pub(super) body: Body,
}

impl Entry {
    /// Bytes in the log. Before and after are whole records, as Shore-MT's benchmarks update them; where a record comes or goes, the
    /// index's leaf changes, too, which is a log record of its own there and counted here.
    pub(super) fn bytes(&self) -> u64 {
        let record = |record: &Option<Record>| record.as_ref().map_or(0, |record| u64::from(record.bytes()));
        let leaf = |change: &Change| match (&change.before, &change.after) {
            (None, Some(record)) | (Some(record), None) => HEAD_BYTES + record.key.len() as u64 + 8,
            _ => 0,
        };
        HEAD_BYTES
            + match &self.body {
                Body::Change(change) | Body::Compensation(change, _) => {
                    record(&change.before) + record(&change.after) + leaf(change)
                }
                Body::Commit | Body::End => 0,
                Body::Checkpoint(checkpoint) => {
                    (checkpoint.active.len() + checkpoint.dirty.len()) as u64 * CHECKPOINT_ITEM_BYTES
                }
            }
    }
}
