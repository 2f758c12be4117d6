//! The Key Value command set.
//!
//! ```text
//!   dwords 2, 3     bytes 0 to 7 of the key            dword 10   bytes of the value (Store) or of the host's buffer (Retrieve, List)
//!   dwords 14, 15   bytes 8 to 15 of the key           dword 11   7:0 bytes of the key, 15:8 options
//! ```

use crate::{Status, SubmissionEntry};
use core::fmt;
use zerocopy::little_endian::U32;

/// Opcodes of the Key Value command set.
#[expect(missing_docs, reason = "the names are those of the specification")]
pub mod opcode {
    pub const FLUSH: u8 = 0x00;
    pub const STORE: u8 = 0x01;
    pub const RETRIEVE: u8 = 0x02;
    pub const LIST: u8 = 0x06;
    pub const DELETE: u8 = 0x10;
    pub const EXIST: u8 = 0x14;
}

/// Length of the longest key in a command.
pub const KEY_BYTES_MAX: usize = 16;

/// A key of 1 to 16 bytes, as a command carries it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KvKey {
    bytes: [u8; KEY_BYTES_MAX],
    length: u8,
}

impl KvKey {
    /// A key of 1 to 16 bytes.
    ///
    /// # Errors
    /// [`Status::InvalidKeySize`] of none, [`Status::InvalidField`] of more than [`KEY_BYTES_MAX`].
    pub fn new(key: &[u8]) -> Result<Self, Status> {
        match key.len() {
            0 => Err(Status::InvalidKeySize),
            length @ 1..=KEY_BYTES_MAX => {
                let mut bytes = [0; KEY_BYTES_MAX];
                bytes[..length].copy_from_slice(key);
                Ok(KvKey { bytes, length: length as u8 })
            }
            _ => Err(Status::InvalidField),
        }
    }

    /// 1 to 16 bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn from_entry(entry: &SubmissionEntry) -> Result<Self, Status> {
        let length = usize::from(entry.dword11.get() as u8);
        let mut bytes = [0; KEY_BYTES_MAX];
        for (chunk, dword) in bytes.chunks_exact_mut(4).zip([entry.dword2, entry.dword3, entry.dword14, entry.dword15])
        {
            chunk.copy_from_slice(&dword.get().to_le_bytes());
        }
        if length > KEY_BYTES_MAX { Err(Status::InvalidField) } else { KvKey::new(&bytes[..length]) }
    }

    fn write_to(&self, entry: &mut SubmissionEntry) {
        let dword = |index: usize| {
            let chunk = self.bytes[index * 4..][..4].try_into().unwrap_or_default();
            U32::from(u32::from_le_bytes(chunk))
        };
        (entry.dword2, entry.dword3, entry.dword14, entry.dword15) = (dword(0), dword(1), dword(2), dword(3));
        entry.dword11 = (entry.dword11.get() | u32::from(self.length)).into();
    }
}

impl fmt::Debug for KvKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KvKey({})", self.bytes().escape_ascii())
    }
}

/// Options of a Store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreOptions {
    /// Bit 0: only if the key is there, else [`Status::KeyDoesNotExist`].
    pub must_exist: bool,
    /// Bit 1: only if the key is not there, else [`Status::KeyExists`].
    pub must_not_exist: bool,
    /// Bit 2: revision 1.3 has it for "do not compress", hosts of older ones for "compress".
    pub compression: bool,
}

