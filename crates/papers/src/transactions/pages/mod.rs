//! A page-based engine on a block drive, as Shore-MT is: what transactions on a key-value drive are to be compared with (KAML,
//! sections V-A and V-D).
//!
//! ```text
//!   step(T, request)
//!     |  locks            records or pages, strict two-phase            kvssd_transactions
//!     |  heap             table, key -> page, slot                      in memory
//!     v
//!   Store   buffer pool, CLOCK       log, one flush at a time           steal, no force
//!     |        ^                        |
//!     |        +-- background_writer: cleaner, fuzzy checkpoints, space of the log
//!     v                                 v
//!   Media   pages of 8 KiB           log, around and around             Read, Write, Flush of a block drive
//! ```
//!
//! Logging and recovery are those of ARIES (Mohan et al., TODS 1992): records with before and after images of one slot of one page,
//! pages that name their last record, compensation records, analysis, redo of all and undo of losers. Files lie on a file system whose
//! calls cost processor time ([`costs`]) and whose own writes are left out. A commit is there when the log is on the drive: for good
//! as soon as the drive has it where its write cache is protected, else after a flush.
//!
//! What it does not do: scan ranges, latch pages, log or store the index (`heap.rs`), partial rollbacks, escalation of locks, or
//! survive a drive that lost what it had said was there.

pub mod costs;
mod engine;
mod entry;
mod heap;
mod log;
mod media;
mod page;
mod pool;
mod recovery;
mod requests;
mod store;

pub use engine::{LockedUnit, PageCounters, PageEngine, PageOptions};
pub use media::Traffic;
pub use page::PAGE_BYTES;
pub use recovery::{Recovery, Remains};

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod tests;
