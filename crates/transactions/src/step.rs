//! What is asked of the transaction manager, and what it says is to be done next.

#[cfg(doc)]
use crate::TransactionManager;
use crate::{AbortReason, WriteSet};
use kvssd_types::Value;
use std::sync::Arc;

/// What a transaction does with a record.
#[derive(Clone, Debug)]
pub enum Access {
    /// Reads it.
    Read,
    /// Reads it, and locks it as a write does, so that the write will not have to.
    ReadForUpdate,
    /// Gives it a new value; it must be there.
    Update(Value),
    /// Gives it a value; it must not be there.
    Insert(Value),
    /// Gives it a value, whether or not it is there. The drive is not asked.
    Write(Value),
    /// Removes it, if it is there. The drive is not asked.
    Delete,
}

/// How far an access has come.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessStep {
    /// It is done; of a read, the value, if the record is there.
    Ready(Option<Value>),
    /// It is not done, and the transaction may go on with something else.
    Refused(Refusal),
    /// The record is to be had from the drive; then the same is to be asked again.
    Fetch,
    /// The same is to be asked again when [`TransactionManager::woken`] names the transaction.
    Wait,
    /// Nothing is left of the transaction.
    Aborted(AbortReason),
}

/// Why a transaction can not do so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An insert of a record that is there.
    RecordExists,
    /// An update of a record that is not there.
    NoSuchRecord,
    /// A write of a snapshot.
    ReadOnly,
}

/// How far a commit has come.
#[derive(Clone, Debug)]
pub enum CommitStep {
    /// The transaction is committed.
    Done,
    /// The drive is to make these changes, all or none; then [`TransactionManager::put_done`].
    Put(Arc<WriteSet>),
    /// As [`AccessStep::Wait`].
    Wait,
    /// Nothing is left of the transaction.
    Aborted(AbortReason),
}

/// How far the view of a snapshot has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewStep {
    /// The drive is to make one, and no Put is under way; then [`TransactionManager::viewed`].
    Make,
    /// As [`AccessStep::Wait`].
    Wait,
}

/// What the drive made of a Put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// All changes are there for good.
    Done,
    /// None is there.
    Refused,
    /// All or none are there.
    InDoubt,
}
