//! Why a command found no room.

use kvssd_types::NamespaceId;

/// What must be removed before a command refused with [`CapacityExceeded`](kvssd_types::KvError::CapacityExceeded) can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// The drive is full: pairs of any namespace.
    OnDrive {
        /// Bytes of flash that must become free.
        bytes: u64,
    },
    /// A namespace is at its quota, or its index has no place for a key: pairs of that namespace.
    InNamespace(NamespaceId),
    /// No pairs: something else is full.
    Elsewhere,
}
