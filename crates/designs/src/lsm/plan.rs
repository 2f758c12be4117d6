//! What can be chosen of `lsm`, and how it is built.

use super::Lsm;
use super::page::entries_of;
use super::table::TABLE_PAGES_MAX;
use crate::bounds;
use kvssd_ftl::DramUse;
use kvssd_ftl::index::{Forecast, Index, IndexPlan, Outlook, Parameters, Room};

/// The key length that DRAM is charged for beforehand: what `kvssd` calls typical.
const KEY_BYTES: usize = 16;
/// Pages of a table are so large at the least: what a merge changes must fit into one.
const PAGE_BYTES_MIN: u32 = 4096;
/// And at the most: where an entry begins in a page is a number of 16 bits.
const PAGE_BYTES_MAX: u32 = 1 << 16;

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsmPlan {
    /// Pages of a table and of the MemTable: 1 to 4 (IterKVSSD, section 4.4: 48 KB of 16 KB).
    pub table_pages: u32,
    /// Levels, from 0 on, whose tables stay in DRAM as far as there is room (PinK).
    pub pinned_levels: u32,
    /// Bits of a Bloom filter for each key, 0 to 32; PinK and IterKVSSD have none.
    pub bloom_bits: u32,
}

impl LsmPlan {
    /// The full tables, of so many pages each, that so many pairs with keys of one length fill.
    #[must_use]
    pub fn tables(table_pages: u32, pairs: u64, key_bytes: usize, page_bytes: u32) -> u64 {
        pairs.div_ceil(entries_of(table_pages, page_bytes, key_bytes) as u64)
    }
}

impl IndexPlan for LsmPlan {
    fn name(&self) -> &'static str {
        "lsm"
    }

    fn parameters(&mut self) -> Parameters<'_> {
        vec![
            ("table_pages", &mut self.table_pages),
            ("pinned_levels", &mut self.pinned_levels),
            ("bloom_bits", &mut self.bloom_bits),
        ]
    }

    fn check(&self) -> Result<(), String> {
        let LsmPlan { table_pages, pinned_levels, bloom_bits } = *self;
        bounds::check("table_pages", table_pages, 1..=TABLE_PAGES_MAX)?;
        bounds::check("pinned_levels", pinned_levels, 0..=super::summary::LEVELS_MAX as u32)?;
        bounds::check("bloom_bits", bloom_bits, 0..=32)
    }

    fn build(&self, room: &Room) -> Result<Box<dyn Index>, String> {
        if !(PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&room.page_bytes) {
            return Err(format!(
                "lsm has pages of {PAGE_BYTES_MIN} to {PAGE_BYTES_MAX} bytes, and geometry.page_bytes is {}",
                room.page_bytes
            ));
        }
        Ok(Box::new(Lsm::new(*self, room)))
    }

    fn tags(&self, _room: &Room) -> u64 {
        1 << u32::BITS
    }

    fn has_tags_of_keys(&self) -> bool {
        true
    }

    fn is_ordered(&self) -> bool {
        true
    }

    /// The pool and the Summary of pairs with keys of 16 bytes, a tree of them and as much again until they are merged.
    fn charge(&self, room: &Room, dram: &mut DramUse) {
        let index = Lsm::new(*self, room);
        let tables = 2 * LsmPlan::tables(self.table_pages, room.grains, KEY_BYTES, room.page_bytes);
        let filter_bytes = room.grains / tables * 2 * u64::from(self.bloom_bits) / 8;
        let known_bytes = index.tables.form.known_bytes(KEY_BYTES);
        dram.add("index_tables", tables * (known_bytes + filter_bytes));
        dram.add("index_memtable", index.memtable_bytes());
        dram.add("index_compaction", index.step_bytes());
    }

    fn forecast(&self, outlook: &Outlook) -> Option<Forecast> {
        let mut index = Lsm::new(*self, &outlook.room);
        index.set_dram_budget(outlook.dram_bytes);
        Some(index.forecast(outlook))
    }
}

#[cfg(test)]
mod tests {
    use super::super::STEP_TABLES_MAX;
    use super::super::shape::FLUSHED_TABLES_MAX;
    use super::super::summary::{LOWER_TABLES_MAX, UPPER_TABLES_MAX};
    use super::*;
    use kvssd_ftl::{Change, Grain, TablePlace};

    /// The largest step and the largest flush, of tables on a large drive, are one change each that fits into the smallest page.
    #[test]
    fn a_step_fits_into_a_page_of_the_journal() {
        let tables = |count: usize, pages: u32, level: u8, age: u64| {
            (0..count).map(move |_| TablePlace {
                table: 1 << 27,
                level,
                age,
                pages: vec![Grain(1 << 40); pages as usize],
            })
        };
        for pages in 1..=TABLE_PAGES_MAX {
            let upper = tables(UPPER_TABLES_MAX, pages, 0, 1 << 34);
            let taken = upper.clone().chain(tables(LOWER_TABLES_MAX, pages, 1, 0)).collect();
            // What is left of the upper tables beside what has sunk, which is no more pages than were read.
            let made = upper.chain(tables(STEP_TABLES_MAX + 1, pages, 1, 0)).collect();
            let bytes = postcard::to_allocvec(&Change::Merged { taken, made }).unwrap().len();
            assert!(bytes <= PAGE_BYTES_MIN as usize, "{pages} pages a table: {bytes} bytes");
            let made = tables(FLUSHED_TABLES_MAX as usize, pages, 0, 1 << 34).collect();
            let bytes = postcard::to_allocvec(&Change::Merged { taken: Vec::new(), made }).unwrap().len();
            assert!(bytes <= PAGE_BYTES_MIN as usize, "{pages} pages a flushed table: {bytes} bytes");
        }
    }
}
