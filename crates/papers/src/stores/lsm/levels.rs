//! The levels, how large each may be, and what is compacted next.
//!
//! Levels have the sizes of `level_compaction_dynamic_level_bytes`: the last one is as large as it is, each above it a tenth of the one
//! below, and level 0 goes to the first whose size is at most that of the base.

use super::options::{LEVEL_FACTOR, LEVEL0_COMPACTS, LEVELS, LsmOptions};
use super::table::Table;
use std::ops::Range;
use std::sync::Arc;

/// The tables. Those of level 0 overlap, the newest last; those of the others lie in the order of their keys.
#[derive(Debug, Default)]
pub(super) struct Levels(pub(super) [Vec<Arc<Table>>; LEVELS]);

/// How large levels may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// Where level 0 goes.
    base: usize,
    bytes_max: [u64; LEVELS],
}

/// A compaction: tables of one level, and those of another that they overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Tables of `from`.
    pub(super) upper: Range<usize>,
    /// Tables of `to`.
    pub(super) lower: Range<usize>,
}

impl Levels {
    pub(super) fn bytes(&self, level: usize) -> u64 {
        self.0[level].iter().map(|table| table.bytes()).sum()
    }

    /// The tables that may hold a key, the newest first.
    pub(super) fn candidates(&self, key: &[u8]) -> Vec<Arc<Table>> {
        let newest = self.0[0].iter().rev().filter(|table| table.spans(key));
        let deeper = self.0[1..].iter().filter_map(|tables| {
            let at = tables.partition_point(|table| table.last() < key);
            tables.get(at).filter(|table| table.spans(key))
        });
        newest.chain(deeper).cloned().collect()
    }

    /// The tables of a level from 1 on that hold keys of a range.
    fn overlapping(&self, level: usize, (first, last): (&[u8], &[u8])) -> Range<usize> {
        let tables = &self.0[level];
        let start = tables.partition_point(|table| table.last() < first);
        start..start + tables[start..].partition_point(|table| table.first() <= last)
    }

    fn shape(&self, options: &LsmOptions) -> Shape {
        let sizes: [u64; LEVELS] = std::array::from_fn(|level| self.bytes(level));
        let largest = sizes[1..].iter().copied().max().unwrap_or(0);
        let first = (1..LEVELS).find(|&level| sizes[level] > 0).unwrap_or(LEVELS - 1);
        let mut base_bytes = (first..LEVELS - 1).fold(largest, |bytes, _| bytes / LEVEL_FACTOR);
        let mut base = first;
        if base_bytes <= options.level_base_bytes / LEVEL_FACTOR {
            base_bytes = options.level_base_bytes / LEVEL_FACTOR + 1;
        } else {
            while base > 1 && base_bytes > options.level_base_bytes {
                (base, base_bytes) = (base - 1, base_bytes / LEVEL_FACTOR);
            }
            base_bytes = base_bytes.min(options.level_base_bytes);
        }
        let mut bytes_max = [0; LEVELS];
        let mut bytes = base_bytes;
        for bytes_max in &mut bytes_max[base..] {
            *bytes_max = bytes.max(options.level_base_bytes);
            bytes *= LEVEL_FACTOR;
        }
        Shape { base, bytes_max }
    }

    /// The most urgent compaction, if any is wanted.
    pub(super) fn choose(&self, options: &LsmOptions) -> Option<Choice> {
        let shape = self.shape(options);
        let by_count = self.0[0].len() as f64 / LEVEL0_COMPACTS as f64;
        let by_bytes = self.bytes(0) as f64 / options.level_base_bytes as f64;
        let level0 = (!self.0[0].is_empty()).then(|| (0, by_count.max(by_bytes)));
        let deeper = shape.base..LEVELS - 1;
        let scores = deeper.map(|level| (level, self.bytes(level) as f64 / shape.bytes_max[level] as f64));
        let wanted = level0.into_iter().chain(scores).filter(|(_, score)| *score >= 1.0);
        let (from, _) = wanted.max_by(|left, right| left.1.total_cmp(&right.1).then(right.0.cmp(&left.0)))?;
        let (to, upper) = if from == 0 { (shape.base, 0..self.0[0].len()) } else { (from + 1, self.cheapest(from)) };
        let tables = &self.0[from][upper.clone()];
        let first = tables.iter().map(|table| table.first()).min()?;
        let last = tables.iter().map(|table| table.last()).max()?;
        let lower = self.overlapping(to, (first, last));
        Some(Choice { from, to, upper, lower })
    }

