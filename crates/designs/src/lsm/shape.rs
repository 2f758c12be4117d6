//! How much a tree gathers before it merges. That is the program's choice, not the image's: any tree can be gone on with in another way.

use super::LsmPlan;
use super::table::TableForm;
use kvssd_ftl::index::Room;

/// Tables of a MemTable at the most. An estimate.
const MEMTABLE_TABLES_MAX: u32 = 40;
/// Tables that one flush makes at the most: they are one change of the journal, which has to fit into a page.
pub(super) const FLUSHED_TABLES_MAX: u32 = 2 * MEMTABLE_TABLES_MAX;
/// The part of the DRAM, and of the pages of a superblock, that a MemTable may take: a step of garbage collection may flush one. Estimates.
const MEMTABLE_DRAM_SHARE: u64 = 16;
const MEMTABLE_SUPERBLOCK_SHARE: u32 = 4;
/// MemTables that gather in level 0 before they are merged into level 1. An estimate: with more a look-up goes through more runs, with fewer
/// an entry is merged more often.
pub(super) const LEVEL0_MEMTABLES: usize = 4;

/// How much a tree gathers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Full tables that the MemTable takes.
    pub(super) memtable_tables: u32,
    /// Tables that one flush makes at the most. A MemTable has room for fewer, but earlier releases filled one without end when they removed a
    /// namespace of which a table cannot be read.
    pub(super) flushed_tables_max: u32,
    /// Tables of level 0 that are merged into level 1 when there are so many.
    pub(super) level0_tables: usize,
    /// Whether level 0 is merged range by range, all ages at once; the papers merge its oldest tables, and all that these overlap.
    pub(super) by_ranges: bool,
}

impl Shape {
    /// Of a tree in so many bytes of DRAM. The papers' trees have a MemTable of one table; so has one with filters in a simulated drive, where
    /// nothing but the filters tells it from them.
    pub(super) fn of(plan: &LsmPlan, form: &TableForm, room: &Room, dram_bytes: u64) -> Self {
        let by_ranges = room.merges_by_ranges && plan.bloom_bits > 0;
        let affordable = dram_bytes / MEMTABLE_DRAM_SHARE / form.table_bytes();
        let flushed_max = room.superblock_pages / MEMTABLE_SUPERBLOCK_SHARE / form.pages_max;
        let larger = (affordable.min(MEMTABLE_TABLES_MAX.into()) as u32).min(flushed_max).max(1);
        let memtable_tables = if by_ranges { larger } else { 1 };
        let flushed_tables_max = (room.superblock_pages / form.pages_max).clamp(memtable_tables, FLUSHED_TABLES_MAX);
        Shape {
            memtable_tables,
            flushed_tables_max,
            level0_tables: LEVEL0_MEMTABLES * memtable_tables as usize,
            by_ranges,
        }
    }

    /// Commands wait while level 0 has so many.
    pub(super) fn level0_tables_max(&self) -> usize {
        match self.by_ranges {
            true => self.level0_tables + self.memtable_tables as usize,
            false => 2 * self.level0_tables,
        }
    }

    /// Tables that may be flushed before something that is there twice is merged, when level 0 has so many and the MemTable begins: a full
    /// drive that is overwritten must have room for them. Those of the papers are few.
    pub(super) fn tables_to_come(&self, level0_tables: usize) -> usize {
        let most = self.level0_tables_max() + self.memtable_tables as usize;
        if self.by_ranges { most.saturating_sub(level0_tables) } else { 0 }
    }
}

/// Of the drives of tests, in which trees merge as the papers' do.
#[cfg(test)]
pub(super) const ROOM: Room = Room {
    raw_bytes: 1 << 29,
    page_bytes: 4096,
    grain_bytes: 64,
    grains: 1 << 23,
    superblock_pages: 512,
    merges_by_ranges: false,
};
