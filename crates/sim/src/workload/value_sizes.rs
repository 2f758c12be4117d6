//! Sizes of values.

use super::{Lengths, WorkloadError, Zipfian};
use kvssd_types::{Random, VALUE_BYTES_MAX, named_enum};

named_enum! {
    /// How the sizes of values vary (YCSB core property `fieldlengthdistribution`; a record is one field here).
    pub enum SizeDistribution: "distribution of value sizes" {
        /// All of the largest size.
        Constant = "constant",
        /// 1 to the largest, each as often.
        Uniform = "uniform",
        /// 1 to the largest, by the zipfian law: the smaller the more often.
        Zipfian = "zipfian",
    }
}

/// Values from which a mean is taken: so many that it is off by a hundredth at the most.
const SAMPLED: u64 = 1 << 16;

/// The size of every version of every record: a pure function, so that nobody has to remember it.
#[derive(Clone, Debug)]
pub struct ValueSizes {
    law: Law,
    bytes_max: u32,
    seed: u64,
}

#[derive(Clone, Debug)]
enum Law {
    Constant,
    Uniform,
    Zipfian(Zipfian),
    Varied(Lengths),
}

impl ValueSizes {
    /// Sizes of up to `bytes_max` bytes, those that `seed` names among all of the distribution.
    ///
    /// # Errors
    /// [`WorkloadError::ValueBytes`] when `bytes_max` is more than [`VALUE_BYTES_MAX`].
    pub fn new(distribution: SizeDistribution, bytes_max: u32, seed: u64) -> Result<Self, WorkloadError> {
        if bytes_max as usize > VALUE_BYTES_MAX {
            return Err(WorkloadError::ValueBytes { value_bytes: bytes_max });
        }
        let law = match distribution {
            // Values without bytes are all alike.
            _ if bytes_max == 0 => Law::Constant,
            SizeDistribution::Constant => Law::Constant,
            SizeDistribution::Uniform => Law::Uniform,
            SizeDistribution::Zipfian => Law::Zipfian(Zipfian::new(u64::from(bytes_max))),
        };
        Ok(ValueSizes { law, bytes_max, seed })
    }

    /// All of so many bytes.
    #[must_use]
    pub fn constant(bytes: u32) -> Self {
        ValueSizes { law: Law::Constant, bytes_max: bytes, seed: 0 }
    }

    /// Sizes by a law of lengths.
    ///
    /// # Errors
    /// [`WorkloadError::ValueBytes`] when the largest is more than [`VALUE_BYTES_MAX`].
    pub fn varied(lengths: Lengths, seed: u64) -> Result<Self, WorkloadError> {
        let bytes_max = lengths.bytes_max();
        if bytes_max as usize > VALUE_BYTES_MAX {
            return Err(WorkloadError::ValueBytes { value_bytes: bytes_max });
        }
        Ok(ValueSizes { law: Law::Varied(lengths), bytes_max, seed })
    }

    /// The largest size in bytes.
    #[must_use]
    pub fn bytes_max(&self) -> u32 {
        self.bytes_max
    }

    /// The size in bytes of version `version` of record `record`, at most [`ValueSizes::bytes_max`].
    #[must_use]
    pub fn bytes(&self, record: u64, version: u32) -> u32 {
        match &self.law {
            Law::Constant => self.bytes_max,
            Law::Uniform => 1 + self.random(record, version).below(u64::from(self.bytes_max)) as u32,
            Law::Varied(lengths) => lengths.draw(|| self.random(record, version)),
            Law::Zipfian(zipfian) => 1 + zipfian.draw(&mut self.random(record, version)) as u32,
        }
    }

    /// The mean over all values of what depends on the size, from a sample of them.
    pub(crate) fn mean_of(&self, of_size: impl Fn(u32) -> f64) -> f64 {
        match self.law {
            Law::Constant => of_size(self.bytes_max),
            _ => (0..SAMPLED).map(|record| of_size(self.bytes(record, 0))).sum::<f64>() / SAMPLED as f64,
        }
    }

