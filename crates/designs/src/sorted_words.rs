//! A form of sections: words of 8 bytes in ascending order, then zeros.
//!
//! What a word says is the index's business: a place in its low bits and a fingerprint above it, for one. No word is 0.

use kvssd_flash::Blob;
use kvssd_ftl::index::{SectionEdit, SectionForm};

const WORD_BYTES: usize = 8;

/// What the directory keeps of a section: a place of 48 bits. An estimate.
const DIRECTORY_ENTRY_BYTES: u64 = 6;

/// Sections of so many bytes.
#[derive(Clone, Copy, Debug)]
pub struct SortedWords {
    /// Bytes of a section: a page, or less.
    pub bytes: u32,
}

impl SortedWords {
    /// Words that a section has room for.
    #[must_use]
    pub fn slots(self) -> usize {
        self.bytes as usize / WORD_BYTES
    }

    /// The words of a section from `first` on, below `limit`.
    pub fn words(section: &[u8], first: u64, limit: u64) -> impl Iterator<Item = u64> {
        let words =
            &section.as_chunks().0[SortedWords::count_below(section, first)..SortedWords::count_below(section, limit)];
        words.iter().map(|&word| u64::from_le_bytes(word))
    }

    /// How many words of a section are below `limit`.
    #[must_use]
    pub fn count_below(section: &[u8], limit: u64) -> usize {
        let words: &[[u8; WORD_BYTES]] = section.as_chunks().0;
        words.partition_point(|&word| (1..limit).contains(&u64::from_le_bytes(word)))
    }

    /// How many words a section has.
    #[must_use]
    pub fn count(section: &[u8]) -> usize {
        SortedWords::count_below(section, u64::MAX)
    }

    /// Comparisons of a binary search in a section.
    #[must_use]
    pub fn comparisons(section: &[u8]) -> u32 {
        usize::BITS - SortedWords::count(section).leading_zeros()
    }

    /// A section of these words, which are in order and not too many.
    #[must_use]
    pub fn section(self, words: impl IntoIterator<Item = u64>) -> Blob {
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        assert!(bytes.len() <= self.bytes as usize, "a section has room for {} words", self.slots());
        bytes.resize(self.bytes as usize, 0);
        bytes.into()
    }

    /// Takes a word out and puts another in; gives the comparisons. None when the one is not there, or there is no room for the other.
    pub fn replace(self, section: &mut SectionEdit<'_, '_>, old: Option<u64>, new: Option<u64>) -> Option<u32> {
        let mut all: Vec<u64> = SortedWords::words(section, 0, u64::MAX).collect();
        if let Some(old) = old {
            all.remove(all.binary_search(&old).ok()?);
        }
        if let Some(new) = new {
            all.insert(all.binary_search(&new).err()?, new);
        }
        (all.len() <= self.slots()).then_some(())?;
        *section.to_mut() = self.section(all);
        Some(SortedWords::comparisons(section))
    }
}

impl SectionForm for SortedWords {
    fn empty(&self) -> Blob {
        self.section([])
    }

    fn bytes_max(&self) -> u32 {
        self.bytes
    }

    fn directory_entry_bytes(&self) -> u64 {
        DIRECTORY_ENTRY_BYTES
    }

    fn has_form(&self, section: &[u8]) -> bool {
        section.len() == self.bytes as usize
    }

    fn fault(&self, section: &[u8]) -> Option<&'static str> {
        let (words, rest) = section.as_chunks();
        let words = words.iter().map(|&word| u64::from_le_bytes(word));
        let is_sound = words.is_sorted_by(|&one, &next| next == 0 || (0 < one && one < next))
            && rest.iter().all(|&byte| byte == 0);
        (!is_sound).then_some("its words are not in order")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_and_what_is_no_such_section_is_told() {
        let form = SortedWords { bytes: 64 };
        let section = form.section([3, 5, 1 << 40]);
        assert_eq!((form.slots(), SortedWords::count(&section), SortedWords::comparisons(&section)), (8, 3, 2));
        assert!(SortedWords::words(&section, 4, u64::MAX).eq([5, 1 << 40]));
        assert!(
            SortedWords::words(&section, 3, 5).eq([3])
                && SortedWords::words(&form.empty(), 0, u64::MAX).next().is_none()
        );
        let fault = |words: &[u64]| form.fault(&form.section(words.iter().copied()));
        assert_eq!([fault(&[]), fault(&[1, 2, 3, 4, 5, 6, 7, 8])], [None; 2]);
        for wrong in [&[2, 1][..], &[2, 2], &[1, 0, 2], &[0, 1]] {
            assert!(fault(wrong).is_some(), "{wrong:?}");
        }
        assert!(form.has_form(&section) && !form.has_form(&section[8..]));
    }
}
