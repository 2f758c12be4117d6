//! How much a drive may hold, and when commands wait.

use crate::io::lack::Lack;
use crate::io::media::Media;
use crate::namespace::Namespace;

/// The limits that the engine was built with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Superblocks that must stay free for a command that writes, beside those that garbage collection keeps for itself.
    pub(crate) high: usize,
    /// The same for look-ups, which write only the few sections that they may evict, and the journal's notes about these.
    pub(crate) high_of_lookups: usize,
    pub(crate) value_bytes_max: u64,
    pub(crate) dram_bytes: u64,
    /// Bytes of flash that all namespaces but the command's take.
    pub(crate) taken_bytes: u64,
}

impl Limits {
    /// Whether the records of a namespace may take `bytes` more.
    pub(crate) fn have_room(&self, media: &Media, namespace: &Namespace, bytes: u64) -> bool {
        self.lack(media, namespace, bytes).is_none()
    }

    /// Why the records of a namespace may not take `bytes` more; none when they may.
    pub(crate) fn lack(&self, media: &Media, namespace: &Namespace, bytes: u64) -> Option<Lack> {
        if namespace.has_quota_for(bytes) {
            self.lack_of_flash(media, namespace, bytes)
        } else {
            Some(Lack::InNamespace(namespace.id))
        }
    }

    /// Like [`Limits::lack`], without the quota.
    pub(crate) fn lack_of_flash(&self, media: &Media, namespace: &Namespace, bytes: u64) -> Option<Lack> {
        let capacity_bytes = media.space.capacity_bytes();
        let taken_bytes = self.taken_bytes + namespace.taken_bytes() + bytes;
        (taken_bytes > capacity_bytes).then(|| Lack::OnDrive { bytes: taken_bytes - capacity_bytes })
    }
}
