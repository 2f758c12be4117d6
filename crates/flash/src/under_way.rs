//! Reads of a die that are under way, for whoever wants the same meanwhile.

use crate::PageAddress;
use kvssd_types::Nanos;
use std::collections::VecDeque;

/// The reads of one die that are remembered: as many as a drive has commands.
const READS_MAX: usize = 1024;

/// Sectors of pages of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) page: PageAddress,
    pub(crate) pages: u32,
    /// The first sector of the first page.
    pub(crate) sector: u32,
    /// So many of all pages together.
    pub(crate) sectors: u32,
    /// Whether there is no gap between them: else it does not say which they are.
    pub(crate) is_run: bool,
}

/// A read that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnderWay {
    pub(crate) extent: Extent,
    /// When the read was asked for.
    pub(crate) asked: Nanos,
    /// When the die has it.
    pub(crate) sensed: Nanos,
    /// When it is done.
    pub(crate) done: Nanos,
}

/// Those of one die, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadsUnderWay {
    reads: VecDeque<UnderWay>,
    /// The first page of each: most are none that is wanted, and many lie in a line of the processor's cache.
    pages: VecDeque<PageAddress>,
}

impl ReadsUnderWay {
    /// Those that begin with that page.
    pub(crate) fn of_page(&self, page: PageAddress) -> impl DoubleEndedIterator<Item = &UnderWay> {
        let pages = self.pages.iter().enumerate();
        pages.filter(move |(_, other)| **other == page).map(|(number, _)| &self.reads[number])
    }

    /// Remembers another one, and forgets the oldest that are over.
    pub(crate) fn remember(&mut self, read: UnderWay, now: Nanos) {
        while self.reads.len() >= READS_MAX || self.reads.front().is_some_and(|oldest| oldest.done <= now) {
            self.reads.pop_front();
            self.pages.pop_front();
        }
        self.reads.push_back(read);
        self.pages.push_back(read.extent.page);
    }
}
