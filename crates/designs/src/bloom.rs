//! A Bloom filter: which signatures were surely never there.

use crate::record_table::Signature;
use serde::{Deserialize, Serialize};

/// Bits that a signature sets.
const PROBES: u64 = 3;

/// Bits in DRAM. The bits of deleted keys stay, so that the filter errs a little more often as it ages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bloom {
    words: Vec<u64>,
}

impl Bloom {
    /// Of `bits`, none of them set.
    pub(crate) fn new(bits: u64) -> Self {
        Bloom { words: vec![0; bits.div_ceil(64).max(1) as usize] }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// From now on `signature` may be there.
    pub(crate) fn add(&mut self, signature: Signature) {
        for probe in 0..PROBES {
            let (word, bit) = self.place(signature, probe);
            self.words[word] |= 1 << bit;
        }
    }

    /// Whether `signature` may be there.
    pub(crate) fn may_have(&self, signature: Signature) -> bool {
        (0..PROBES).all(|probe| {
            let (word, bit) = self.place(signature, probe);
            self.words[word] >> bit & 1 == 1
        })
    }

    /// A bit of a signature.
    #[inline]
    fn place(&self, signature: Signature, probe: u64) -> (usize, u32) {
        let bits = self.words.len() as u128 * 64;
        let mixed = signature.wrapping_add(probe).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let bit = ((u128::from(mixed) * bits) >> 64) as u64;
        ((bit / 64) as usize, (bit % 64) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_types::Random;

    #[test]
    fn what_was_added_may_be_there_and_most_else_is_not() {
        let (mut bloom, mut random) = (Bloom::new(40_000), Random::new(1));
        let added: Vec<u64> = (0..10_000).map(|_| random.below(u64::MAX)).collect();
        added.iter().for_each(|&signature| bloom.add(signature));
        assert!(added.iter().all(|&signature| bloom.may_have(signature)));
        let wrong = (0..10_000).filter(|_| bloom.may_have(random.below(u64::MAX))).count();
        // (1 - e^(-3/4))^3 = 14.7 %.
        assert!((1200..1800).contains(&wrong), "{wrong} of 10 000");
    }
}
