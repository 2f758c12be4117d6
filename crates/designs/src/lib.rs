//! The designs of the papers, and one that came behind them, written against the public seam of the firmware ([`kvssd_ftl::index`]) as anybody's
//! design is.
//!
//! ```text
//!   known.rs            the designs that a program knows: all, named, from_table; add one of your own
//!   known/presets.rs    index, validity, packing and parameters of each
//!   the rest            the indexes
//! ```
//!
//! | index | what it is |
//! |---|---|
//! | `dram-hash` | a hash table in DRAM, with whole keys of 8 bytes, swapped out to flash when DRAM is wanted (KAML, section IV-C) |
//! | `hash-fixed` | a demand-cached hash table, every slot of it on flash (Plus, section III) |
//! | `hash-compact` | the same table with only living mappings, in sections that grow (Plus, section IV-B) |
//! | `page-map` | a place for each logical block, for a block drive |
//! | `lsm` | a log-structured merge tree, keys in order (IterKVSSD, section 2) |
//! | `multilevel` | a hash table in levels, each twice as large as the one before (Study, section II) |
//! | `rhik` | a directory in DRAM over tables of a page each, which grows by splitting them (RHIK, section IV) |
//! | `tessera` | a directory in DRAM over small sections of packed fingerprints, which split one by one |

mod bloom;
mod bounds;
mod dram_hash;
mod hash;
mod known;
mod lsm;
mod multilevel;
mod overrides;
mod page_map;
mod probe;
mod record_table;
mod rhik;
pub mod section;
mod sorted_words;
mod tessera;

pub use dram_hash::DramHashPlan;
pub use hash::{HashCompact, HashFixed};
pub use known::{
    BLOCK, DESIGNS, ITER, KAML, Known, MULTILEVEL, ORIGINAL, PINK, PLUS, RHIK, TESSERA, add, added, all, from_table,
    indexes, named,
};
pub use lsm::LsmPlan;
pub use multilevel::MultilevelPlan;
pub use overrides::{Assignment, split_overrides};
pub use page_map::PageMapPlan;
pub use probe::Entry as SlotEntry;
pub use record_table::{RecordTable, Signature};
pub use rhik::RhikPlan;
pub use sorted_words::SortedWords;
pub use tessera::TesseraPlan;
