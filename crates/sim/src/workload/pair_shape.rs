//! What the pairs of a store are like.

use super::{KeyShape, SizeDistribution, ValueSizes, WorkloadError};
use serde::{Deserialize, Serialize};

/// Bytes of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairShape {
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value, at most.
    pub value_bytes: u32,
    /// How the sizes of values are distributed.
    pub value_distribution: SizeDistribution,
}

impl PairShape {
    /// Values of one size.
    #[must_use]
    pub fn constant(key_bytes: usize, value_bytes: u32) -> Self {
        PairShape { key_bytes, value_bytes, value_distribution: SizeDistribution::Constant }
    }

    /// The keys.
    ///
    /// # Errors
    /// When a key cannot have that length.
    pub fn keys(&self) -> Result<KeyShape, WorkloadError> {
        KeyShape::new(self.key_bytes)
    }

    /// The sizes of the values. In the mean they are the same for all seeds.
    ///
    /// # Errors
    /// When a value cannot have that length.
    pub fn value_sizes(&self, seed: u64) -> Result<ValueSizes, WorkloadError> {
        ValueSizes::new(self.value_distribution, self.value_bytes, seed)
    }
}
