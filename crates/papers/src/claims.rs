//! What the papers measured, and what comes out here.
//!
//! A claim is **reproduced** when ours lies in its band (within 20 % of the paper's figure where none is given), shows the same
//! **direction** when the same side wins by at least a third of the paper's effect, and is **not reproduced** otherwise. Both
//! sides of a comparison run on the same profile, seed and workload.

mod iter;
mod kaml;
mod paper;
mod plus;
mod rhik;
mod study;

pub use iter::{SweepCell, reproduce_iter};
pub use kaml::{KamlCell, reproduce_kaml};
pub use paper::{Paper, Reproduction, Sweep};
pub use plus::reproduce_plus;
pub use rhik::reproduce_rhik;
pub use study::reproduce_study;

use serde::Serialize;
use std::ops::RangeInclusive;

/// A claim and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// The number of the claim, such as `plus.1`.
    pub id: &'static str,
    /// What is claimed.
    pub claim: &'static str,
    /// The paper's figure.
    pub paper: &'static str,
    /// Ours.
    pub ours: String,
    /// Whether they agree.
    pub verdict: Verdict,
    /// The part of the paper's testbed that ours was run on, or that it was reckoned.
    pub scale: String,
}

/// Whether a claim holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Ours lies in the band.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The same side wins, by at least a third of the paper's effect.
    #[serde(rename = "direction")]
    Direction,
    /// Anything else.
    #[serde(rename = "not reproduced")]
    NotReproduced,
}

impl Verdict {
    /// The word in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Direction => "direction",
            Verdict::NotReproduced => "not reproduced",
        }
    }

    /// Judges a figure against the paper's; `neutral` is the figure that would show no effect.
    #[must_use]
    pub fn of(paper: f64, ours: f64, neutral: f64) -> Verdict {
        let (low, high) = (paper * 0.8, paper * 1.2);
        Verdict::within(low.min(high)..=low.max(high), paper, ours, neutral)
    }

    /// The same with a band of its own.
    #[must_use]
    pub fn within(band: RangeInclusive<f64>, paper: f64, ours: f64, neutral: f64) -> Verdict {
        // A draw is no effect, however near to it the paper's is.
        let is_effect = paper == neutral || (ours - neutral) * (paper - neutral) > 0.0;
        if band.contains(&ours) && is_effect {
            Verdict::Reproduced
        } else if (ours - neutral) / (paper - neutral) >= 1.0 / 3.0 {
            Verdict::Direction
        } else {
            Verdict::NotReproduced
        }
    }

    /// That of a claim of several figures: the worst of theirs.
    #[must_use]
    pub fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
        let rank = |verdict: &Verdict| match verdict {
            Verdict::Reproduced => 0,
            Verdict::Direction => 1,
            Verdict::NotReproduced => 2,
        };
        verdicts.into_iter().max_by_key(rank).unwrap_or(Verdict::NotReproduced)
    }

    /// Judges a figure that must not be more than a bound.
    #[must_use]
    pub fn at_most(bound: f64, ours: f64) -> Verdict {
        if ours <= bound { Verdict::Reproduced } else { Verdict::NotReproduced }
    }
}

/// A part of a testbed, as people write it.
fn scale_name(scale: f64) -> String {
    let parts = 1.0 / scale;
    if scale == 1.0 {
        "full".to_owned()
    } else if (parts - parts.round()).abs() < 1e-9 {
        format!("1/{parts:.0}")
    } else {
        format!("{scale}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_rules() {
        assert_eq!(Verdict::of(2.1, 1.7, 1.0), Verdict::Reproduced);
        assert_eq!(Verdict::of(2.1, 1.5, 1.0), Verdict::Direction);
        assert_eq!(Verdict::of(2.1, 4.0, 1.0), Verdict::Direction);
        assert_eq!(Verdict::of(2.1, 1.2, 1.0), Verdict::NotReproduced);
        assert_eq!(Verdict::of(2.1, 0.5, 1.0), Verdict::NotReproduced);
        assert_eq!(Verdict::of(-0.25, -0.28, 0.0), Verdict::Reproduced);
        assert_eq!(Verdict::of(-0.25, -0.10, 0.0), Verdict::Direction);
        assert_eq!(Verdict::of(-0.25, 0.10, 0.0), Verdict::NotReproduced);
        assert_eq!(Verdict::within(0.92..=1.0, 0.97, 1.01, 1.0), Verdict::NotReproduced);
        assert_eq!(Verdict::within(0.92..=1.0, 0.97, 0.9, 1.0), Verdict::Direction);
        assert_eq!(Verdict::of(0.86, 1.0, 1.0), Verdict::NotReproduced, "a draw is no win");
        assert_eq!(Verdict::of(0.86, 1.02, 1.0), Verdict::NotReproduced);
        assert_eq!(Verdict::at_most(0.5, 0.51), Verdict::NotReproduced);
        assert_eq!(Verdict::worst([Verdict::Reproduced, Verdict::Direction]), Verdict::Direction);
    }
}
