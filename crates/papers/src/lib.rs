//! The five papers: their claims, and what ran on the drives of their experiments.
//!
//! ```text
//!   claims         paper, ours, verdict: an experiment for each claim, on the paper's testbed
//!     |     |
//!     |   transactions   databases of rows (TPC-B, TPC-C, YCSB) on a cache over a key drive, or on pages over a block drive;
//!     |     |            the isolation checker
//!   stores  |            stores of pairs on the host: an LSM tree and a hash store on a block drive
//!     |     |
//!   kvssd_sim            workloads, sessions, reports
//!
//!   crash                the power goes in the middle of transactions
//! ```
//!
//! A crate of its own, so that who keeps pairs in a drive or tries a design does not compile databases. The command line has it
//! with the feature `papers`.

pub mod claims;
pub mod crash;
pub mod stores;
pub mod transactions;
