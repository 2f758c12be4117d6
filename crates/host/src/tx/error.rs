//! What can go wrong with a transaction, by what the caller can do about it.

use crate::Error;
use kvssd_transactions::{AbortReason, Refusal};
use thiserror::Error as ThisError;

/// Why a transaction did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum TransactionError {
    /// Nothing is left of it: try it again as a new one.
    #[error("the transaction was aborted: {}", reason_of(*.0))]
    Aborted(AbortReason),
    /// The call is not possible; the transaction may go on with something else.
    #[error("{}", refusal_of(*.0))]
    Refused(Refusal),
    /// The drive did not do it. After a commit nothing is left of the transaction; otherwise it may go on.
    #[error(transparent)]
    Drive(#[from] Error),
    /// The drive failed in the middle of the commit: when it is opened again, all that was written is there, or nothing.
    #[error("whether the transaction is committed will be known when the drive is opened again: {0}")]
    InDoubt(Error),
}

impl TransactionError {
    pub(super) fn of_abort(reason: AbortReason, failure: Option<Error>) -> Self {
        match (reason, failure) {
            (AbortReason::InDoubt, Some(failure)) => TransactionError::InDoubt(failure),
            (AbortReason::Refused, Some(failure)) => TransactionError::Drive(failure),
            _ => TransactionError::Aborted(reason),
        }
    }
}

fn reason_of(reason: AbortReason) -> &'static str {
    match reason {
        AbortReason::Asked => "that was asked for",
        AbortReason::Deadlock => "it and others waited for each other",
        AbortReason::Conflict => "what it had read was changed",
        AbortReason::Refused => "the drive refused it",
        AbortReason::InDoubt => "the drive failed",
    }
}

fn refusal_of(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::RecordExists => "the record exists",
        Refusal::NoSuchRecord => "the record does not exist",
        Refusal::ReadOnly => "a snapshot writes nothing",
    }
}
