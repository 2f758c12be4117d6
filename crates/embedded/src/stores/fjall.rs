//! fjall 3: an LSM tree.
//!
//! | setting | | why |
//! |---|---|---|
//! | block cache | as much as kvssd has | the two write buffers of 16 MiB and more that it has beside it are its defaults |
//! | compression | none: its feature `lz4` is off | the values do not compress; the time would be for nothing |
//! | `process` | default: each write goes to the system before it returns | survives the process, as kvssd's do |
//! | `sync` | journal persisted by hand, `SyncData` after each write | it has no group commit: each thread syncs by itself |
//! | the rest | default: bloom filters of 10 bits, levelled compaction, blocks of 4 KiB, values in the tree | |

use crate::{Durability, EmbeddedStore, Opening, StoreError};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

struct Fjall {
    database: Database,
    pairs: Keyspace,
    is_synced: bool,
}

pub(super) fn open(opening: &Opening<'_>) -> Result<Box<dyn EmbeddedStore>, StoreError> {
    let is_synced = opening.durability == Durability::Sync;
    let database = Database::builder(opening.folder.join("database"))
        .cache_size(opening.cache_bytes)
        .manual_journal_persist(is_synced)
        .open()?;
    let pairs = database.keyspace("pairs", || KeyspaceCreateOptions::default().manual_journal_persist(is_synced))?;
    Ok(Box::new(Fjall { database, pairs, is_synced }))
}

impl Fjall {
    fn commit(&self, change: fjall::Result<()>) -> Result<(), StoreError> {
        change?;
        if self.is_synced {
            self.database.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }
}

impl EmbeddedStore for Fjall {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.commit(self.pairs.insert(key, value))
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        let value = self.pairs.get(key)?;
        Ok(value.map(|value| see(&value)).is_some())
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.commit(self.pairs.remove(key))
    }

    fn scan(&self, from: &[u8], count: usize, see: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        for pair in self.pairs.range(from..).take(count) {
            let (key, value) = pair.into_inner()?;
            see(&key, &value);
        }
        Ok(())
    }

    /// Sealed write buffers that are not flushed keep their journals; compactions say so themselves.
    fn is_busy(&self) -> bool {
        self.database.active_compactions() > 0 || self.database.journal_count() > 1
    }
}
