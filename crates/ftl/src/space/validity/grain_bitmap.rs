//! `grain-bitmap`: a bit for every grain of the drive (Plus, section III-A).

use crate::dram::DramUse;
use crate::layout::address::Grain;
use crate::layout::packing::Packing;
use crate::space::validity::Validity;
use kvssd_flash::PageAddress;

/// A bit a grain, set while the grain belongs to a record that lives.
#[derive(Clone, Debug)]
pub struct GrainBitmap {
    packing: Packing,
    words: Vec<u64>,
    grains: u64,
}

impl GrainBitmap {
    /// No grain of `grains` lives.
    #[must_use]
    pub fn new(packing: Packing, grains: u64) -> Self {
        GrainBitmap { packing, words: vec![0; grains.div_ceil(64) as usize], grains }
    }

    /// Charges the bitmap of a drive of `grains`.
    pub fn charge(grains: u64, dram: &mut DramUse) {
        dram.add("grain_bitmap", grains.div_ceil(8));
    }

    /// Calls `change` with each word that the run touches and the run's bits in it.
    fn each_word(&mut self, first: Grain, grains: u32, mut change: impl FnMut(&mut u64, u64)) {
        for (word, bits) in masks(first, grains) {
            change(&mut self.words[word], bits);
        }
    }

    fn all_words(&self, first: Grain, grains: u32, mut is_so: impl FnMut(u64, u64) -> bool) -> bool {
        masks(first, grains).all(|(word, bits)| self.words.get(word).is_some_and(|&word| is_so(word, bits)))
    }
}

/// Each word that a run of grains touches, and the run's bits in it.
fn masks(first: Grain, grains: u32) -> impl Iterator<Item = (usize, u64)> {
    let (mut bit, end) = (first.0, first.0 + u64::from(grains));
    std::iter::from_fn(move || {
        let within = bit % 64;
        let count = (64 - within).min(end - bit);
        let at = bit / 64;
        bit += count;
        (count > 0).then(|| (at as usize, (u64::MAX >> (64 - count)) << within))
    })
}

impl Validity for GrainBitmap {
    fn add(&mut self, first: Grain, grains: u32) {
        self.each_word(first, grains, |word, bits| {
            assert_eq!(*word & bits, 0, "a grain is given out twice");
            *word |= bits;
        });
    }

    fn remove(&mut self, first: Grain, grains: u32) {
        self.each_word(first, grains, |word, bits| {
            assert_eq!(*word & bits, bits, "a grain dies twice");
            *word &= !bits;
        });
    }

    fn page_is_dead(&self, page: PageAddress) -> bool {
        let first = self.packing.grain(page, 0).0;
        let count = u64::from(self.packing.grains_per_page);
        (first..first + count).step_by(64.min(count) as usize).all(|bit| {
            let mask = (u64::MAX >> (64 - count.min(64))) << (bit % 64);
            self.words[(bit / 64) as usize] & mask == 0
        })
    }

    fn can_add(&self, first: Grain, grains: u32) -> bool {
        self.all_words(first, grains, |word, bits| word & bits == 0)
    }

    fn can_remove(&self, first: Grain, grains: u32) -> bool {
        self.all_words(first, grains, |word, bits| word & bits == bits)
    }

    fn live_grains_of(&self, page: PageAddress) -> u32 {
        let bits = masks(self.packing.grain(page, 0), self.packing.grains_per_page);
        bits.map(|(word, bits)| (self.words[word] & bits).count_ones()).sum()
    }

    fn is_live(&self, _tag: u64, place: Grain) -> Option<bool> {
        Some(self.words[(place.0 / 64) as usize] >> (place.0 % 64) & 1 == 1)
    }

    fn warm(&self, places: &[Grain]) {
        std::hint::black_box(places.iter().fold(0, |sum, place| sum ^ self.words[(place.0 / 64) as usize]));
    }

    fn save(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        let (words, rest) = bytes.as_chunks();
        if words.len() != self.words.len() || !rest.is_empty() {
            return None;
        }
        self.words = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
        Some(())
    }

    fn dram(&self, dram: &mut DramUse) {
        GrainBitmap::charge(self.grains, dram);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_flash::Geometry;

    #[test]
    fn bits_follow_the_grains() {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            blocks_per_die: 4,
            pages_per_block: 8,
            pages_per_program: 1,
            page_bytes: 4096,
            oob_bytes: 384,
            superblock_dies: 0,
            read_bytes_min: 0,
        };
        for grain_bytes in [16, 64, 512] {
            let packing = Packing::new(&geometry, grain_bytes, crate::RecordLayout::Grains);
            let mut bitmap = GrainBitmap::new(packing, 4 * packing.grains_per_superblock);
            let first = packing.grain(PageAddress(3), packing.grains_per_page - 3);
            bitmap.add(first, 5);
            assert!(bitmap.is_live(0, first) == Some(true) && bitmap.is_live(0, Grain(first.0 + 4)) == Some(true));
            assert!(
                bitmap.is_live(0, Grain(first.0 - 1)) == Some(false)
                    && bitmap.is_live(0, Grain(first.0 + 5)) == Some(false)
            );
            let dead: Vec<_> = (2..6).map(|page| bitmap.page_is_dead(PageAddress(page))).collect();
            assert_eq!(dead, [true, false, false, true]);
            bitmap.remove(first, 5);
            assert!((2..6).all(|page| bitmap.page_is_dead(PageAddress(page))));
        }
    }
}
