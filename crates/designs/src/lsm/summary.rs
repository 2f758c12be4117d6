//! The Summary: which tables form which level. Policies look at it; nothing here touches flash.

use super::page::{order, prefix};
use super::shape::Shape;
use super::table::{KeyRange, TableId};
use super::tables::Tables;
use kvssd_types::OwnedKey;
use std::cmp::Reverse;
use std::ops::Range;

/// Levels at the most.
pub(super) const LEVELS_MAX: usize = 8;
/// Tables that a step merges at the most, however small they are: it is one change, which must fit into a page of the
/// journal.
pub(super) const UPPER_TABLES_MAX: usize = 16;
pub(super) const LOWER_TABLES_MAX: usize = 40;
/// How many times larger a level is than the one above (IterKVSSD, section 2.1: "about ten times").
pub(super) const FANOUT: usize = 10;

/// The tables of each level: of level 0, whose tables overlap, in the order of their ages; those of one age, which do not, and those of the
/// other levels in the order of their keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    levels: [Vec<TableId>; LEVELS_MAX],
    /// The [`prefix`] of the first key of each: a search comes by few tables of the pool.
    prefixes: [Vec<u64>; LEVELS_MAX],
    /// The age of each table of level 0, and where the tables of each age end.
    ages: Vec<u64>,
    ends: Vec<usize>,
}

