//! What the papers measured, and what comes out here.
//!
//! A claim is **reproduced** when ours lies in its band (within 20 % of the paper's figure where none is given, with at least 80 % of
//! its effect) and shows the same **direction** when the same side wins by at least a third of the paper's effect. It is **proven**
//! when it is reproduced once the testbed makes the assumptions that are known of the paper's ([`Experiment`]), true **by
//! construction** when its figure follows from a size or rule of the paper's that was built in, and **not reproduced**
//! otherwise. What is claimed without a figure has rules of its own, which docs/REPORT.md lists. Both sides of a comparison run on
//! the same profile, seed and workload.

mod experiment;
mod fdp;
mod iter;
mod kaml;
mod paper;
mod plus;
mod rhik;
mod study;

pub use experiment::{Assumption, Conditions, Experiment, Findings};
pub use iter::SweepCell;
pub use kaml::KamlCell;
pub use paper::{Cell, Paper, Reproduction};

use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The least part of the paper's effect that a figure in the band must have.
const EFFECT_MIN: f64 = 0.8;
/// The least part of it that shows the direction.
const DIRECTION_MIN: f64 = 1.0 / 3.0;

/// What the papers claim, a line each: number, what is claimed, the paper's figure.
const STATED: &str = include_str!("claims/stated.txt");

/// A claim and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The number of the claim, such as `plus.1`.
    pub id: String,
    /// What is claimed.
    pub claim: String,
    /// The paper's figure.
    pub paper: String,
    /// Ours.
    pub ours: String,
    /// Whether they agree.
    pub verdict: Verdict,
    /// The part of the paper's testbed that ours was run on, or that it was reckoned.
    pub scale: String,
    /// Of a claim that is proven, the assumptions that it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Of a claim that came out by itself, what is known of the testbed, if it does not come out with that. The verdict stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_with: Option<String>,
    /// Ours under assumptions of the paper's testbed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ablation: Vec<Ablation>,
}

/// What becomes of a claim when something is assumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ablation {
    /// The assumption, by name.
    pub assumed: String,
    /// Ours, with it.
    pub ours: String,
    /// Whether that agrees with the paper.
    pub verdict: Verdict,
}

impl Claim {
    /// What became of the claim of that number, which is among those of `claims/stated.txt`.
    fn new(id: &str, ours: impl Into<String>, verdict: Verdict, scale: impl Into<String>) -> Self {
        let mut stated = STATED.lines().map(|line| line.splitn(3, " | ").map(str::to_owned).collect::<Vec<_>>());
        let stated = stated.find(|line| line[0] == id).expect("every claim is stated");
        let [id, claim, paper] = stated.try_into().expect("a number, what is claimed, and the paper's figure");
        let (ours, scale) = (ours.into(), scale.into());
        Claim { id, claim, paper, ours, verdict, scale, cause: None, lost_with: None, ablation: Vec::new() }
    }
}

/// Whether a claim holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Ours lies in the band.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// It is, under assumptions that are known of the paper's testbed.
    #[serde(rename = "proven")]
    Proven,
    /// It could not be otherwise: a size or rule of the paper's was built in.
    #[serde(rename = "by construction")]
    ByConstruction,
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
            Verdict::Proven => "proven",
            Verdict::ByConstruction => "by construction",
            Verdict::Direction => "direction",
            Verdict::NotReproduced => "not reproduced",
        }
    }

    /// Whether there is nothing to explain.
    #[must_use]
    pub fn has_come_out(self) -> bool {
        matches!(self, Verdict::Reproduced | Verdict::Proven | Verdict::ByConstruction)
    }

    /// That of a figure that follows from what was built in.
    #[must_use]
    pub fn by_construction(self) -> Verdict {
        if self == Verdict::Reproduced { Verdict::ByConstruction } else { self }
    }

    /// Reproduced if it `holds`.
    #[must_use]
    pub fn if_true(holds: bool) -> Verdict {
        if holds { Verdict::Reproduced } else { Verdict::NotReproduced }
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
        if paper == neutral {
            return Verdict::if_true(band.contains(&ours));
        }
        let effect = (ours - neutral) / (paper - neutral);
        if band.contains(&ours) && effect >= EFFECT_MIN {
            Verdict::Reproduced
        } else if effect >= DIRECTION_MIN {
            Verdict::Direction
        } else {
            Verdict::NotReproduced
        }
    }

    /// That of a claim of several figures: the worst of theirs.
    #[must_use]
    pub fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
        let rank = |verdict: &Verdict| match verdict {
            Verdict::Reproduced | Verdict::Proven | Verdict::ByConstruction => 0,
            Verdict::Direction => 1,
            Verdict::NotReproduced => 2,
        };
        verdicts.into_iter().max_by_key(rank).unwrap_or(Verdict::NotReproduced)
    }

    /// Judges a figure that must not be more than a bound.
    #[must_use]
    pub fn at_most(bound: f64, ours: f64) -> Verdict {
        Verdict::if_true(ours <= bound)
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

/// A size of values, as the papers write it.
fn size_name(bytes: u32) -> String {
    if bytes >= 1024 && bytes.is_multiple_of(1024) { format!("{} KB", bytes >> 10) } else { format!("{bytes} B") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_rules() {
        assert_eq!(Verdict::of(2.1, 1.9, 1.0), Verdict::Reproduced);
        assert_eq!(Verdict::of(2.1, 1.7, 1.0), Verdict::Direction, "in the band, with 64 % of the effect");
        assert_eq!(Verdict::of(1.25, 1.01, 1.0), Verdict::NotReproduced);
        assert_eq!(Verdict::of(2.1, 1.5, 1.0), Verdict::Direction);
        assert_eq!(Verdict::of(2.1, 4.0, 1.0), Verdict::Direction);
        assert_eq!(Verdict::of(2.1, 1.2, 1.0), Verdict::NotReproduced);
        assert_eq!(Verdict::of(2.1, 0.5, 1.0), Verdict::NotReproduced);
        assert_eq!(Verdict::of(1.0, 1.1, 1.0), Verdict::Reproduced, "that there is no effect is the claim");
        assert_eq!(Verdict::of(1.0, 17.0, 1.0), Verdict::NotReproduced);
        assert_eq!(Verdict::of(-0.25, -0.28, 0.0), Verdict::Reproduced);
        assert_eq!(Verdict::of(-0.25, -0.10, 0.0), Verdict::Direction);
        assert_eq!(Verdict::of(-0.25, 0.10, 0.0), Verdict::NotReproduced);
        assert_eq!(Verdict::within(0.92..=1.0, 0.97, 1.01, 1.0), Verdict::NotReproduced);
        assert_eq!(Verdict::within(0.92..=1.0, 0.97, 0.97, 1.0), Verdict::Reproduced);
        assert_eq!(
            Verdict::within(0.92..=1.0, 0.97, 0.999, 1.0),
            Verdict::NotReproduced,
            "in the band, with no effect"
        );
        assert_eq!(Verdict::within(0.92..=1.0, 0.97, 0.9, 1.0), Verdict::Direction);
        assert_eq!(Verdict::of(0.86, 1.0, 1.0), Verdict::NotReproduced, "a draw is no win");
        assert_eq!(Verdict::of(0.86, 1.02, 1.0), Verdict::NotReproduced);
        assert_eq!(Verdict::at_most(0.5, 0.51), Verdict::NotReproduced);
        assert_eq!(Verdict::worst([Verdict::Reproduced, Verdict::Direction]), Verdict::Direction);
    }
}
