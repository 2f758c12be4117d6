//! A device: a store that is open, and what its key spaces share.
//!
//! ```text
//!   store      read: any number of calls;  write: who deletes a key space, or closes the device, waits for them
//!   stripes    a lock for the keys of a hash: changes of one key take turns, so that append, and retrieve and delete, are one step
//!   queue      asynchronous calls;  iterators: 16 for all key spaces
//! ```

use crate::abi::*;
use crate::iterators::Iterators;
use crate::queue::Queue;
use crate::refusal::{KvsResult, Refusal};
use kvssd_host::{Missing, NamespaceId, Options, Stats, Store};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// Locks that changes of keys are spread over.
const STRIPES: usize = 64;

/// A device that is open.
pub(crate) struct Device {
    /// None once it is closed.
    store: RwLock<Option<Store>>,
    key_bytes_max: u16,
    value_bytes_max: u32,
    hash: RandomState,
    stripes: [Mutex<()>; STRIPES],
    pub(crate) iterators: Iterators,
    pub(crate) queue: Queue,
}

impl Device {
    /// Opens the drive in an image that is there, or at a URL.
    pub(crate) fn open(drive: &str) -> Result<Device, Refusal> {
        let store = kvssd_host::open(drive, Options { missing: Missing::Fail, ..Options::default() })?;
        let value_bytes_max = store.stats()?.value_bytes_max;
        let key_bytes_max = u16::try_from(store.key_bytes_max()?).unwrap_or(KEY_BYTES_MAX).min(KEY_BYTES_MAX);
        Ok(Device {
            store: RwLock::new(Some(store)),
            key_bytes_max,
            value_bytes_max: u32::try_from(value_bytes_max).unwrap_or(u32::MAX).min(VALUE_BYTES_MAX),
            hash: RandomState::new(),
            stripes: std::array::from_fn(|_| Mutex::default()),
            iterators: Iterators::default(),
            queue: Queue::default(),
        })
    }

    /// Waits for what is under way, and closes the store.
    pub(crate) fn close(&self) -> Result<(), Refusal> {
        self.queue.drain();
        let store = self.store.write().unwrap_or_else(PoisonError::into_inner).take();
        match store {
            Some(store) => Ok(store.close()?),
            None => Err(closed()),
        }
    }

    /// Does something with the store, beside others.
    pub(crate) fn on_store<T>(&self, work: impl FnOnce(&Store) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let store = self.store.read().unwrap_or_else(PoisonError::into_inner);
        work(store.as_ref().ok_or_else(closed)?)
    }

    /// Does something with the store while nobody else does.
    pub(crate) fn alone_on_store<T>(&self, work: impl FnOnce(&Store) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        work(store.as_ref().ok_or_else(closed)?)
    }

    /// Keeps others from changing a key.
    pub(crate) fn lock_key(&self, namespace: NamespaceId, key: &[u8]) -> MutexGuard<'_, ()> {
        let stripe = self.hash.hash_one((namespace, key)) as usize % STRIPES;
        self.stripes[stripe].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `kvs_get_device_info` tells.
    pub(crate) fn info(&self) -> Result<KvsDevice, Refusal> {
        self.on_store(|store| {
            let capacity = store.stats()?.capacity_bytes;
            let quotas = store.namespaces()?.into_iter().filter_map(|info| info.attributes.quota_bytes);
            Ok(KvsDevice {
                capacity,
                unalloc_capacity: capacity.saturating_sub(quotas.fold(0, u64::saturating_add)),
                max_value_len: self.value_bytes_max,
                max_key_len: self.key_bytes_max().into(),
                optimal_value_len: VALUE_BYTES_OPTIMAL,
                optimal_value_granularity: OFFSET_ALIGNMENT_BYTES,
                extended_info: crate::Place::NULL,
            })
        })
    }

    /// How full the drive is.
    pub(crate) fn stats(&self) -> Result<Stats, Refusal> {
        self.on_store(|store| Ok(store.stats()?))
    }

    /// Bytes of the longest key.
    pub(crate) fn key_bytes_max(&self) -> u16 {
        self.key_bytes_max
    }

    /// Bytes of the largest value.
    pub(crate) fn value_bytes_max(&self) -> u32 {
        self.value_bytes_max
    }

    /// Whether a key can have so many bytes.
    pub(crate) fn check_key(&self, key_bytes: u16) -> Result<(), Refusal> {
        if (KEY_BYTES_MIN..=self.key_bytes_max()).contains(&key_bytes) {
            return Ok(());
        }
        let why = format!("a key has {KEY_BYTES_MIN} to {} bytes, not {key_bytes}", self.key_bytes_max());
        Err(Refusal::new(KvsResult::KeyLengthInvalid, why))
    }

    /// Whether a value can have so many bytes.
    pub(crate) fn check_value(&self, value_bytes: u64) -> Result<(), Refusal> {
        if value_bytes <= u64::from(self.value_bytes_max) {
            return Ok(());
        }
        let why = format!("a value has at most {} bytes, not {value_bytes}", self.value_bytes_max);
        Err(Refusal::new(KvsResult::ValueLengthInvalid, why))
    }
}

fn closed() -> Refusal {
    Refusal::new(KvsResult::DeviceNotOpened, "the device was closed")
}
