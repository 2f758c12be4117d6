//! Putting records back into the streams that had gathered them.

use super::Item;
use crate::journal::Change;
use crate::layout::address::Grain;
use crate::layout::oob::{Kind, OobFormat};
use crate::layout::packing::Packing;
use crate::space::log::{Log, OpenLog};
use crate::space::placement::LogId;
use kvssd_flash::{Cause, Flash, Geometry, MediaError, SuperblockId, UnitAddress, UnitImage};
use kvssd_types::NamespaceId;
use std::collections::BTreeMap;

/// A record, and the place that it had.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) kind: Kind,
    pub(super) tag: (NamespaceId, u64),
    pub(super) place: Grain,
}

/// The superblocks that streams opened, with the numbers of the items that say so.
#[derive(Default)]
pub(super) struct Opened {
    /// Those that nothing was appended to yet.
    pub(super) waiting: BTreeMap<LogId, (SuperblockId, usize)>,
    /// The items that records ran into.
    pub(super) taken: Vec<usize>,
    /// The item with which each log opened its superblock; none when the log stood there before the memory began.
    current: BTreeMap<LogId, usize>,
    /// When each superblock was opened or erased last.
    last: BTreeMap<SuperblockId, usize>,
}

impl Opened {
    pub(super) fn of(items: &[(Item, &[u8])]) -> Self {
        let numbered = items.iter().enumerate().filter_map(|(number, (item, _))| match *item {
            Item::Opened(_, superblock) | Item::OpenedBy(_, superblock) => Some((superblock, number)),
            Item::Changed(Change::Erased { superblock }) => Some((superblock, number)),
            _ => None,
        });
        Opened { last: numbered.collect(), ..Opened::default() }
    }

    /// Whether flash still has what a log wrote to its superblock: not if that was erased since.
    pub(super) fn is_last(&self, log: LogId, superblock: SuperblockId) -> bool {
        self.last.get(&superblock) <= self.current.get(&log)
    }

    /// What the log of item `number` opened first, or in the middle of its record: before anything else happened to it.
    pub(super) fn next(
        &mut self,
        items: &[(Item, &[u8])],
        number: usize,
        logs: &[Option<LogId>],
    ) -> Option<(SuperblockId, usize)> {
        let log = logs[number]?;
        if let Some(waiting) = self.waiting.remove(&log) {
            return Some(waiting);
        }
        for (later, (item, _)) in items.iter().enumerate().skip(number + 1) {
            match *item {
                Item::Mounted | Item::Positions { .. } => return None,
                _ if logs[later] != Some(log) => {}
                Item::Opened(_, superblock) | Item::OpenedBy(_, superblock) if !self.taken.contains(&later) => {
                    self.taken.push(later);
                    return Some((superblock, later));
                }
                Item::Appended { .. } | Item::Begun { .. } | Item::Turned(_) => return None,
                _ => {}
            }
        }
        None
    }
}

/// Puts records into one stream at the places that they had.
pub(super) struct Refill<'a> {
    pub(super) id: LogId,
    pub(super) stream: &'a mut OpenLog,
    pub(super) flash: &'a mut Flash,
    pub(super) geometry: Geometry,
    packing: &'a Packing,
    format: OobFormat,
    sequence: &'a mut u64,
}

impl<'a> Refill<'a> {
    pub(super) fn new(id: LogId, log: &'a mut Log, flash: &'a mut Flash, packing: &'a Packing) -> Self {
        let format = log.format;
        let (stream, sequence) = log.get_with_sequence(id);
        Refill { id, geometry: *flash.geometry(), stream, flash, packing, format, sequence }
    }

    /// Appends a record where it was. When the power went before the superblock that it runs into was opened, it ends
    /// there: nobody will ask for it.
    pub(super) fn append(
        &mut self,
        record: Record,
        bytes: &[u8],
        opened: &mut Opened,
        mut next: impl FnMut(&mut Opened) -> Option<(SuperblockId, usize)>,
    ) -> Result<(), MediaError> {
        if self.stream.superblock.is_none() && !self.open(next(opened), opened) {
            return Ok(());
        }
        if bytes.is_empty() {
            return Err(gap());
        }
        self.begin(record)?;
        self.go_on(record, bytes, opened, next)
    }

