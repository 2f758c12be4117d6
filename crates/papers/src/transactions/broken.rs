//! Rules that an engine broke.

use super::row::RowId;
use kvssd_sim::SimError;

/// Transactions wait for each other, and nobody ends it.
pub(super) fn all_wait(transactions: u64) -> SimError {
    SimError::Broken(format!(
        "{transactions} transactions wait, and nothing is left that could wake them: this is a bug of the engine"
    ))
}

/// A row is not there that must be, or its value is not one that was written.
pub(super) fn broken_row(row: &RowId) -> SimError {
    SimError::Broken(format!("row {row} is lost or damaged: this is a bug of the engine or the drive"))
}
