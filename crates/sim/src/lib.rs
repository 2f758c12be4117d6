//! Simulations: workloads and traces on drives of any design, and the reports that come out.
//!
//! ```text
//!   Bench   names and numbers, for several designs
//!     |
//!   Experiment  one design, nothing left to a default; to JSON and back
//!     |
//!   Setup   bed (design, profile, seed), pairs, hosts
//!     |
//!   Session fill -> overwrite -> run(workload) -> run(workload) ...     every retrieved value is verified
//!     |                            |
//!   Device (kvssd_device)        Run: a report, in JSON or as a column of a comparison
//!     |                            |
//!   DbBench db_bench, with ranges -> (the same)
//!   Replay  a trace: trace/ -----> (the same)
//! ```
//!
//! It reads the host's clock only to say how long a run took; nothing else in a report depends on it. What the papers claim, and the
//! databases and stores that their experiments need, are in `kvssd-papers`.

mod baseline;
pub mod bench;
mod chrome_trace;
mod comparison;
pub mod dbbench;
mod error;
pub mod experiment;
mod host;
mod interval;
mod measured;
pub mod replay;
mod report;
mod rounds;
mod scale;
mod series;
mod session;
mod setup;
pub mod steady;
pub mod trace;
pub mod workload;

pub use bench::Bench;
pub use chrome_trace::{RunTrace, TraceWindow};
pub use comparison::comparison;
pub use error::{Exhausted, SimError};
pub use experiment::{Experiment, Filled, Filling};
pub use host::{HostPlan, Hosts, Pace, Turn};
pub use interval::{Columns, Interval};
pub use report::{
    BusyReport, CacheReport, ChannelReport, DramReport, FlashReport, GcReport, GrowthReport, HitReport, HostReport,
    IndexReport, LifeReport, PrefixReport, Run, RunReport, TraceReport, WearReport,
};
pub use rounds::{Rounds, RoundsReport, SteadyReport};
pub use scale::check_scale;
pub use session::{Session, YcsbWork};
pub use setup::{Bed, Setup};
