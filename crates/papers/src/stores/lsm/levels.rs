//! The levels, how large each may be, and what is compacted next.

use super::options::{LEVEL_FACTOR, LEVEL0_COMPACTS, LEVELS, LevelSizes, LsmOptions};
use super::table::Table;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// The tables. Those of level 0 overlap, the newest last; those of the others lie in the order of their keys.
#[derive(Debug, Default)]
pub(super) struct Levels {
    pub(super) tables: [Vec<Arc<Table>>; LEVELS],
    /// Numbers of tables that a compaction under way takes.
    busy: BTreeSet<u64>,
}

/// How large levels may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// Where level 0 goes.
    base: usize,
    bytes_max: [u64; LEVELS],
}

/// A compaction: tables of one level, and those of another that they overlap.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Tables of `from`.
    pub(super) upper: Vec<Arc<Table>>,
    /// Tables of `to`.
    pub(super) lower: Vec<Arc<Table>>,
}

impl Shape {
    /// Levels from `base` on, which may have so many bytes.
    fn new(base: usize, base_bytes: u64, least_bytes: u64) -> Self {
        let mut bytes_max = [0; LEVELS];
        let mut bytes = base_bytes;
        for bytes_max in &mut bytes_max[base..] {
            *bytes_max = bytes.max(least_bytes);
            bytes *= LEVEL_FACTOR;
        }
        Shape { base, bytes_max }
    }
}

fn bytes_of<'t>(tables: impl IntoIterator<Item = &'t Arc<Table>>) -> u64 {
    tables.into_iter().map(|table| table.bytes()).sum()
}

impl Levels {
    fn bytes(&self, level: usize) -> u64 {
        bytes_of(&self.tables[level])
    }

    fn is_busy(&self, table: &Table) -> bool {
        self.busy.contains(&table.file.number)
    }

    /// The tables that may hold a key, the newest first.
    pub(super) fn candidates(&self, key: &[u8]) -> Vec<Arc<Table>> {
        let newest = self.tables[0].iter().rev().filter(|table| table.spans(key));
        let deeper = self.tables[1..].iter().filter_map(|tables| {
            let at = tables.partition_point(|table| table.last() < key);
            tables.get(at).filter(|table| table.spans(key))
        });
        newest.chain(deeper).cloned().collect()
    }

    /// The tables of a level from 1 on that hold keys of a range.
    fn overlapping(&self, level: usize, (first, last): (&[u8], &[u8])) -> Range<usize> {
        let tables = &self.tables[level];
        let start = tables.partition_point(|table| table.last() < first);
        start..start + tables[start..].partition_point(|table| table.first() <= last)
    }

    fn shape(&self, options: &LsmOptions) -> Shape {
        let level_base_bytes = options.level_base_bytes;
        match options.level_sizes {
            LevelSizes::FromFirst => Shape::new(1, level_base_bytes, 0),
            LevelSizes::FromLast => self.shape_from_last(level_base_bytes),
        }
    }

    fn shape_from_last(&self, level_base_bytes: u64) -> Shape {
        let sizes: [u64; LEVELS] = std::array::from_fn(|level| self.bytes(level));
        let largest = sizes[1..].iter().copied().max().unwrap_or(0);
        let first = (1..LEVELS).find(|&level| sizes[level] > 0).unwrap_or(LEVELS - 1);
        let mut base_bytes = (first..LEVELS - 1).fold(largest, |bytes, _| bytes / LEVEL_FACTOR);
        let mut base = first;
        if base_bytes <= level_base_bytes / LEVEL_FACTOR {
            base_bytes = level_base_bytes / LEVEL_FACTOR + 1;
        } else {
            while base > 1 && base_bytes > level_base_bytes {
                (base, base_bytes) = (base - 1, base_bytes / LEVEL_FACTOR);
            }
            base_bytes = base_bytes.min(level_base_bytes);
        }
        Shape::new(base, base_bytes, level_base_bytes)
    }

