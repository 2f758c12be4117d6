//! Files: whole pages of the drive, whose bytes are a pattern of the file's number.

use super::blocks::{Blocks, full};
use super::costs::PAGE_BYTES;
use super::extents::{Extent, Space};
use kvssd_sim::SimError;
use kvssd_types::{Nanos, Pattern};
use std::ops::Range;

#[derive(Debug)]
pub(super) struct File {
    /// Of all files of a store.
    pub(super) number: u64,
    /// Whole pages.
    pub(super) bytes: u64,
    extents: Vec<Extent>,
}

impl File {
    pub(super) fn new(number: u64, bytes: u64, space: &mut Space) -> Result<Self, SimError> {
        let bytes = bytes.next_multiple_of(PAGE_BYTES);
        assert!(bytes <= u32::MAX.into(), "a pattern counts bytes in 32 bits");
        Ok(File { number, bytes, extents: space.take(bytes).ok_or_else(full)? })
    }

    /// Gives back its space, which the drive learns of. Nobody waits for that.
    pub(super) fn delete(&self, space: &mut Space, blocks: &mut Blocks, at: Nanos) -> Result<(), SimError> {
        space.give_back(&self.extents);
        self.extents.iter().try_for_each(|&Extent { start, bytes }| blocks.trim(start, bytes as u32, at))
    }

    /// Reads the pages that a range of bytes lies in; gives when all are there.
    pub(super) fn read(&self, bytes: Range<u64>, blocks: &mut Blocks, at: Nanos) -> Result<Nanos, SimError> {
        self.runs(bytes).try_fold(at, |done, (start, content)| Ok(done.max(blocks.read(start, content, at)?)))
    }

    /// Writes the pages that a range of bytes lies in; gives when the drive has all.
    pub(super) fn write(&self, bytes: Range<u64>, blocks: &mut Blocks, at: Nanos) -> Result<Nanos, SimError> {
        self.runs(bytes).try_fold(at, |done, (start, content)| Ok(done.max(blocks.write(start, content, at)?)))
    }

    /// Where the pages of a range lie on the drive, and what is in them.
    fn runs(&self, bytes: Range<u64>) -> impl Iterator<Item = (u64, Pattern)> {
        let pages = bytes.start / PAGE_BYTES * PAGE_BYTES..bytes.end.next_multiple_of(PAGE_BYTES).min(self.bytes);
        let mut begin = 0;
        self.extents.iter().filter_map(move |extent| {
            let (from, until) = (pages.start.max(begin), pages.end.min(begin + extent.bytes));
            let start = extent.start + from.saturating_sub(begin);
            begin += extent.bytes;
            let content = || Pattern { seed: self.number, offset: from as u32, length: (until - from) as u32 };
            (from < until).then(|| (start, content()))
        })
    }
}
