//! The store of this project: an image with the design `plus`.
//!
//! Its flash has three times the bytes of the keys and values, as a user leaves room for garbage collection, and 256 MiB at
//! least. What it has in memory follows from that (`kvssd_device::image_profile`); the other stores get as much.

use crate::{Durability, EmbeddedStore, Opening};
use kvssd_device::image_profile;
use kvssd_host::{Missing, Options, Store};

const FLASH_BYTES_MIN: u64 = 256 << 20;

/// Bytes of memory that such a store may take: the firmware's tables, cached index and write buffer, and cached pages.
pub(crate) fn memory_bytes(pair_bytes: u64) -> Result<u64, String> {
    let memory = image_profile(flash_bytes(pair_bytes)).map_err(|error| error.to_string())?.memory;
    Ok(memory.dram_bytes + memory.write_buffer_bytes + Options::default().cache_bytes)
}

pub(super) fn open(opening: &Opening<'_>) -> Result<Box<dyn EmbeddedStore>, String> {
    let options = Options {
        missing: Missing::CreateNew,
        create_bytes: flash_bytes(opening.pair_bytes),
        sync: opening.durability == Durability::Sync,
        ..Options::default()
    };
    match Store::open(opening.folder.join("drive.kv"), options) {
        Ok(store) => Ok(Box::new(store)),
        Err(error) => Err(error.to_string()),
    }
}

fn flash_bytes(pair_bytes: u64) -> u64 {
    pair_bytes.saturating_mul(3).max(FLASH_BYTES_MIN)
}

impl EmbeddedStore for Store {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.store(key, value).map_err(|error| error.to_string())
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, String> {
        let value = self.retrieve(key).map_err(|error| error.to_string())?;
        Ok(value.is_some_and(|value| {
            see(&value);
            true
        }))
    }

    fn delete(&self, key: &[u8]) -> Result<(), String> {
        Store::delete(self, key).map(|_| ()).map_err(|error| error.to_string())
    }
}
