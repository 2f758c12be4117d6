//! Transactions in virtual time: engines, and terminals that run workloads on them.

mod engine;

pub use engine::{RecordId, Request, Step, TransactionEngine};
