//! Transactions over a key-value drive, without I/O, threads or clocks.

mod granularity;
mod id;
mod lock;
mod locks;

pub use granularity::{Granularity, LockName};
pub use id::TransactionId;
pub use lock::LockMode;
pub use locks::{LockCounters, LockManager, LockReply};
