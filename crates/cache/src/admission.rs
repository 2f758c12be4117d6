//! Who comes in.

mod frequency;
mod write_budget;

use crate::pair::PairId;
use kvssd_types::Nanos;
use std::fmt::{self, Debug};
use std::str::FromStr;
use thiserror::Error;

/// Says whether a pair is worth a write. It is asked about every pair that could be stored, in the order in which they come.
pub(crate) trait Admission: Debug + Send + Sync {
    /// Whether a pair of so many bytes comes in.
    fn admits(&mut self, pair: PairId, bytes: u64, now: Nanos) -> bool;

    /// What [`Admission::admits`] would say now, which is not remembered.
    fn would_admit(&self, pair: PairId, bytes: u64, now: Nanos) -> bool;

    /// A pair was missed by somebody else while it was about to be stored.
    fn missed(&mut self, pair: PairId) {
        let _ = pair;
    }

    /// All rules agreed, and so many bytes are written.
    fn wrote(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// The cache has no more than so many bytes of memory from here on.
    fn keep_within(&mut self, kept_bytes_max: u64) {
        let _ = kept_bytes_max;
    }

    /// Bytes of memory that it keeps.
    fn kept_bytes(&self) -> u64 {
        0
    }
}

/// A rule of who comes in. As text: `asked=2`, `at-most=65536`, `a-day=100000000000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionRule {
    /// Who was offered so many times of late, this time with it.
    Asked(u8),
    /// Pairs of so many bytes at the most.
    AtMost(u64),
    /// As many as keep within so many bytes written a day.
    ADay(u64),
}

/// What is no rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no rule of admission: write asked=2, at-most=65536 (bytes) or a-day=100000000000 (bytes)")]
pub struct RuleError(String);

impl FromStr for AdmissionRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let wrong = || RuleError(text.to_owned());
        let (name, number) = text.split_once('=').ok_or_else(wrong)?;
        let number: u64 = number.parse().ok().filter(|number| *number > 0).ok_or_else(wrong)?;
        match name {
            "asked" => number.try_into().map(AdmissionRule::Asked).map_err(|_| wrong()),
            "at-most" => Ok(AdmissionRule::AtMost(number)),
            "a-day" => Ok(AdmissionRule::ADay(number)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for AdmissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = match *self {
            AdmissionRule::Asked(times) => times.into(),
            AdmissionRule::AtMost(bytes) | AdmissionRule::ADay(bytes) => bytes,
        };
        write!(f, "{}={number}", self.name())
    }
}

impl AdmissionRule {
    /// What is before its number.
    pub(crate) fn name(self) -> &'static str {
        match self {
            AdmissionRule::Asked(_) => "asked",
            AdmissionRule::AtMost(_) => "at-most",
            AdmissionRule::ADay(_) => "a-day",
        }
    }

    /// Whether another one asks for the same, with another number.
    pub(crate) fn is_kind_of(self, other: AdmissionRule) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    /// A rule that remembers nothing yet, and will no more than there is room for.
    pub(crate) fn build(self, kept_bytes_max: u64) -> Box<dyn Admission> {
        match self {
            AdmissionRule::Asked(times) => Box::new(frequency::Frequency::within(times, kept_bytes_max)),
            AdmissionRule::AtMost(bytes) => Box::new(AtMost(bytes)),
            AdmissionRule::ADay(bytes) => Box::new(write_budget::WriteBudget::new(bytes)),
        }
    }
}

/// By size.
#[derive(Debug)]
struct AtMost(u64);

impl Admission for AtMost {
    fn admits(&mut self, pair: PairId, bytes: u64, now: Nanos) -> bool {
        self.would_admit(pair, bytes, now)
    }

    fn would_admit(&self, _pair: PairId, bytes: u64, _now: Nanos) -> bool {
        bytes <= self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_as_it_is_written() {
        for rule in [AdmissionRule::Asked(2), AdmissionRule::AtMost(65536), AdmissionRule::ADay(100)] {
            assert_eq!(rule.to_string().parse(), Ok(rule));
        }
        for wrong in ["", "asked", "asked=0", "asked=256", "at-most=-1", "a-day=x", "often=2"] {
            assert!(wrong.parse::<AdmissionRule>().is_err(), "{wrong}");
        }
    }
}
