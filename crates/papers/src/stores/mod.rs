//! Stores of key-value pairs that run on the host: what a key drive is to be compared with.
//!
//! ```text
//!               KeyDrive            LsmStore                         HashStore
//!   host        a call              MemTable, log, levels of files   index in DRAM, write blocks, defragmentation
//!   command     Store, Retrieve     Read, Write                      Read, Write
//!   drive       a key design        block                            block
//! ```
//!
//! A store is asked for one pair at a time, in virtual time, and says when it is done. Work in the background (flush, compaction,
//! defragmentation) has clocks of its own and is done in bounded steps, the one with the lowest clock first, before a request that comes
//! later. All that a store would read or write goes through the drive and takes its time there. What its processor would do takes
//! time too ([`costs`]) and is added up.
//!
//! What lies on a block drive is a pattern of the file or write block (its number, from its first byte on), so that a gigabyte of it
//! takes no memory; which pairs the bytes stand for is kept beside it. All that is read is compared with what was written there.
//!
//! What they do not do: serve several requests at once, or come back after a power cut.

mod blocks;
pub mod costs;
mod extents;
mod file;
mod hash;
mod key_drive;
mod lsm;

pub use hash::{HashOptions, HashStore};
pub use key_drive::KeyDrive;
pub use lsm::{LevelSizes, LsmOptions, LsmStore};

use kvssd_device::Device;
use kvssd_sim::SimError;
use kvssd_types::{Key, Nanos, Value};

/// A store on one drive. Requests come one after the other: `at` is never before the last request was done.
pub trait HostStore {
    /// Its name in tables.
    fn name(&self) -> &'static str;

    /// Stores a pair that is not there; gives when it is done.
    ///
    /// # Errors
    /// When the drive is full or fails.
    fn insert(&mut self, key: Key<'_>, value: Value, at: Nanos) -> Result<Nanos, SimError>;

    /// Stores a pair that is there; gives when it is done.
    ///
    /// # Errors
    /// When the drive is full or fails.
    fn update(&mut self, key: Key<'_>, value: Value, at: Nanos) -> Result<Nanos, SimError>;

    /// Looks for a pair: when it is done, and the value.
    ///
    /// # Errors
    /// When the drive fails, or gives back other bytes than were written.
    fn read(&mut self, key: Key<'_>, at: Nanos) -> Result<(Nanos, Option<Value>), SimError>;

    /// Removes a pair, if it is there; gives when it is done.
    ///
    /// # Errors
    /// When the drive is full or fails.
    fn delete(&mut self, key: Key<'_>, at: Nanos) -> Result<Nanos, SimError>;

    /// What it did and took so far.
    fn usage(&self) -> StoreUsage;

    /// The drive that it lies on.
    fn device(&self) -> &Device;
}

/// What a store did and took since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreUsage {
    /// Time of the host's processors, in the foreground and the background.
    pub cpu: Nanos,
    /// Bytes that it read from the drive.
    pub read_bytes: u64,
    /// Bytes that it wrote to the drive.
    pub written_bytes: u64,
    /// Bytes of the drive that it has in use.
    pub space_bytes: u64,
    /// MemTables that were flushed, or write blocks that were filled.
    pub flushes: u64,
    /// Compactions, or write blocks that were defragmented.
    pub compactions: u64,
    /// Requests that waited for work in the background.
    pub stalls: u64,
    /// How long they waited, all together.
    pub stalled: Nanos,
}

#[cfg(test)]
mod tests;
