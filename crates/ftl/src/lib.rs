//! The firmware of a key-value SSD.
//!
//! ```text
//!   Engine       store, retrieve, delete, exist, list, flush
//!     |  \
//!     |   Collector (gc)        greedy victims, in the background
//!     |     |
//!   Index --+-- Validity        the seams: where a key lives, how a dead record is known
//!     |     |
//!    Io ----+                   the clock of a command or task; reads wait, programs do not
//!     |
//!   log, superblocks            streams, grains, records over pages
//!     |
//!   kvssd_flash::Flash
//! ```
//!
//! A [`Design`] names an index, a validity and a grain size; everything else is shared. The firmware names no index,
//! and knows no NVMe, no wall clock and no file.

mod address;
mod attributes;
mod batch;
mod batch_sequence;
mod behind;
mod blocks;
mod build;
mod check;
mod clients;
mod commands;
mod controller;
mod design;
mod dram;
mod durability;
mod durable;
mod engine;
mod gathered;
mod gc;
mod heads;
mod held;
pub mod index;
mod io;
mod iterators;
mod journal;
mod lack;
mod limits;
mod log;
mod look;
mod media;
mod namespace;
mod oob;
mod pace;
mod packing;
mod parameters;
mod placement;
mod planted;
mod read_ahead;
mod record;
mod recovery;
mod shared;
mod space;
mod spent;
mod staging;
mod superblock;
mod tags;
mod testbed;
mod utilization;
pub mod validity;
mod value;
mod victims;

pub use address::Grain;
pub use attributes::{NAME_BYTES_MAX, NamespaceAttributes, SavedKind};
pub use batch_sequence::BatchSequence;
pub use build::{KeptFree, PLACEMENT_HANDLES_MAX};
pub use check::{CheckReport, Finding, Harm};
pub use design::{Design, DesignError, DesignTable, IndexCatalogue, IndexChoice, OwnIndex, ValidityKind};
pub use dram::DramUse;
pub use engine::{Engine, GrowthCounters};
pub use gc::GcCounters;
pub use io::{Io, readable};
pub use iterators::{IteratorPlan, PrefetchDegree};
pub use journal::{Change, TablePlace};
pub use lack::Lack;
pub use namespace::NamespaceInfo;
pub use oob::{Entry, Kind, Oob, OobFormat, Stream};
pub use pace::CollectionPace;
pub use packing::{Packing, RecordLayout, Slots};
pub use planted::PlantedBug;
pub use record::{PairPlace, RecordHead};
pub use recovery::MountReport;
pub use spent::{Spent, SpentOn};
pub use testbed::Testbed;
pub use utilization::Utilization;
pub use victims::{EraseCounts, MAP_KEPT_WEIGHT, VictimPolicy};
