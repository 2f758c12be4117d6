//! The laboratory: workloads, experiments, claims and reports.
//!
//! ```text
//!   Bench   names and numbers, for several designs
//!     |
//!   Setup   design, profile, pairs, hosts, seed
//!     |
//!   Session fill -> overwrite -> run(workload) -> run(workload) ...     every retrieved value is verified
//!     |                            |
//!   Device (kvssd_device)        Run: a report, in JSON or as a column of a table
//!     |                            |
//!   DbBench db_bench, with ranges -> (the same)
//!   Replay  a trace: trace/ -----> (the same)
//!                                  |
//!                                claims: paper, ours, verdict
//! ```
//!
//! It reads the host's clock only to say how long a run took; nothing else in a report depends on it.

pub mod bench;
pub mod claims;
pub mod crash;
pub mod dbbench;
mod error;
mod host;
mod latency;
pub mod linear;
mod observer;
pub mod replay;
mod report;
mod session;
mod setup;
pub mod stores;
mod table;
pub mod trace;
pub mod transactions;
pub mod workload;

pub use bench::Bench;
pub use error::LabError;
pub use host::Pace;
pub use latency::{Latencies, LatencySummary};
pub use observer::{Observer, Quiet};
pub use report::{
    ChannelReport, DramReport, FlashReport, GcReport, HostReport, IndexReport, Run, RunReport, WearReport,
};
pub use session::Session;
pub use setup::Setup;
pub use table::{columns, comparison, grouped, size};
