//! The journal: every change of what the firmware keeps in DRAM, in order, for the next mount.
//!
//! ```text
//!   change -> staged (write buffer) -> page that is gathered -> journal pages on flash ...  checkpoint  ... journal pages
//!                                                                                           ^ a mount starts at the last
//! ```
//!
//! A page is a run of changes, each as postcard writes it; the rest of it is [`Change::End`]. Journal and checkpoint
//! pages are numbered in one row, without gaps since the last checkpoint.
//!
//! Below: what else a mount reads: what is staged in the write buffer's memory ([`staging`]), [`clients`] and the numbers of their changes, and
//! namespaces as they are written down ([`attributes`]). `recovery` writes and reads it. It imports `space` and `layout`.

pub(crate) mod attributes;
pub(crate) mod batch_sequence;
pub(crate) mod clients;
pub(crate) mod durable;
pub(crate) mod planted;
pub(crate) mod staging;

use crate::journal::attributes::{NamespaceAttributes, SavedKind};
use crate::journal::batch_sequence::BatchSequence;
use crate::layout::address::Grain;
use crate::layout::oob::Stream;
pub use crate::layout::record::PairPlace;
use kvssd_flash::SuperblockId;
use kvssd_types::{NamespaceId, OwnedKey};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

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

/// A checkpoint is due when the journal has become as long as the last one, and at least this many pages.
const CHECKPOINT_PAGES_MIN: u64 = 16;

/// The changes that are not yet in the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    /// Pages that are full and wait to be appended.
    full: VecDeque<Vec<u8>>,
    gathered: Vec<u8>,
    /// The namespace of the last change.
    pub(crate) namespace: Option<NamespaceId>,
    /// The number of the next page.
    pub(crate) number: u64,
    /// Pages since the last checkpoint, and pages that it took.
    pub(crate) pages: u64,
    pub(crate) checkpoint_pages: u64,
}

impl Journal {
    pub(crate) fn gather(&mut self, change: &Change, page_bytes: usize) {
        let before = self.gathered.len();
        let mut bytes =
            postcard::to_extend(change, std::mem::take(&mut self.gathered)).expect("a change is plain data");
        if bytes.len() > page_bytes {
            let next = bytes.split_off(before);
            assert!(next.len() <= page_bytes, "a change fits into a page");
            self.full.push_back(std::mem::replace(&mut bytes, next));
        }
        self.gathered = bytes;
    }

    /// Whether it has become so long that a checkpoint is due.
    pub(crate) fn is_long(&self) -> bool {
        self.pages > self.checkpoint_pages.max(CHECKPOINT_PAGES_MIN)
    }

    /// Gives up what waits to be appended.
    pub(crate) fn forget(&mut self) {
        self.full.clear();
        self.gathered.clear();
    }

    /// The next page to append: one that is full, or with `all` what is gathered.
    pub(crate) fn next_page(&mut self, all: bool) -> Option<Vec<u8>> {
        self.full.pop_front().or_else(|| (all && !self.gathered.is_empty()).then(|| std::mem::take(&mut self.gathered)))
    }
}

/// The changes in a page, up to its end or to bytes that are no change.
pub(crate) fn changes(mut bytes: &[u8]) -> Vec<Change> {
    let mut changes = Vec::new();
    while let Ok((change, rest)) = postcard::take_from_bytes(bytes)
        && change != Change::End
    {
        changes.push(change);
        bytes = rest;
    }
    changes
}

/// A batch that a mount has skipped and that no earlier mount has marked as abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Torn {
    /// There is none.
    Nothing,
    /// The power went in its middle.
    Cut,
    /// It is a share of a batch over several drives that was not decided.
    Undecided,
}