    /// The most urgent compaction of tables that nobody compacts yet, if any is wanted. Of level 0 there is one at a time.
    pub(super) fn choose(&self, options: &LsmOptions) -> Option<Choice> {
        let Shape { base, bytes_max } = self.shape(options);
        let level0 = &self.tables[0];
        let is_free = !level0.iter().any(|table| self.is_busy(table));
        let by_count = level0.len() as f64 / LEVEL0_COMPACTS as f64;
        let by_bytes = self.bytes(0) as f64 / options.level_base_bytes as f64;
        let scores = (base..LEVELS - 1).map(|level| {
            let free = self.tables[level].iter().filter(|table| !self.is_busy(table));
            (level, bytes_of(free) as f64 / bytes_max[level] as f64)
        });
        let mut wanted: Vec<(usize, f64)> = scores.chain(is_free.then_some((0, by_count.max(by_bytes)))).collect();
        wanted.retain(|(_, score)| *score >= 1.0);
        wanted.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
        wanted.into_iter().find_map(|(level, _)| self.choice_of(level, if level == 0 { base } else { level + 1 }))
    }

    /// What would be compacted of a level, if nobody compacts it yet.
    fn choice_of(&self, from: usize, to: usize) -> Option<Choice> {
        let upper = if from == 0 { self.tables[0].clone() } else { vec![self.cheapest(from)?] };
        let first = upper.iter().map(|table| table.first()).min()?;
        let last = upper.iter().map(|table| table.last()).max()?;
        let lower = self.tables[to][self.overlapping(to, (first, last))].to_vec();
        let is_free = !lower.iter().any(|table| self.is_busy(table));
        is_free.then_some(Choice { from, to, upper, lower })
    }

    /// The table that has the fewest bytes below it for its own (`kMinOverlappingRatio`), of those that nobody compacts yet, as those below.
    fn cheapest(&self, level: usize) -> Option<Arc<Table>> {
        let ratio = |table: &Arc<Table>| {
            let below = &self.tables[level + 1][self.overlapping(level + 1, (table.first(), table.last()))];
            let is_free = !self.is_busy(table) && !below.iter().any(|table| self.is_busy(table));
            is_free.then(|| bytes_of(below) as f64 / table.bytes() as f64)
        };
        let ratios = self.tables[level].iter().filter_map(|table| Some((table, ratio(table)?)));
        ratios.min_by(|left, right| left.1.total_cmp(&right.1)).map(|(table, _)| Arc::clone(table))
    }

    /// Bytes that compactions have yet to move until no level is too large, as RocksDB reckons them.
    pub(super) fn pending_bytes(&self, options: &LsmOptions) -> u64 {
        let shape = self.shape(options);
        let level0 = if self.tables[0].len() >= LEVEL0_COMPACTS { self.bytes(0) } else { 0 };
        let mut pending = if level0 > 0 { level0 + self.bytes(shape.base) } else { 0 };
        let mut arrived = level0;
        for level in shape.base..LEVELS - 1 {
            let over = (self.bytes(level) + arrived).saturating_sub(shape.bytes_max[level]);
            let ratio = self.bytes(level + 1) as f64 / self.bytes(level).max(1) as f64;
            pending += (over as f64 * (ratio + 1.0)) as u64;
            arrived = over;
        }
        pending
    }

    /// A compaction begins: its tables are for no other.
    pub(super) fn begin(&mut self, choice: &Choice) {
        self.busy.extend(choice.upper.iter().chain(&choice.lower).map(|table| table.file.number));
    }

    /// Takes the tables of a choice out and puts others into the level that it goes to; gives those that were taken.
    pub(super) fn replace(&mut self, choice: Choice, outputs: Vec<Arc<Table>>) -> Vec<Arc<Table>> {
        let Choice { from, to, mut upper, lower } = choice;
        upper.extend(lower);
        let numbers: BTreeSet<u64> = upper.iter().map(|table| table.file.number).collect();
        self.busy.retain(|number| !numbers.contains(number));
        self.tables[from].retain(|table| !numbers.contains(&table.file.number));
        let tables = &mut self.tables[to];
        tables.retain(|table| !numbers.contains(&table.file.number));
        tables.extend(outputs);
        tables.sort_by(|left, right| left.first().cmp(right.first()));
        assert!(tables.windows(2).all(|pair| pair[0].last() < pair[1].first()), "tables of a level do not overlap");
        upper
    }
}

