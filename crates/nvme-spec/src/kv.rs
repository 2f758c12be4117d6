//! The Key Value command set.
//!
//! ```text
//!   dwords 2, 3     bytes 0 to 7 of the key            dword 10   bytes of the value (Store) or of the host's buffer (Retrieve, List)
//!   dwords 14, 15   bytes 8 to 15 of the key           dword 11   7:0 bytes of the key, 15:8 options
//! ```

use crate::extended::{self, IteratorRange};
use crate::{Status, SubmissionEntry};
use alloc::boxed::Box;
use alloc::vec::Vec;
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
/// Length of the longest key that lies in the data of a command (see [`extended`](crate::extended)).
pub const LONG_KEY_BYTES_MAX: usize = extended::KEY_BYTES_MAX;

/// A key of 1 to 255 bytes. Up to 16 lie in the command itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KvKey {
    bytes: [u8; LONG_KEY_BYTES_MAX],
    length: u8,
}

impl KvKey {
    /// A key of 1 to 16 bytes.
    ///
    /// # Errors
    /// [`Status::InvalidKeySize`] of none, [`Status::InvalidField`] of more than [`KEY_BYTES_MAX`].
    pub fn new(key: &[u8]) -> Result<Self, Status> {
        if key.len() > KEY_BYTES_MAX { Err(Status::InvalidField) } else { KvKey::long(key) }
    }

    /// A key of 1 to 255 bytes, as the data of a command carries it.
    ///
    /// # Errors
    /// [`Status::InvalidKeySize`] of none, [`Status::InvalidField`] of more than [`LONG_KEY_BYTES_MAX`].
    pub fn long(key: &[u8]) -> Result<Self, Status> {
        match key.len() {
            0 => Err(Status::InvalidKeySize),
            length @ 1..=LONG_KEY_BYTES_MAX => {
                let mut bytes = [0; LONG_KEY_BYTES_MAX];
                bytes[..length].copy_from_slice(key);
                Ok(KvKey { bytes, length: length as u8 })
            }
            _ => Err(Status::InvalidField),
        }
    }

    /// Whether it is too long for the command itself.
    #[must_use]
    pub fn is_long(&self) -> bool {
        usize::from(self.length) > KEY_BYTES_MAX
    }

    /// 1 to 255 bytes.
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

