//! Sections that split as they fill (Fagin, 1979): which one a tag belongs to, and what all such indexes do alike.
//!
//! ```text
//!   low D bits of the tag -> depth d of its section -> the section of all tags with the same low d bits
//!   number of a section: 2^d + those d bits       1 | 2 3 | 4 5 6 7 | ...  the halves of each are 2^d further on
//! ```
//!
//! A section that is split is replaced by two that are one deeper. When it was as deep as the directory, that doubles:
//! each entry has a second one that says the same.
//!
//! An index of such sections has a [`SplitDirectory`], a form that says when a section is full and what its halves are ([`SplitForm`]), and
//! in its [`SectionIndex`] a line for each of `sections`, `section_of`, `reserve`, `list`, `dram`, `redo_section` and `redo_split`.

use crate::dram::DramUse;
use crate::index::{Position, SectionForm, SectionIndex, View};
use crate::layout::address::Grain;
use kvssd_flash::Blob;
use kvssd_types::KvError;
use serde::{Deserialize, Serialize};

/// Sections that can be split.
pub trait SplitForm: SectionForm {
    /// A section of this depth is split no further, at most [`SplitDirectory::DEPTH_MAX`]: with no room in it, the index is full.
    fn depth_max(&self) -> u32 {
        SplitDirectory::DEPTH_MAX
    }

    /// Whether a section of that depth takes one more pair with `tag`.
    fn has_room(&self, section: &Blob, tag: u64, depth: u32) -> bool;

    /// The halves of a section of that depth, of one length: the pairs whose tag has a 0 in bit `depth`, and those with a 1.
    /// Also how many entries that looks at.
    ///
    /// # Errors
    /// [`KvError::Unrecovered`] when the bytes, which come from flash, are not those of a section of that depth.
    fn split(&self, section: &Blob, depth: u32) -> Result<([Blob; 2], u64), KvError>;
}

/// An index whose sections split.
pub trait SplitIndex: SectionIndex<Form: SplitForm> {
    /// Which section a tag belongs to.
    fn directory(&self) -> &SplitDirectory;

    /// The same, to be changed.
    fn directory_mut(&mut self) -> &mut SplitDirectory;

    /// For [`SectionIndex::reserve`]: splits the section of `tag` until it takes one more pair.
    ///
    /// # Errors
    /// [`KvError::CapacityExceeded`] when it can be split no further; what the flash operations answer.
    fn split_until_room(&mut self, view: &mut View<'_, '_, Self::Form>, tag: u64) -> Result<(), KvError> {
        loop {
            let section = self.directory().section_of(tag);
            let depth = SplitDirectory::depth_of(section);
            let ticket = view.load(section)?;
            if view.form().has_room(view.bytes(ticket), tag, depth) {
                return Ok(());
            }
            if depth >= view.form().depth_max() {
                return Err(KvError::CapacityExceeded);
            }
            self.split_section(view, section)?;
        }
    }

    /// Replaces a section by its halves.
    ///
    /// # Errors
    /// What [`SplitForm::split`] and the flash operations answer.
    fn split_section(&mut self, view: &mut View<'_, '_, Self::Form>, section: u64) -> Result<(), KvError> {
        let ticket = view.load(section)?;
        let (parts, entries) = view.form().split(view.bytes(ticket), SplitDirectory::depth_of(section))?;
        view.compare(entries);
        self.directory_mut().split(section);
        let cache_bytes_max = self.cache_bytes_max(view.budget_bytes());
        view.resize(self.directory().numbers(), cache_bytes_max);
        view.split(section, SplitDirectory::halves_of(section), parts)
    }

