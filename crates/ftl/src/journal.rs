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
//! Below: what a [`change`] says, batches that were [`torn`], and what else a mount reads: what is staged in the write buffer's memory
//! ([`staging`]), [`clients`] and the numbers of their changes, and namespaces as they are written down ([`attributes`]). [`durable`] holds all of
//! it that is in DRAM. `recovery` writes and reads it.

pub(crate) mod attributes;
pub(crate) mod batch_sequence;
pub(crate) mod change;
pub(crate) mod clients;
pub(crate) mod durable;
pub(crate) mod planted;
pub(crate) mod staging;
pub(crate) mod torn;

pub use crate::layout::record::PairPlace;
pub use change::{BatchNote, Change, TablePlace};
use kvssd_types::NamespaceId;
use std::collections::VecDeque;

/// A checkpoint is due when the journal has become as long as the last one, and at least this many pages.
const CHECKPOINT_PAGES_MIN: u64 = 16;

/// The changes that are not yet in the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    /// Pages that are full and wait to be appended.
    full: VecDeque<Vec<u8>>,
    /// The page that is not full yet.
    gathered: Vec<u8>,
    /// The namespace of the last change.
    pub(crate) namespace: Option<NamespaceId>,
    /// The number of the next page.
    pub(crate) number: u64,
    /// Pages since the last checkpoint, with those that fill units up.
    pub(crate) pages: u64,
    /// Pages that the last checkpoint took.
    pub(crate) checkpoint_pages: u64,
}

impl Journal {
    /// Adds a change to the page that is gathered, or to a new one when it does not fit.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::address::Grain;
    use kvssd_flash::SuperblockId;
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

    proptest! {
        #[test]
        fn any_bytes_are_changes_or_their_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = changes(&bytes);
        }
    }
}
