//! What can be wrong with a measurement of embedded stores.

use crate::StoreError;
use std::path::PathBuf;
use thiserror::Error;

/// Why a measurement was not made to its end.
#[derive(Debug, Error)]
pub enum EmbeddedError {
    /// A number that it cannot be.
    #[error("{0}")]
    Plan(String),
    /// The folder is to be made, and something is there.
    #[error("{}: it exists already; give a path at which a folder can be made", .0.display())]
    Exists(PathBuf),
    /// The folder cannot be made or removed.
    #[error("{}: cannot be {what}: {why}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system says.
        why: std::io::Error,
    },
    /// A store did not do what it was asked for.
    #[error("store {store}: {why}")]
    Store {
        /// The store.
        store: &'static str,
        /// What it says.
        why: String,
    },
    /// A drive on the wire failed or is not reached any more.
    #[error("{why}{}", left(*pairs_left))]
    Wire {
        /// What it says.
        why: String,
        /// Pairs of the measurement that may still be on it, at the most.
        pairs_left: u64,
    },
    /// A store gave back something else than was put.
    #[error("store {store}: record {record}: {why}")]
    WrongValue {
        /// The store.
        store: &'static str,
        /// The number of the record.
        record: u64,
        /// What is wrong with what it gave.
        why: &'static str,
    },
    /// The machine has no more threads.
    #[error("no thread can be started: {0}")]
    Thread(std::io::Error),
    /// The user wants it to end.
    #[error("interrupted")]
    Interrupted,
}

/// What a person is to know of what was not removed.
fn left(pairs: u64) -> String {
    match pairs {
        0 => String::new(),
        _ => {
            format!("; up to {pairs} pairs of this measurement, with keys of 16 bytes at random, are left on the drive")
        }
    }
}

impl EmbeddedError {
    /// What a store says, in a line.
    pub(crate) fn of_store(store: &'static str, why: &StoreError) -> Self {
        EmbeddedError::Store { store, why: why.to_string().replace('\n', " ") }
    }
}
