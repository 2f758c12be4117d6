//! The firmware of a key-value SSD.
//!
//! ```text
//!   check        whether all that flash and DRAM say of each other is true
//!   engine       the drive: commands, work in the background, reports, and how all of it is put together
//!   gc           garbage collection: victims, in the background
//!   recovery     what is written for the day when the power goes, and the mount that reads it
//!   commands     on pairs, on blocks, and batches
//!   testbed      an index without an engine
//!   namespace    key spaces, each with an index
//!   design       what a drive is put together from
//!   iterators    ranges of keys, seen as the drive was
//!   index        the seam: where does a key live?
//!   io           the clock of a command or task: reads wait, programs do not
//!   journal      what a mount will read
//!   controller   its cores, and what its memory holds of records
//!   space        superblocks, their logs, and validity, the other seam: how is a dead record known?
//!   layout       records in pages, pages with out-of-band areas
//!   parameters   what can be chosen, by name
//!   dram         one budget for all
//!   shared       what changes also while several threads only look
//! ```
//!
//! Each imports what is below it only. A [`Design`] names an index, a validity and a grain size; everything else is shared.
//! The firmware names no index, and knows no NVMe, no wall clock and no file.

mod check;
mod commands;
mod controller;
mod design;
mod dram;
mod engine;
mod gc;
pub mod index;
mod io;
mod iterators;
mod journal;
mod layout;
mod namespace;
mod parameters;
mod recovery;
mod shared;
mod space;
mod testbed;

pub use check::{CheckReport, Finding, Harm};
pub use design::pace::CollectionPace;
pub use design::{Design, DesignError, DesignTable, IndexCatalogue, IndexChoice, OwnIndex, ValidityKind};
pub use dram::DramUse;
pub use engine::build::{KeptFree, PLACEMENT_HANDLES_MAX};
pub use engine::{Engine, GrowthCounters};
pub use gc::GcCounters;
pub use io::lack::Lack;
pub use io::spent::{Spent, SpentOn};
pub use io::{Io, readable};
pub use iterators::{IteratorPlan, PrefetchDegree};
pub use journal::attributes::{NAME_BYTES_MAX, NamespaceAttributes, SavedKind};
pub use journal::batch_sequence::BatchSequence;
pub use journal::planted::PlantedBug;
pub use journal::{Change, TablePlace};
pub use layout::address::Grain;
pub use layout::oob::{Entry, Kind, Oob, OobFormat, Stream};
pub use layout::packing::{Packing, RecordLayout, Slots};
pub use layout::record::{PairPlace, RecordHead};
pub use namespace::NamespaceInfo;
pub use recovery::MountReport;
pub use space::utilization::Utilization;
pub use space::validity;
pub use space::victims::{Candidate, CostBenefit, EraseCounts, Greedy, MAP_KEPT_WEIGHT, VictimChoice, VictimPolicy};
pub use testbed::Testbed;
