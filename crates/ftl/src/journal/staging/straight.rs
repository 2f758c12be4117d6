//! Records whose full units went straight to flash: the memory has their beginning, and the bytes behind those units.

use super::Item;
use super::refill::{Opened, Record, Refill};
use crate::layout::address::Grain;
use kvssd_flash::{MediaError, PageAddress, SuperblockId};

/// How such a record ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End<'a> {
    /// It is there, with these bytes behind its full units.
    Whole(&'a [u8]),
    /// It is not; a mount has found so many of its units.
    Torn(u32),
    /// The power went meanwhile, and nothing was written to its log since: flash says how many of its units there are.
    Unknown,
}

impl<'a> End<'a> {
    /// The end of the record that item `number` begins, at a place.
    pub(super) fn of(items: &[(Item, &'a [u8])], number: usize, place: Grain) -> Self {
        let ends = items[number + 1..].iter().find_map(|(item, follows)| match *item {
            Item::Ended(ended) if ended == place => Some(End::Whole(follows)),
            Item::Torn(units) => Some(End::Torn(units)),
            Item::Begun { .. } | Item::Appended { .. } | Item::Mounted => Some(End::Unknown),
            _ => None,
        });
        ends.unwrap_or(End::Unknown)
    }

    /// Whether the unit behind `units` of the record is one of it. What was staged behind the units is believed: one that flash has not was
    /// erased since, with all of its superblock.
    fn has_unit(self, units: u32, is_in_flash: impl FnOnce() -> bool) -> bool {
        match self {
            End::Whole(_) => true,
            End::Torn(torn) => units < torn,
            End::Unknown => is_in_flash(),
        }
    }
}

impl Refill<'_> {
    /// Passes over the units of a record whose first `bytes` fill them, and appends what follows them: the log stands behind it then, or behind
    /// those units of it that there are. Gives their number. What is in them nobody asks for here.
    pub(super) fn pass_over(
        &mut self,
        record: Record,
        bytes: usize,
        end: End<'_>,
        opened: &mut Opened,
        mut next: impl FnMut(&mut Opened) -> Option<(SuperblockId, usize)>,
    ) -> Result<u32, MediaError> {
        if bytes == 0 {
            return Err(differs());
        }
        let (mut units, mut rest) = (0, bytes);
        while rest > 0 {
            let is_open = self.stream.superblock.is_some() || self.open(next(opened), opened);
            if !is_open || !end.has_unit(units, || self.is_in_flash(opened)) {
                break;
            }
            if units == 0 {
                self.begin(record)?;
            }
            rest = self.pass_over_unit(record, rest)?;
            units += 1;
        }
        match end {
            End::Whole(_) if rest > 0 => return Err(differs()),
            End::Whole(follows) => self.go_on(record, follows, opened, next)?,
            End::Torn(_) | End::Unknown => {}
        }
        Ok(units)
    }

    /// Whether the open unit was programmed, or went with an erase since.
    fn is_in_flash(&self, opened: &Opened) -> bool {
        let unit = self.geometry.unit_of(self.stream.page);
        let first = PageAddress(unit.0 * self.geometry.pages_per_program);
        !opened.is_last(self.id, self.geometry.superblock_of(first)) || self.flash.is_programmed(first)
    }

    /// Ends the open unit with bytes of a record, of which there are so many; returns how many are left.
    fn pass_over_unit(&mut self, record: Record, mut rest: usize) -> Result<usize, MediaError> {
        loop {
            self.continue_page(record);
            let room = self.room_in_page();
            rest = rest.checked_sub(room).ok_or_else(differs)?;
            self.stream.data.push_zeros(room);
            if self.finish_page().is_some() {
                return Ok(rest);
            }
        }
    }
}

fn differs() -> MediaError {
    MediaError::Failed("a record is not where the write buffer's memory says that it went".to_owned())
}
