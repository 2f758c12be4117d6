//! What the tree will do, on paper.

use super::page::entries_of;
use super::shape::LEVEL0_MEMTABLES;
use super::summary::{FANOUT, LEVELS_MAX};
use super::{Lsm, LsmPlan};
use kvssd_ftl::index::{AtTimes, Changes, Forecast, Outlook, Visit};

/// The part of a level, as large as it becomes, that is there between two merges. An estimate.
const LEVEL_SHARE: f64 = 0.75;

impl Lsm {
    /// A visit to each level; what is pinned has the DRAM that is left.
    pub(super) fn forecast(&self, outlook: &Outlook) -> Forecast {
        let LsmPlan { table_pages, pinned_levels, bloom_bits } = self.plan;
        let (pages, page_bytes) = (f64::from(table_pages), f64::from(outlook.room.page_bytes));
        let key_bytes = outlook.key_bytes as usize;
        let full = LsmPlan::tables(table_pages, outlook.pairs, key_bytes, outlook.room.page_bytes);
        let flushed_pages = table_pages * self.shape.memtable_tables;
        let flushed = entries_of(flushed_pages, outlook.room.page_bytes, key_bytes) as u64;
        let flushes = outlook.changes.map(|changes| changes / flushed);
        let levels = levels_of(full as f64, flushes, f64::from(self.shape.memtable_tables));
        let all: f64 = levels.iter().sum();
        let known_bytes = all * self.tables.form.known_bytes(key_bytes) as f64;
        let fixed_bytes = (self.memtable_bytes() + self.step_bytes()) as f64 + known_bytes;
        let mut pinned_max = ((outlook.dram_bytes as f64 - fixed_bytes) / (pages * page_bytes)).max(0.0);
        // A Bloom filter lets through e^(-bits ln^2 2) of the keys that are not there.
        let let_through = (-f64::from(bloom_bits) * std::f64::consts::LN_2.powi(2)).exp();
        let (mut visits, mut above) = (Vec::new(), 0.0);
        // The memtable is half full, or has all pairs of a small drive.
        let newest_share = (0.5 * f64::from(self.shape.memtable_tables) / full as f64).min(1.0);
        for (level, &tables) in levels.iter().enumerate() {
            if tables == 0.0 {
                continue;
            }
            let pinned = if level < pinned_levels as usize { pinned_max.min(tables) } else { 0.0 };
            pinned_max -= pinned;
            let here = tables / all;
            let deeper = (1.0 - above - here).max(0.0);
            let passes = deeper * let_through + here;
            if level == 0 {
                visits.extend((0..).zip(newest(outlook, flushed_pages, flushes)).map(|(table, (reads, at_times))| {
                    Visit {
                        pieces: f64::from(flushed_pages),
                        reached: passes,
                        in_dram: 1.0 - reads * (1.0 - pinned / tables),
                        newer: (newest_share * (1.0 + 2.0 * f64::from(table))).min(1.0),
                        at_times: Some(at_times),
                    }
                }));
            } else {
                // What has just sunk leaves a gap.
                let runs = if level + 1 < levels.len() { LEVEL_SHARE } else { 1.0 };
                let (pieces, in_dram) = (tables * pages, pinned / tables);
                let newer = (newest_share + above).min(1.0);
                visits.push(Visit { pieces, reached: runs * passes, in_dram, newer, at_times: None });
            }
            above += here;
        }
        let entry_pages = pages / entries_of(table_pages, outlook.room.page_bytes, key_bytes) as f64;
        let changes = Changes::Merged { pages: writes_of(&levels, self.shape.level0_tables as f64) * entry_pages };
        // By halves, of the entries of a page.
        let comparisons = (entries_of(1, outlook.room.page_bytes, key_bytes).max(1) as f64).log2();
        Forecast {
            visits,
            piece_bytes: page_bytes,
            strangers: 0.0,
            knows_keys: true,
            comparisons,
            changes,
            range_pieces: pages,
        }
    }
}

