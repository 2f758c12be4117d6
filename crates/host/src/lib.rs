//! A key-value drive, in a file or on the wire, as a store that a program embeds.
//!
//! ```text
//!   threads      store, retrieve, delete, exist, list, pairs, batch, flush        &Store, from as many as there are
//!                namespace("accounts").store, retrieve, ...                       key spaces of their own
//!                  |
//!   Store          open("drive.kv")                          open("nvme+tcp://127.0.0.1:4420/nqn...?ns=1")
//!                  |                                         |
//!   Backend      one command at a time; with `sync`,       many at a time over NVMe/TCP, shared by all threads;
//!                threads that wait share one commit        connected again when the connection is lost
//!                  |                                         |
//!   Drive (kvssd_device): firmware over an image file,     any NVMe target with the Key Value command set,
//!   one writer, or several readers                         such as `kvssd serve`
//! ```
//!
//! ```
//! use kvssd_host::{Options, Store};
//!
//! # fn main() -> Result<(), kvssd_host::Error> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("drive.kv");
//! let store = Store::open(&path, Options::default())?;    // makes an image of 1 GiB when there is none
//! store.store(b"city/oslo", b"59.91 N 10.75 E")?;
//! assert_eq!(store.retrieve(b"city/oslo")?.as_deref(), Some(&b"59.91 N 10.75 E"[..]));
//! assert_eq!(store.retrieve(b"city/rome")?, None);        // absent is an answer, not an error
//! assert!(store.delete(b"city/oslo")?);
//! store.close()?;                                         // not needed, but the next open is quicker
//! # Ok(())
//! # }
//! ```
//!
//! A call that has returned is safe: what it stored outlives the end of the process, `kill -9` included, and with
//! [`Options::sync`] the end of the machine.
//!
//! On the wire an answer may be lost. A command that changes nothing is sent again. So is a change to a drive that recognizes it by its number
//! (`kvssd serve`): it is made once. With any other drive the call fails with [`Error::InDoubt`], and nothing is made twice.
//!
//! A store belongs to the process that opened it: a child that is forked from it gets [`Error::Forked`] of every call, and opens one of its own,
//! once the parent's is closed. What starts other programs has nothing to do for that: they inherit neither the image nor the connection.
//!
//! [`tx`] has transactions over it, with a cache. [`PairCache`] makes a namespace a cache that is never full.
//!
//! A drive on the wire refuses what it has no commands for: batches, and transactions with them. A drive of another make also refuses keys above
//! 16 bytes, ranges, and namespaces that are made or deleted (docs/VENDOR.md). Nothing weaker is done instead. On the wire [`Store::bulk`] keeps
//! the last change of each key and no other order. [`Store::retrieve_part`] cuts the part out here: the wire carries all bytes before it.
//!
//! What it does not do: several drives as one.

mod backend;
mod batch;
mod commits;
mod error;
mod image;
mod lives;
mod loose;
mod namespace;
mod options;
mod pair_cache;
mod pairs;
mod range;
mod remote;
mod stats;
mod store;
pub mod tx;

pub use batch::Batch;
pub use error::Error;
pub use kvssd_cache::{
    AdmissionPolicy, AdmissionRule, AttributesError, CacheAttributes, CachePlan, Counts, EvictionPolicy,
};
pub use kvssd_device::{CacheInfo, FirmwareStats};
pub use kvssd_flash::Owner;
pub use kvssd_ftl::{NAME_BYTES_MAX, NamespaceAttributes, NamespaceInfo};
pub use kvssd_nvme_client::{Digests, DriveUrl, give_up_when};
pub use kvssd_types::{Blob, IteratorOptions, NamespaceId, StoreCondition, Value};
pub use namespace::Namespace;
pub use options::{Missing, Options};
pub use pair_cache::{PairCache, PairCacheStats};
pub use pairs::{KeyCursor, Keys, Pair, Pairs};
pub use range::{Range, RangeCursor};
pub use stats::{Stats, TrafficStats};
pub use store::{Store, connect, connect_to, open, open_partitions};
