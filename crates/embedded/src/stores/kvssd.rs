//! The store of this project: an image with the design `plus`, and an ordered namespace of such an image.
//!
//! Its flash has three times the bytes of the keys and values, as a user leaves room for garbage collection, and 256 MiB at
//! least. What it has in memory follows from that (`kvssd_device::image_profile`); the other stores get as much.

use crate::{Durability, EmbeddedStore, Opening, StoreError};
use kvssd_device::image_profile;
use kvssd_host::{IteratorOptions, Missing, Namespace, NamespaceAttributes, NamespaceId, Options, Store};

const FLASH_BYTES_MIN: u64 = 256 << 20;

/// Of the store in partitions: as many as the smallest image takes.
const PARTITIONS: u32 = 4;

/// Bytes of memory that such a store takes by default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// The firmware's tables, cached index and write buffer: as much as the image's flash wants.
    pub(crate) firmware: u64,
    /// Cached pages.
    pub(crate) pages: u64,
}

/// The memory of a store for so many bytes of pairs.
pub(crate) fn memory_bytes(pair_bytes: u64) -> Result<Memory, String> {
    let memory = image_profile(flash_bytes(pair_bytes)).map_err(|error| error.to_string())?.memory;
    Ok(Memory { firmware: memory.dram_bytes + memory.write_buffer_bytes, pages: Options::default().cache_bytes })
}

/// A namespace of the store.
struct Kvssd {
    store: Store,
    namespace: NamespaceId,
    is_ordered: bool,
}

/// The store's own namespace, which keeps keys in no order.
pub(super) fn open(opening: &Opening<'_>) -> Result<Box<dyn EmbeddedStore>, StoreError> {
    open_namespace(opening, false, 1)
}

/// The same, in partitions.
pub(super) fn open_partitioned(opening: &Opening<'_>) -> Result<Box<dyn EmbeddedStore>, StoreError> {
    open_namespace(opening, false, PARTITIONS)
}

/// An ordered namespace of an empty store.
pub(super) fn open_ordered(opening: &Opening<'_>) -> Result<Box<dyn EmbeddedStore>, StoreError> {
    open_namespace(opening, true, 1)
}

fn open_namespace(
    opening: &Opening<'_>,
    is_ordered: bool,
    partitions: u32,
) -> Result<Box<dyn EmbeddedStore>, StoreError> {
    // What the image cannot be, opening it says.
    let firmware_bytes = memory_bytes(opening.pair_bytes).map_or(0, |memory| memory.firmware);
    let options = Options {
        cache_bytes: opening.cache_bytes.saturating_sub(firmware_bytes),
        missing: Missing::CreateNew,
        create_bytes: flash_bytes(opening.pair_bytes),
        sync: opening.durability == Durability::Sync,
        partitions,
        ..Options::default()
    };
    let store = Store::open(opening.folder.join("drive.kv"), options)?;
    let namespace = match is_ordered {
        false => store.own_namespace().id(),
        true => store.create_namespace(NamespaceAttributes { is_ordered, ..NamespaceAttributes::PLAIN })?.id(),
    };
    Ok(Box::new(Kvssd { store, namespace, is_ordered }))
}

fn flash_bytes(pair_bytes: u64) -> u64 {
    pair_bytes.saturating_mul(3).max(FLASH_BYTES_MIN)
}

impl Kvssd {
    fn pairs(&self) -> Namespace<'_> {
        self.store.namespace_at(self.namespace)
    }
}

impl EmbeddedStore for Kvssd {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        Ok(self.pairs().store(key, value)?)
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        let value = self.pairs().retrieve(key)?;
        Ok(value.map(|value| see(&value)).is_some())
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.pairs().delete(key)?;
        Ok(())
    }

    fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    fn scan(&self, from: &[u8], count: usize, see: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        for pair in self.pairs().range(&IteratorOptions { first: from, ..IteratorOptions::default() })?.take(count) {
            let (key, value) = pair?;
            see(&key, &value);
        }
        Ok(())
    }
}
