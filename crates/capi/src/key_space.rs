//! A key space that is open.

use crate::device::Device;
use crate::order::Order;
use crate::refusal::{KvsResult, Refusal};
use kvssd_host::{Namespace, NamespaceId, NamespaceInfo};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A key space that is open.
pub(crate) struct KeySpace {
    pub(crate) device: Arc<Device>,
    pub(crate) id: NamespaceId,
    pub(crate) name: String,
    pub(crate) order: Order,
    is_deleted: AtomicBool,
}

impl KeySpace {
    /// The one with that name of that device, whose namespace is said to be so.
    pub(crate) fn new(device: &Arc<Device>, name: &str, info: &NamespaceInfo) -> Self {
        let (device, order) = (Arc::clone(device), Order::of(info));
        KeySpace { device, id: info.id, name: name.to_owned(), order, is_deleted: AtomicBool::new(false) }
    }

    /// Tells who has it open that it is deleted, with the next call.
    pub(crate) fn note_deleted(&self) {
        self.is_deleted.store(true, Ordering::Release);
    }

    /// Whether it is that one of that device.
    pub(crate) fn is(&self, device: &Arc<Device>, id: NamespaceId) -> bool {
        Arc::ptr_eq(&self.device, device) && self.id == id && !self.is_deleted.load(Ordering::Acquire)
    }

    /// Does something with its pairs. It is not deleted meanwhile, nor the device closed.
    pub(crate) fn on_pairs<T>(&self, work: impl FnOnce(Namespace<'_>) -> Result<T, Refusal>) -> Result<T, Refusal> {
        self.device.on_store(|store| {
            if self.is_deleted.load(Ordering::Acquire) {
                return Err(none_such(&self.name));
            }
            work(store.namespace_at(self.id))
        })
    }

    /// How full it is, and how many pairs it has.
    pub(crate) fn info(&self) -> Result<(NamespaceInfo, u64), Refusal> {
        self.on_pairs(|pairs| Ok((pairs.info()?, pairs.count()?)))
    }

    /// Bytes that its pairs may take yet: what is free on the drive, and no more than its quota leaves, which bounds records and not the index.
    /// Over the wire a namespace with pairs says only what both take together.
    pub(crate) fn free_bytes(&self, info: &NamespaceInfo) -> Result<u64, Refusal> {
        let (stats, own, has_quota) = (self.device.stats()?, &info.utilization, info.attributes.quota_bytes.is_some());
        let of_drive = stats.capacity_bytes.saturating_sub(stats.live_bytes);
        // A namespace of a drive of another make has a size of its own.
        if !has_quota && stats.firmware.is_some() {
            return Ok(of_drive);
        }
        let is_known = own.record_bytes > 0 || has_quota && own.pairs == 0;
        let used = if is_known { own.record_bytes } else { own.live_bytes };
        Ok(of_drive.min(own.capacity_bytes.saturating_sub(used)))
    }
}

/// The answer to a name that no key space has.
pub(crate) fn none_such(name: &str) -> Refusal {
    Refusal::new(KvsResult::KeySpaceNotExist, format!("there is no key space {name}"))
}
