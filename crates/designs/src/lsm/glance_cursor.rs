//! Cursors for glances: they read beside others, change nothing, and continue where the last one of their iterator stopped, without a new search.

use super::cursor::Cursor;
use super::summary::Summary;
use super::table_reader::Glancing;
use super::tables::Tables;
use kvssd_ftl::PairPlace;
use kvssd_ftl::index::EntryPlace;
use kvssd_types::OwnedKey;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

/// What the index keeps for an open iterator.
#[derive(Clone, Debug)]
pub(super) struct OpenCursor {
    /// The cursor of commands, whose reads take the drive's time.
    pub(super) cursor: Cursor,
    pub(super) parked: Parked,
}

impl OpenCursor {
    pub(super) fn new(cursor: Cursor) -> Self {
        OpenCursor { cursor, parked: Parked::default() }
    }

    /// The version that it goes along.
    pub(super) fn summary(&self) -> &Arc<Summary> {
        self.cursor.summary()
    }

    /// A cursor for a glance from `from` on: the parked one if it stands there, or else a new one.
    pub(super) fn glance_cursor(&self, from: Bound<&[u8]>, tables: &Tables) -> GlanceCursor {
        let parked = self.parked.take().filter(|parked| parked.stands(from, tables));
        parked.unwrap_or_else(|| GlanceCursor { cursor: self.cursor.anew(), behind: None })
    }
}

/// The cursor of the last glance, for the next one. A copy of the drive has none.
#[derive(Debug, Default)]
pub(super) struct Parked(Mutex<Option<GlanceCursor>>);

impl Clone for Parked {
    fn clone(&self) -> Self {
        Parked::default()
    }
}

impl Parked {
    pub(super) fn take(&self) -> Option<GlanceCursor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn park(&self, glance_cursor: GlanceCursor) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(glance_cursor);
    }
}

/// A cursor that changes nothing.
#[derive(Debug)]
pub(super) struct GlanceCursor {
    cursor: Cursor,
    /// The last key that it has shown; `None` before its first search.
    behind: Option<Vec<u8>>,
}

impl GlanceCursor {
    /// Whether it stands at `from`, and its pages are where they were: an entry's name has the place of its page ([`EntryPlace`]).
    fn stands(&self, from: Bound<&[u8]>, tables: &Tables) -> bool {
        let behind = self.behind.as_deref();
        behind.is_some_and(|behind| from == Bound::Excluded(behind)) && self.cursor.is_in_place(tables)
    }

    /// Shows pairs from `from` on until `see` returns false or there are no more. `None` if something cannot be seen.
    pub(super) fn look_along(
        &mut self,
        reader: &mut Glancing<'_>,
        from: Bound<&[u8]>,
        see: &mut dyn FnMut(OwnedKey, PairPlace, Option<EntryPlace>) -> bool,
    ) -> Option<()> {
        let mut shown_before = None;
        let mut behind = self.behind.take();
        if behind.is_none() {
            let key = match from {
                Bound::Included(key) => key,
                Bound::Excluded(key) => *shown_before.insert(key),
                Bound::Unbounded => self.cursor.beginning(),
            };
            self.cursor.seek(reader, key).ok()?;
        }
        let shown = behind.get_or_insert_default();
        while let Some((key, pair, entry)) = self.cursor.next(reader).ok()? {
            if shown_before.take().is_some_and(|before| *before == *key) {
                continue;
            }
            shown.clear();
            shown.extend_from_slice(&key);
            if !see(key, pair, entry) {
                break;
            }
        }
        self.behind = behind;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::cursor::Direction;
    use super::super::memtable::MemTable;
    use super::super::page::Entry;
    use super::super::table::{Table, TableForm, write_tables};
    use super::*;
    use kvssd_flash::rope::RopeRef;
    use kvssd_ftl::index::Sight;
    use kvssd_ftl::{Grain, TablePlace};

    /// All pages are pinned.
    struct Blind;

    impl Sight for Blind {
        fn verify(&mut self, _: Grain) -> Option<bool> {
            None
        }

        fn look(&self, _: Grain, _: &mut dyn FnMut(RopeRef<'_>)) -> bool {
            false
        }
    }

    /// Two keys from `from` on, the page of their entries, and whether the parked cursor was used.
    fn two_from(opened: &OpenCursor, tables: &Tables, from: Bound<&[u8]>) -> (Vec<u8>, Grain, bool) {
        let mut glance_cursor = opened.glance_cursor(from, tables);
        let was_parked = glance_cursor.behind.is_some();
        let (mut keys, mut page) = (Vec::new(), Grain(0));
        let mut see = |key: OwnedKey, _: PairPlace, entry: Option<EntryPlace>| {
            keys.push(key[0]);
            page = entry.unwrap().page;
            keys.len() < 2
        };
        glance_cursor.look_along(&mut Glancing { sight: &Blind, tables }, from, &mut see).unwrap();
        opened.parked.park(glance_cursor);
        (keys, page, was_parked)
    }

    #[test]
    fn a_glance_continues_the_last_one_unless_it_begins_elsewhere_or_a_page_has_moved() {
        let form = TableForm { page_bytes: 4096, pages_max: 1, filter_bits: 0 };
        let keys: Vec<[u8; 1]> = (0..20).map(|key| [key]).collect();
        let entry = Entry { place: Grain(7), value_bytes: 1 };
        let new = write_tables(&form, keys.iter().map(|key| (&key[..], entry))).remove(0);
        let mut table = Table::new(TablePlace { table: 0, level: 1, age: 0, pages: vec![Grain(1)] }, new.range, None);
        table.pinned = new.pages;
        let (mut tables, mut summary) = (Tables::new(form), Summary::default());
        tables.add(table);
        summary.insert(&tables, 0);
        let opened = OpenCursor::new(Cursor::new(Arc::new(summary), Arc::<MemTable>::default(), Direction::Up, false));
        assert_eq!(two_from(&opened, &tables, Bound::Unbounded), (vec![0, 1], Grain(1), false));
        assert_eq!(two_from(&opened, &tables, Bound::Included(&[3])), (vec![3, 4], Grain(1), false));
        assert_eq!(two_from(&opened, &tables, Bound::Excluded(&[4])), (vec![5, 6], Grain(1), true));
        assert_eq!(two_from(&opened, &tables, Bound::Excluded(&[5])), (vec![6, 7], Grain(1), false));
        assert_eq!(two_from(&opened, &tables, Bound::Included(&[7])), (vec![7, 8], Grain(1), false));
        tables.change(0, |table| table.place.pages[0] = Grain(2));
        assert_eq!(two_from(&opened, &tables, Bound::Excluded(&[8])), (vec![9, 10], Grain(2), false));
        assert_eq!(two_from(&opened, &tables, Bound::Excluded(&[10])), (vec![11, 12], Grain(2), true));
    }
}
