//! A directory of sections that split as they fill (Fagin, 1979): which one a tag belongs to.
//!
//! ```text
//!   low D bits of the tag -> depth d of its section -> the section of all tags with the same low d bits
//!   number of a section: 2^d + those d bits       1 | 2 3 | 4 5 6 7 | ...  the halves of each are 2^d further on
//! ```
//!
//! A section that is split is replaced by two that are one deeper. When it was as deep as the directory, that doubles:
//! each entry has a second one that says the same.

use crate::layout::address::Grain;
use serde::{Deserialize, Serialize};

/// No drive has so many pairs.
const PAIRS_MAX: u64 = 1 << 48;

/// The depth of the section behind each entry, and how many pairs there are. It is plain data for serde, and checked when it is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Saved")]
pub struct SplitDirectory {
    depths: Vec<u8>,
    pairs: u64,
}

/// What flash says of one.
#[derive(Deserialize)]
struct Saved {
    depths: Vec<u8>,
    pairs: u64,
}

impl SplitDirectory {
    /// No directory is deeper: it would have a thousand million sections.
    pub const DEPTH_MAX: u32 = 30;

    /// All sections of one depth.
    #[must_use]
    pub fn new(depth: u32) -> Self {
        SplitDirectory { depths: vec![depth as u8; 1 << depth], pairs: 0 }
    }

    /// The pairs in all sections.
    #[must_use]
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// There are so many pairs.
    pub fn recount(&mut self, pairs: u64) {
        self.pairs = pairs;
    }

    /// The entries of the directory.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.depths.len() as u64
    }

    pub(super) fn is_between(&self, depth_min: u32, depth_max: u32) -> bool {
        self.depths.iter().all(|&depth| (depth_min..=depth_max).contains(&depth.into()))
    }

    /// The depth of the directory (RHIK, equation 2: log2 of D).
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depths.len().ilog2()
    }

    /// The number of the section that a tag belongs to.
    #[must_use]
    pub fn section_of(&self, tag: u64) -> u64 {
        let low = tag as usize & (self.depths.len() - 1);
        number(low, self.depths[low].into())
    }

    /// Numbers from 0 to this one, less one, cover all sections.
    #[must_use]
    pub fn numbers(&self) -> u64 {
        2 * self.depths.len() as u64
    }

    /// Whether there is such a section.
    #[must_use]
    pub fn has(&self, section: u64) -> bool {
        section > 0 && section < self.numbers() && self.section_of(Self::low_of(section)) == section
    }

    /// Replaces a section by its two halves.
    pub(super) fn split(&mut self, section: u64) {
        let depth = Self::depth_of(section);
        if depth == self.depth() {
            self.depths.extend_from_within(..);
        }
        for low in (Self::low_of(section) as usize..self.depths.len()).step_by(1 << depth) {
            self.depths[low] = depth as u8 + 1;
        }
    }

    /// The next section in the order of the reversed bits, which no split changes. That of 0 is the first.
    #[must_use]
    pub fn next(&self, section: u64) -> Option<u64> {
        next_section(section, |tag| self.section_of(tag))
    }

    /// The position of a pair in the order of all. It is by reversed bits: neither a split nor an entry that moves within
    /// its section changes it.
    #[must_use]
    pub fn order(tag: u64, place: Grain) -> (u64, Grain) {
        (tag.reverse_bits(), place)
    }

    /// The depth of a section.
    #[must_use]
    pub fn depth_of(section: u64) -> u32 {
        section.ilog2()
    }

    /// The low bits of all tags of a section.
    #[must_use]
    pub fn low_of(section: u64) -> u64 {
        section - (1 << Self::depth_of(section))
    }

    /// The halves of a section.
    #[must_use]
    pub fn halves_of(section: u64) -> [u64; 2] {
        let (depth, low) = (Self::depth_of(section), Self::low_of(section) as usize);
        [number(low, depth + 1), number(low | 1 << depth, depth + 1)]
    }
}

fn number(low: usize, depth: u32) -> u64 {
    let bit = 1u64 << depth;
    bit | (low as u64 & (bit - 1))
}

impl TryFrom<Saved> for SplitDirectory {
    type Error = &'static str;

    fn try_from(Saved { depths, pairs }: Saved) -> Result<Self, &'static str> {
        let is_power = depths.len().is_power_of_two() && depths.len() <= 1 << Self::DEPTH_MAX;
        let depth = depths.len().checked_ilog2().unwrap_or_default();
        // Who shares a section agrees on its depth.
        let agrees = |(low, &own): (usize, &u8)| u32::from(own) <= depth && depths[low & ((1 << own) - 1)] == own;
        let can_be = is_power && pairs <= PAIRS_MAX && depths.iter().enumerate().all(agrees);
        can_be.then_some(SplitDirectory { depths, pairs }).ok_or("there is no directory with these depths")
    }
}

/// As [`SplitDirectory::next`], where something else knows how deep the section of a tag is.
pub(super) fn next_section(section: u64, section_of: impl Fn(u64) -> u64) -> Option<u64> {
    let (mut low, mut bit) =
        (SplitDirectory::low_of(section), 1u64.checked_shl(SplitDirectory::depth_of(section))? >> 1);
    while bit > 0 && low & bit != 0 {
        low &= !bit;
        bit >>= 1;
    }
    (bit > 0).then(|| section_of(low | bit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_types::Random;

    fn of_depths(depths: Vec<u8>) -> Result<SplitDirectory, &'static str> {
        SplitDirectory::try_from(Saved { depths, pairs: 0 })
    }

    #[test]
    fn every_tag_has_one_section_and_the_order_meets_each_once() {
        let mut random = Random::new(5);
        let mut directory = SplitDirectory::new(2);
        let mut sections = 4;
        for _ in 0..300 {
            let section = directory.section_of(random.below(u64::MAX));
            if SplitDirectory::depth_of(section) >= 12 {
                continue;
            }
            directory.split(section);
            sections += 1;
            assert!(
                !directory.has(section) && SplitDirectory::halves_of(section).iter().all(|&half| directory.has(half))
            );
            let all: Vec<u64> =
                std::iter::successors(Some(directory.section_of(0)), |&section| directory.next(section)).collect();
            assert_eq!(all.len(), sections);
            assert!(all.iter().all(|&section| directory.has(section)));
            assert_eq!(of_depths(directory.depths.clone()), Ok(directory.clone()));
        }
        let mut depths = directory.depths.clone();
        depths[1] += 1;
        assert!(of_depths(depths).is_err());
        for impossible in [vec![], vec![1, 1, 1], vec![2, 2]] {
            assert!(of_depths(impossible).is_err());
        }
    }

    #[test]
    fn a_split_keeps_the_order_of_the_others() {
        let mut directory = SplitDirectory::new(1);
        directory.split(2);
        let order = |directory: &SplitDirectory| {
            std::iter::successors(Some(directory.section_of(0)), |&section| directory.next(section)).collect::<Vec<_>>()
        };
        assert_eq!(order(&directory), [4, 6, 3]);
        directory.split(3);
        assert_eq!(order(&directory), [4, 6, 5, 7]);
    }
}
