//! The zipfian law with its popular items scattered.

use super::Zipfian;
use kvssd_types::Random;

/// The number of ranks drawn from, whatever the number of records (YCSB, ScrambledZipfianGenerator.java, `ITEM_COUNT`).
pub(crate) const RANKS: u64 = 10_000_000_000;

/// The sum of 1 / i^0.99 over [`RANKS`] (the same file, `ZETAN`).
const ZETA_OF_RANKS: f64 = 26.469_028_201_783_02;

/// YCSB's scrambled zipfian: a rank of ten billion, hashed to one of `records`.
///
/// The most popular record gets 1/26.5 of all requests, however many records there are, and the ranks beyond their
/// number spread evenly over all. So the skew is milder than that of the plain law over as many records.
#[derive(Clone, Debug)]
pub(super) struct Scrambled {
    ranks: Zipfian,
    records: u64,
}

impl Scrambled {
    pub(super) fn new(records: u64) -> Self {
        Scrambled { ranks: Zipfian::with_zeta(RANKS, ZETA_OF_RANKS), records }
    }

    /// The number of records.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Draws a record number below the records of the construction.
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        scatter(self.ranks.draw(random)) % self.records
    }
}

/// YCSB's Utils.java, `fnvhash64`: FNV-1a over the eight octets of a number, low end first, without its sign.
fn scatter(rank: u64) -> u64 {
    let hash = rank
        .to_le_bytes()
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3));
    hash.cast_signed().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDS: u64 = 10_000;

    /// The share of each record: that of the ranks hashed to it. The ranks past the first million count as even.
    fn shares() -> Vec<f64> {
        let counted = 1_000_000;
        let ranks = Zipfian::with_zeta(RANKS, ZETA_OF_RANKS);
        let mut shares = vec![(1.0 - ranks.share_below(counted)) / RECORDS as f64; RECORDS as usize];
        for rank in 0..counted {
            shares[(scatter(rank) % RECORDS) as usize] += ranks.share_below(rank + 1) - ranks.share_below(rank);
        }
        shares
    }

    #[test]
    fn the_hash_is_that_of_ycsb() {
        // The numbers in YCSB's first two hashed keys, user6284781860667377211 and user8517097267634966620.
        assert_eq!(scatter(0), 6_284_781_860_667_377_211);
        assert_eq!(scatter(1), 8_517_097_267_634_966_620);
    }

    #[test]
    fn popular_records_are_no_neighbours() {
        let mut popular: Vec<u64> = (0..10).map(|rank| scatter(rank) % RECORDS).collect();
        popular.sort_unstable();
        assert!(popular.windows(2).all(|pair| pair[1] - pair[0] > 1), "{popular:?}");
        assert!(popular[9] - popular[0] > RECORDS / 2, "{popular:?}");
    }

    #[test]
    fn the_profile_of_popularity_is_kept() {
        let draws = 2_000_000;
        let scrambled = Scrambled::new(RECORDS);
        let mut random = Random::new(5);
        let mut counts = vec![0.0; RECORDS as usize];
        for _ in 0..draws {
            counts[scrambled.draw(&mut random) as usize] += 1.0;
        }
        let shares = shares();
        let chi_square: f64 = shares
            .iter()
            .zip(&counts)
            .map(|(share, count)| (count - share * f64::from(draws)).powi(2) / (share * f64::from(draws)))
            .sum();
        let freedom = RECORDS as f64 - 1.0;
        assert!(chi_square < freedom + 5.0 * (2.0 * freedom).sqrt(), "{chi_square} of {freedom}");
        let top = counts[(scatter(0) % RECORDS) as usize] / f64::from(draws);
        assert!((top - 1.0 / ZETA_OF_RANKS).abs() < 0.001, "{top}");
    }
}
