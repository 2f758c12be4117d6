//! What a cache knows a pair by.

/// A pair: 64 bits that tell keys apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PairId(pub u64);
