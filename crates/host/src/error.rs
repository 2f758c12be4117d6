//! What can go wrong with a store, by what the caller can do about it.

use kvssd_device::DriveError;
use kvssd_flash::{ImageError, ImageFault};
use kvssd_types::{KEY_BYTES_MAX, KvError};
use std::path::PathBuf;
use thiserror::Error;

/// Why a store did not do what it was asked for. A missing key is an error only for a store that is to replace it ([`Error::KeyNotFound`]).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no image, and none was to be created.
    #[error("image {}: there is no such file", .0.display())]
    NotFound(PathBuf),
    /// There is a file where a new image was to be made.
    #[error("image {}: it exists already", .0.display())]
    Exists(PathBuf),
    /// Another process (or another `Store` of this one) works on the image.
    #[error("image {}: it is in use by {holder}", path.display())]
    Locked {
        /// The image.
        path: PathBuf,
        /// Who has it, as far as that can be told.
        holder: String,
    },
    /// The file is no image, or one of another version: it is left as it is.
    #[error("image {}: {why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
    /// Bytes are not what was written: in the image when it is opened, or in a page when it is read. Other pairs may be whole.
    #[error("{why}")]
    Damaged {
        /// What is damaged, in which image.
        why: String,
    },
    /// The system failed to write or to read. The store takes no calls any more; changes that had returned are in the image. The change that
    /// failed was made or not: it may be there when the store is opened again.
    #[error("{why}")]
    Io {
        /// What was tried, and what the system said.
        why: String,
    },
    /// The size, the design or another option is not possible.
    #[error("{why}")]
    InvalidOptions {
        /// Which one, and why.
        why: String,
    },
    /// The drive is full, or its index takes no more pairs, or the namespace's quota is used up: deletes make room. Or the pair is larger than
    /// the budget of its cache, of which each partition of an image has a share.
    #[error(
        "it is full: for this pair too little is left of the drive, its index, the memory for that, the namespace's quota or its cache; deletes make room, and kvssd stat and kvssd namespace list show what is taken"
    )]
    Full,
    /// On the wire: this host's quota is full, whatever the drive has. Deletes make room.
    #[error("this host's quota is full: the pair does not fit in what is left of it")]
    QuotaFull,
    /// A key has 1 to 255 bytes; on a drive that is not kvssd, 16 at the most.
    #[error("a key of this drive has 1 to {key_bytes_max} bytes, not {key_bytes}")]
    InvalidKey {
        /// Bytes of the key.
        key_bytes: usize,
        /// Bytes of the longest.
        key_bytes_max: usize,
    },
    /// The value is larger than this drive takes.
    #[error("a value of {value_bytes} bytes is too large: this drive takes {value_bytes_max}")]
    InvalidValue {
        /// Bytes of the value.
        value_bytes: u64,
        /// Bytes of the largest.
        value_bytes_max: u64,
    },
    /// The batch is too large: nothing was changed. It can be divided, or made by [`Store::bulk`](crate::Store::bulk).
    #[error(
        "a batch of {changes} changes and {bytes} bytes is too large: this drive takes {changes_max} and {bytes_max}"
    )]
    BatchTooLarge {
        /// Changes of the batch.
        changes: usize,
        /// The most that a batch has.
        changes_max: usize,
        /// Bytes of its keys and values.
        bytes: u64,
        /// The most that a batch has.
        bytes_max: u64,
    },
    /// The value is larger than a batch or a transaction takes: nothing was changed. It can be stored by itself.
    #[error(
        "a value of {value_bytes} bytes is too large for a batch or a transaction: this drive takes {value_bytes_max} there"
    )]
    BatchValueTooLarge {
        /// Bytes of the value.
        value_bytes: u64,
        /// The most that a value of a batch has.
        value_bytes_max: u64,
    },
    /// No namespace has that name or number.
    #[error("there is no namespace {name}")]
    NoNamespace {
        /// The name or number.
        name: String,
    },
    /// The drive takes no more namespaces: one must be deleted before.
    #[error("{why}")]
    TooManyNamespaces {
        /// What it says.
        why: String,
    },
    /// The drive does not do that, and goes on: it has no such iterator, has ended it, or has no memory for it.
    #[error("{why}")]
    Refused {
        /// What it says.
        why: String,
    },
    /// A drive on the wire was not reached, or not again, within the time that a call may take. What was asked for was not done.
    #[error("{why}")]
    Unreachable {
        /// Where it should be, and what was tried.
        why: String,
    },
    /// The answer to a change was lost on the wire, and sending it again might make it twice: the drive does not number changes, has forgotten this
    /// host, or is not reached in time. Or the drive itself failed during the change. It was made once, will be made, or was not.
    #[error("{why}")]
    InDoubt {
        /// Which change, and how the answer was lost.
        why: String,
    },
    /// A store under the condition that the key is there.
    #[error("the key does not exist")]
    KeyNotFound,
    /// A store under the condition that the key is not there.
    #[error("the key exists")]
    KeyExists,
    /// The store was opened read-only.
    #[error("the store was opened to be read only")]
    ReadOnly,
    /// The store was opened by a process that this one was forked from, and belongs to that process: open it again in this one.
    #[error("the store was opened by process {process}, from which this one was forked: open it again in this process")]
    Forked {
        /// The one that opened it.
        process: u32,
    },
    /// An earlier call failed in the middle of a change or panicked: open the store again.
    #[error("the store has failed and takes nothing any more: {why}")]
    Failed {
        /// How.
        why: String,
    },
}