    /// Begins a record, if its place is the one that comes next.
    pub(super) fn begin(&mut self, record: Record) -> Result<(), MediaError> {
        let is_next = self.stream.page == self.packing.page_of(record.place)
            && self.packing.byte_in_page(record.place) == self.stream.data.len();
        if !is_next {
            return Err(gap());
        }
        self.open_page();
        self.stream.begin(self.packing, record.kind, record.tag, Cause::User);
        Ok(())
    }

    /// Appends bytes of a record that was begun, as many as superblocks were opened for.
    pub(super) fn go_on(
        &mut self,
        record: Record,
        bytes: &[u8],
        opened: &mut Opened,
        mut next: impl FnMut(&mut Opened) -> Option<(SuperblockId, usize)>,
    ) -> Result<(), MediaError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.stream.superblock.is_none() && !self.open(next(opened), opened) {
                return Ok(());
            }
            self.continue_page(record);
            let (here, behind) = rest.split_at(self.room_in_page().min(rest.len()));
            self.stream.data.push_literal(here);
            rest = behind;
            let end = self.stream.data.len();
            self.stream.data.push_zeros(end.next_multiple_of(self.packing.grain_bytes as usize) - end);
            if self.room_in_page() == 0 {
                self.turn_page(opened)?;
            }
        }
        Ok(())
    }

    /// Opens the page that a record goes on in, unless it is the one that it begins in.
    pub(super) fn continue_page(&mut self, record: Record) {
        if self.stream.data.is_empty() && self.stream.page != self.packing.page_of(record.place) {
            self.open_page();
            self.stream.oob.kind = record.kind;
            self.stream.oob.continues = Some(record.place);
        }
    }

    /// Bytes that the open page has room for.
    pub(super) fn room_in_page(&self) -> usize {
        self.packing.page_bytes() as usize - self.stream.data.len()
    }

    pub(super) fn open(&mut self, next: Option<(SuperblockId, usize)>, opened: &mut Opened) -> bool {
        let superblocks = 1..self.geometry.superblocks();
        let Some((superblock, number)) = next.filter(|(next, _)| superblocks.contains(&next.0)) else { return false };
        opened.current.insert(self.id, number);
        self.stream.superblock = Some(superblock);
        self.stream.page = self.geometry.first_page(superblock);
        true
    }

    /// Numbers the page that comes next, if there is nothing in it yet.
    pub(super) fn open_page(&mut self) {
        if self.stream.data.is_empty() && self.stream.oob.entries.is_empty() {
            *self.sequence += 1;
            self.stream.oob.sequence = *self.sequence;
        }
    }

    pub(super) fn turn_page(&mut self, opened: &Opened) -> Result<(), MediaError> {
        let superblock = self.geometry.superblock_of(self.stream.page);
        match self.finish_page() {
            Some((unit, content)) if opened.is_last(self.id, superblock) => self.flash.restore(unit, content),
            _ => Ok(()),
        }
    }

    /// Ends the page; returns its unit when that is full.
    pub(super) fn finish_page(&mut self) -> Option<(UnitAddress, UnitImage)> {
        let geometry = self.geometry;
        let page = self.stream.page;
        let is_full = self.stream.turn_page(&geometry, self.format, &mut Vec::new());
        let unit = is_full.then(|| {
            self.stream.causes.clear();
            self.stream.unit_since.clear();
            (geometry.unit_of(page), self.stream.unit.finish())
        });
        if geometry.ends_superblock(page) {
            self.stream.superblock = None;
        } else {
            self.stream.page.0 += 1;
        }
        unit
    }
}

fn gap() -> MediaError {
    MediaError::Failed("what the write buffer held does not follow what is in flash".to_owned())
}
