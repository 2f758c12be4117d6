//! Iterators: what a host says of a range of keys, and what it gets (IterKVSSD, section 4.1).

use std::fmt;

/// Names an iterator while it lives. A number is not given twice in the life of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IteratorId(pub u64);

impl fmt::Display for IteratorId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// Which pairs an iterator goes along, and how: of the keys that begin with `prefix`, those from `first` on and before `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IteratorOptions<'a> {
    /// What all keys begin with; empty for any.
    pub prefix: &'a [u8],
    /// The least key; empty for none.
    pub first: &'a [u8],
    /// The least key that is too great; none for no bound.
    pub end: Option<&'a [u8]>,
    /// Whether it goes from the greatest key to the least.
    pub descending: bool,
    /// Whether keys are given without their values.
    pub keys_only: bool,
}

/// A pair that an iterator gives: its key, and its value unless keys alone were asked for.
pub type IteratedPair = (crate::OwnedKey, Option<crate::Value>);
