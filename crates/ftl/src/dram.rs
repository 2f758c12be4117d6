//! DRAM accounting: one budget that everything is charged to.

use std::collections::BTreeMap;

/// The parts of indexes that are in flash as well, or only wanted.
const CACHES: [&str; 3] = ["index_sections", "index_pinned", "index_cursors"];

/// Bytes of device DRAM by what they hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DramUse {
    parts: BTreeMap<&'static str, u64>,
}

impl DramUse {
    /// Charges `bytes` to `part`.
    pub fn add(&mut self, part: &'static str, bytes: u64) {
        *self.parts.entry(part).or_default() += bytes;
    }

    /// The sums of both, part by part.
    #[must_use]
    pub fn plus(mut self, other: &DramUse) -> DramUse {
        other.parts.iter().for_each(|(part, bytes)| self.add(part, *bytes));
        self
    }

    /// The parts, by name.
    #[must_use]
    pub fn parts(&self) -> &BTreeMap<&'static str, u64> {
        &self.parts
    }

    /// The sum of what is not given up when there is less: all but the parts of [`CACHES`].
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.parts.iter().filter(|(part, _)| !CACHES.contains(*part)).map(|(_, bytes)| bytes).sum()
    }

    /// The sum.
    #[must_use]
    #[inline]
    pub fn total_bytes(&self) -> u64 {
        self.parts.values().sum()
    }
}
