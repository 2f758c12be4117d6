//! Transactions in virtual time: engines, and terminals that run workloads on them.
//!
//! ```text
//!   Workload     TpcB | TpcC | YcsbTransactions | HotRecords      rows, programs, what must hold
//!       |
//!   Terminals    a closed loop in virtual time -----> Witness     History: is what was seen serializable?
//!       |                |
//!       |            TransactionReport
//!   TransactionEngine    begin, step, woken, background
//!       |
//!   CachedDrive (a key drive, a cache of pairs)  |  PageEngine (a block drive, a pool of pages, a log)
//!       |
//!   Device
//! ```
//!
//! [`load`] fills an engine, [`Terminals::run`] lets a workload run, [`check`] verifies its tables through the engine; after a power
//! cut, [`Workload::check`] takes any way to read a row. [`HotRecords::judge`] is the experiment on isolation. [`MicroBench`] measures
//! drives without an engine.
//!
//! What it does not do: let transactions scan, or delete; and bring anything to an engine that is not a row with a number for a key.

mod access;
mod broken;
mod cached_drive;
mod consistency;
pub mod costs;
mod engine;
mod history;
mod hot_records;
mod lru;
mod micro;
pub mod pages;
mod prepared;
mod processors;
mod program;
mod report;
mod row;
mod terminals;
mod tpc_b;
mod tpc_c;
mod witness;
mod ycsb;

pub use access::{check, load, read};
pub use cached_drive::{CachedDrive, CachedDriveOptions};
pub use consistency::{Acknowledged, Consistency};
pub use engine::{RecordId, Request, Step, TransactionEngine};
pub use history::{Anomaly, Cycle, Dependency, DependencyKind, History, Verdict};
pub use hot_records::HotRecords;
pub use lru::StackDistances;
pub use micro::{MicroBench, MicroKind, MicroOptions, MicroReport};
pub use prepared::{key_drive, wear_in};
pub use program::{Action, End, Loader, Program, Script, Stop, Table, Transaction, Workload};
pub use report::{KindReport, TransactionReport};
pub use row::{ReadValue, Row, RowId, Rows, Stamp};
pub use terminals::{Limit, Terminals};
pub use tpc_b::{TpcB, TpcBScale};
pub use tpc_c::{TpcC, TpcCScale};
pub use witness::{Access, Attempt, Witness};
pub use ycsb::{YcsbTransactions, cache_records};

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