/// A command of the Key Value command set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvCommand {
    /// Writes out the write buffer.
    Flush,
    /// Binds a value, the command's data, to a key.
    Store {
        /// In dwords 2, 3, 14 and 15.
        key: KvKey,
        /// VS: length of the value.
        value_bytes: u32,
        /// SO: conditions.
        options: StoreOptions,
    },
    /// Reads as much of a value as the buffer takes. Dword 0 of the completion has the length of the whole value.
    Retrieve {
        /// In dwords 2, 3, 14 and 15.
        key: KvKey,
        /// HBS: length of the host's buffer.
        buffer_bytes: u32,
    },
    /// Lists keys (see [`list`](crate::list)).
    List {
        /// Where the list begins; `None` for the first key.
        from: Option<KvKey>,
        /// HBS: length of the host's buffer.
        buffer_bytes: u32,
    },
    /// Removes a key and its value.
    Delete {
        /// In dwords 2, 3, 14 and 15.
        key: KvKey,
    },
    /// Succeeds if the key exists.
    Exist {
        /// In dwords 2, 3, 14 and 15.
        key: KvKey,
    },
}

impl KvCommand {
    /// Decodes a submission queue entry.
    ///
    /// # Errors
    /// [`Status::InvalidOpcode`] for other opcodes, and as [`KvKey::new`].
    pub fn from_entry(entry: &SubmissionEntry) -> Result<Self, Status> {
        let key = || KvKey::from_entry(entry);
        let bytes = entry.dword10.get();
        Ok(match entry.opcode {
            opcode::FLUSH => KvCommand::Flush,
            opcode::STORE => {
                let bits = (entry.dword11.get() >> 8) as u8;
                let options = StoreOptions {
                    must_exist: bits & 1 != 0,
                    must_not_exist: bits & 2 != 0,
                    compression: bits & 4 != 0,
                };
                KvCommand::Store { key: key()?, value_bytes: bytes, options }
            }
            opcode::RETRIEVE => KvCommand::Retrieve { key: key()?, buffer_bytes: bytes },
            opcode::LIST => {
                let from = if entry.dword11.get() as u8 == 0 { None } else { Some(key()?) };
                KvCommand::List { from, buffer_bytes: bytes }
            }
            opcode::DELETE => KvCommand::Delete { key: key()? },
            opcode::EXIST => KvCommand::Exist { key: key()? },
            _ => return Err(Status::InvalidOpcode),
        })
    }

    /// The submission queue entry, for `namespace`, without a data pointer.
    #[must_use]
    pub fn entry(&self, namespace: u32) -> SubmissionEntry {
        let mut entry = SubmissionEntry::new(self.opcode(), namespace);
        match self {
            KvCommand::Flush | KvCommand::Delete { .. } | KvCommand::Exist { .. } => {}
            KvCommand::Store { value_bytes, options, .. } => {
                let StoreOptions { must_exist, must_not_exist, compression } = *options;
                let bits = u32::from(must_exist) | u32::from(must_not_exist) << 1 | u32::from(compression) << 2;
                entry.dword10 = (*value_bytes).into();
                entry.dword11 = (bits << 8).into();
            }
            KvCommand::Retrieve { buffer_bytes, .. } | KvCommand::List { buffer_bytes, .. } => {
                entry.dword10 = (*buffer_bytes).into();
            }
        }
        if let Some(key) = self.key() {
            key.write_to(&mut entry);
        }
        entry
    }

    /// The key in the entry, if there is one.
    #[must_use]
    pub fn key(&self) -> Option<KvKey> {
        match *self {
            KvCommand::Flush => None,
            KvCommand::Store { key, .. }
            | KvCommand::Retrieve { key, .. }
            | KvCommand::Delete { key }
            | KvCommand::Exist { key } => Some(key),
            KvCommand::List { from, .. } => from,
        }
    }

    /// One of [`opcode`].
    #[must_use]
    pub fn opcode(&self) -> u8 {
        match self {
            KvCommand::Flush => opcode::FLUSH,
            KvCommand::Store { .. } => opcode::STORE,
            KvCommand::Retrieve { .. } => opcode::RETRIEVE,
            KvCommand::List { .. } => opcode::LIST,
            KvCommand::Delete { .. } => opcode::DELETE,
            KvCommand::Exist { .. } => opcode::EXIST,
        }
    }
}
