//! Why a drive on the wire did not do what it was asked for, by what the caller can do about it.

use thiserror::Error;

/// Why a command, or a connection, failed. An absent key is an error only of a store that is to replace ([`Error::KeyNotFound`]).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The URL is none of a drive.
    #[error("{0}")]
    InvalidUrl(String),
    /// The drive is full. Deletes make room.
    #[error("the drive is full")]
    CapacityExceeded,
    /// The drive may have room, and this host has used up what it was given.
    #[error("this host's quota is full")]
    QuotaExceeded,
    /// A key is longer than the namespace takes, or than the 16 bytes of the Key Value command set.
    #[error("a key of {key_bytes} bytes is too long: this drive takes {key_bytes_max}")]
    InvalidKey {
        /// Length of the key.
        key_bytes: usize,
        /// Length of the longest.
        key_bytes_max: usize,
    },
    /// A value is longer than the namespace takes.
    #[error("a value of {value_bytes} bytes is too large: this drive takes {value_bytes_max}")]
    InvalidValue {
        /// Length of the value.
        value_bytes: u64,
        /// Length of the longest.
        value_bytes_max: u64,
    },
    /// A store under the condition that the key is there.
    #[error("the key does not exist")]
    KeyNotFound,
    /// A store under the condition that the key is not there.
    #[error("the key exists")]
    KeyExists,
    /// No namespace has that number.
    #[error("there is no namespace {0}")]
    NoNamespace(String),
    /// A namespace that cannot be, or is called as another one.
    #[error("{0}")]
    InvalidNamespace(String),
    /// The drive takes no more namespaces.
    #[error("{0}")]
    TooManyNamespaces(String),
    /// A change through a client that was connected to read only.
    #[error("the drive was connected to be read only")]
    ReadOnly,
    /// The drive does not do that, and goes on.
    #[error("{0}")]
    Refused(String),
    /// What came is not what was written, or contradicts itself.
    #[error("{0}")]
    Damaged(String),
    /// The drive has failed, or this machine has no random numbers or no room for a thread.
    #[error("{0}")]
    Io(String),
    /// The drive was not reached within the time that a call may take. The command was not executed.
    #[error("{0}")]
    Unreachable(String),
    /// The completion of a change was lost, and to send it again might make it twice. It was made once, or will be, or
    /// not.
    #[error("{0}")]
    InDoubt(String),
}

impl Error {
    /// Refuses what the Key Value command set has no command for.
    #[must_use]
    pub fn not_in_the_command_set(what: &str) -> Error {
        Error::Refused(format!("the Key Value command set of NVMe has no {what}; a drive in a file that is opened has"))
    }
}