/// How far compaction has come. A mount begins anew.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// The key behind which the next step begins in each level.
    pub(super) ends: [OwnedKey; LEVELS_MAX],
    /// The age up to which level 0 is being merged range by range.
    newest: u64,
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

    /// A table that nothing older lies below: of the last level that has some, or of the oldest age.
    pub(super) fn deepest(&self) -> Option<TableId> {
        self.levels.iter().rev().find_map(|tables| tables.first()).copied()
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
            0 => {
                let (start, end) = (self.older(place.age), self.older(place.age.saturating_add(1)));
                start + self.behind_in(tables, 0, start..end, tables.get(id).range.first())
            }
            _ => self.behind(tables, level, tables.get(id).range.first()),
        };
        self.levels[level].insert(at, id);
        self.prefixes[level].insert(at, prefix(tables.get(id).range.first()));
        if level == 0 {
            self.ages.insert(at, place.age);
            self.find_ends();
        }
    }

    /// Takes a table out of a level.
    pub(super) fn remove(&mut self, level: usize, id: TableId) {
        if let Some(at) = self.levels[level].iter().position(|&other| other == id) {
            self.levels[level].remove(at);
            self.prefixes[level].remove(at);
            if level == 0 {
                self.ages.remove(at);
                self.find_ends();
            }
        }
    }

    /// The tables of level 0 that are older than that.
    fn older(&self, age: u64) -> usize {
        self.ages.partition_point(|&other| other < age)
    }

    fn find_ends(&mut self) {
        let lengths = self.ages.chunk_by(|left, right| left == right).map(<[u64]>::len);
        self.ends = lengths
            .scan(0, |end, length| {
                *end += length;
                Some(*end)
            })
            .collect();
    }

    /// The runs of tables that do not overlap, newest first: those of each age of level 0, and each level below it. Returns the level of each,
    /// and which of its tables.
    pub(super) fn runs(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let ages = (0..self.ends.len())
            .rev()
            .map(|age| (0, age.checked_sub(1).map_or(0, |older| self.ends[older])..self.ends[age]));
        ages.chain((1..self.depth()).map(|level| (level, 0..self.levels[level].len())))
    }

    /// How many tables of a level below 0 begin at or before a key.
    pub(super) fn behind(&self, tables: &Tables, level: usize, key: &[u8]) -> usize {
        self.behind_in(tables, level, 0..self.levels[level].len(), key)
    }

    /// How many tables of a run begin at or before a key.
    pub(super) fn behind_in(&self, tables: &Tables, level: usize, run: Range<usize>, key: &[u8]) -> usize {
        let (wanted, prefixes) = (prefix(key), &self.prefixes[level][run.clone()]);
        let before = prefixes.partition_point(|&first| first < wanted);
        let alike = prefixes[before..].partition_point(|&first| first == wanted);
        let in_doubt = &self.levels[level][run][before..before + alike];
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
    fn room(&self, shape: &Shape, level: usize, last: usize) -> usize {
        if level == 0 || level >= last {
            return shape.level0_tables * FANOUT.pow(level as u32);
        }
        (self.levels[last].len() / FANOUT.pow((last - level) as u32)).max(shape.level0_tables)
    }

    /// The level that is fullest for what it may have, if any is full.
    fn fullest(&self, shape: &Shape) -> Option<usize> {
        let last = self.depth().saturating_sub(1);
        let room = |level: usize| self.room(shape, level, last);
        let full = (0..=last.min(LEVELS_MAX - 2)).filter(|&level| self.levels[level].len() >= room(level));
        full.max_by_key(|&level| (self.levels[level].len() * 1000 / room(level), Reverse(level)))
    }

    /// Whether a compaction is due.
    pub(super) fn is_due(&self, shape: &Shape) -> bool {
        self.fullest(shape).is_some()
    }

    /// What is compacted next, of at most `pages_max` pages, or as few as there can be. In a level below 0 it is the
    /// table behind the key where the last step ended.
    pub(super) fn choose(
        &self,
        tables: &Tables,
        shape: &Shape,
        progress: &mut Progress,
        pages_max: usize,
    ) -> Option<Choice> {
        let level = self.fullest(shape)?;
        let mut upper = match level {
            0 if shape.by_ranges => return Some(self.least(tables, progress, pages_max)),
            0 => self.oldest(tables, pages_max),
            _ => {
                let next = self.behind(tables, level, &progress.ends[level]) % self.levels[level].len();
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

    /// The least keys of level 0, of all ages up to the one that was the newest when the last such steps had come to the greatest keys: what
    /// is newer stays, and what is left of these begins behind the cut.
    fn least(&self, tables: &Tables, progress: &mut Progress, pages_max: usize) -> Choice {
        if self.ages[0] > progress.newest {
            progress.newest = self.ages[self.ages.len() - 1];
        }
        let by_key =
            |left: &TableId, right: &TableId| order(tables.get(*left).range.first(), tables.get(*right).range.first());
        let mut upper = self.levels[0][..self.older(progress.newest.saturating_add(1))].to_vec();
        upper.sort_by(by_key);
        let least = tables.get(upper[0]).range.first();
        let lower = self.overlapping(tables, 1, &range_of(tables, &upper));
        let (mut uppers, mut lowers, mut pages) = (0, 0, 0);
        let cut = loop {
            let (is_upper, next) = match (upper.get(uppers), lower.get(lowers)) {
                (Some(upper), Some(lower)) if by_key(upper, lower).is_le() => (true, *upper),
                (_, Some(lower)) => (false, *lower),
                (Some(upper), None) => (true, *upper),
                (None, None) => break None,
            };
            let next = tables.get(next);
            let (first, wanted) = (next.range.first(), next.place.pages.len());
            // All of them that may have the least key must come.
            let has_room = pages + wanted <= pages_max && uppers < UPPER_TABLES_MAX && lowers < LOWER_TABLES_MAX;
            if uppers == 1 && lowers == 0 && first > &*tables.get(upper[0]).range.last {
                // It overlaps nothing, and sinks as it is.
                break None;
            }
            if first > least && !has_room {
                break Some(OwnedKey::from(first));
            }
            pages += wanted;
            if is_upper { uppers += 1 } else { lowers += 1 }
        };
        upper.truncate(uppers);
        // Of those that begin at the cut nothing sinks.
        upper.retain(|&id| cut.as_deref().is_none_or(|cut| tables.get(id).range.first() < cut));
        upper.sort_by_key(|&id| Reverse(tables.get(id).place.age));
        Choice { level: 0, upper, lower: lower[..lowers].to_vec(), cut }
    }

    /// The oldest table of level 0 and all that overlap it, of so many of the oldest that half of the room is left. No
    /// older one that is left behind has a key of these.
    fn oldest(&self, tables: &Tables, pages_max: usize) -> Vec<TableId> {
        let at_most = (pages_max / 2 / tables.form.pages_max as usize).clamp(1, UPPER_TABLES_MAX);
        let candidates = &self.levels[0][..at_most.min(self.levels[0].len())];
        let mut taken = vec![candidates[0]];
        loop {
            let range = range_of(tables, &taken);
            let overlapping = |id: &&TableId| taken.contains(id) || tables.overlaps(**id, &range);
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

#[cfg(test)]
mod tests {
    use super::super::LsmPlan;
    use super::super::shape::ROOM;
    use super::super::table::{Table, TableForm};
    use super::*;
    use kvssd_ftl::index::Room;
    use kvssd_ftl::{Grain, TablePlace};
    use proptest::prelude::*;

    const FORM: TableForm = TableForm { page_bytes: 4096, pages_max: 3, filter_bits: 6 };

    /// Tables of three pages each, one for each two neighbours of these keys.
    fn add(tables: &mut Tables, summary: &mut Summary, (level, age): (u8, u64), keys: &[u8]) {
        for pair in keys.chunks_exact(2) {
            let id = tables.all().count() as u64;
            let range = KeyRange { firsts: vec![[pair[0]].into(); 3], last: [pair[1]].into() };
            let place = TablePlace { table: id, level, age, pages: vec![Grain(1); 3] };
            tables.add(Table::new(place, range, None));
            summary.insert(tables, id as TableId);
        }
    }

    proptest! {
        /// What sinks passes nothing that is older, and leaves nothing behind that a later step would put over it.
        #[test]
        fn a_step_by_ranges_takes_all_that_has_the_least_keys(
            ages in prop::collection::vec(prop::collection::btree_set(any::<u8>(), 2..30), 1..6),
            lower in prop::collection::btree_set(any::<u8>(), 0..60),
            newest in 0u64..7,
            pages_max in 12usize..120,
        ) {
            let (mut tables, mut summary) = (Tables::new(FORM), Summary::default());
            for (age, keys) in ages.iter().enumerate() {
                add(&mut tables, &mut summary, (0, age as u64 + 1), &keys.iter().copied().collect::<Vec<u8>>());
            }
            add(&mut tables, &mut summary, (1, 0), &lower.iter().copied().collect::<Vec<u8>>());
            let ends = |id: TableId| (tables.get(id).range.first()[0], tables.get(id).range.last[0]);
            let mut progress = Progress { newest, ..Progress::default() };
            let Choice { upper, lower, cut, .. } = summary.least(&tables, &mut progress, pages_max);
            let age = |id: TableId| tables.get(id).place.age;
            prop_assert!(upper.is_sorted_by(|left, right| age(*left) >= age(*right)), "newest first");
            let least = summary.level(0).iter().filter(|&&id| age(id) <= progress.newest).map(|&id| ends(id).0).min().unwrap();
            // One that overlaps nothing sinks alone.
            let alone = (upper.len() == 1 && lower.is_empty() && cut.is_none()).then(|| u32::from(ends(upper[0]).1) + 1);
            let cut = alone.unwrap_or(cut.map_or(256, |cut| cut[0].into()));
            prop_assert!(cut > least.into());
            for &id in summary.level(0) {
                let is_meant = age(id) <= progress.newest && u32::from(ends(id).0) < cut;
                prop_assert_eq!(upper.contains(&id), is_meant, "{:?} and {}", ends(id), cut);
            }
            let greatest = upper.iter().map(|&id| ends(id).1).max().unwrap();
            for &id in summary.level(1) {
                let (first, last) = ends(id);
                let overlaps = last >= least && first <= greatest && u32::from(first) < cut;
                prop_assert!(lower.contains(&id) || !overlaps, "{:?} and {}", ends(id), cut);
            }
        }
    }

    #[test]
    fn the_papers_gather_one_table_and_the_store_what_memory_and_collection_allow() {
        let plan = |bloom_bits| LsmPlan { table_pages: 3, pinned_levels: 3, bloom_bits };
        let room = |superblock_pages, merges_by_ranges| Room { superblock_pages, merges_by_ranges, ..ROOM };
        let of = |bloom_bits, room: Room, bytes| {
            let shape = Shape::of(&plan(bloom_bits), &FORM, &room, bytes);
            (shape.memtable_tables, shape.level0_tables, shape.level0_tables_max())
        };
        let tables = |bloom_bits, pages, bytes| of(bloom_bits, room(pages, true), bytes);
        assert_eq!(tables(0, 256, 64 << 20), (1, 4, 8));
        assert_eq!(of(6, room(256, false), 64 << 20), (1, 4, 8), "filters alone");
        assert_eq!(tables(6, 256, 64 << 20), (21, 84, 105));
        assert_eq!(tables(6, 2048, 64 << 20), (40, 160, 200));
        assert_eq!(tables(6, 256, 1 << 20), (5, 20, 25));
        assert_eq!(tables(6, 256, 0), (1, 4, 5));
    }
}
