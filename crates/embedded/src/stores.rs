//! The stores that can be measured.
//!
//! | | | mechanism | a put is committed |
//! |---|---|---|---|
//! | `kvssd` | always | log and hash index of the firmware, in one file | by a write to the image; `sync`: threads share an fsync |
//! | `kvssd-partitioned` | always | the same in four partitions | as above |
//! | `kvssd-ordered` | always | the same with a namespace whose keys have an order: an LSM tree | as above |
//! | `fjall` | feature `rivals` | LSM tree | by a write to its journal; `sync`: each with an fsync |
//! | `rocksdb` | feature `rocksdb` | LSM tree | by a write to its journal; `sync`: threads share an fsync |
//! | `lmdb` | feature `rivals` | copy-on-write B-tree in a mapped file, one writer at a time | by a transaction; `sync`: each with an fsync |
//! | `lmdb-writemap` | feature `rivals` | the same, written through the map | as above |
//! | `redb` | feature `rivals` | copy-on-write B-tree, one writer at a time | by a transaction; `sync`: each with an fsync |

#[cfg(feature = "rivals")]
mod fjall;
mod kvssd;
#[cfg(feature = "rivals")]
mod lmdb;
#[cfg(feature = "rivals")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use crate::{EmbeddedStore, Opening, StoreError};

pub(crate) use self::kvssd::memory_bytes;

/// Makes a store in an empty folder, or says why that does not go.
type Open = fn(&Opening<'_>) -> Result<Box<dyn EmbeddedStore>, StoreError>;

/// A kind of store.
#[derive(Clone, Copy, Debug)]
pub struct StoreKind {
    /// Its name.
    pub name: &'static str,
    /// Makes one.
    pub open: Open,
}

/// All kinds that are built in; kvssd comes first.
pub const STORES: &[StoreKind] = &[
    StoreKind { name: "kvssd", open: kvssd::open },
    StoreKind { name: "kvssd-partitioned", open: kvssd::open_partitioned },
    StoreKind { name: "kvssd-ordered", open: kvssd::open_ordered },
    #[cfg(feature = "rivals")]
    StoreKind { name: "fjall", open: fjall::open },
    #[cfg(feature = "rocksdb")]
    StoreKind { name: "rocksdb", open: rocksdb::open },
    #[cfg(feature = "rivals")]
    StoreKind { name: "lmdb", open: lmdb::open },
    #[cfg(feature = "rivals")]
    StoreKind { name: "lmdb-writemap", open: lmdb::open_writemap },
    #[cfg(feature = "rivals")]
    StoreKind { name: "redb", open: redb::open },
];

/// Whether stores of others are built in.
pub const HAS_RIVALS: bool = cfg!(feature = "rivals");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Durability;

    #[test]
    fn every_store_keeps_what_it_is_given() {
        for (kind, durability) in STORES.iter().flat_map(|kind| Durability::ALL.map(|durability| (kind, durability))) {
            let folder = tempfile::tempdir().unwrap();
            let opening = Opening { folder: folder.path(), durability, pair_bytes: 1 << 20, cache_bytes: 64 << 20 };
            let store = (kind.open)(&opening).unwrap();
            let got = |key: &[u8]| {
                let mut seen = None;
                let is_there = store.get(key, &mut |value| seen = Some(value.to_vec())).unwrap();
                assert_eq!(is_there, seen.is_some(), "{}", kind.name);
                seen
            };
            assert_eq!(got(b"one"), None, "{}", kind.name);
            store.put(b"one", b"1").unwrap();
            store.put(b"two", &[2; 5000]).unwrap();
            store.put(b"one", b"one").unwrap();
            assert_eq!((got(b"one"), got(b"two")), (Some(b"one".to_vec()), Some(vec![2; 5000])), "{}", kind.name);
            let mut shown = Vec::new();
            let mut show = |key: &[u8], value: &[u8]| shown.push((key.to_vec(), value.len()));
            assert_eq!(store.scan(b"a", 2, &mut show).is_ok(), store.is_ordered(), "{}", kind.name);
            assert_eq!(store.is_ordered(), shown == [(b"one".to_vec(), 3), (b"two".to_vec(), 5000)], "{}", kind.name);
            store.delete(b"one").unwrap();
            assert_eq!((got(b"one"), got(b"two")), (None, Some(vec![2; 5000])), "{}", kind.name);
        }
    }

    #[test]
    fn a_store_that_cannot_be_made_says_why_in_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "no folder").unwrap();
        for kind in STORES {
            let opening =
                Opening { folder: &file, durability: Durability::Process, pair_bytes: 1 << 20, cache_bytes: 1 << 20 };
            let why = (kind.open)(&opening).err().unwrap().to_string();
            assert!(!why.is_empty() && why.lines().count() == 1, "{}: {why}", kind.name);
        }
    }
}
