//! redb 4: a copy-on-write B-tree, one writer at a time.
//!
//! | setting | | why |
//! |---|---|---|
//! | cache | as much as kvssd has | |
//! | `sync` | default: `Durability::Immediate`, one fsync for each transaction | it has no group commit: writers wait for each other |
//! | `process` | the same, over a file that is not synced | `Durability::None` keeps commits in memory, and would not survive the process |
//! | a put, a delete | a transaction each | so that it is committed when it returns |
//! | a get, a scan | a transaction each | so that it sees what was put before it |

use crate::{Durability, EmbeddedStore, Opening, StoreError};
use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase, StorageBackend, TableDefinition};
use std::fs::File;
use std::io;

const PAIRS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("pairs");

struct Redb(Database);

/// A file whose bytes are with the system when they are written, and on the disk whenever the system likes.
#[derive(Debug)]
struct Unsynced(FileBackend);

impl StorageBackend for Unsynced {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }
}

pub(super) fn open(opening: &Opening<'_>) -> Result<Box<dyn EmbeddedStore>, StoreError> {
    let path = opening.folder.join("pairs.redb");
    let mut builder = Database::builder();
    builder.set_cache_size(opening.cache_bytes as usize);
    let file = File::options().read(true).write(true).create_new(true).open(path)?;
    let file = FileBackend::new(file)?;
    let database = match opening.durability {
        Durability::Sync => builder.create_with_backend(file)?,
        Durability::Process => builder.create_with_backend(Unsynced(file))?,
    };
    let transaction = database.begin_write()?;
    transaction.open_table(PAIRS)?;
    transaction.commit()?;
    Ok(Box::new(Redb(database)))
}

impl EmbeddedStore for Redb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let transaction = self.0.begin_write()?;
        transaction.open_table(PAIRS)?.insert(key, value)?;
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        let value = self.0.begin_read()?.open_table(PAIRS)?.get(key)?;
        Ok(value.map(|value| see(value.value())).is_some())
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        let transaction = self.0.begin_write()?;
        transaction.open_table(PAIRS)?.remove(key)?;
        Ok(transaction.commit()?)
    }

    fn scan(&self, from: &[u8], count: usize, see: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        for pair in self.0.begin_read()?.open_table(PAIRS)?.range(from..)?.take(count) {
            let (key, value) = pair?;
            see(key.value(), value.value());
        }
        Ok(())
    }
}
