//! Transactions in virtual time: engines, and terminals that run workloads on them.

mod cached_drive;
pub mod costs;
mod engine;

pub use cached_drive::{CachedDrive, CachedDriveOptions};
pub use engine::{RecordId, Request, Step, TransactionEngine};
