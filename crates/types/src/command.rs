//! Commands to a key-value drive and its replies, as typed values (the wire formats live elsewhere).

use crate::{BatchChange, IteratedPair, IteratorId, IteratorOptions, Key, OwnedKey, Value};

/// When a store may take place (Key Value Command Set, Store, options bits 0 and 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreCondition {
    /// Whether or not the key is there.
    #[default]
    Always,
    /// Only when the key is there, else [`KvError::KeyNotFound`](crate::KvError::KeyNotFound).
    IfExists,
    /// Only when the key is not there, else [`KvError::KeyExists`](crate::KvError::KeyExists).
    IfAbsent,
}

/// Bytes of a logical block of a block drive: what hosts address.
pub const BLOCK_BYTES: u32 = 512;

/// Which data belongs together, as a host says it: a drive with placement handles keeps what is written by one apart from
/// what is written by another, in reclaim units of their own (NVM Express Base 2.1, Flexible Data Placement: the placement
/// handle of the directive specific field).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlacementHandle(pub u8);

impl PlacementHandle {
    /// That of hosts that say nothing.
    pub const DEFAULT: PlacementHandle = PlacementHandle(0);
}

/// One command.
#[derive(Clone, Debug)]
pub enum Command<'a> {
    /// Binds `value` to `key`.
    Store {
        /// The key.
        key: Key<'a>,
        /// 0 bytes to the drive's largest value.
        value: Value,
        /// Whether the key must or must not be there before.
        condition: StoreCondition,
    },
    /// Reads `length_bytes` bytes of the value from `offset_bytes` on, or as many as there are.
    Retrieve {
        /// The key.
        key: Key<'a>,
        /// The first byte of the value that is wanted.
        offset_bytes: u32,
        /// How many bytes are wanted at most.
        length_bytes: u32,
    },
    /// Removes the key and its value.
    Delete {
        /// The key.
        key: Key<'a>,
    },
    /// Asks whether the key is there.
    Exist {
        /// The key.
        key: Key<'a>,
    },
    /// Lists keys in the drive's own stable order, from `from` on (or the next one after it).
    List {
        /// Where to start; none for the first key.
        from: Option<Key<'a>>,
        /// The most keys to give back.
        keys_max: usize,
    },
    /// Makes an iterator, which sees the drive as it is now (IterKVSSD, section 4.1: Create).
    CreateIterator {
        /// What it goes along.
        options: IteratorOptions<'a>,
    },
    /// Sends an iterator to `key`, or the next one in its direction, and gives the first pairs from there on.
    Seek {
        /// The iterator.
        iterator: IteratorId,
        /// Where to; none for the beginning of its range.
        key: Option<Key<'a>>,
        /// The most pairs to give.
        pairs_max: u32,
    },
    /// Gives the pairs that follow in an iterator's direction: none at its end.
    Next {
        /// The iterator.
        iterator: IteratorId,
        /// The most pairs to give.
        pairs_max: u32,
    },
    /// Ends an iterator.
    DestroyIterator {
        /// The iterator.
        iterator: IteratorId,
    },
    /// Makes all changes or none, whatever happens in between (KAML, section IV-D: Put).
    Batch {
        /// The changes, each of another key. Their namespaces are their own.
        changes: &'a [BatchChange<'a>],
    },
    /// Waits until everything accepted before is in flash.
    Flush,
    /// Reads logical blocks (NVM Command Set, Read): what was never written is zeros.
    Read {
        /// The first byte, at the beginning of a block of [`BLOCK_BYTES`].
        offset_bytes: u64,
        /// Whole blocks.
        length_bytes: u32,
    },
    /// Writes logical blocks (NVM Command Set, Write).
    Write {
        /// The first byte, at the beginning of a block of [`BLOCK_BYTES`].
        offset_bytes: u64,
        /// Whole blocks.
        value: Value,
        /// What it is written beside.
        handle: PlacementHandle,
    },
    /// Says that nobody wants logical blocks any more (NVM Command Set, Dataset Management: Deallocate, TRIM): they are zeros, or what they were
    /// until they are written anew.
    Deallocate {
        /// The first byte, at the beginning of a block of [`BLOCK_BYTES`].
        offset_bytes: u64,
        /// Whole blocks.
        length_bytes: u32,
    },
}

impl<'a> Command<'a> {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Command::Store { .. } => "store",
            Command::Retrieve { .. } => "retrieve",
            Command::Delete { .. } => "delete",
            Command::Exist { .. } => "exist",
            Command::List { .. } => "list",
            Command::CreateIterator { .. } => "create",
            Command::Seek { .. } => "seek",
            Command::Next { .. } => "next",
            Command::DestroyIterator { .. } => "destroy",
            Command::Batch { .. } => "batch",
            Command::Flush => "flush",
            Command::Read { .. } => "read",
            Command::Write { .. } => "write",
            Command::Deallocate { .. } => "deallocate",
        }
    }

    /// The key that it is about.
    #[must_use]
    pub fn key(&self) -> Option<Key<'a>> {
        match *self {
            Command::Store { key, .. }
            | Command::Retrieve { key, .. }
            | Command::Delete { key }
            | Command::Exist { key } => Some(key),
            Command::List { from: key, .. } | Command::Seek { key, .. } => key,
            Command::CreateIterator { .. }
            | Command::Next { .. }
            | Command::DestroyIterator { .. }
            | Command::Batch { .. }
            | Command::Flush
            | Command::Read { .. }
            | Command::Write { .. }
            | Command::Deallocate { .. } => None,
        }
    }
}

impl Command<'_> {
    /// Whether it concerns an iterator.
    #[must_use]
    pub fn is_of_iterator(&self) -> bool {
        matches!(
            self,
            Command::CreateIterator { .. }
                | Command::Seek { .. }
                | Command::Next { .. }
                | Command::DestroyIterator { .. }
        )
    }

    /// Whether it changes pairs or blocks, or waits for changes.
    #[must_use]
    pub fn is_change(&self) -> bool {
        match self {
            Command::Store { .. }
            | Command::Delete { .. }
            | Command::Batch { .. }
            | Command::Flush
            | Command::Write { .. }
            | Command::Deallocate { .. } => true,
            Command::Retrieve { .. }
            | Command::Exist { .. }
            | Command::List { .. }
            | Command::CreateIterator { .. }
            | Command::Seek { .. }
            | Command::Next { .. }
            | Command::DestroyIterator { .. }
            | Command::Read { .. } => false,
        }
    }
}

/// What a command that went well gives back.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// To [`Command::Store`].
    Stored,
    /// To [`Command::Retrieve`].
    Retrieved {
        /// The part of the value that was asked for.
        value: Value,
        /// The size of the whole value.
        value_bytes: u32,
    },
    /// To [`Command::Delete`].
    Deleted,
    /// To [`Command::Exist`]: the key is there.
    Exists,
    /// To [`Command::List`].
    Listed(Vec<OwnedKey>),
    /// To [`Command::CreateIterator`].
    IteratorCreated(IteratorId),
    /// To [`Command::Seek`] and [`Command::Next`].
    Pairs(Vec<IteratedPair>),
    /// To [`Command::DestroyIterator`].
    IteratorDestroyed,
    /// To [`Command::Batch`].
    Batched,
    /// To [`Command::Flush`].
    Flushed,
    /// To [`Command::Read`].
    Read(Value),
    /// To [`Command::Write`].
    Written,
    /// To [`Command::Deallocate`].
    Deallocated,
}
