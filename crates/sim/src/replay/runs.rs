//! The blocks of a drive that nobody has, as runs: who wants some gets them as one run if he can.
//!
//! ```text
//!   free    [0 5)      [9 12)          [40 90)
//!   3 are wanted -> [9 12), the shortest run that is long enough
//!   52 are wanted -> [40 90) and [0 2): no run is, so the longest ones are put together
//! ```

use std::collections::{BTreeMap, BTreeSet};

/// Blocks side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockRun {
    pub(super) first: u64,
    /// How many they are.
    pub(super) blocks: u64,
}

/// Blocks that are free. Two runs never touch.
#[derive(Debug)]
pub(super) struct FreeRuns {
    /// Their lengths, by where they begin.
    by_place: BTreeMap<u64, u64>,
    /// Length and first block.
    by_length: BTreeSet<(u64, u64)>,
    blocks: u64,
}

impl FreeRuns {
    /// All of so many.
    pub(super) fn new(blocks: u64) -> Self {
        let mut free = FreeRuns { by_place: BTreeMap::new(), by_length: BTreeSet::new(), blocks: 0 };
        if blocks > 0 {
            free.give_back(BlockRun { first: 0, blocks });
        }
        free
    }

    /// How many are free.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Takes so many; none when there are fewer.
    pub(super) fn take(&mut self, blocks: u64) -> Option<Vec<BlockRun>> {
        let (mut missing, mut taken) = (blocks, Vec::new());
        if missing > self.blocks {
            return None;
        }
        while missing > 0 {
            let fitting = self.by_length.range((missing, 0)..).next().or(self.by_length.last());
            let &(length, first) = fitting.expect("so many are free");
            let run = BlockRun { first, blocks: missing.min(length) };
            self.remove(first, length);
            if length > run.blocks {
                self.insert(first + run.blocks, length - run.blocks);
            }
            missing -= run.blocks;
            taken.push(run);
        }
        self.blocks -= blocks;
        Some(taken)
    }

    /// Takes a run back.
    ///
    /// # Panics
    /// When a part of it is free.
    pub(super) fn give_back(&mut self, run: BlockRun) {
        let BlockRun { mut first, mut blocks } = run;
        let before = self.by_place.range(..=first).next_back().map(|(&first, &length)| (first, length));
        let behind = self.by_place.range(first..).next().map(|(&first, &length)| (first, length));
        let overlaps_none = before.is_none_or(|(begin, length)| begin + length <= first)
            && behind.is_none_or(|(begin, _)| first + blocks <= begin);
        assert!(overlaps_none, "who gives blocks back had them: {run:?}");
        self.blocks += blocks;
        if let Some((begin, length)) = before.filter(|(begin, length)| begin + length == first) {
            self.remove(begin, length);
            (first, blocks) = (begin, blocks + length);
        }
        if let Some((begin, length)) = behind.filter(|(begin, _)| first + blocks == *begin) {
            self.remove(begin, length);
            blocks += length;
        }
        self.insert(first, blocks);
    }

    fn insert(&mut self, first: u64, length: u64) {
        self.by_place.insert(first, length);
        self.by_length.insert((length, first));
    }

    fn remove(&mut self, first: u64, length: u64) {
        self.by_place.remove(&first);
        self.by_length.remove(&(length, first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_types::Random;

    /// Against a plain list of blocks: nobody has one twice, none is lost, and one run is given where there is one.
    #[test]
    fn nobody_gets_what_another_one_has_and_nothing_is_lost() {
        const BLOCKS: u64 = 1000;
        let mut random = Random::new(11);
        let mut free = FreeRuns::new(BLOCKS);
        let mut owners: Vec<Option<u64>> = vec![None; BLOCKS as usize];
        let mut held: Vec<(u64, Vec<BlockRun>)> = Vec::new();
        let (mut refused, mut pieces) = (0, 0);
        for owner in 0..20_000 {
            let wanted = 1 + random.below(60);
            let left = owners.iter().filter(|owner| owner.is_none()).count() as u64;
            assert_eq!(free.blocks(), left);
            let longest = owners.chunk_by(|left, right| left.is_none() == right.is_none());
            let longest = longest.filter(|run| run[0].is_none()).map(<[_]>::len).max().unwrap_or(0) as u64;
            match free.take(wanted) {
                None => {
                    assert!(wanted > left);
                    refused += 1;
                }
                Some(runs) => {
                    assert_eq!(runs.iter().map(|run| run.blocks).sum::<u64>(), wanted);
                    assert_eq!(runs.len() == 1, wanted <= longest);
                    pieces += u64::from(runs.len() > 1);
                    for block in runs.iter().flat_map(|run| run.first..run.first + run.blocks) {
                        assert_eq!(owners[block as usize].replace(owner), None, "block {block} has an owner");
                    }
                    held.push((owner, runs));
                }
            }
            while !held.is_empty() && (free.blocks() < 30 || random.below(2) == 0) {
                let (owner, runs) = held.swap_remove(random.below(held.len() as u64) as usize);
                for run in runs {
                    for block in run.first..run.first + run.blocks {
                        assert_eq!(owners[block as usize].take(), Some(owner));
                    }
                    free.give_back(run);
                }
            }
        }
        assert!(refused > 100 && pieces > 100, "{refused} found none, {pieces} got several runs");
    }
}
