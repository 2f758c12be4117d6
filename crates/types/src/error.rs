//! What a command can be refused with.

use thiserror::Error;

/// Why the drive did not do what a command asked. Each variant has one NVMe Key Value status
/// (Key Value Command Set, "Command Specific / Generic Status Values").
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KvError {
    /// Status 81h. Nothing was stored; reads and deletes go on, and deletes make room again.
    #[error("capacity exceeded: the pair does not fit in the space that is left")]
    CapacityExceeded,
    /// Status 85h.
    #[error("invalid value size: {value_bytes} bytes, and this drive takes at most {value_bytes_max}")]
    InvalidValueSize {
        /// The size that was asked for.
        value_bytes: u64,
        /// The largest that this drive takes.
        value_bytes_max: u64,
    },
    /// Status 86h.
    #[error("invalid key size: {key_bytes} bytes, and a key has 1 to 255")]
    InvalidKeySize {
        /// The size that was asked for.
        key_bytes: usize,
    },
    /// Status 87h.
    #[error("the key does not exist")]
    KeyNotFound,
    /// Status 89h.
    #[error("the key exists")]
    KeyExists,
    /// Generic status 01h, invalid command opcode.
    #[error("this drive has no such command: {0}")]
    InvalidCommand(&'static str),
    /// Generic status 80h, LBA out of range, or no whole number of blocks.
    #[error("a block drive of {capacity_bytes} bytes has no blocks at {offset_bytes}, {length_bytes} bytes long")]
    InvalidRange {
        /// The first byte that was asked for.
        offset_bytes: u64,
        /// The bytes that were asked for.
        length_bytes: u64,
        /// The bytes of the drive.
        capacity_bytes: u64,
    },
    /// Not a status of the Key Value Command Set, which has no batches: command specific, vendor.
    #[error(
        "a batch of {changes} changes and {bytes} bytes, and this drive takes {changes_max} and {bytes_max} at most"
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
    /// As [`KvError::BatchTooLarge`], of one value: those of a batch stay in their records.
    #[error(
        "a batch with a value of {value_bytes} bytes, and this drive takes values of {value_bytes_max} in one at most"
    )]
    BatchValueTooLarge {
        /// Bytes of the value.
        value_bytes: u64,
        /// The most that a value of a batch has.
        value_bytes_max: u64,
    },
    /// Generic status 0Bh, invalid namespace or format.
    #[error("there is no namespace {0}")]
    NoSuchNamespace(crate::NamespaceId),
    /// Namespace Management, status 16h: no more identifiers, or no memory for what another one needs.
    #[error("there are {namespaces} namespaces, and the drive takes no more")]
    TooManyNamespaces {
        /// Those that there are.
        namespaces: u32,
    },
    /// Generic status 02h, invalid field.
    #[error("there can be no such namespace: {0}")]
    InvalidNamespace(String),
    /// Generic status 02h, invalid field.
    #[error("there is no iterator {0}")]
    NoSuchIterator(crate::IteratorId),
    /// Not a status of the Key Value Command Set, which has no iterators: command specific, vendor.
    #[error("there are {iterators} iterators, and the index leaves no memory for another: end one, or delete pairs")]
    TooManyIterators {
        /// Those that there are.
        iterators: u32,
    },
    /// As above. The iterator kept flash or memory that stores could not do without; another one sees the drive as it is now.
    #[error("iterator {0} has expired: the space that it kept was needed; make another one")]
    IteratorExpired(crate::IteratorId),
    /// Not a status of the Key Value Command Set, which numbers no commands: vendor specific, C0h. The drive does not know any more
    /// whether it made that change before; it did not make it now.
    #[error("the change is too old, or its client was forgotten: it is not known whether it was made before")]
    RequestForgotten,
    /// Status 88h: the flash gave back something that is not what was written there.
    #[error("unrecovered error: {0}")]
    Unrecovered(String),
    /// Generic status 06h, internal error: the drive was stopped in the middle of a change, and takes no more commands.
    #[error("the drive failed: {0}")]
    Failed(String),
    /// Not a status of NVMe: nobody is there to answer.
    #[error("the power is gone")]
    PowerLost,
}

impl KvError {
    /// Whether the drive can not go on with other commands.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self, KvError::Failed(_) | KvError::PowerLost)
    }

    /// The error of a step in the middle of a change: a page that cannot be read stops the drive there.
    #[must_use]
    pub fn in_a_change(self) -> KvError {
        match self {
            KvError::Unrecovered(why) => KvError::Failed(why),
            other => other,
        }
    }

    /// Whether the drive answers nothing any more.
    #[must_use]
    pub fn is_power_loss(&self) -> bool {
        *self == KvError::PowerLost
    }
}