impl From<KvError> for Error {
    fn from(error: KvError) -> Self {
        match error {
            KvError::CapacityExceeded => Error::Full,
            KvError::InvalidValueSize { value_bytes, value_bytes_max } => {
                Error::InvalidValue { value_bytes, value_bytes_max }
            }
            KvError::InvalidKeySize { key_bytes } => Error::InvalidKey { key_bytes, key_bytes_max: KEY_BYTES_MAX },
            KvError::KeyNotFound => Error::KeyNotFound,
            KvError::KeyExists => Error::KeyExists,
            KvError::Unrecovered(why) => Error::Damaged { why },
            KvError::Failed(why) => Error::Failed { why },
            KvError::BatchValueTooLarge { value_bytes, value_bytes_max } => {
                Error::BatchValueTooLarge { value_bytes, value_bytes_max }
            }
            KvError::BatchTooLarge { changes, changes_max, bytes, bytes_max } => {
                Error::BatchTooLarge { changes, changes_max, bytes, bytes_max }
            }
            KvError::NoSuchNamespace(id) => Error::NoNamespace { name: id.to_string() },
            KvError::InvalidNamespace(_) => Error::InvalidOptions { why: error.to_string() },
            KvError::InvalidCommand(_)
            | KvError::InvalidRange { .. }
            | KvError::NoSuchIterator(_)
            | KvError::TooManyIterators { .. }
            | KvError::IteratorExpired(_) => Error::Refused { why: error.to_string() },
            KvError::TooManyNamespaces { .. } => Error::TooManyNamespaces { why: error.to_string() },
            KvError::RequestForgotten => Error::InDoubt { why: error.to_string() },
            KvError::PowerLost => Error::Failed { why: error.to_string() },
        }
    }
}

impl From<DriveError> for Error {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Image(error) => error.into(),
            DriveError::Design(_)
            | DriveError::Profile(_)
            | DriveError::PartitionFit { .. }
            | DriveError::Size { .. }
            | DriveError::ValueSize { .. }
            | DriveError::PartitionSize { .. }
            | DriveError::Partitions { .. }
            | DriveError::Partitioned { .. } => Error::InvalidOptions { why: error.to_string() },
            DriveError::Description { path, why } => {
                let why = format!(
                    "it holds no drive that this program knows: {why}; a newer kvssd, or one with its design, may read it"
                );
                Error::Foreign { path, why }
            }
            DriveError::Failed { .. } => Error::Io { why: error.to_string() },
            DriveError::Mount { .. } => Error::Damaged { why: error.to_string() },
        }
    }
}

impl From<ImageError> for Error {
    fn from(error: ImageError) -> Self {
        let why = error.to_string();
        let ImageError { path, fault } = error;
        match fault {
            ImageFault::Missing => Error::NotFound(path),
            ImageFault::Exists => Error::Exists(path),
            ImageFault::Locked { holder } => Error::Locked { path, holder },
            ImageFault::NotAFile
            | ImageFault::Foreign
            | ImageFault::Empty
            | ImageFault::Version { .. }
            | ImageFault::Parts { .. } => Error::Foreign { path, why: fault.to_string() },
            ImageFault::Unfinished | ImageFault::Damaged { .. } | ImageFault::Truncated { .. } => {
                Error::Damaged { why }
            }
            ImageFault::Impossible { .. } => Error::InvalidOptions { why },
            ImageFault::ReadOnly => Error::ReadOnly,
            ImageFault::Forked { process } => Error::Forked { process },
            ImageFault::Failed { .. } => Error::Io { why },
        }
    }
}
