//! Lengths of keys and values that vary.

use super::WorkloadError;
use kvssd_types::Random;

/// The most sizes of a mix (KVbench, `value_size`).
const SIZES_MAX: usize = 5;

/// How many uniform numbers are added up to one that is about normal: their variance is 1.
const ADDENDS: u32 = 12;

/// A law of lengths in bytes. A length is drawn from the randomness that comes as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths(Law);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Law {
    Fixed(u32),
    Uniform { min: u32, max: u32 },
    Normal { median: u32, deviation: u32, min: u32, max: u32 },
    Mix { sizes: [u32; SIZES_MAX], percents: [u32; SIZES_MAX] },
}

impl Lengths {
    /// All the same.
    #[must_use]
    pub fn fixed(bytes: u32) -> Self {
        Lengths(Law::Fixed(bytes))
    }

    /// `min` to `max`, each as often.
    ///
    /// # Errors
    /// When `min` is above `max`.
    pub fn uniform(min: u32, max: u32) -> Result<Self, WorkloadError> {
        if min > max {
            return Err(WorkloadError::Lengths("the lower bound is above the upper bound"));
        }
        Ok(Lengths(Law::Uniform { min, max }))
    }

    /// About normal around `median`, cut off five deviations from it, at `floor` and at `ceiling`.
    #[must_use]
    pub fn normal(median: u32, deviation: u32, floor: u32, ceiling: u32) -> Self {
        let reach = deviation.saturating_mul(5);
        let (min, max) = (median.saturating_sub(reach).max(floor), median.saturating_add(reach).min(ceiling));
        Lengths(Law::Normal { median, deviation, min: min.min(max), max })
    }

    /// Some sizes, each in so many of a hundred cases.
    ///
    /// # Errors
    /// When there are none or more than five, or not a share for each, or the shares are not a hundred together.
    pub fn mix(sizes: &[u32], percents: &[u32]) -> Result<Self, WorkloadError> {
        if sizes.len() != percents.len() || !(1..=SIZES_MAX).contains(&sizes.len()) {
            return Err(WorkloadError::Lengths("a mix has 1 to 5 sizes and as many shares"));
        }
        if percents.iter().map(|&percent| u64::from(percent)).sum::<u64>() != 100 {
            return Err(WorkloadError::Lengths("the shares of sizes must be 100 together"));
        }
        // A size without a share changes nothing, neither what is drawn nor the largest.
        let (mut all, mut shares) = ([sizes[0]; SIZES_MAX], [0; SIZES_MAX]);
        all[..sizes.len()].copy_from_slice(sizes);
        shares[..sizes.len()].copy_from_slice(percents);
        Ok(Lengths(Law::Mix { sizes: all, percents: shares }))
    }

    /// The smallest length and the largest.
    fn bounds(&self) -> (u32, u32) {
        match self.0 {
            Law::Fixed(bytes) => (bytes, bytes),
            Law::Uniform { min, max } | Law::Normal { min, max, .. } => (min, max),
            Law::Mix { sizes, .. } => {
                sizes.iter().fold((u32::MAX, 0), |(min, max), &size| (min.min(size), max.max(size)))
            }
        }
    }

    /// The smallest length.
    #[must_use]
    pub fn bytes_min(&self) -> u32 {
        self.bounds().0
    }

    /// The largest length.
    #[must_use]
    pub fn bytes_max(&self) -> u32 {
        self.bounds().1
    }

    /// Draws a length.
    pub fn draw(&self, random: impl FnOnce() -> Random) -> u32 {
        match self.0 {
            Law::Fixed(bytes) => bytes,
            Law::Uniform { min, max } => min + random().below(u64::from(max - min) + 1) as u32,
            Law::Normal { median, deviation, min, max } => {
                let mut random = random();
                let sum: f64 = (0..ADDENDS).map(|_| random.unit()).sum();
                let length = f64::from(median) + (sum - f64::from(ADDENDS) / 2.0) * f64::from(deviation);
                (length.max(0.0) as u32).clamp(min, max)
            }
            Law::Mix { sizes, percents } => {
                let mut left = random().below(100) as u32;
                for (size, percent) in sizes.into_iter().zip(percents) {
                    if left < percent {
                        return size;
                    }
                    left -= percent;
                }
                unreachable!("the shares are a hundred together")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(lengths: Lengths) -> Vec<u32> {
        (0..100_000).map(|seed| lengths.draw(|| Random::new(seed))).collect()
    }

    #[test]
    fn lengths_follow_their_law_within_their_bounds() {
        for (lengths, mean, deviation) in [
            (Lengths::fixed(7), 7.0, 0.0),
            (Lengths::uniform(10, 20).unwrap(), 15.0, 3.16),
            (Lengths::normal(500, 30, 0, 1000), 499.5, 30.0),
            (Lengths::mix(&[100, 200, 400], &[10, 50, 40]).unwrap(), 270.0, 110.0),
        ] {
            let draws = draws(lengths);
            let found = draws.iter().map(|&length| f64::from(length)).sum::<f64>() / draws.len() as f64;
            let variance = draws.iter().map(|&length| (f64::from(length) - found).powi(2)).sum::<f64>();
            let found_deviation = (variance / draws.len() as f64).sqrt();
            assert!((found - mean).abs() < 1.5 && (found_deviation - deviation).abs() < 1.0, "{found} {lengths:?}");
            let is_within = |length: &u32| (lengths.bytes_min()..=lengths.bytes_max()).contains(length);
            assert!(draws.iter().all(is_within));
        }
    }

    #[test]
    fn mixes_that_are_none_are_refused() {
        assert!(Lengths::mix(&[], &[]).is_err() && Lengths::mix(&[1; 6], &[10; 6]).is_err());
        assert!(Lengths::mix(&[1], &[50]).is_err() && Lengths::mix(&[1, 2], &[100]).is_err());
        assert!(Lengths::mix(&[1, 2], &[u32::MAX, 101]).is_err() && Lengths::uniform(2, 1).is_err());
    }
}
