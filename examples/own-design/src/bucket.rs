//! A bucket: a page of words in ascending order, then zeros.

use kvssd_flash::Blob;
use kvssd_ftl::Grain;
use kvssd_ftl::index::{SectionEdit, SectionForm};

/// Bits of a place.
pub const PLACE_BITS: u32 = 40;

const WORD_BYTES: usize = 8;

/// The place that a word names.
pub fn place_of(word: u64) -> Grain {
    Grain(word & ((1 << PLACE_BITS) - 1))
}

/// How many words of a bucket are below `limit`.
pub fn count_below(bucket: &[u8], limit: u64) -> usize {
    let words: &[[u8; WORD_BYTES]] = bucket.as_chunks().0;
    words.partition_point(|&word| (1..limit).contains(&u64::from_le_bytes(word)))
}

/// The words of a bucket from `first` on, below `limit`.
pub fn words(bucket: &[u8], first: u64, limit: u64) -> impl Iterator<Item = u64> {
    let words = &bucket.as_chunks().0[count_below(bucket, first)..count_below(bucket, limit)];
    words.iter().map(|&word| u64::from_le_bytes(word))
}

/// Comparisons of a binary search in a bucket.
pub fn comparisons(bucket: &[u8]) -> u32 {
    usize::BITS - count_below(bucket, u64::MAX).leading_zeros()
}

/// What buckets look like.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    /// Bytes of a page.
    pub page_bytes: u32,
}

impl Bucket {
    /// Words of a bucket.
    pub fn slots(self) -> usize {
        self.page_bytes as usize / WORD_BYTES
    }

    /// Takes a word out and puts another in. None when the one is not there, or there is no room for the other.
    pub fn replace(self, bucket: &mut SectionEdit<'_, '_>, old: Option<u64>, new: Option<u64>) -> Option<u32> {
        let mut all: Vec<u64> = words(bucket, 0, u64::MAX).collect();
        if let Some(old) = old {
            all.remove(all.binary_search(&old).ok()?);
        }
        if let Some(new) = new {
            all.insert(all.binary_search(&new).err()?, new);
        }
        (all.len() <= self.slots()).then_some(())?;
        let mut bytes: Vec<u8> = all.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(self.page_bytes as usize, 0);
        bucket.to_mut().make_mut().copy_from_slice(&bytes);
        Some(comparisons(bucket))
    }
}

impl SectionForm for Bucket {
    fn empty(&self) -> Blob {
        vec![0; self.page_bytes as usize].into()
    }

    fn bytes_max(&self) -> u32 {
        self.page_bytes
    }

    fn directory_entry_bytes(&self) -> u64 {
        6
    }

    fn has_form(&self, bucket: &[u8]) -> bool {
        bucket.len() == self.page_bytes as usize
    }

    fn fault(&self, bucket: &[u8]) -> Option<&'static str> {
        let taken = count_below(bucket, u64::MAX);
        let is_sound = words(bucket, 0, u64::MAX).is_sorted_by(|one, next| one < next)
            && bucket[taken * WORD_BYTES..].iter().all(|&byte| byte == 0);
        (!is_sound).then_some("its words are not in order")
    }
}
