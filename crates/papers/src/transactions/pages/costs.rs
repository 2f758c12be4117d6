//! What the host's processors take for the work of a page-based engine, in nanoseconds.
//!
//! All are estimates, made before the first run, as those that it shares with other engines ([`crate::transactions::costs`]). What the
//! parts of a transaction are, and that none of them outweighs the others, is that of Harizopoulos et al., "OLTP Through the Looking
//! Glass, and What We Found There", SIGMOD 2008, who took Shore apart; Shore-MT is taken to do each in a microsecond or so. The way
//! through the kernel is that of the stores ([`crate::stores::costs`]).
//!
//! What is not modelled: latches of pages, and locks of the lock manager's own tables, for which threads would wait.

use crate::stores::costs;
pub use crate::transactions::costs::{BEGIN_NS, CALL_NS, END_NS, LOCK_NS, WAKE_NS};
use kvssd_types::Nanos;

/// From the root of a B-tree to a leaf, all in memory.
pub const INDEX_NS: u64 = 2000;
/// A page is found in the buffer pool, pinned, latched and let go.
pub const FIX_NS: u64 = 500;
/// A log record is made and put into the log's buffer, its bytes beside, under the one lock of that buffer.
pub const LOG_INSERT_NS: u64 = 500;
/// Into the log's buffer, under its lock.
#[must_use]
pub fn log_insert(bytes: u64) -> Nanos {
    Nanos(LOG_INSERT_NS) + costs::passes(bytes, 1)
}

/// A read of a page or a write of one that goes past the page cache, as Shore-MT's files do.
#[must_use]
pub fn page_call() -> Nanos {
    Nanos(costs::SYSTEM_CALL_NS + costs::FILE_SYSTEM_NS + costs::COMMAND_NS)
}

/// A write to the log's file and an `fsync` of it. The file is as large as it will be, so that the file system's own journal is left
/// alone.
#[must_use]
pub fn log_flush(bytes: u64) -> Nanos {
    let (write, sync) = (costs::SYSTEM_CALL_NS + costs::FILE_SYSTEM_NS, costs::SYSTEM_CALL_NS + costs::FILE_SYSTEM_NS);
    Nanos(write + sync + costs::COMMAND_NS) + costs::pages(bytes, costs::PAGE_WRITE_NS)
}
