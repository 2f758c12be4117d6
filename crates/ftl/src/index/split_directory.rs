//! A directory of sections that split: which one a tag belongs to.
//!
//! ```text
//!   low D bits of the tag -> depth d of its section -> the section of all tags with the same low d bits
//!   number of a section: 2^d + those d bits       1 | 2 3 | 4 5 6 7 | ...  the halves of each are 2^d further on
//! ```
//!
//! A section that is split is replaced by two that are one deeper. When it was as deep as the directory, that doubles:
//! each entry has a second one that says the same.

use kvssd_ftl::Grain;
use kvssd_ftl::index::{SectionForm, View};
use kvssd_types::KvError;

/// No directory is deeper: it would have a thousand million sections.
pub(crate) const DEPTH_MAX: u32 = 30;

/// The depth of the section behind each entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    depths: Vec<u8>,
}

impl Directory {
    /// All sections of one depth.
    pub(crate) fn new(depth: u32) -> Self {
        Directory { depths: vec![depth as u8; 1 << depth] }
    }

    /// The directory with these depths, if there can be one.
    pub(crate) fn from_depths(depths: Vec<u8>) -> Option<Self> {
        let is_power = depths.len().is_power_of_two() && depths.len() <= 1 << DEPTH_MAX;
        let depth = depths.len().checked_ilog2()?;
        // Who shares a section agrees on its depth.
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

    /// The number of the section that a tag belongs to.
    pub(crate) fn section_of(&self, tag: u64) -> u64 {
        let low = tag as usize & (self.depths.len() - 1);
        number(low, self.depths[low].into())
    }

    /// Numbers from 0 to this one, less one, cover all sections.
    pub(crate) fn numbers(&self) -> u64 {
        2 * self.depths.len() as u64
    }

    /// Whether there is such a section.
    pub(crate) fn has(&self, section: u64) -> bool {
        section > 0 && section < self.numbers() && self.section_of(low_of(section)) == section
    }

    /// Replaces a section by its two halves.
    pub(crate) fn split(&mut self, section: u64) {
        let depth = depth_of(section);
        if depth == self.depth() {
            self.depths.extend_from_within(..);
        }
        for low in (low_of(section) as usize..self.depths.len()).step_by(1 << depth) {
            self.depths[low] = depth as u8 + 1;
        }
    }

    /// The next section in the order of the reversed bits, which no split changes. That of 0 is the first.
    pub(crate) fn next(&self, section: u64) -> Option<u64> {
        let (mut low, mut bit) = (low_of(section), 1u64.checked_shl(depth_of(section))? >> 1);
        while bit > 0 && low & bit != 0 {
            low &= !bit;
            bit >>= 1;
        }
        (bit > 0).then(|| self.section_of(low | bit))
    }

    /// The position of a pair in the order of all. It is by reversed bits: neither a split nor an entry that moves within
    /// its section changes it.
    pub(crate) fn order(tag: u64, place: Grain) -> (u64, Grain) {
        (tag.reverse_bits(), place)
    }

    /// Up to `count` pairs in their order, from `first` on; `entries` lists tag and place of all in a section.
    pub(crate) fn pairs_from<F: SectionForm>(
        &self,
        view: &mut View<'_, '_, F>,
        first: (u64, Grain),
        count: usize,
        entries: impl Fn(u64, &[u8]) -> Vec<(u64, Grain)>,
    ) -> Result<Vec<(u64, Grain)>, KvError> {
        let mut pairs = Vec::new();
        let mut next = Some(self.section_of(first.0.reverse_bits()));
        while pairs.len() < count
            && let Some(section) = next
        {
            next = self.next(section);
            if view.is_nowhere(section) {
                continue;
            }
            let ticket = view.load(section)?;
            let found = entries(section, view.bytes(ticket)).into_iter();
            let mut listed: Vec<(u64, Grain)> =
                found.map(|(tag, place)| Directory::order(tag, place)).filter(|pair| *pair >= first).collect();
            listed.sort_unstable();
            view.compare(listed.len() as u64);
            pairs.extend(listed.into_iter().take(count - pairs.len()));
        }
        Ok(pairs)
    }
}

/// The depth of a section.
pub(crate) fn depth_of(section: u64) -> u32 {
    section.ilog2()
}

/// The low bits of all tags of a section.
pub(crate) fn low_of(section: u64) -> u64 {
    section - (1 << depth_of(section))
}

/// The halves of a section.
pub(crate) fn halves_of(section: u64) -> [u64; 2] {
    let (depth, low) = (depth_of(section), low_of(section) as usize);
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
    fn every_tag_has_one_section_and_the_order_meets_each_once() {
        let mut random = Random::new(5);
        let mut directory = Directory::new(2);
        let mut sections = 4;
        for _ in 0..300 {
            let section = directory.section_of(random.below(u64::MAX));
            if depth_of(section) >= 12 {
                continue;
            }
            directory.split(section);
            sections += 1;
            assert!(!directory.has(section) && halves_of(section).iter().all(|&half| directory.has(half)));
            let all: Vec<u64> =
                std::iter::successors(Some(directory.section_of(0)), |&section| directory.next(section)).collect();
            assert_eq!(all.len(), sections);
            assert!(all.iter().all(|&section| directory.has(section)));
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
            std::iter::successors(Some(directory.section_of(0)), |&section| directory.next(section)).collect::<Vec<_>>()
        };
        assert_eq!(order(&directory), [4, 6, 3]);
        directory.split(3);
        assert_eq!(order(&directory), [4, 6, 5, 7]);
    }
}
