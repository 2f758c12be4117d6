//! What the journal says: a change of what the firmware keeps in DRAM.

use super::attributes::{NamespaceAttributes, SavedKind};
use super::batch_sequence::BatchSequence;
use crate::layout::address::Grain;
use crate::layout::oob::Stream;
use crate::layout::record::PairPlace;
use kvssd_flash::SuperblockId;
use kvssd_types::OwnedKey;
use serde::{Deserialize, Serialize};

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The page has no more.
    End,
    /// A stream began to write to a superblock.
    Opened {
        /// The stream.
        stream: Stream,
        /// What it writes to.
        superblock: SuperblockId,
        /// The superblock that it wrote to before, if a record that began there goes on in this one.
        within: Option<SuperblockId>,
        /// Which life of the superblock this is.
        generation: u64,
    },
    /// A superblock is full.
    Closed {
        /// The superblock.
        superblock: SuperblockId,
    },
    /// A page of a superblock was programmed without a record in it.
    Skipped {
        /// The superblock.
        superblock: SuperblockId,
    },
    /// A superblock was moved out, and is or will be erased.
    Erased {
        /// The superblock.
        superblock: SuperblockId,
    },
    /// A key was bound to a pair.
    Bound {
        /// What the index finds it by.
        tag: u64,
        /// What it noted of the change.
        note: u32,
        /// The pair.
        pair: PairPlace,
        /// The pair that it was bound to before.
        old: Option<PairPlace>,
    },
    /// A key was removed.
    Unbound {
        /// What the index found it by.
        tag: u64,
        /// What it noted of the change.
        note: u32,
        /// The pair.
        old: PairPlace,
    },
    /// A pair was moved by garbage collection.
    Moved {
        /// What the index finds it by.
        tag: u64,
        /// Where it was.
        from: Grain,
        /// Where it is.
        to: Grain,
        /// Its grains.
        grains: u32,
    },
    /// The index wrote a record of its own.
    Own {
        /// Its number.
        number: u64,
        /// Where it lies.
        place: Grain,
        /// Its bytes.
        bytes: u32,
        /// Where it lay before, grain 0 for nowhere, and its bytes there.
        old: (Grain, u32),
    },
    /// A page of invalid mappings was written.
    Spilled {
        /// The superblock that it speaks of.
        superblock: SuperblockId,
        /// Where it lies.
        place: Grain,
    },
    /// A page of invalid mappings was moved by garbage collection.
    SpillMoved {
        /// The superblock that it speaks of.
        superblock: SuperblockId,
        /// Where it lay.
        from: Grain,
        /// Where it lies.
        to: Grain,
    },
    /// The index replaced a record of its own by two, of as many bytes each.
    Split {
        /// Its number.
        number: u64,
        /// Where the two lie.
        places: [Grain; 2],
        /// The bytes of each.
        bytes: u32,
        /// Where it lay before, grain 0 for nowhere, and its bytes there.
        old: (Grain, u32),
    },
    /// What lives in a superblock cannot be read, and it is not collected.
    Retired {
        /// The superblock.
        superblock: SuperblockId,
    },
    /// The begin or the end of a batch: changes that are made all or none.
    Batch(BatchNote),
    /// The changes of namespaces from here on belong to this one. The note also stands before the first of them behind a
    /// checkpoint or a mount.
    In {
        /// The namespace.
        namespace: u32,
    },
    /// A namespace was made.
    Created {
        /// Its number.
        namespace: u32,
        /// What was chosen.
        attributes: Box<NamespaceAttributes>,
        /// The index that it got.
        kind: Box<SavedKind>,
    },
    /// A namespace was mapped to so many logs, or to all.
    Assigned {
        /// Its number.
        namespace: u32,
        /// How many.
        logs: Option<u32>,
    },
    /// A namespace was deleted: what it had is removed from now on.
    Deleted {
        /// Its number.
        namespace: u32,
    },
    /// Grains in one superblock that held records of an index which was removed.
    Gone {
        /// The first.
        place: Grain,
        /// How many.
        grains: u32,
    },
    /// A deleted namespace has no pairs any more, and its index is gone.
    Removed {
        /// Its number.
        namespace: u32,
    },
    /// The key that the next change speaks of, for an index that finds nothing by tags.
    Key {
        /// The key.
        key: OwnedKey,
        /// Bytes of its value.
        value_bytes: u32,
    },
    /// The keys of a table that a [`Change::Merged`] will name.
    Range {
        /// The table.
        table: u64,
        /// The first key of each of its pages.
        firsts: Vec<OwnedKey>,
        /// Its last key.
        last: OwnedKey,
    },
    /// The index replaced tables of its own by others, all at once.
    Merged {
        /// Those that are no more.
        taken: Vec<TablePlace>,
        /// Those that came.
        made: Vec<TablePlace>,
    },
    /// A client is remembered from here on; it replaces the one that had this slot.
    Client {
        /// The slot.
        slot: u32,
        /// The client.
        client: [u8; 32],
    },
    /// The changes since [`BatchNote::Begun`] are a request of the client in this slot.
    Request {
        /// The slot.
        slot: u32,
        /// The client's number for the request.
        serial: u64,
    },
    /// A namespace became another cache, or none. A checkpoint follows.
    Cached {
        /// Its number.
        namespace: u32,
        /// The cache, as text.
        cache: Option<String>,
    },
}

