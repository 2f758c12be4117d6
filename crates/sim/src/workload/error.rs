//! What the description of a workload can be refused for.

use kvssd_types::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use thiserror::Error;

/// Why a workload cannot be as it was described. The messages are for the person who described it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// A law of lengths that is none.
    #[error("{0}")]
    Lengths(&'static str),
    /// An ini file of KVbench says what cannot be.
    #[error("{why}")]
    KvBench {
        /// What is wrong, with the line.
        why: String,
    },
    /// A key length out of range.
    #[error("keys of {key_bytes} bytes: a key has 1 to {KEY_BYTES_MAX}")]
    KeyBytes {
        /// The length that was asked for.
        key_bytes: usize,
    },
    /// A value size out of range.
    #[error("values of {value_bytes} bytes: a value has at most {VALUE_BYTES_MAX}")]
    ValueBytes {
        /// The size that was asked for.
        value_bytes: u32,
    },
}
