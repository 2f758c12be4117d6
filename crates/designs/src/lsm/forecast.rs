//! What the tree will do, on paper.

use super::page::entries_of;
use super::summary::{FANOUT, LEVEL0_TABLES, LEVELS_MAX};
use super::{Lsm, LsmPlan};
use kvssd_ftl::index::{Changes, Forecast, Outlook, Visit};

/// The part of a level, as large as it becomes, that is there between two merges. An estimate.
const LEVEL_SHARE: f64 = 0.75;

impl Lsm {
    /// A visit to each level; what is pinned has the DRAM that is left.
    pub(super) fn forecast(&self, outlook: &Outlook) -> Forecast {
        let LsmPlan { table_pages, pinned_levels, bloom_bits } = self.plan;
        let (pages, page_bytes) = (f64::from(table_pages), f64::from(outlook.room.page_bytes));
        let key_bytes = outlook.key_bytes as usize;
        let full = LsmPlan::tables(table_pages, outlook.pairs, key_bytes, outlook.room.page_bytes);
        let flushes =
            outlook.changes.map(|changes| changes / entries_of(table_pages, outlook.room.page_bytes, key_bytes) as u64);
        let levels = levels_of(full as f64, flushes);
        let all: f64 = levels.iter().sum();
        let known_bytes = all * self.tables.form.known_bytes(key_bytes) as f64;
        let fixed_bytes = (self.memtable_bytes() + self.step_bytes()) as f64 + known_bytes;
        let mut pinned_max = ((outlook.dram_bytes as f64 - fixed_bytes) / (pages * page_bytes)).max(0.0);
        // A Bloom filter lets through e^(-bits ln^2 2) of the keys that are not there.
        let let_through = (-f64::from(bloom_bits) * std::f64::consts::LN_2.powi(2)).exp();
        let (mut visits, mut above) = (Vec::new(), 0.0);
        for (level, &tables) in levels.iter().enumerate() {
            if tables == 0.0 {
                continue;
            }
            let pinned = if level < pinned_levels as usize { pinned_max.min(tables) } else { 0.0 };
            pinned_max -= pinned;
            let runs = match level {
                0 => tables,
                // What has just sunk leaves a gap.
                _ if level + 1 < levels.len() => LEVEL_SHARE,
                _ => 1.0,
            };
            let here = tables / all;
            let deeper = (1.0 - above - here).max(0.0);
            visits.push(Visit {
                pieces: tables * pages,
                reached: runs * (deeper * let_through + here),
                in_dram: pinned / tables,
            });
            above += here;
        }
        let entry_pages = pages / entries_of(table_pages, outlook.room.page_bytes, key_bytes) as f64;
        let changes = Changes::Merged { pages: writes_of(&levels) * entry_pages };
        Forecast { visits, piece_bytes: page_bytes, strangers: 0.0, knows_keys: true, changes, range_pieces: pages }
    }
}

/// The tables of each level of a tree of so many. Level 0 has those that were flushed since it was merged, or, while changes go on, half
/// of the most that it has then; the levels between it and the last are sized by the last.
fn levels_of(tables: f64, flushes: Option<u64>) -> Vec<f64> {
    let least = LEVEL0_TABLES as f64;
    let depth = (1..LEVELS_MAX - 1).find(|&level| tables <= least * FANOUT.pow(level as u32) as f64);
    let depth = depth.unwrap_or(LEVELS_MAX - 1);
    let sized = (1..=depth).map(|level| (tables / FANOUT.pow((depth - level) as u32) as f64).max(least).min(tables));
    let newest = flushes.map_or((least - 1.0) / 2.0, |flushes| (flushes % LEVEL0_TABLES as u64) as f64);
    std::iter::once(newest).chain(sized).collect()
}

/// How often an entry is written on its way to the last level: each time with what it sinks into, which is as many times as much as
/// that level is larger.
fn writes_of(levels: &[f64]) -> f64 {
    let sinks = levels.windows(2).enumerate().map(|(level, pair)| {
        let upper = if level == 0 { LEVEL0_TABLES as f64 } else { pair[0] };
        1.0 + LEVEL_SHARE * pair[1] / upper
    });
    1.0 + sinks.sum::<f64>()
}