    /// The same of a key that lies in the data.
    pub(crate) fn write_length_to(&self, entry: &mut SubmissionEntry) {
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

impl StoreOptions {
    pub(crate) fn from_bits(bits: u8) -> Self {
        StoreOptions { must_exist: bits & 1 != 0, must_not_exist: bits & 2 != 0, compression: bits & 4 != 0 }
    }
}

/// A command of the Key Value command set, or of those that this project adds ([`extended`](crate::extended)).
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Lists keys of any length. Not of the command set.
    ListLong {
        /// Where the list begins, in the data; `None` for the first key.
        from: Option<KvKey>,
        /// Length of the host's buffer.
        buffer_bytes: u32,
    },
    /// Makes an iterator, whose number is dword 0 of the completion. Not of the command set.
    CreateIterator(Box<IteratorRange>),
    /// Goes on with an iterator. Not of the command set.
    Iterate {
        /// Its number.
        iterator: u32,
        /// Where it goes first; the inner `None` for the beginning of its range.
        seek: Option<Option<KvKey>>,
        /// The most pairs that are wanted; 0 for as many as there is room for.
        pairs_max: u32,
        /// Length of the host's buffer.
        buffer_bytes: u32,
    },
    /// Ends an iterator. Not of the command set.
    DestroyIterator {
        /// Its number.
        iterator: u32,
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
                let options = StoreOptions::from_bits((entry.dword11.get() >> 8) as u8);
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

    /// Decodes a submission queue entry, also of the commands that this project adds, with the data that leads theirs.
    ///
    /// # Errors
    /// As [`KvCommand::from_entry`]; [`Status::SglLengthInvalid`] when the data ends before what leads it.
    pub fn decode(entry: &SubmissionEntry, data: &[u8]) -> Result<Self, Status> {
        let bytes = entry.dword10.get();
        let lead = || data.get(..extended::lead_bytes(entry)).ok_or(Status::SglLengthInvalid);
        let key = || KvKey::long(lead()?);
        let key_or_none = || if extended::lead_bytes(entry) == 0 { Ok(None) } else { key().map(Some) };
        let (iterator, pairs_max) = (entry.dword12.get(), entry.dword13.get());
        Ok(match entry.opcode {
            extended::opcode::STORE => {
                let options = StoreOptions::from_bits((entry.dword11.get() >> 8) as u8);
                KvCommand::Store { key: key()?, value_bytes: bytes, options }
            }
            extended::opcode::RETRIEVE => KvCommand::Retrieve { key: key()?, buffer_bytes: bytes },
            extended::opcode::LIST => KvCommand::ListLong { from: key_or_none()?, buffer_bytes: bytes },
            extended::opcode::DELETE => KvCommand::Delete { key: key()? },
            extended::opcode::EXIST => KvCommand::Exist { key: key()? },
            extended::opcode::CREATE_ITERATOR => {
                KvCommand::CreateIterator(Box::new(IteratorRange::from_entry(entry, data)?))
            }
            extended::opcode::NEXT => KvCommand::Iterate { iterator, seek: None, pairs_max, buffer_bytes: bytes },
            extended::opcode::SEEK => {
                KvCommand::Iterate { iterator, seek: Some(key_or_none()?), pairs_max, buffer_bytes: bytes }
            }
            extended::opcode::DESTROY_ITERATOR => KvCommand::DestroyIterator { iterator },
            _ => return KvCommand::from_entry(entry),
        })
    }

    /// The data to the controller that comes before the value of a Store, or alone: a long key, or a range.
    #[must_use]
    pub fn lead(&self) -> Vec<u8> {
        match self {
            KvCommand::CreateIterator(range) => range.lead(),
            _ => self.key().filter(|_| extended::is(self.opcode())).map_or(Vec::new(), |key| key.bytes().to_vec()),
        }
    }

    /// The submission queue entry, for `namespace`, without a data pointer.
    #[must_use]
    pub fn entry(&self, namespace: u32) -> SubmissionEntry {
        let mut entry = SubmissionEntry::new(self.opcode(), namespace);
        match self {
            KvCommand::Flush | KvCommand::Delete { .. } | KvCommand::Exist { .. } => {}
            KvCommand::CreateIterator(range) => range.write_to(&mut entry),
            KvCommand::DestroyIterator { iterator } => entry.dword12 = (*iterator).into(),
            KvCommand::Iterate { iterator, pairs_max, buffer_bytes, .. } => {
                entry.dword10 = (*buffer_bytes).into();
                entry.dword12 = (*iterator).into();
                entry.dword13 = (*pairs_max).into();
            }
            KvCommand::Store { value_bytes, options, .. } => {
                let StoreOptions { must_exist, must_not_exist, compression } = *options;
                let bits = u32::from(must_exist) | u32::from(must_not_exist) << 1 | u32::from(compression) << 2;
                entry.dword10 = (*value_bytes).into();
                entry.dword11 = (bits << 8).into();
            }
            KvCommand::Retrieve { buffer_bytes, .. }
            | KvCommand::List { buffer_bytes, .. }
            | KvCommand::ListLong { buffer_bytes, .. } => {
                entry.dword10 = (*buffer_bytes).into();
            }
        }
        match self.key() {
            Some(key) if extended::is(self.opcode()) => key.write_length_to(&mut entry),
            Some(key) => key.write_to(&mut entry),
            None => {}
        }
        entry
    }

    /// The key, if there is one.
    #[must_use]
    pub fn key(&self) -> Option<KvKey> {
        match *self {
            KvCommand::Flush | KvCommand::CreateIterator(_) | KvCommand::DestroyIterator { .. } => None,
            KvCommand::Iterate { seek, .. } => seek.flatten(),
            KvCommand::Store { key, .. }
            | KvCommand::Retrieve { key, .. }
            | KvCommand::Delete { key }
            | KvCommand::Exist { key } => Some(key),
            KvCommand::List { from, .. } | KvCommand::ListLong { from, .. } => from,
        }
    }

    /// One of [`opcode`], or of [`extended::opcode`].
    #[must_use]
    pub fn opcode(&self) -> u8 {
        match self {
            KvCommand::Store { key, .. } if key.is_long() => extended::opcode::STORE,
            KvCommand::Retrieve { key, .. } if key.is_long() => extended::opcode::RETRIEVE,
            KvCommand::Delete { key } if key.is_long() => extended::opcode::DELETE,
            KvCommand::Exist { key } if key.is_long() => extended::opcode::EXIST,
            KvCommand::ListLong { .. } => extended::opcode::LIST,
            KvCommand::CreateIterator(_) => extended::opcode::CREATE_ITERATOR,
            KvCommand::Iterate { seek: None, .. } => extended::opcode::NEXT,
            KvCommand::Iterate { .. } => extended::opcode::SEEK,
            KvCommand::DestroyIterator { .. } => extended::opcode::DESTROY_ITERATOR,
            KvCommand::Flush => opcode::FLUSH,
            KvCommand::Store { .. } => opcode::STORE,
            KvCommand::Retrieve { .. } => opcode::RETRIEVE,
            KvCommand::List { .. } => opcode::LIST,
            KvCommand::Delete { .. } => opcode::DELETE,
            KvCommand::Exist { .. } => opcode::EXIST,
        }
    }
}