impl Change {
    /// This change of an index's own record, with another number for the record.
    #[must_use]
    pub(crate) fn numbered(&self, number: u64) -> Change {
        let mut change = self.clone();
        if let Change::Own { number: own, .. } | Change::Split { number: own, .. } = &mut change {
            *own = number;
        }
        change
    }

    /// Whether the change belongs to a namespace. Changes of superblocks do not: the work on them may be done for a namespace
    /// that was deleted.
    pub(crate) fn is_of_namespace(&self) -> bool {
        matches!(
            self,
            Change::Bound { .. }
                | Change::Unbound { .. }
                | Change::Moved { .. }
                | Change::Own { .. }
                | Change::Split { .. }
                | Change::Key { .. }
                | Change::Range { .. }
                | Change::Merged { .. }
        )
    }
}

/// Where a batch of changes begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BatchNote {
    /// The changes that follow are one batch's.
    Begun,
    /// All of them were made.
    Committed,
    /// The power went in the middle, and a mount has skipped the changes.
    Abandoned,
    /// All of them were made. They are a share of a batch over several drives, and count if its coordinator has decided that batch.
    CommittedIf(BatchSequence),
    /// This drive, the coordinator, has decided a batch over several drives: it counts, and so do the changes since [`BatchNote::Begun`], if
    /// there are any.
    Decided(BatchSequence),
}

/// A table of an index that is a tree of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TablePlace {
    /// Its number.
    pub table: u64,
    /// Its level.
    pub level: u8,
    /// The rank of the table in its level, in the order in which its content was written.
    pub age: u64,
    /// Where its pages lie, each a page of flash.
    pub pages: Vec<Grain>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in FORMAT.md.
    #[test]
    fn a_namespace_that_is_made_is_a_few_bytes() {
        let attributes = NamespaceAttributes {
            name: Some("logs".to_owned()),
            index: Some("lsm".to_owned()),
            is_ordered: true,
            ..NamespaceAttributes::PLAIN
        };
        let kind = SavedKind {
            name: "lsm".to_owned(),
            parameters: vec![("bloom_bits".to_owned(), "0".to_owned())],
            tags: 300,
        };
        let bytes =
            postcard::to_allocvec(&Change::Created { namespace: 2, attributes: attributes.into(), kind: kind.into() })
                .unwrap();
        assert_eq!(bytes, b"\x0f\x02\x01\x04logs\x01\x03lsm\x00\x00\x00\x01\x03lsm\x01\x0abloom_bits\x010\xac\x02");
        let batch = [Change::Batch(BatchNote::Begun), Change::In { namespace: 2 }, Change::Batch(BatchNote::Committed)];
        let bytes: Vec<u8> = batch.iter().flat_map(|change| postcard::to_allocvec(change).unwrap()).collect();
        assert_eq!(bytes, [0x0d, 0, 0x0e, 2, 0x0d, 1]);
        let bytes = postcard::to_allocvec(&Change::Request { slot: 3, serial: 300 }).unwrap();
        assert_eq!(bytes, [0x18, 3, 0xac, 0x02]);
        let bytes = postcard::to_allocvec(&Change::Client { slot: 3, client: [9; 32] }).unwrap();
        assert_eq!((&bytes[..2], &bytes[2..]), (&[0x17, 3][..], &[9; 32][..]));
        let shares = [BatchNote::CommittedIf(BatchSequence(300)), BatchNote::Decided(BatchSequence(300))];
        let bytes: Vec<u8> =
            shares.iter().flat_map(|note| postcard::to_allocvec(&Change::Batch(*note)).unwrap()).collect();
        assert_eq!(bytes, [0x0d, 3, 0xac, 0x02, 0x0d, 4, 0xac, 0x02]);
    }
}
