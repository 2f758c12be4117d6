//! Which record comes next.

use super::scrambled::Scrambled;
use super::{Distribution, Zipfian};
use kvssd_types::Random;

/// Chooses record numbers by a [`Distribution`].
#[derive(Clone, Debug)]
pub struct Chooser(Law);

#[derive(Clone, Debug)]
enum Law {
    Uniform,
    Zipfian(Scrambled),
    ByRank(Zipfian),
    Sequential { next: u64 },
    Latest(Zipfian),
}

impl Chooser {
    /// A chooser among `records` records: for [`Distribution::Zipfian`] those that are expected in the end, inserts
    /// included, so that the popular ones stay the same while the store grows (YCSB, CoreWorkload.java, `init`).
    ///
    /// # Panics
    /// When `records` is zero.
    #[must_use]
    pub fn new(distribution: Distribution, records: u64) -> Self {
        assert!(records > 0, "no record to choose");
        Chooser(match distribution {
            Distribution::Uniform => Law::Uniform,
            Distribution::Zipfian => Law::Zipfian(Scrambled::new(records)),
            Distribution::Sequential => Law::Sequential { next: 0 },
            Distribution::Latest => Law::Latest(Zipfian::new(records)),
        })
    }

    /// The same, where a zipfian law is not scattered: the lower the number of a record, the more often it is chosen, by the law over as
    /// many ranks as there are records.
    #[must_use]
    pub fn unscattered(self) -> Self {
        Chooser(match self.0 {
            Law::Zipfian(scrambled) => Law::ByRank(Zipfian::new(scrambled.records())),
            law => law,
        })
    }

    /// Chooses one of the `records_now` records there are, a number below `records_now`.
    ///
    /// Zipfian redraws until the record exists, as YCSB does, `records` / `records_now` times on average. Records
    /// beyond those expected are not chosen. Latest follows the law over `records_now`, from the newest back. YCSB's
    /// SkewedLatestGenerator.java keeps one constant of the first count and never reaches record 0; here both follow
    /// the count. Uniform includes the inserted records, while YCSB's chooses among those loaded.
    ///
    /// # Panics
    /// When `records_now` is zero.
    pub fn next(&mut self, records_now: u64, random: &mut Random) -> u64 {
        assert!(records_now > 0, "no record to choose");
        match &mut self.0 {
            Law::Uniform => random.below(records_now),
            Law::Zipfian(scrambled) => until_it_exists(records_now, || scrambled.draw(random)),
            Law::ByRank(zipfian) => until_it_exists(records_now, || zipfian.draw(random)),
            Law::Sequential { next } => {
                let record = if *next < records_now { *next } else { 0 };
                *next = record + 1;
                record
            }
            Law::Latest(zipfian) => {
                if zipfian.items() != records_now {
                    *zipfian = Zipfian::new(records_now);
                }
                records_now - 1 - zipfian.draw(random)
            }
        }
    }
}

/// Draws records until there is one among the first `records_now`.
fn until_it_exists(records_now: u64, mut draw: impl FnMut() -> u64) -> u64 {
    loop {
        let record = draw();
        if record < records_now {
            return record;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::zeta::zeta;
    use super::*;
    use proptest::prelude::*;

    fn counts(chooser: &mut Chooser, records_now: u64, draws: u32) -> Vec<f64> {
        let mut random = Random::new(3);
        let mut counts = vec![0.0; records_now as usize];
        for _ in 0..draws {
            counts[chooser.next(records_now, &mut random) as usize] += 1.0;
        }
        counts
    }

    #[test]
    fn uniform_is_even() {
        let counts = counts(&mut Chooser::new(Distribution::Uniform, 1000), 1200, 1_200_000);
        let chi_square: f64 = counts.iter().map(|count| (count - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi_square < 1199.0 + 5.0 * (2.0 * 1199.0f64).sqrt(), "{chi_square}");
    }

    #[test]
    fn latest_prefers_the_newest_also_after_growth() {
        let draws = 1_000_000;
        let mut chooser = Chooser::new(Distribution::Latest, 1000);
        for records_now in [1000, 1001, 5000] {
            let counts = counts(&mut chooser, records_now, draws);
            for age in 0..2 {
                let expected = f64::from(draws) * (age as f64 + 1.0).powf(-0.99) / zeta(records_now);
                let count = counts[records_now as usize - 1 - age];
                assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{records_now}, {age}: {count}, {expected}");
            }
            let (old, new) = counts.split_at(records_now as usize / 2);
            assert!(new.iter().sum::<f64>() > 5.0 * old.iter().sum::<f64>());
            assert!(counts[..10].iter().sum::<f64>() > 0.0);
        }
    }

    #[test]
    fn sequential_goes_round_and_takes_what_is_new_along() {
        let mut chooser = Chooser::new(Distribution::Sequential, 3);
        let mut random = Random::new(1);
        let chosen: Vec<u64> = [3, 3, 3, 4, 4, 4].map(|records_now| chooser.next(records_now, &mut random)).into();
        assert_eq!(chosen, [0, 1, 2, 3, 0, 1]);
    }

    #[test]
    fn growth_does_not_move_the_popular_records() {
        let mut chooser = Chooser::new(Distribution::Zipfian, 2000);
        let mut popular = |records_now| {
            let counts = counts(&mut chooser, records_now, 200_000);
            let mut records: Vec<usize> = (0..1000).collect();
            records.sort_by(|&one, &other| counts[other].total_cmp(&counts[one]));
            records[0]
        };
        assert_eq!(popular(1000), popular(2000));
    }

    #[test]
    fn unscattered_the_first_are_the_popular_ones() {
        let draws = 1_000_000;
        let counts = counts(&mut Chooser::new(Distribution::Zipfian, 1000).unscattered(), 1000, draws);
        for (rank, count) in counts[..2].iter().enumerate() {
            let expected = f64::from(draws) * (rank as f64 + 1.0).powf(-0.99) / zeta(1000);
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{rank}: {count}, {expected}");
        }
        assert!(counts[..100].iter().sum::<f64>() > 2.0 * counts[100..].iter().sum::<f64>());
    }

    proptest! {
        #[test]
        fn what_is_chosen_exists(
            seed: u64, which in 0usize..4, records in 1u64..1 << 40, part in 0.1f64..1.5
        ) {
            let records_now = ((records as f64 * part) as u64).max(1);
            let mut chooser = Chooser::new(Distribution::ALL[which], records);
            let mut random = Random::new(seed);
            for _ in 0..100 {
                prop_assert!(chooser.next(records_now, &mut random) < records_now);
            }
        }
    }
}
