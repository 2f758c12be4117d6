//! Transactions over a key-value drive, without I/O, threads or clocks: the host cache of KAML (section III-D) and more.
//!
//! ```text
//!   shell        real threads (kvssd_host::tx)          virtual time (the lab's CachedDrive)
//!                  |  access, commit     ^  Ready, Fetch, Put, Wait, Aborted
//!                  v                     |
//!   manager      control blocks, private copies          one state machine
//!                  |           |            |
//!                locks       cache       commits
//!                  2PL         CLOCK       numbers, validation
//! ```
//!
//! Record [`locks`](LockManager) are of use without the rest: they know nothing of caches.
//!
//! What it does not do: lie on the drive. Atomicity and durability are the drive's, whose Put makes all changes or none.

mod cache;
mod commits;
mod control_block;
mod granularity;
mod id;
mod lock;
mod locks;
mod manager;
mod options;
mod planted;
mod record;
mod state;
mod step;
mod views;

pub use cache::CacheCounters;
pub use control_block::{AbortReason, Isolation};
pub use granularity::{Granularity, LockName};
pub use id::TransactionId;
pub use lock::LockMode;
pub use locks::{LockCounters, LockManager, LockReply};
pub use manager::TransactionManager;
pub use options::{TransactionCounters, TransactionOptions};
pub use planted::PlantedBug;
pub use record::{Record, RecordMap, WriteSet};
pub use state::{TransactionState, Transition};
pub use step::{Access, AccessStep, CommitStep, PutOutcome, Refusal, ViewStep};
