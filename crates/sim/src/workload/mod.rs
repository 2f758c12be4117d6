//! Workloads: which operations a host asks for, on which keys, with values of which sizes.
//!
//! ```text
//!   YcsbCore | KvBench                Random (an argument)
//!            |                              |
//!   Ycsb | KvBenchOperations  next(random) -+--> Operation { record, .. }
//!            |                                             |
//!         Chooser                            record -------+------- record, version
//!   uniform | zipfian | latest | sequential    |                         |
//!                                          KeyShape                  ValueSizes
//!                                              |                         |
//!                                         key_bytes                 value bytes
//! ```
//!
//! Everything is counted in record numbers: records `0..records` are loaded, and inserts take the numbers that follow.
//! A [`KeyShape`] turns a record number into a key, and [`ValueSizes`] tells how large a version of a record is. Both
//! are pure functions, so whoever verifies a store needs no memory of what was written, except for the version numbers.
//!
//! The definitions are those of YCSB (github.com/brianfrankcooper/YCSB), so that results compare with published ones.
//! All arithmetic is on integers or of the kind that IEEE 754 rounds in one way only: a seed gives the same operations
//! on every machine.

mod chooser;
mod distribution;
mod error;
mod keys;
mod kvbench;
mod lengths;
mod operation;
mod pair_shape;
mod scrambled;
mod value_sizes;
mod ycsb;
mod zeta;
mod zipfian;

pub use chooser::Chooser;
pub use distribution::Distribution;
pub use error::WorkloadError;
pub use keys::KeyShape;
pub use kvbench::{KvBench, KvBenchOperations, Percents, RunLength};
pub use lengths::Lengths;
pub use operation::Operation;
pub use pair_shape::PairShape;
pub(crate) use scrambled::RANKS as RANKS_OF_YCSB;
pub use value_sizes::{SizeDistribution, ValueSizes};
pub(crate) use ycsb::Shares;
pub use ycsb::{Ycsb, YcsbCore};
pub use zipfian::Zipfian;