impl Choice {
    /// Whether its tables only need another level: nothing overlaps them, neither below nor among themselves.
    pub(super) fn moves_without_reading(&self) -> bool {
        let mut tables: Vec<&Arc<Table>> = self.upper.iter().collect();
        tables.sort_by(|left, right| left.first().cmp(right.first()));
        self.lower.is_empty() && tables.windows(2).all(|pair| pair[0].last() < pair[1].first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::extents::Space;
    use crate::stores::lsm::table::Pair;
    use kvssd_types::{Pattern, Value};

    /// A table of two pairs of so many KiB together.
    fn table(space: &mut Space, number: u64, (first, last): (u8, u8), kib: u32) -> Arc<Table> {
        let pair = |key: u8| {
            let value = Value::Pattern(Pattern { seed: 1, offset: 0, length: kib * 512 });
            Pair { key: [key].as_slice().into(), value: Some(value) }
        };
        Arc::new(Table::new(number, vec![pair(first), pair(last)], space).unwrap())
    }

    fn numbers(tables: &[Arc<Table>]) -> Vec<u64> {
        tables.iter().map(|table| table.file.number).collect()
    }

    #[test]
    fn level_0_goes_to_a_level_that_moves_up_as_the_last_one_grows() {
        let level_sizes = LevelSizes::FromLast;
        let options = LsmOptions { level_base_bytes: 256 << 10, level_sizes, ..LsmOptions::DEFAULT };
        let mut space = Space::new(1 << 30);
        let mut levels = Levels::default();
        levels.tables[0] = (0..LEVEL0_COMPACTS as u64).map(|number| table(&mut space, number, (0, 200), 1)).collect();
        let choose =
            |levels: &Levels| levels.choose(&options).map(|choice| (choice.from, choice.to, numbers(&choice.lower)));
        assert_eq!(choose(&levels), Some((0, 5, vec![])));
        levels.tables[5] = [(20, (0, 9)), (21, (10, 19)), (22, (210, 219))]
            .map(|(number, keys)| table(&mut space, number, keys, 600))
            .into();
        assert_eq!(choose(&levels), Some((0, 4, vec![])), "1.8 MB below want a tenth above");
        levels.tables[4] = vec![table(&mut space, 10, (0, 30), 300), table(&mut space, 11, (40, 220), 300)];
        levels.tables[0].truncate(1);
        assert_eq!(choose(&levels), Some((4, 5, vec![22])), "the table that overlaps one is the cheapest");
    }

    #[test]
    fn what_is_compacted_is_for_no_other_compaction() {
        let options = LsmOptions { level_base_bytes: 256 << 10, ..LsmOptions::DEFAULT };
        let mut space = Space::new(1 << 30);
        let mut levels = Levels::default();
        for number in 0..LEVEL0_COMPACTS as u64 - 1 {
            levels.tables[0].push(table(&mut space, number, (0, 100), 1));
            assert!(levels.choose(&options).is_none(), "too few tables");
        }
        levels.tables[0].push(table(&mut space, 7, (0, 100), 1));
        levels.tables[1] = vec![table(&mut space, 10, (0, 30), 300), table(&mut space, 11, (110, 220), 300)];
        levels.tables[2] = [(20, (0, 9)), (21, (10, 19)), (22, (210, 219))]
            .map(|(number, keys)| table(&mut space, number, keys, 600))
            .into();
        let begin = |levels: &mut Levels| {
            let choice = levels.choose(&options)?;
            levels.begin(&choice);
            Some((choice.from, numbers(&choice.upper), numbers(&choice.lower)))
        };
        // Level 1 is too large most of all, and the table that overlaps one is cheaper than the one that overlaps two.
        assert_eq!(begin(&mut levels), Some((1, vec![11], vec![22])));
        assert_eq!(begin(&mut levels), Some((1, vec![10], vec![20, 21])));
        assert_eq!(begin(&mut levels), None, "level 0 overlaps a table that is compacted");
        assert!(levels.pending_bytes(&options) > 0);
    }
}
