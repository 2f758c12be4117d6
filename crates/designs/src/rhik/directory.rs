//! The directory: which table a signature belongs to.
//!
//! ```text
//!   low D bits of the signature -> depth d of its table -> the table of all signatures with the same low d bits
//!   number of a table: 2^d + those d bits       1 | 2 3 | 4 5 6 7 | ...  each table's halves are 2^d further on
//! ```
//!
//! A table that is split is replaced by two that are one deeper. When it was as deep as the directory, that doubles:
//! each entry has a second one that says the same.

use crate::record_table::Signature;

/// No directory is deeper: it would have a thousand million tables.
pub(crate) const DEPTH_MAX: u32 = 30;

/// The depth of the table behind each entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    depths: Vec<u8>,
}

impl Directory {
    /// All tables of one depth.
    pub(crate) fn new(depth: u32) -> Self {
        Directory { depths: vec![depth as u8; 1 << depth] }
    }

    /// The directory with these depths, if there can be one.
    pub(crate) fn from_depths(depths: Vec<u8>) -> Option<Self> {
        let is_power = depths.len().is_power_of_two() && depths.len() <= 1 << DEPTH_MAX;
        let depth = depths.len().checked_ilog2()?;
        // Who shares a table agrees on its depth.
        let agrees = |(low, &own): (usize, &u8)| u32::from(own) <= depth && depths[low & ((1 << own) - 1)] == own;
        (is_power && depths.iter().enumerate().all(agrees)).then_some(Directory { depths })
    }

    /// The depths, to be saved.
    pub(crate) fn depths(&self) -> &[u8] {
        &self.depths
    }

    /// The depth of the directory (log2 of D, equation 2).
    pub(crate) fn depth(&self) -> u32 {
        self.depths.len().ilog2()
    }

    /// The number of the table that a signature belongs to.
    pub(crate) fn table_of(&self, signature: Signature) -> u64 {
        let low = signature as usize & (self.depths.len() - 1);
        number(low, self.depths[low].into())
    }

    /// Numbers from 0 to this one, less one, cover all tables.
    pub(crate) fn numbers(&self) -> u64 {
        2 * self.depths.len() as u64
    }

    /// Whether there is such a table.
    pub(crate) fn has(&self, table: u64) -> bool {
        table > 0 && table < self.numbers() && self.table_of(low_of(table)) == table
    }

    /// Replaces a table by its two halves.
    pub(crate) fn split(&mut self, table: u64) {
        let depth = depth_of(table);
        if depth == self.depth() {
            self.depths.extend_from_within(..);
        }
        for low in (low_of(table) as usize..self.depths.len()).step_by(1 << depth) {
            self.depths[low] = depth as u8 + 1;
        }
    }

    /// The next table in the order of the reversed bits, which no split changes. That of 0 is the first.
    pub(crate) fn next(&self, table: u64) -> Option<u64> {
        let (mut low, mut bit) = (low_of(table), 1u64.checked_shl(depth_of(table))? >> 1);
        while bit > 0 && low & bit != 0 {
            low &= !bit;
            bit >>= 1;
        }
        (bit > 0).then(|| self.table_of(low | bit))
    }
}

/// The depth of a table.
pub(crate) fn depth_of(table: u64) -> u32 {
    table.ilog2()
}

/// The low bits of all signatures of a table.
pub(crate) fn low_of(table: u64) -> u64 {
    table - (1 << depth_of(table))
}

/// The halves of a table.
pub(crate) fn halves_of(table: u64) -> [u64; 2] {
    let (depth, low) = (depth_of(table), low_of(table) as usize);
    [number(low, depth + 1), number(low | 1 << depth, depth + 1)]
}

fn number(low: usize, depth: u32) -> u64 {
    let bit = 1u64 << depth;
    bit | (low as u64 & (bit - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_types::Random;

    #[test]
    fn every_signature_has_one_table_and_the_order_meets_each_once() {
        let mut random = Random::new(5);
        let mut directory = Directory::new(2);
        let mut tables = 4;
        for _ in 0..300 {
            let table = directory.table_of(random.below(u64::MAX));
            if depth_of(table) >= 12 {
                continue;
            }
            directory.split(table);
            tables += 1;
            assert!(!directory.has(table) && halves_of(table).iter().all(|&half| directory.has(half)));
            let all: Vec<u64> =
                std::iter::successors(Some(directory.table_of(0)), |&table| directory.next(table)).collect();
            assert_eq!(all.len(), tables);
            assert!(all.iter().all(|&table| directory.has(table)));
            assert_eq!(Directory::from_depths(directory.depths().to_vec()), Some(directory.clone()));
        }
        let mut depths = directory.depths().to_vec();
        depths[1] += 1;
        assert_eq!(Directory::from_depths(depths), None);
        for impossible in [vec![], vec![1, 1, 1], vec![2, 2]] {
            assert_eq!(Directory::from_depths(impossible), None);
        }
    }

    #[test]
    fn a_split_keeps_the_order_of_the_others() {
        let mut directory = Directory::new(1);
        directory.split(2);
        let order = |directory: &Directory| {
            std::iter::successors(Some(directory.table_of(0)), |&table| directory.next(table)).collect::<Vec<_>>()
        };
        assert_eq!(order(&directory), [4, 6, 3]);
        directory.split(3);
        assert_eq!(order(&directory), [4, 6, 5, 7]);
    }
}
