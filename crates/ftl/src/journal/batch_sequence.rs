//! The numbers of batches over several engines.

use serde::{Deserialize, Serialize};

/// Counts the batches over several engines; a later one has a larger number. 0 is none's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BatchSequence(pub u64);

impl BatchSequence {
    /// The one behind it.
    #[must_use]
    pub fn next(self) -> BatchSequence {
        // There are not so many: one that a file says is refused when it is to be decided.
        BatchSequence(self.0.saturating_add(1))
    }
}
