//! An index that has keys in order, and its cursors.

use super::Sight;
use crate::io::Io;
use crate::journal::PairPlace;
use crate::layout::address::Grain;
use kvssd_types::{IteratorId, KvError, OwnedKey};
use std::ops::Bound;

/// An index that has keys in their own order, byte by byte.
pub trait RangeIndex {
    /// Up to `count` keys in order, from `first` on.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn keys(&mut self, io: &mut Io<'_>, first: &[u8], count: usize) -> Result<Vec<OwnedKey>, KvError>;

    /// Opens a cursor, which sees the index as it is now.
    ///
    /// # Errors
    /// [`KvError::TooManyIterators`] when DRAM has no room for what it needs.
    fn open(&mut self, io: &mut Io<'_>, cursor: IteratorId, plan: CursorPlan) -> Result<(), KvError>;

    /// Sends a cursor to the first key that is not before `key` in its direction; with none, to the first of all.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn seek(&mut self, io: &mut Io<'_>, cursor: IteratorId, key: Option<&[u8]>) -> Result<(), KvError>;

    /// The key at the cursor, and the place that its pair had when the cursor was opened; `None` at the end. The cursor moves
    /// on to the next key.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn next(&mut self, io: &mut Io<'_>, cursor: IteratorId) -> Result<Option<(OwnedKey, PairPlace)>, KvError>;

    /// Reads ahead the part of the index that a cursor needs next.
    fn read_ahead(&mut self, io: &mut Io<'_>, cursor: IteratorId);

    /// Closes a cursor, and gives up the records that only it could see.
    fn close(&mut self, io: &mut Io<'_>, cursor: IteratorId);

    /// Like [`RangeIndex::open`], while others read. `None` if opening takes more than remembering the cursor.
    fn open_beside(&self, cursor: IteratorId, plan: CursorPlan) -> Option<()>;

    /// Calls `see` with the keys and pairs that a cursor meets from `from` on, as [`RangeIndex::seek`] and [`RangeIndex::next`] return them, and
    /// with the place of each index entry that is on flash, until `see` returns false or the keys end. `Unbounded` is the first of all in the
    /// cursor's direction. The cursor does not move and nothing changes: others may look at the same time. `None` if a part of the index cannot
    /// be seen.
    fn look_along(
        &self,
        cursor: IteratorId,
        from: Bound<&[u8]>,
        sight: &dyn Sight,
        see: &mut dyn FnMut(OwnedKey, PairPlace, Option<EntryPlace>) -> bool,
    ) -> Option<()>;

    /// Like [`RangeIndex::close`], while others read. `None`, and the cursor stays open, if records have to be given up with it.
    fn close_beside(&self, cursor: IteratorId) -> Option<()>;

    /// The index's own records that live for cursors alone: the next mount must not know them.
    fn kept_for_cursors(&self) -> Vec<(Grain, u32)>;
}

/// Where an entry of an index is on flash. As long as its page exists, the entry says the same of the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryPlace {
    /// Its page.
    pub page: Grain,
    /// Which of the page's entries.
    pub number: u32,
}

/// The direction of a cursor, and whether it reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorPlan {
    /// From the greatest key to the least.
    pub descending: bool,
    /// Whether it needs memory for reading ahead ([`RangeIndex::read_ahead`]).
    pub reads_ahead: bool,
}