    /// The table that has the fewest bytes below it for its own (`kMinOverlappingRatio`).
    fn cheapest(&self, level: usize) -> Range<usize> {
        let ratio = |table: &Table| {
            let below = self.overlapping(level + 1, (table.first(), table.last()));
            let bytes: u64 = self.0[level + 1][below].iter().map(|table| table.bytes()).sum();
            bytes as f64 / table.bytes() as f64
        };
        let ratios = self.0[level].iter().map(|table| ratio(table)).enumerate();
        let at = ratios.min_by(|left, right| left.1.total_cmp(&right.1)).map_or(0, |(at, _)| at);
        at..at + 1
    }

    /// Bytes that compactions have yet to move until no level is too large, as RocksDB reckons them.
    pub(super) fn pending_bytes(&self, options: &LsmOptions) -> u64 {
        let shape = self.shape(options);
        let level0 = if self.0[0].len() >= LEVEL0_COMPACTS { self.bytes(0) } else { 0 };
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

    /// Whether tables of a choice only need another level: nothing overlaps them, neither below nor among themselves.
    pub(super) fn moves_without_reading(&self, choice: &Choice) -> bool {
        let mut tables: Vec<&Arc<Table>> = self.0[choice.from][choice.upper.clone()].iter().collect();
        tables.sort_by(|left, right| left.first().cmp(right.first()));
        choice.lower.is_empty() && tables.windows(2).all(|pair| pair[0].last() < pair[1].first())
    }

    /// Takes the tables of a choice out and puts others into the level that it goes to; gives those that were taken.
    pub(super) fn replace(&mut self, choice: &Choice, outputs: Vec<Arc<Table>>) -> Vec<Arc<Table>> {
        let mut taken: Vec<Arc<Table>> = self.0[choice.from].drain(choice.upper.clone()).collect();
        taken.extend(self.0[choice.to].splice(choice.lower.clone(), outputs));
        let ordered = self.0[choice.to].windows(2).all(|pair| pair[0].last() < pair[1].first());
        assert!(ordered, "tables of a level do not overlap");
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::extents::Space;
    use crate::stores::lsm::table::Pair;
    use kvssd_types::{Pattern, Value};

    /// A table of two pairs of so many KiB together.
    fn table(space: &mut Space, first: u8, last: u8, kib: u32) -> Arc<Table> {
        let pair = |key: u8| {
            let value = Value::Pattern(Pattern { seed: 1, offset: 0, length: kib * 512 });
            Pair { key: [key].as_slice().into(), value: Some(value) }
        };
        Arc::new(Table::new(1, vec![pair(first), pair(last)], space).unwrap())
    }

    #[test]
    fn level_0_goes_to_a_level_that_moves_up_as_the_last_one_grows() {
        let options = LsmOptions { level_base_bytes: 256 << 10, ..LsmOptions::DEFAULT };
        let mut space = Space::new(1 << 30);
        let mut levels = Levels::default();
        for _ in 0..LEVEL0_COMPACTS - 1 {
            levels.0[0].push(table(&mut space, 0, 200, 1));
            assert_eq!(levels.choose(&options), None, "too few tables");
        }
        levels.0[0].push(table(&mut space, 0, 200, 1));
        let to = |levels: &Levels| levels.choose(&options).map(|choice| (choice.from, choice.to, choice.lower));
        assert_eq!(to(&levels), Some((0, 6, 0..0)));
        levels.0[6] = vec![table(&mut space, 0, 9, 600), table(&mut space, 10, 19, 600)];
        levels.0[6].push(table(&mut space, 210, 219, 600));
        assert_eq!(to(&levels), Some((0, 5, 0..0)), "1.8 MB below want a tenth above");
        levels.0[5] = vec![table(&mut space, 0, 30, 300), table(&mut space, 40, 220, 300)];
        levels.0[0].truncate(1);
        let choice = levels.choose(&options).unwrap();
        let expected = Choice { from: 5, to: 6, upper: 1..2, lower: 2..3 };
        assert_eq!(choice, expected, "the table that overlaps one is cheaper than the one that overlaps two");
        assert!(!levels.moves_without_reading(&choice) && levels.pending_bytes(&options) > 0);
    }
}
