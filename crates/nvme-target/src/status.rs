//! The NVMe status of each error of the drive.

use crate::identify::absent;
use kvssd_nvme_spec::Status;
use kvssd_types::KvError;

pub(crate) fn status_of(error: &KvError) -> Status {
    match error {
        KvError::CapacityExceeded => Status::CapacityExceeded,
        KvError::InvalidValueSize { .. } | KvError::BatchTooLarge { .. } => Status::InvalidValueSize,
        KvError::InvalidKeySize { .. } => Status::InvalidKeySize,
        KvError::KeyNotFound => Status::KeyDoesNotExist,
        KvError::KeyExists => Status::KeyExists,
        KvError::InvalidCommand(_) => Status::InvalidOpcode,
        KvError::NoSuchNamespace(id) => absent(id.0),
        // Errors of commands that the Key Value command set has not.
        KvError::InvalidRange { .. }
        | KvError::TooManyNamespaces { .. }
        | KvError::InvalidNamespace(_)
        | KvError::NoSuchIterator(_)
        | KvError::TooManyIterators { .. }
        | KvError::IteratorExpired(_) => Status::InvalidField,
        KvError::RequestForgotten => Status::RequestForgotten,
        KvError::Unrecovered(_) => Status::UnrecoveredError,
        KvError::Failed(_) | KvError::PowerLost => Status::InternalError,
    }
}
