//! DRAM accounting: one budget that everything is charged to.

use std::collections::BTreeMap;

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

    /// The parts, by name.
    #[must_use]
    pub fn parts(&self) -> &BTreeMap<&'static str, u64> {
        &self.parts
    }

    /// The sum.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.parts.values().sum()
    }
}