/// The tables of each level of a tree of so many. Level 0 has those that were flushed since it was merged, or, while changes go on, half
/// of the most that it has then; the levels between it and the last are sized by the last.
fn levels_of(tables: f64, flushes: Option<u64>, flushed: f64) -> Vec<f64> {
    let least = LEVEL0_MEMTABLES as f64 * flushed;
    let depth = (1..LEVELS_MAX - 1).find(|&level| tables <= least * FANOUT.pow(level as u32) as f64);
    let depth = depth.unwrap_or(LEVELS_MAX - 1);
    let sized = (1..=depth).map(|level| (tables / FANOUT.pow((depth - level) as u32) as f64).max(least).min(tables));
    let newest =
        flushes.map_or((least - flushed) / 2.0, |flushes| (flushes % LEVEL0_MEMTABLES as u64) as f64 * flushed);
    std::iter::once(newest).chain(sized).collect()
}

/// Tables of level 0 overlap, and are visited one by one, the newest first. Of each, the share of look-ups that read it from flash: there are
/// as many as are known, or any number as often as any other; and of their newest pages any number is in the write buffer, till a unit is full.
fn newest(outlook: &Outlook, flushed_pages: u32, flushes: Option<u64>) -> impl Iterator<Item = (f64, AtTimes)> {
    let (unit_pages, table_pages) = (outlook.unit_pages.max(1), flushed_pages);
    let known = flushes.map(|flushes| (flushes % LEVEL0_MEMTABLES as u64) as u32);
    let counts = known.map_or(0..LEVEL0_MEMTABLES as u32, |tables| tables..tables + 1);
    (0..LEVEL0_MEMTABLES as u32 - 1).map(move |table| {
        let (mut reads, mut beside, mut states) = (0.0, 0.0, 0.0);
        for tables in counts.clone() {
            for buffered in 0..unit_pages {
                states += 1.0;
                if table < tables {
                    let newer = table * table_pages;
                    let on_flash = newer + table_pages - buffered.clamp(newer, newer + table_pages);
                    let share = f64::from(on_flash) / f64::from(table_pages);
                    reads += share;
                    beside += share * f64::from((tables * table_pages).saturating_sub(buffered));
                }
            }
        }
        (reads / states, AtTimes { share: reads / states, together: beside / f64::max(reads, 1e-9) })
    })
}

/// How often an entry is written on its way to the last level: each time with what it sinks into, which is as many times as much as
/// that level is larger.
fn writes_of(levels: &[f64], level0_tables: f64) -> f64 {
    let sinks = levels.windows(2).enumerate().map(|(level, pair)| {
        let upper = if level == 0 { level0_tables } else { pair[0] };
        1.0 + LEVEL_SHARE * pair[1] / upper
    });
    1.0 + sinks.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::super::shape::ROOM;
    use super::*;

    /// Pages of eight make a unit, and tables have three: of the newest two pages of eight are on flash, and of the third nearly all.
    #[test]
    fn the_newest_tables_are_read_where_a_unit_gathers() {
        let outlook = Outlook { room: ROOM, dram_bytes: 0, pairs: 1, key_bytes: 8, changes: None, unit_pages: 8 };
        let reads = |flushes| newest(&outlook, 3, flushes).map(|(reads, _)| reads).collect::<Vec<_>>();
        let are = |reads: Vec<f64>, wanted: [f64; 3]| {
            reads.iter().zip(wanted).all(|(read, wanted)| (read - wanted).abs() < 1e-9)
        };
        assert!(are(reads(Some(4)), [0.0; 3]), "level 0 has just been merged");
        assert!(are(reads(Some(7)), [0.25, 0.625, 23.0 / 24.0]), "{:?}", reads(Some(7)));
        // Any number of tables is there as often as any other.
        assert!(are(reads(None), [0.25 * 0.75, 0.625 * 0.5, 23.0 / 24.0 * 0.25]), "{:?}", reads(None));
        let together: Vec<f64> = newest(&outlook, 3, Some(5)).map(|(_, at_times)| at_times.together).collect();
        assert!(2.0 < together[0] && together[0] <= 3.0, "a table alone has its own pages: {together:?}");
    }
}
