//! LMDB: a copy-on-write B-tree in a mapped file, one writer at a time.
//!
//! | setting | | why |
//! |---|---|---|
//! | cache | none: the map is the system's cache, which nobody bounds | it has no other; with data beyond the others' caches it has more memory than they |
//! | `sync` | default: one fsync for each transaction | it has no group commit: writers wait for each other |
//! | `process` | `MDB_NOSYNC` | what is written is with the system, and survives the process |
//! | `lmdb-writemap` | `MDB_WRITEMAP` | pages are changed where they are mapped, without a call of the system |
//! | a put, a delete, a get, a scan | a transaction each | so that it is committed when it returns, and sees what was put before it |
//! | the rest | default: no read-ahead is turned off | the files fit into the system's cache |

use crate::{Durability, EmbeddedStore, Opening, StoreError};
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions};
use std::ops::Bound;

/// The map is so many times as large as the pairs, and 1 GiB at least: addresses, not memory.
const MAP_FACTOR: u64 = 8;
const MAP_BYTES_MIN: u64 = 1 << 30;
const MAP_BYTES_STEP: u64 = 1 << 20;
/// As many threads as a measurement may have, and some.
const READERS_MAX: u32 = 512;

struct Lmdb {
    env: Env,
    pairs: Database<Bytes, Bytes>,
}

/// Pages are written to the file.
pub(super) fn open(opening: &Opening<'_>) -> Result<Box<dyn EmbeddedStore>, StoreError> {
    open_with(opening, EnvFlags::empty())
}

/// Pages are changed where they are mapped.
pub(super) fn open_writemap(opening: &Opening<'_>) -> Result<Box<dyn EmbeddedStore>, StoreError> {
    open_with(opening, EnvFlags::WRITE_MAP)
}

#[expect(unsafe_code, reason = "a mapped file must not be changed by others: its folder was made for this run alone")]
fn open_with(opening: &Opening<'_>, flags: EnvFlags) -> Result<Box<dyn EmbeddedStore>, StoreError> {
    let flags = match opening.durability {
        Durability::Sync => flags,
        Durability::Process => flags | EnvFlags::NO_SYNC,
    };
    // It must be whole pages of the system.
    let map_bytes = opening.pair_bytes.saturating_mul(MAP_FACTOR).max(MAP_BYTES_MIN).next_multiple_of(MAP_BYTES_STEP);
    let mut options = EnvOpenOptions::new();
    options.map_size(map_bytes as usize).max_readers(READERS_MAX);
    // SAFETY: the folder belongs to this measurement, and the environment is opened once.
    let env = unsafe { options.flags(flags).open(opening.folder)? };
    let mut transaction = env.write_txn()?;
    let pairs = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok(Box::new(Lmdb { env, pairs }))
}

impl EmbeddedStore for Lmdb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let mut transaction = self.env.write_txn()?;
        self.pairs.put(&mut transaction, key, value)?;
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        let transaction = self.env.read_txn()?;
        let value = self.pairs.get(&transaction, key)?;
        Ok(value.map(see).is_some())
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        let mut transaction = self.env.write_txn()?;
        self.pairs.delete(&mut transaction, key)?;
        Ok(transaction.commit()?)
    }

    fn scan(&self, from: &[u8], count: usize, see: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        let transaction = self.env.read_txn()?;
        for pair in self.pairs.range(&transaction, &(Bound::Included(from), Bound::Unbounded))?.take(count) {
            let (key, value) = pair?;
            see(key, value);
        }
        Ok(())
    }
}
