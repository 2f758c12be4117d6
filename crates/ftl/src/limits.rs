//! How much a drive may hold, and when commands wait.

use crate::index::Index;
use crate::lack::Lack;
use crate::media::Media;
use crate::utilization::Utilization;
use kvssd_types::NamespaceId;

/// The limits that the engine was built with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Commands wait until more superblocks are free, beside those that garbage collection keeps for itself.
    pub(crate) high: usize,
    /// The same for look-ups, which write nothing but the few sections that they may evict, and what the journal says of it.
    pub(crate) high_of_lookups: usize,
    /// Grains that may live while no superblock is retired.
    pub(crate) capacity_grains: u64,
    pub(crate) value_bytes_max: u64,
    pub(crate) dram_bytes: u64,
    /// Bytes of flash that the other namespaces take, beside that of the command.
    pub(crate) taken_bytes: u64,
    /// The most bytes that the records of the command's namespace may take.
    pub(crate) quota_bytes: Option<u64>,
}

impl Limits {
    /// Whether the records of a namespace may take `bytes` more.
    pub(crate) fn have_room(&self, media: &Media, index: &dyn Index, utilization: &Utilization, bytes: u64) -> bool {
        self.is_within_quota(utilization, bytes) && self.lacking_bytes(media, index, utilization, bytes) == 0
    }

    /// Bytes of flash that would have to go before the records of a namespace may take `bytes` more, whatever its quota.
    fn lacking_bytes(&self, media: &Media, index: &dyn Index, utilization: &Utilization, bytes: u64) -> u64 {
        let records = utilization.record_bytes + bytes;
        let capacity = self.capacity_grains(media) * u64::from(media.space.packing.grain_bytes);
        (self.taken_bytes + records + index.footprint_bytes()).saturating_sub(capacity)
    }

    /// Why the records of a namespace may not take `bytes` more.
    pub(crate) fn lack(
        &self,
        media: &Media,
        index: &dyn Index,
        utilization: &Utilization,
        (namespace, bytes): (NamespaceId, u64),
    ) -> Lack {
        match self.is_within_quota(utilization, bytes) {
            false => Lack::InNamespace(namespace),
            true => Lack::OnDrive { bytes: self.lacking_bytes(media, index, utilization, bytes) },
        }
    }

    /// Whether the records of a namespace would be within its quota with `bytes` more.
    pub(crate) fn is_within_quota(&self, utilization: &Utilization, bytes: u64) -> bool {
        self.quota_bytes.is_none_or(|quota| utilization.record_bytes + bytes <= quota)
    }

    /// Grains that may live.
    pub(crate) fn capacity_grains(&self, media: &Media) -> u64 {
        let retired = media.space.superblocks.retired() * media.space.packing.grains_per_superblock;
        self.capacity_grains.saturating_sub(retired)
    }
}
