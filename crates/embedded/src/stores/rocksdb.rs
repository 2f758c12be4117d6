//! RocksDB: an LSM tree.
//!
//! | setting | | why |
//! |---|---|---|
//! | block cache | as much as kvssd has | its write buffers of 64 MiB, which it has beside it, are its defaults |
//! | filters | Bloom, 10 bits a key | as its users are told to; without, each read looks into every level |
//! | compression | none | the values do not compress; the time would be for nothing |
//! | `process` | default: each write goes to its journal before it returns | survives the process, as kvssd's do |
//! | `sync` | `WriteOptions::sync` | threads that wait at the same time share an fsync |
//! | the rest | default: levelled compaction, blocks of 4 KiB, two background jobs | |

use crate::{Durability, EmbeddedStore, Opening, StoreError};
use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Direction, IteratorMode, Options, WriteOptions};

/// Bits of a key in the filters.
const BLOOM_BITS: f64 = 10.0;
/// What it says of itself while it works behind; each is a count, or 0 and 1.
const BUSY: [&str; 4] = [
    "rocksdb.num-running-compactions",
    "rocksdb.num-running-flushes",
    "rocksdb.compaction-pending",
    "rocksdb.mem-table-flush-pending",
];

struct RocksDb {
    database: DB,
    writing: WriteOptions,
}

pub(super) fn open(opening: &Opening<'_>) -> Result<Box<dyn EmbeddedStore>, StoreError> {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(opening.cache_bytes as usize));
    blocks.set_bloom_filter(BLOOM_BITS, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::None);
    options.set_block_based_table_factory(&blocks);
    let database = DB::open(&options, opening.folder.join("database"))?;
    let mut writing = WriteOptions::default();
    writing.set_sync(opening.durability == Durability::Sync);
    Ok(Box::new(RocksDb { database, writing }))
}

impl EmbeddedStore for RocksDb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        Ok(self.database.put_opt(key, value, &self.writing)?)
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        let value = self.database.get_pinned(key)?;
        Ok(value.map(|value| see(&value)).is_some())
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        Ok(self.database.delete_opt(key, &self.writing)?)
    }

    fn scan(&self, from: &[u8], count: usize, see: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        for pair in self.database.iterator(IteratorMode::From(from, Direction::Forward)).take(count) {
            let (key, value) = pair?;
            see(&key, &value);
        }
        Ok(())
    }

    fn is_busy(&self) -> bool {
        BUSY.iter().any(|name| self.database.property_int_value(*name).is_ok_and(|value| value.unwrap_or(0) > 0))
    }
}
