//! What a drive is told of a cache that it keeps by itself, as text.
//!
//! ```text
//!   lru budget=1073741824 asked=2 at-most=65536 ttl-ms=3600000
//! ```

use crate::admission::{AdmissionRule, BUDGET, RuleError, TIME_TO_LIVE};
use crate::eviction::EvictionPolicy;
use crate::plan::CachePlan;
use kvssd_types::{Nanos, UnknownName};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

const MILLISECOND_NS: u64 = 1_000_000;

/// A cache that a drive keeps in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheAttributes {
    /// How much it holds, who leaves, and who comes in: each rule once at the most.
    pub plan: CachePlan,
    /// Milliseconds behind which a pair is too old, counted from when it was stored; none for never.
    pub time_to_live_ms: Option<u64>,
}

/// What is no such cache.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AttributesError {
    /// A part is not known.
    #[error(
        "{0:?} is no cache of a drive: write lru budget=1073741824, with asked=, at-most=, a-day= or ttl-ms= behind it"
    )]
    Text(String),
    /// Nobody leaves like that.
    #[error(transparent)]
    Eviction(#[from] UnknownName),
    /// A rule is none.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// It would hold nothing.
    #[error("a cache needs a budget above 0, and a time to live above 0 where it has one")]
    Nothing,
    /// Which of them should count?
    #[error("a cache has {0} once, and it is there twice")]
    Twice(&'static str),
}

impl CacheAttributes {
    /// Whether there can be such a cache.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), AttributesError> {
        if self.plan.budget_bytes == 0 || self.time_to_live_ms == Some(0) {
            return Err(AttributesError::Nothing);
        }
        let rules = &self.plan.admission;
        let is_again =
            |(number, rule): &(usize, &AdmissionRule)| rules[..*number].iter().any(|other| other.policy == rule.policy);
        let again = rules.iter().enumerate().find(is_again);
        again.map_or(Ok(()), |(_, rule)| Err(AttributesError::Twice(rule.policy.name)))
    }

    /// The same cache with other sizes: its budget, and what rules count that parts of a cache share.
    #[must_use]
    pub fn sized(mut self, size: impl Fn(u64) -> u64) -> Self {
        self.plan.budget_bytes = size(self.plan.budget_bytes);
        for rule in &mut self.plan.admission {
            if rule.policy.is_shared {
                rule.number = size(rule.number);
            }
        }
        self
    }

    /// When a pair is too old that was stored then.
    #[must_use]
    pub fn expires(&self, stored: Nanos) -> Nanos {
        let live = |ms: u64| Nanos(stored.0.saturating_add(ms.saturating_mul(MILLISECOND_NS)));
        self.time_to_live_ms.map_or(Nanos::MAX, live)
    }
}

impl fmt::Display for CacheAttributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {BUDGET}={}", self.plan.eviction, self.plan.budget_bytes)?;
        self.plan.admission.iter().try_for_each(|rule| write!(f, " {rule}"))?;
        self.time_to_live_ms.map_or(Ok(()), |ms| write!(f, " {TIME_TO_LIVE}={ms}"))
    }
}

impl FromStr for CacheAttributes {
    type Err = AttributesError;

    fn from_str(text: &str) -> Result<Self, AttributesError> {
        let wrong = || AttributesError::Text(text.to_owned());
        let mut words = text.split(' ');
        let name = words.next().filter(|name| !name.is_empty() && !name.contains('=')).ok_or_else(wrong)?;
        let eviction = name.parse::<EvictionPolicy>()?;
        let number = |word: &str| word.parse().map_err(|_| wrong());
        let (mut budget_bytes, mut time_to_live_ms, mut admission) = (None, None, Vec::new());
        for word in words {
            let (again, name) = match word.split_once('=').ok_or_else(wrong)? {
                (BUDGET, bytes) => (budget_bytes.replace(number(bytes)?), BUDGET),
                (TIME_TO_LIVE, ms) => (time_to_live_ms.replace(number(ms)?), TIME_TO_LIVE),
                _ => {
                    admission.push(word.parse::<AdmissionRule>()?);
                    continue;
                }
            };
            if again.is_some() {
                return Err(AttributesError::Twice(name));
            }
        }
        let plan = CachePlan { budget_bytes: budget_bytes.unwrap_or(0), eviction, admission };
        let attributes = CacheAttributes { plan, time_to_live_ms };
        attributes.check().map(|()| attributes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_read_as_it_is_written_and_nothing_else_is() {
        for text in [
            "lru budget=1",
            "s3-fifo budget=18446744073709551615 asked=255 at-most=18446744073709551615 a-day=7 ttl-ms=1",
            "ttl budget=100 ttl-ms=3600000",
        ] {
            assert_eq!(text.parse::<CacheAttributes>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "lru",
            "lru budget=0",
            "lru budget=x",
            "mru budget=1",
            "lru budget=1 ttl-ms=0",
            "lru budget=1 often=2",
            "lru budget=1 asked=2 asked=3",
            "lru budget=1 ",
            "budget=1 lru",
        ] {
            assert!(wrong.parse::<CacheAttributes>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_there_twice_is_named() {
        for (text, name) in [
            ("lru budget=10 budget=20", "budget"),
            ("lru budget=10 budget=0", "budget"),
            ("lru budget=10 ttl-ms=1 asked=2 ttl-ms=1", "ttl-ms"),
            ("lru budget=10 asked=2 at-most=3 at-most=4", "at-most"),
        ] {
            assert_eq!(text.parse::<CacheAttributes>(), Err(AttributesError::Twice(name)), "{text}");
        }
    }

    #[test]
    fn a_pair_is_too_old_behind_its_time_and_never_without_one() {
        let of = |text: &str| text.parse::<CacheAttributes>().unwrap().expires(Nanos(5));
        assert_eq!((of("lru budget=1 ttl-ms=2"), of("lru budget=1")), (Nanos(2_000_005), Nanos::MAX));
        assert_eq!(of("lru budget=1 ttl-ms=18446744073709551615"), Nanos::MAX);
    }
}
