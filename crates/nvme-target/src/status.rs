//! The NVMe status of each error of the drive, and of namespaces that are not there.

use crate::limits::NAMESPACES_MAX;
use kvssd_nvme_spec::Status;
use kvssd_types::KvError;

pub(crate) fn status_of(error: &KvError) -> Status {
    match error {
        KvError::CapacityExceeded => Status::CapacityExceeded,
        KvError::InvalidValueSize { .. } | KvError::BatchTooLarge { .. } | KvError::BatchValueTooLarge { .. } => {
            Status::InvalidValueSize
        }
        KvError::InvalidKeySize { .. } => Status::InvalidKeySize,
        KvError::KeyNotFound => Status::KeyDoesNotExist,
        KvError::KeyExists => Status::KeyExists,
        KvError::InvalidCommand(_) => Status::InvalidOpcode,
        KvError::NoSuchNamespace(id) => absent(id.0),
        // Errors of commands that the Key Value command set has not. The first three are of none that hosts have here.
        KvError::InvalidRange { .. } | KvError::TooManyNamespaces { .. } | KvError::InvalidNamespace(_) => {
            Status::InvalidField
        }
        KvError::NoSuchIterator(_) | KvError::IteratorExpired(_) => Status::IteratorEnded,
        KvError::TooManyIterators { .. } => Status::TooManyIterators,
        KvError::RequestForgotten => Status::RequestForgotten,
        KvError::Unrecovered(_) => Status::UnrecoveredError,
        KvError::Failed(_) | KvError::PowerLost => Status::InternalError,
    }
}

/// The status of a command on an inactive namespace, or on an invalid one (Base, 3.2.1).
pub(crate) fn absent(namespace: u32) -> Status {
    if (1..=NAMESPACES_MAX).contains(&namespace) { Status::InvalidField } else { Status::InvalidNamespace }
}
