//! Randomness that is an argument: the same seed gives the same numbers on every machine.

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded generator (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The generator of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The generator of one of several streams of a seed, such as one a host thread.
    #[must_use]
    pub fn stream(seed: u64, stream: u64) -> Self {
        Random::new(mix64(seed ^ mix64(stream.wrapping_add(1))))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, each as likely as the next (up to a bias of `bound` / 2^64).
    ///
    /// # Panics
    /// When `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number lies below zero");
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// A bijection of 64-bit numbers that spreads every bit (the finalizer of SplitMix64).
#[must_use]
pub const fn mix64(number: u64) -> u64 {
    let mut bits = number;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The number that [`mix64`] makes this one of.
#[must_use]
pub const fn unmix64(mixed: u64) -> u64 {
    let mut bits = mixed ^ (mixed >> 31) ^ (mixed >> 62);
    bits = bits.wrapping_mul(0x3196_42b2_d24d_8ec3);
    bits = (bits ^ (bits >> 27) ^ (bits >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    bits ^ (bits >> 30) ^ (bits >> 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixing_can_be_undone() {
        let mut random = Random::new(1);
        for number in (0..1000).map(|_| random.below(u64::MAX)).chain([0, u64::MAX]) {
            assert_eq!(unmix64(mix64(number)), number);
        }
    }

    #[test]
    fn a_seed_names_one_sequence_and_streams_differ() {
        let draw = |mut random: Random| (0..4).map(|_| random.bits()).collect::<Vec<_>>();
        assert_eq!(draw(Random::new(1)), draw(Random::new(1)));
        assert_ne!(draw(Random::stream(1, 0)), draw(Random::stream(1, 1)));
        assert_ne!(draw(Random::stream(1, 0)), draw(Random::stream(2, 0)));
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut random = Random::new(7);
        let mut seen = [0u32; 10];
        for _ in 0..100_000 {
            seen[random.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (9_500..10_500).contains(&count)), "{seen:?}");
    }
}
