//! Transactions in virtual time: engines, and terminals that run workloads on them.

mod engine;
pub mod pages;

pub use engine::{RecordId, Request, Step, TransactionEngine};
