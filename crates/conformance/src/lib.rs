//! What every design must do, as a library: for the designs of this project and for anybody's.
//!
//! ```text
//!   Design ---> run            every check of the suite, on each medium        -> Report, a line for each failure
//!          \
//!           -> power_cuts      a campaign: mount, verify, work ... cut          -> CrashReport
//!
//!   suite      Check: a name and a function of a Trial
//!   Trial      the design, the medium, and where the check is: seed and step
//!   Drive, NamespacedDrive     a tiny, nearly full drive beside the map that says what must be on it
//! ```
//!
//! A test of a design of one's own is a line:
//!
//! ```no_run
//! # let my_design = kvssd_designs::named("plus").unwrap();
//! kvssd_conformance::run(&my_design).assert_clean();
//! kvssd_conformance::power_cuts::survives(&my_design, 2000).unwrap();
//! ```
//!
//! Everything follows from the design and the seeds that checks name: a failure comes again at the same step. What it does not do:
//! measure, or judge how fast a design is.

mod drive;
mod error;
mod namespaced;
mod position;
pub mod power_cuts;
mod report;
mod selection;
pub mod suite;
mod trial;

pub use drive::{Drive, Medium};
pub use error::CampaignError;
pub use namespaced::{NamespacedDrive, few_logs, key_of, many_logs};
pub use report::{Failure, Report};
pub use selection::{is_selected, selected};
pub use suite::{Check, SUITE, run, run_check};
pub use trial::Trial;
