//! What the host's processors take for their work, in nanoseconds.
//!
//! The way through the kernel is that of Zhong et al., "XRP: In-Kernel Storage Functions with eBPF", OSDI 2022, table 1 (a read of 512
//! bytes). The paper's machine has cores of 2.1 GHz (Study, section III); nothing is scaled for that. The rest are estimates, made
//! before the first run.

use kvssd_types::Nanos;

/// Bytes of a page of memory, and of a block of the file system.
pub const PAGE_BYTES: u64 = 4096;

/// In and out of the kernel (351) and the system call (199).
pub const SYSTEM_CALL_NS: u64 = 550;
/// A command through block layer (379) and driver (113). A key command takes the same way, without the file system.
pub const COMMAND_NS: u64 = 492;
/// The file system's part of a command.
pub const FILE_SYSTEM_NS: u64 = 2006;

/// A page written through the page cache, with its way out of it. Estimate: 2 GB/s a core.
pub const PAGE_WRITE_NS: u64 = 2000;
/// A page read ahead through the page cache. Estimate: 4 GB/s a core.
pub const PAGE_READ_NS: u64 = 1000;
/// Copying a KiB, or its checksum. Estimate: 10 GB/s.
pub const KIB_NS: u64 = 100;

/// The key API's part of a call: a request made, tracked and given back. Estimate.
pub const KEY_CALL_NS: u64 = 1000;

/// A pair into the MemTable, with its batch and sequence number. Estimate.
pub const MEMTABLE_PUT_NS: u64 = 2000;
/// A look into the MemTables. Estimate.
pub const MEMTABLE_GET_NS: u64 = 1000;
/// A look into the filter of a table and its index. Estimate.
pub const TABLE_GET_NS: u64 = 1000;
/// A pair through the merge of a flush or compaction, beside its bytes. Estimate.
pub const MERGE_PAIR_NS: u64 = 1000;

/// A request to a server on the same machine and its answer: client, four times through the network's stack, transaction. Estimate.
pub const ROUND_TRIP_NS: u64 = 20_000;
/// A look into an index in DRAM. Estimate.
pub const INDEX_NS: u64 = 500;

/// Copying `bytes`, or their checksum, so many times.
#[must_use]
pub fn passes(bytes: u64, times: u64) -> Nanos {
    Nanos((bytes * times * KIB_NS).div_ceil(1024))
}

/// `bytes` through the page cache at so much a page.
#[must_use]
pub fn pages(bytes: u64, page_ns: u64) -> Nanos {
    Nanos(bytes.div_ceil(PAGE_BYTES) * page_ns)
}