    /// The randomness of one version. The draw between keeps version 1 of record 2 apart from version 2 of record 1.
    fn random(&self, record: u64, version: u32) -> Random {
        Random::new(Random::stream(self.seed, record).bits() ^ u64::from(version))
    }
}

#[cfg(test)]
mod tests {
    use super::super::zeta::zeta;
    use super::*;

    const BYTES_MAX: u32 = 4096;

    fn sizes(distribution: SizeDistribution, seed: u64) -> Vec<u32> {
        let sizes = ValueSizes::new(distribution, BYTES_MAX, seed).unwrap();
        (0..1000)
            .flat_map(|record| (0..100).map(move |version| (record, version)))
            .map(|(record, version)| sizes.bytes(record, version))
            .collect()
    }

    fn mean(sizes: &[u32]) -> f64 {
        sizes.iter().copied().map(f64::from).sum::<f64>() / sizes.len() as f64
    }

    #[test]
    fn names_read_back_and_wrong_ones_are_told_the_choices() {
        for distribution in SizeDistribution::ALL {
            assert_eq!(distribution.to_string().parse(), Ok(distribution));
        }
        let message = "normal".parse::<SizeDistribution>().unwrap_err().to_string();
        assert!(message.ends_with("choose one of constant, uniform, zipfian"), "{message}");
    }

    #[test]
    fn sizes_out_of_range_are_refused() {
        for distribution in SizeDistribution::ALL {
            assert!(ValueSizes::new(distribution, VALUE_BYTES_MAX as u32 + 1, 0).is_err());
            assert!(ValueSizes::new(distribution, VALUE_BYTES_MAX as u32, 0).is_ok());
            assert_eq!(ValueSizes::new(distribution, 0, 0).unwrap().bytes(1, 2), 0);
        }
    }

    #[test]
    fn the_seed_alone_decides() {
        for distribution in [SizeDistribution::Uniform, SizeDistribution::Zipfian] {
            assert_eq!(sizes(distribution, 1), sizes(distribution, 1));
            assert_ne!(sizes(distribution, 1), sizes(distribution, 2));
        }
    }

    #[test]
    fn constant_is_constant() {
        assert!(sizes(SizeDistribution::Constant, 1).iter().all(|&bytes| bytes == BYTES_MAX));
    }

    #[test]
    fn uniform_is_even() {
        let sizes = sizes(SizeDistribution::Uniform, 0);
        assert!((mean(&sizes) - 2048.5).abs() < 5.0 * 1182.5 / (sizes.len() as f64).sqrt(), "{}", mean(&sizes));
        assert!(sizes.iter().min() < Some(&5) && sizes.iter().max() > Some(&4092));
        assert!(sizes.iter().all(|bytes| (1..=BYTES_MAX).contains(bytes)));
    }

    #[test]
    fn zipfian_prefers_the_small() {
        let sizes = sizes(SizeDistribution::Zipfian, 0);
        let ones = sizes.iter().filter(|&&bytes| bytes == 1).count() as f64;
        let expected = sizes.len() as f64 / zeta(u64::from(BYTES_MAX));
        assert!((ones - expected).abs() < 5.0 * expected.sqrt(), "{ones} and {expected}");
        assert!(sizes.iter().all(|bytes| (1..=BYTES_MAX).contains(bytes)));
        assert!(sizes.iter().max() > Some(&4000));
    }

    #[test]
    fn records_and_versions_do_not_stand_for_each_other() {
        let sizes = ValueSizes::new(SizeDistribution::Uniform, VALUE_BYTES_MAX as u32, 0).unwrap();
        let same =
            (0..1000u32).filter(|&n| sizes.bytes(u64::from(n), n + 1) == sizes.bytes(u64::from(n) + 1, n)).count();
        let lined_up = (0..1000u32).filter(|&n| sizes.bytes(u64::from(n) + 1, n) == sizes.bytes(1, 0)).count();
        assert!(same < 5 && lined_up < 5, "{same}, {lined_up}");
    }
}
