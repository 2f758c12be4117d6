//! The numbers of batches over several engines.

use serde::{Deserialize, Serialize};

/// Counts the batches over several engines; a later one has a larger number. 0 means no batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BatchSequence(pub u64);

impl BatchSequence {
    /// The next number.
    #[must_use]
    pub fn next(self) -> BatchSequence {
        // No drive has so many batches: such a number from a damaged file is refused when it is to be decided.
        BatchSequence(self.0.saturating_add(1))
    }
}
