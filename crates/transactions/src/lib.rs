//! Transactions over a key-value drive, without I/O, threads or clocks.

mod id;

pub use id::TransactionId;
