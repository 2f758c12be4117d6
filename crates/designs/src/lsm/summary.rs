//! The Summary: which tables form which level. Policies look at it; nothing here touches flash.

use super::page::prefix;
use super::table::{KeyRange, TableId, Tables};
use kvssd_types::OwnedKey;
use std::cmp::Reverse;

/// Levels at the most.
pub(super) const LEVELS_MAX: usize = 8;
/// Tables of level 0 that are merged into level 1 when there are so many. An estimate.
pub(super) const LEVEL0_TABLES: usize = 4;
/// Commands wait while level 0 has so many. An estimate.
pub(super) const LEVEL0_TABLES_MAX: usize = 8;
/// Tables that a step merges at the most, however small they are: it is one change, which must fit into a page of the
/// journal.
pub(super) const UPPER_TABLES_MAX: usize = 16;
pub(super) const LOWER_TABLES_MAX: usize = 40;
/// How many times larger a level is than the one above (IterKVSSD, section 2.1: "about ten times").
pub(super) const FANOUT: usize = 10;

/// The tables of each level: of level 0, whose tables overlap, in the order of their ages; of the others in the order
/// of their keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    levels: [Vec<TableId>; LEVELS_MAX],
    /// The [`prefix`] of the first key of each: a search comes by few tables of the pool.
    prefixes: [Vec<u64>; LEVELS_MAX],
}

/// What a step of compaction merges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The level of the upper tables; the lower ones are in the next.
    pub(super) level: usize,
    /// Newest first.
    pub(super) upper: Vec<TableId>,
    pub(super) lower: Vec<TableId>,
    /// What the upper tables have from this key on is left to a later step.
    pub(super) cut: Option<OwnedKey>,
}

impl Summary {
    /// The tables of a level.
    pub(super) fn level(&self, level: usize) -> &[TableId] {
        &self.levels[level]
    }

    /// The number of levels from the first to the last that has tables.
    pub(super) fn depth(&self) -> usize {
        self.levels.iter().rposition(|tables| !tables.is_empty()).map_or(0, |last| last + 1)
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = TableId> {
        self.levels.iter().flatten().copied()
    }

    /// Bytes of DRAM: four for each table.
    pub(super) fn bytes(&self) -> u64 {
        self.levels.iter().map(|tables| 4 * tables.len() as u64).sum()
    }

    /// Puts a table of the pool into its level.
    pub(super) fn insert(&mut self, tables: &Tables, id: TableId) {
        let place = &tables.get(id).place;
        let level = usize::from(place.level);
        let at = match level {
            0 => self.levels[0].partition_point(|&other| tables.get(other).place.age <= place.age),
            _ => self.behind(tables, level, tables.get(id).range.first()),
        };
        self.levels[level].insert(at, id);
        self.prefixes[level].insert(at, prefix(tables.get(id).range.first()));
    }

    /// Takes a table out of a level.
    pub(super) fn remove(&mut self, level: usize, id: TableId) {
        if let Some(at) = self.levels[level].iter().position(|&other| other == id) {
            self.levels[level].remove(at);
            self.prefixes[level].remove(at);
        }
    }

    /// How many tables of a level below 0 begin at or before a key.
    pub(super) fn behind(&self, tables: &Tables, level: usize, key: &[u8]) -> usize {
        let (wanted, prefixes) = (prefix(key), &self.prefixes[level]);
        let before = prefixes.partition_point(|&first| first < wanted);
        let alike = prefixes[before..].partition_point(|&first| first == wanted);
        let in_doubt = &self.levels[level][before..before + alike];
        before + in_doubt.partition_point(|&other| tables.get(other).range.first() <= key)
    }

    /// The tables of a level below 0 that may have keys of a range.
    fn overlapping(&self, tables: &Tables, level: usize, range: &KeyRange) -> &[TableId] {
        let first = self.levels[level].partition_point(|&other| *tables.get(other).range.last < *range.first());
        let end = self.behind(tables, level, &range.last);
        &self.levels[level][first..end.max(first)]
    }

    /// The tables that a level may have. Those between the first and the last are sized by the last, so that what is
    /// there twice is a ninth of the tree: sizes that only grow downwards would let a level be as large as a last one
    /// that has just begun.
    fn room(&self, level: usize) -> usize {
        let last = self.depth().saturating_sub(1);
        if level == 0 || level >= last {
            return LEVEL0_TABLES * FANOUT.pow(level as u32);
        }
        (self.levels[last].len() / FANOUT.pow((last - level) as u32)).max(LEVEL0_TABLES)
    }

    /// The level that is fullest for what it may have, if any is full.
    fn fullest(&self) -> Option<usize> {
        let full = (0..LEVELS_MAX - 1).filter(|&level| self.levels[level].len() >= self.room(level));
        full.max_by_key(|&level| (self.levels[level].len() * 1000 / self.room(level), Reverse(level)))
    }

    /// Whether a compaction is due.
    pub(super) fn is_due(&self) -> bool {
        self.fullest().is_some()
    }

    /// What is compacted next, of at most `pages_max` pages, or as few as there can be. In a level below 0 it is the
    /// table behind the key where the last step ended.
    pub(super) fn choose(&self, tables: &Tables, ends: &[OwnedKey; LEVELS_MAX], pages_max: usize) -> Option<Choice> {
        let level = self.fullest()?;
        let mut upper = match level {
            0 => self.oldest(tables, pages_max),
            _ => {
                let next = self.behind(tables, level, &ends[level]) % self.levels[level].len();
                vec![self.levels[level][next]]
            }
        };
        upper.reverse();
        let range = range_of(tables, &upper);
        let pages = |id: TableId| tables.get(id).place.pages.len();
        let mut room = pages_max.saturating_sub(upper.iter().map(|&id| pages(id)).sum());
        let all = self.overlapping(tables, level + 1, &range);
        let fitting = |&&id: &&TableId| {
            let fits = pages(id) <= room;
            room = room.saturating_sub(pages(id));
            fits
        };
        let count = all.iter().take(LOWER_TABLES_MAX).take_while(fitting).count().max(1).min(all.len());
        let cut = all.get(count).map(|&next| tables.get(next).range.first().into());
        Some(Choice { level, upper, lower: all[..count].to_vec(), cut })
    }

    /// The oldest table of level 0 and all that overlap it, of so many of the oldest that half of the room is left. No
    /// older one that is left behind has a key of these.
    fn oldest(&self, tables: &Tables, pages_max: usize) -> Vec<TableId> {
        let at_most = (pages_max / 2 / tables.form.pages_max as usize).clamp(1, UPPER_TABLES_MAX);
        let candidates = &self.levels[0][..at_most.min(self.levels[0].len())];
        let mut taken = vec![candidates[0]];
        loop {
            let range = range_of(tables, &taken);
            let overlapping = |id: &&TableId| taken.contains(id) || tables.overlap(**id, &range);
            let more: Vec<TableId> = candidates.iter().filter(overlapping).copied().collect();
            if more.len() == taken.len() {
                return more;
            }
            taken = more;
        }
    }
}

/// From the first key of all to the last.
fn range_of(tables: &Tables, ids: &[TableId]) -> KeyRange {
    let range = |&id: &TableId| &tables.get(id).range;
    let first = ids.iter().map(|id| range(id).first()).min().unwrap_or(&[]);
    let last = ids.iter().map(|id| &range(id).last).max().cloned().unwrap_or_default();
    KeyRange { firsts: vec![first.into()], last }
}
