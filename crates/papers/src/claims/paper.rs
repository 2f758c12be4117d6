//! The papers, and their claims as a document.

use super::{
    Claim, KamlCell, SweepCell, reproduce_iter, reproduce_kaml, reproduce_plus, reproduce_rhik, reproduce_study,
};
use kvssd_flash::Profile;
use kvssd_measure::Observer;
use kvssd_sim::SimError;
use kvssd_sim::bench::split_overrides;
use serde::Serialize;
use std::str::FromStr;

/// A paper whose claims can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Iterator Interface Extended LSM-tree-based KVSSD for Range Queries.
    Iter,
    /// A Hash-Based Key-Value SSD FTL With Efficient Small-Value Support.
    Plus,
    /// KAML: A Flexible, High-Performance Key-Value SSD.
    Kaml,
    /// RHIK - Re-configurable Hash-based Indexing for KVSSD.
    Rhik,
    /// KV-SSD: What Is It Good For?
    Study,
}

/// What became of a paper's claims.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// The claims.
    pub claims: Vec<Claim>,
    /// All that was measured, where a paper sweeps over something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
}

/// The cells of a sweep.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Sweep {
    /// Of [`Paper::Iter`].
    Iter(Vec<SweepCell>),
    /// Of [`Paper::Kaml`].
    Kaml(Vec<KamlCell>),
}

impl Paper {
    /// All of them.
    pub const ALL: [Paper; 5] = [Paper::Iter, Paper::Plus, Paper::Kaml, Paper::Rhik, Paper::Study];

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Paper::Iter => "iter",
            Paper::Plus => "plus",
            Paper::Kaml => "kaml",
            Paper::Rhik => "rhik",
            Paper::Study => "study",
        }
    }

    /// The part of its testbed that is run where none is asked for.
    #[must_use]
    pub fn default_scale(self) -> f64 {
        match self {
            Paper::Kaml | Paper::Plus | Paper::Rhik => 1.0 / 64.0,
            Paper::Iter => 1.0 / 16.0,
            Paper::Study => 1.0 / 1024.0,
        }
    }

    /// The profile of its testbed.
    fn profile(self) -> &'static str {
        match self {
            Paper::Iter => "cosmos",
            Paper::Kaml => "kaml",
            Paper::Plus => "kvvirt",
            Paper::Rhik => "kvemu",
            Paper::Study => "pm983",
        }
    }

    /// Runs its claims at a `scale` of its testbed; `overrides` are keys of the profile and parameters of the designs (`design.name`).
    ///
    /// # Errors
    /// When an override is impossible, an experiment does not run to its end, or the observer interrupts.
    pub fn reproduce(
        self,
        overrides: &[(String, String)],
        scale: f64,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Reproduction, SimError> {
        let (designs, for_profile) = split_overrides(overrides);
        let profile = Profile::load(self.profile(), &for_profile)?;
        let (claims, sweep) = match self {
            Paper::Iter => {
                let (claims, cells) = reproduce_iter(&profile, &designs, scale, seed, observer)?;
                (claims, Some(Sweep::Iter(cells)))
            }
            Paper::Kaml => {
                let (claims, cells) = reproduce_kaml(&profile, &designs, scale, seed, observer)?;
                (claims, Some(Sweep::Kaml(cells)))
            }
            Paper::Plus => (reproduce_plus(&profile, &designs, scale, seed, observer)?, None),
            Paper::Rhik => (reproduce_rhik(&profile, &designs, scale, seed, observer)?, None),
            Paper::Study => (reproduce_study(&profile, &designs, scale, seed, observer)?, None),
        };
        Ok(Reproduction { claims, sweep })
    }
}

impl FromStr for Paper {
    type Err = SimError;

    fn from_str(text: &str) -> Result<Self, SimError> {
        Paper::ALL.into_iter().find(|paper| paper.name() == text).ok_or_else(|| {
            let known = Paper::ALL.map(Paper::name).join(", ");
            SimError::Setup(format!("there is no paper {text}; there are {known}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Verdict;

    #[test]
    fn a_reproduction_is_a_list_of_claims_and_a_sweep_where_there_is_one() {
        let claim = Claim {
            id: "plus.1",
            claim: "faster",
            paper: "2.1 x",
            ours: "1.9 x".to_owned(),
            verdict: Verdict::NotReproduced,
            scale: "1/64".to_owned(),
        };
        let json = |sweep| serde_json::to_string(&Reproduction { claims: vec![claim.clone()], sweep }).unwrap();
        let claims = r#"{"claims":[{"id":"plus.1","claim":"faster","paper":"2.1 x","ours":"1.9 x","verdict":"not reproduced","scale":"1/64"}]"#;
        assert_eq!(json(None), format!("{claims}}}"));
        assert_eq!(json(Some(Sweep::Kaml(Vec::new()))), format!("{claims},\"sweep\":[]}}"));
    }

    #[test]
    fn papers_are_known_by_their_names() {
        for paper in Paper::ALL {
            assert_eq!(paper.name().parse::<Paper>().unwrap(), paper);
        }
        assert!("nobody".parse::<Paper>().is_err());
    }
}
