//! Who comes in.

mod frequency;
mod write_budget;

use crate::added::{Added, NameError, Named};
use crate::pair::PairId;
use kvssd_types::Nanos;
use std::fmt::{self, Debug};
use std::str::FromStr;
use thiserror::Error;

/// Says whether a pair is worth a write. It is asked about every pair that could be stored, in the order in which they come.
pub trait Admission: Debug + Send + Sync {
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

/// A policy of who comes in, by a number: `asked=2`, `at-most=65536`, `a-day=100000000000`.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionPolicy {
    /// What is before the number, on command lines and in images.
    pub name: &'static str,
    /// What the number counts.
    pub unit: &'static str,
    /// The largest number; the least is 1.
    pub number_max: u64,
    /// Whether parts of a cache share the number, as they share its bytes, or each has it whole.
    pub is_shared: bool,
    /// One that remembers nothing yet, for a number, and for so many bytes of memory at the most.
    pub build: fn(number: u64, kept_bytes_max: u64) -> Box<dyn Admission>,
}

/// A policy, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionRule {
    /// The policy.
    pub policy: AdmissionPolicy,
    /// From 1 on.
    pub number: u64,
}

/// What is no rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no rule of admission: write {choices}")]
pub struct RuleError {
    text: String,
    choices: String,
}

/// What a text says of a cache beside its policies.
pub(crate) const BUDGET: &str = "budget";
pub(crate) const TIME_TO_LIVE: &str = "ttl-ms";

/// Those that were added.
static ADDED: Added<AdmissionPolicy> = Added::new();

impl AdmissionPolicy {
    /// Who was offered so many times of late, this time with it.
    pub const ASKED: AdmissionPolicy = AdmissionPolicy {
        name: "asked",
        unit: "times",
        number_max: u8::MAX as u64,
        is_shared: false,
        build: |times, kept_bytes_max| Box::new(frequency::Frequency::within(times as u8, kept_bytes_max)),
    };

    /// Pairs of so many bytes at the most.
    pub const AT_MOST: AdmissionPolicy = AdmissionPolicy {
        name: "at-most",
        unit: "bytes",
        number_max: u64::MAX,
        is_shared: false,
        build: |bytes, _| Box::new(AtMost(bytes)),
    };

    /// As many as keep within so many bytes written a day.
    pub const A_DAY: AdmissionPolicy = AdmissionPolicy {
        name: "a-day",
        unit: "bytes",
        number_max: u64::MAX,
        is_shared: true,
        build: |bytes, _| Box::new(write_budget::WriteBudget::new(bytes)),
    };

    /// Those that come along.
    pub const ALL: [AdmissionPolicy; 3] = [AdmissionPolicy::ASKED, AdmissionPolicy::AT_MOST, AdmissionPolicy::A_DAY];

    /// With a number.
    #[must_use]
    pub const fn rule(self, number: u64) -> AdmissionRule {
        AdmissionRule { policy: self, number }
    }

    /// How a rule of it is written.
    fn form(&self) -> String {
        let most = if self.number_max < u64::MAX { format!(" (to {})", self.number_max) } else { String::new() };
        format!("{}={}{most}", self.name, self.unit.to_ascii_uppercase())
    }

    /// [`AdmissionPolicy::ALL`], and those that were added.
    #[must_use]
    pub fn known() -> Vec<AdmissionPolicy> {
        ADDED.behind(AdmissionPolicy::ALL)
    }

    /// From now on it is found by its name: on command lines, and in images that have caches.
    ///
    /// # Errors
    /// [`NameError`] when there is another one of that name, or it is none that can stand in a text.
    pub fn add(self) -> Result<(), NameError> {
        let of_texts = [BUDGET, TIME_TO_LIVE].map(|name| AdmissionPolicy { name, ..self });
        ADDED.add(self, AdmissionPolicy::ALL.into_iter().chain(of_texts))
    }
}

impl Named for AdmissionPolicy {
    const WHAT: &'static str = "rule of admission";

    fn name(&self) -> &'static str {
        self.name
    }
}

/// Names are unique.
impl PartialEq for AdmissionPolicy {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for AdmissionPolicy {}

impl FromStr for AdmissionRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let known = AdmissionPolicy::known();
        let rule = text.split_once('=').and_then(|(name, number)| {
            let policy = known.iter().find(|policy| policy.name == name)?;
            let number = number.parse().ok().filter(|number| (1..=policy.number_max).contains(number))?;
            Some(policy.rule(number))
        });
        rule.ok_or_else(|| {
            let choices: Vec<String> = known.iter().map(AdmissionPolicy::form).collect();
            RuleError { text: text.to_owned(), choices: choices.join(", ") }
        })
    }
}

impl fmt::Display for AdmissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.policy.name, self.number)
    }
}

impl AdmissionRule {
    /// A rule that remembers nothing yet, and will no more than there is room for.
    pub(crate) fn build(self, kept_bytes_max: u64) -> Box<dyn Admission> {
        (self.policy.build)(self.number, kept_bytes_max)
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
        for rule in
            [AdmissionPolicy::ASKED.rule(2), AdmissionPolicy::AT_MOST.rule(65536), AdmissionPolicy::A_DAY.rule(100)]
        {
            assert_eq!(rule.to_string().parse(), Ok(rule));
        }
        for wrong in ["", "asked", "asked=0", "asked=256", "at-most=-1", "a-day=x", "often=2"] {
            assert!(wrong.parse::<AdmissionRule>().is_err(), "{wrong}");
        }
    }
}