    /// Up to `count` pairs in their order ([`SplitDirectory::order`]), from `first` on.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn pairs_from(
        &self,
        view: &mut View<'_, '_, Self::Form>,
        first: (u64, Grain),
        count: usize,
    ) -> Result<Vec<(u64, Grain)>, KvError> {
        let mut pairs = Vec::new();
        let mut next = Some(self.directory().section_of(first.0.reverse_bits()));
        while pairs.len() < count
            && let Some(section) = next
        {
            next = self.directory().next(section);
            if view.is_nowhere(section) {
                continue;
            }
            let ticket = view.load(section)?;
            let found = self.entries(section, view.bytes(ticket));
            let mut listed: Vec<(u64, Grain)> = found
                .map(|entry| SplitDirectory::order(entry.tag, entry.place))
                .filter(|pair| *pair >= first)
                .collect();
            listed.sort_unstable();
            view.compare(listed.len() as u64);
            pairs.extend(listed.into_iter().take(count - pairs.len()));
        }
        Ok(pairs)
    }

    /// For [`SectionIndex::list`]: in an order that no split changes.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn list_in_order(
        &self,
        view: &mut View<'_, '_, Self::Form>,
        from: Option<Position>,
        count: usize,
    ) -> Result<Vec<Grain>, KvError> {
        let start = from.map(|from| (self.first_tag(from.hash), from.place.unwrap_or(Grain(0))));
        let first = start.map_or((0, Grain(0)), |(tag, place)| SplitDirectory::order(tag, place));
        Ok(self.pairs_from(view, first, count)?.into_iter().map(|(_, place)| place).collect())
    }
}

/// The depth of the section behind each entry. It is saved as these alone; what is restored is checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<u8>", try_from = "Vec<u8>")]
pub struct SplitDirectory {
    depths: Vec<u8>,
}

impl SplitDirectory {
    /// No directory is deeper: it would have a thousand million sections.
    pub const DEPTH_MAX: u32 = 30;

    /// All sections of one depth.
    #[must_use]
    pub fn new(depth: u32) -> Self {
        SplitDirectory { depths: vec![depth as u8; 1 << depth] }
    }

    /// The depths of the sections behind all entries.
    #[must_use]
    pub fn depths(&self) -> &[u8] {
        &self.depths
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

    /// Charges what it takes in DRAM.
    pub fn dram(&self, dram: &mut DramUse, form: &impl SectionForm) {
        dram.add("index_directory", self.depths.len() as u64 * form.directory_entry_bytes());
    }

    /// For [`SectionIndex::redo_split`]: the halves of a section that a mount finds to have been split. None when that cannot be.
    pub fn redo_split(&mut self, section: u64, form: &impl SplitForm) -> Option<[u64; 2]> {
        let can_be = self.has(section) && Self::depth_of(section) < form.depth_max();
        can_be.then(|| {
            self.split(section);
            Self::halves_of(section)
        })
    }

    /// Replaces a section by its two halves.
    fn split(&mut self, section: u64) {
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
        let (mut low, mut bit) = (Self::low_of(section), 1u64.checked_shl(Self::depth_of(section))? >> 1);
        while bit > 0 && low & bit != 0 {
            low &= !bit;
            bit >>= 1;
        }
        (bit > 0).then(|| self.section_of(low | bit))
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

impl From<SplitDirectory> for Vec<u8> {
    fn from(directory: SplitDirectory) -> Vec<u8> {
        directory.depths
    }
}

impl TryFrom<Vec<u8>> for SplitDirectory {
    type Error = &'static str;

    fn try_from(depths: Vec<u8>) -> Result<Self, &'static str> {
        let is_power = depths.len().is_power_of_two() && depths.len() <= 1 << Self::DEPTH_MAX;
        let depth = depths.len().checked_ilog2().unwrap_or_default();
        // Who shares a section agrees on its depth.
        let agrees = |(low, &own): (usize, &u8)| u32::from(own) <= depth && depths[low & ((1 << own) - 1)] == own;
        let can_be = is_power && depths.iter().enumerate().all(agrees);
        can_be.then_some(SplitDirectory { depths }).ok_or("there is no directory with these depths")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_types::Random;

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
            assert_eq!(SplitDirectory::try_from(directory.depths().to_vec()), Ok(directory.clone()));
        }
        let mut depths = directory.depths().to_vec();
        depths[1] += 1;
        assert!(SplitDirectory::try_from(depths).is_err());
        for impossible in [vec![], vec![1, 1, 1], vec![2, 2]] {
            assert!(SplitDirectory::try_from(impossible).is_err());
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