/// Leaves out the changes of batches that a power cut tore, and of shares of batches later than `decided`. Changes of superblocks stay: they
/// happened, whoever wrote there.
///
/// # Errors
/// If changes follow a share that does not count: whoever made them knew that the batch was decided.
pub(crate) fn without_torn_batches(
    changes: Vec<Change>,
    decided: BatchSequence,
) -> Result<(Vec<Change>, Torn), &'static str> {
    let mut all = Vec::with_capacity(changes.len());
    // Where the open batch began, and where a share began that no change has followed yet.
    let (mut begun, mut share) = (None, None);
    let mut is_undecided = false;
    for change in changes {
        if is_undecided && !stays(&change) && change != Change::Batch(BatchNote::Abandoned) {
            return Err(
                "its journal goes on behind a batch over several drives of which nobody knows that it was decided",
            );
        }
        if let Change::Batch(BatchNote::Abandoned) = change {
            // A mount has abandoned the share, even if a later batch was decided since.
            is_undecided = false;
            tear(&mut all, begun.take().or(share.take()));
            continue;
        }
        if !stays(&change) {
            share = None;
        }
        match change {
            Change::Batch(BatchNote::Begun) => begun = Some(all.len()),
            Change::Batch(BatchNote::Committed) => begun = None,
            Change::Batch(BatchNote::CommittedIf(sequence)) if sequence <= decided => share = begun.take(),
            Change::Batch(BatchNote::CommittedIf(_)) => {
                is_undecided = true;
                tear(&mut all, begun.take());
            }
            Change::Batch(BatchNote::Decided(_)) => {
                begun = None;
                all.push(change);
            }
            _ => all.push(change),
        }
    }
    tear(&mut all, begun);
    let torn = match begun {
        _ if is_undecided => Torn::Undecided,
        Some(_) => Torn::Cut,
        None => Torn::Nothing,
    };
    Ok((all, torn))
}

fn tear(all: &mut Vec<Change>, begun: Option<usize>) {
    let torn = all.split_off(begun.unwrap_or(all.len()));
    all.extend(torn.into_iter().filter(stays));
}

/// Whether a change stays even if its batch is left out.
fn stays(change: &Change) -> bool {
    let of_superblock = matches!(change, Change::Opened { .. } | Change::Closed { .. } | Change::Skipped { .. });
    of_superblock || matches!(change, Change::In { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn changes_come_back_page_by_page() {
        let mut journal = Journal::default();
        let all: Vec<Change> = (0..1000u64)
            .map(|number| match number % 3 {
                0 => Change::Own { number, place: Grain(number << 30), bytes: 4096, old: (Grain(0), 0) },
                1 => Change::Moved { tag: u64::MAX, from: Grain(1), to: Grain(u64::MAX), grains: 1 << 20 },
                _ => Change::Erased { superblock: SuperblockId(number as u32) },
            })
            .collect();
        all.iter().for_each(|change| journal.gather(change, 512));
        let mut read = Vec::new();
        while let Some(mut page) = journal.next_page(true) {
            assert!(page.len() <= 512);
            page.resize(512, 0);
            read.extend(changes(&page));
        }
        assert_eq!(read, all);
    }

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

    #[test]
    fn a_share_counts_when_its_batch_was_decided() {
        let gone = |number| Change::Removed { namespace: number };
        let note = Change::Batch;
        let sequence = BatchSequence;
        let share = |first, count: BatchNote| [note(BatchNote::Begun), gone(first), gone(first + 1), note(count)];
        let closed = Change::Closed { superblock: SuperblockId(3) };
        let of = |changes: &[Change], decided| without_torn_batches(changes.to_vec(), sequence(decided));
        let sixth = share(0, BatchNote::CommittedIf(sequence(6)));
        let seventh = share(2, BatchNote::CommittedIf(sequence(7)));
        let both = [&sixth[..], &seventh].concat();
        assert_eq!(of(&both, 7), Ok(([0, 1, 2, 3].map(gone).to_vec(), Torn::Nothing)));
        assert_eq!(of(&both, 8), of(&both, 7), "the last one was none of this drive");
        assert_eq!(of(&both, 6), Ok(([0, 1].map(gone).to_vec(), Torn::Undecided)));
        assert!(of(&both, 5).is_err(), "the seventh came behind the sixth");
        let told = [&both[..], &[closed.clone(), note(BatchNote::Abandoned), gone(9)]].concat();
        assert_eq!(of(&told, 6), Ok((vec![gone(0), gone(1), closed, gone(9)], Torn::Nothing)));
        assert_eq!(of(&told, 7), of(&told, 6), "the seventh that was decided is another one");
        let own = [&share(0, BatchNote::Decided(sequence(4)))[..], &[note(BatchNote::Decided(sequence(5)))]].concat();
        let decided = [gone(0), gone(1), note(BatchNote::Decided(sequence(4))), note(BatchNote::Decided(sequence(5)))];
        assert_eq!(of(&own, 0), Ok((decided.to_vec(), Torn::Nothing)));
        assert_eq!(of(&own[..3], 9), Ok((vec![], Torn::Cut)), "its own share counts with the decision");
    }

    proptest! {
        #[test]
        fn any_bytes_are_changes_or_their_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = changes(&bytes);
        }
    }
}
