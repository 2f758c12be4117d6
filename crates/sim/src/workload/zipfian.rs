//! The zipfian law.

use super::zeta::{hundredth_power, hundredth_root, zeta};
use kvssd_types::Random;

/// zeta(2) = 1 + 1/2^0.99.
const ZETA_OF_TWO: f64 = 1.503_477_775_028_359_4;

/// A generator of ranks from 0 (the most popular) to `items` - 1: rank i has a share of about
/// 1 / ((i+1)^0.99 zeta(`items`)).
///
/// The method is that of Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994, as in
/// YCSB's ZipfianGenerator.java: one random number and no tables. Ranks 0 and 1 have their exact share. The others
/// follow the continuous curve x^-0.99 instead of its steps: rank 2 comes up nearly a fifth too often, rank 10 about
/// two hundredths, and the whole is one to two hundredths (in total variation) from the law.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    /// The law over `items` ranks. Takes about a microsecond for any number of them.
    ///
    /// # Panics
    /// When `items` is zero.
    #[must_use]
    pub fn new(items: u64) -> Self {
        Zipfian::with_zeta(items, zeta(items))
    }

    /// The law over `items` ranks, with a given sum of all 1 / i^0.99.
    pub(super) fn with_zeta(items: u64, zeta: f64) -> Self {
        assert!(items > 0, "a zipfian law over nothing");
        // Up to two items eta is no number, but then ranks 0 and 1 take every draw.
        let eta = (1.0 - hundredth_root(2.0 / items as f64)) / (1.0 - ZETA_OF_TWO / zeta);
        Zipfian { items, zeta, eta }
    }

    /// The number of ranks.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Draws a rank below [`Zipfian::items`].
    pub fn draw(&self, random: &mut Random) -> u64 {
        let unit = random.unit();
        let share = unit * self.zeta;
        if share < 1.0 {
            return 0;
        }
        if share < ZETA_OF_TWO {
            return 1;
        }
        let rank = self.items as f64 * hundredth_power(self.eta * unit - self.eta + 1.0);
        // Rounding can lift the largest numbers to one.
        (rank as u64).min(self.items - 1)
    }

    /// The probability of a rank below `rank` in the draws: the inverse of what [`Zipfian::draw`] computes.
    #[cfg(test)]
    pub(super) fn share_below(&self, rank: u64) -> f64 {
        match rank {
            0 => 0.0,
            _ if rank >= self.items => 1.0,
            1 => 1.0 / self.zeta,
            _ => 1.0 - (1.0 - (rank as f64 / self.items as f64).powf(0.01)) / self.eta,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEMS: u64 = 10_000;
    const DRAWS: u32 = 2_000_000;

    fn counts(zipfian: &Zipfian, draws: u32) -> Vec<f64> {
        let mut random = Random::new(11);
        let mut counts = vec![0.0; zipfian.items() as usize];
        for _ in 0..draws {
            counts[zipfian.draw(&mut random) as usize] += 1.0;
        }
        counts
    }

    /// The bounds of buckets that double: 0, 1, 2, 4, 8 .. `ITEMS`.
    fn buckets() -> Vec<(u64, u64)> {
        let bounds: Vec<u64> = (0..).map(|power| 1u64 << power).take_while(|&bound| bound < ITEMS).collect();
        let lows = std::iter::once(0).chain(bounds.iter().copied());
        lows.zip(bounds.iter().copied().chain([ITEMS])).collect()
    }

    fn sum(counts: &[f64], (low, high): (u64, u64)) -> f64 {
        counts[low as usize..high as usize].iter().sum()
    }

    #[test]
    fn the_two_most_popular_have_the_share_of_the_law() {
        let counts = counts(&Zipfian::new(ITEMS), DRAWS);
        for (rank, &count) in counts.iter().enumerate().take(2) {
            let share = (rank as f64 + 1.0).powf(-0.99) / zeta(ITEMS);
            let expected = share * f64::from(DRAWS);
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{rank}: {count} and {expected}");
        }
    }

    #[test]
    fn the_next_most_popular_are_near_the_law() {
        let counts = counts(&Zipfian::new(ITEMS), DRAWS);
        for (rank, &count) in counts.iter().enumerate().take(100).skip(2) {
            let share = (rank as f64 + 1.0).powf(-0.99) / zeta(ITEMS);
            let expected = share * f64::from(DRAWS);
            let systematic = 0.6 / (rank as f64 + 1.0);
            let tolerance = systematic * expected + 5.0 * expected.sqrt();
            assert!((count - expected).abs() < tolerance, "{rank}: {count} and {expected}");
        }
    }

    #[test]
    fn the_whole_is_within_two_hundredths_of_the_law() {
        let counts = counts(&Zipfian::new(ITEMS), DRAWS);
        let distance: f64 = buckets()
            .into_iter()
            .map(|(low, high)| {
                let share: f64 = (low..high).map(|rank| (rank as f64 + 1.0).powf(-0.99) / zeta(ITEMS)).sum();
                (sum(&counts, (low, high)) / f64::from(DRAWS) - share).abs()
            })
            .sum();
        assert!(distance / 2.0 < 0.02, "{distance}");
    }

    #[test]
    fn draws_follow_the_curve_of_gray() {
        let zipfian = Zipfian::new(ITEMS);
        let counts = counts(&zipfian, DRAWS);
        let chi_square: f64 = buckets()
            .into_iter()
            .map(|(low, high)| {
                let expected = (zipfian.share_below(high) - zipfian.share_below(low)) * f64::from(DRAWS);
                (sum(&counts, (low, high)) - expected).powi(2) / expected
            })
            .sum();
        let freedom = buckets().len() as f64 - 1.0;
        assert!(chi_square < freedom + 5.0 * (2.0 * freedom).sqrt(), "{chi_square} of {freedom}");
    }

    #[test]
    fn small_laws_reach_every_rank_and_no_other() {
        for items in 1..=20 {
            assert!(counts(&Zipfian::new(items), 10_000).iter().all(|&count| count > 0.0), "{items}");
        }
    }
}
