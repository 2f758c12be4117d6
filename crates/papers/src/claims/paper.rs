//! The papers, and their claims as a document.

use super::{Claim, Conditions, Experiment, Findings, KamlCell, SweepCell, fdp, iter, kaml, plus, rhik, study};
use kvssd_measure::{Figure, Observer};
use kvssd_sim::SimError;
use kvssd_sim::bench::Assignment;
use kvssd_types::named_enum;
use serde::{Deserialize, Serialize};

named_enum! {
    /// A paper whose claims can be run.
    pub enum Paper: "paper" {
        /// Iterator Interface Extended LSM-tree-based KVSSD for Range Queries.
        Iter = "iter",
        /// A Hash-Based Key-Value SSD FTL With Efficient Small-Value Support.
        Plus = "plus",
        /// KAML: A Flexible, High-Performance Key-Value SSD.
        Kaml = "kaml",
        /// RHIK - Re-configurable Hash-based Indexing for KVSSD.
        Rhik = "rhik",
        /// KV-SSD: What Is It Good For?
        Study = "study",
        /// No paper: LMCache's measurement of placement handles.
        Fdp = "fdp",
    }
}

/// What became of claims.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reproduction {
    /// The claims.
    pub claims: Vec<Claim>,
    /// All that was measured, where a paper sweeps over something.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<Cell>,
    /// The figures of the papers that the claims rest on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
}

/// A cell of a sweep.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// Of [`Paper::Iter`].
    Iter(SweepCell),
    /// Of [`Paper::Kaml`].
    Kaml(KamlCell),
}

impl Paper {
    /// The part of its testbed that is run where none is asked for.
    #[must_use]
    pub fn default_scale(self) -> f64 {
        match self {
            Paper::Kaml | Paper::Plus | Paper::Rhik => 1.0 / 64.0,
            Paper::Iter => 1.0 / 16.0,
            Paper::Study => 1.0 / 1024.0,
            Paper::Fdp => 1.0 / 256.0,
        }
    }

    /// The profile of its testbed.
    pub(super) fn profile(self) -> &'static str {
        match self {
            Paper::Iter => "cosmos",
            Paper::Kaml => "kaml",
            Paper::Plus => "kvvirt",
            Paper::Rhik => "kvemu",
            Paper::Study => "pm983",
            Paper::Fdp => "pm9d3a",
        }
    }

    /// What is run for its claims.
    #[must_use]
    pub fn experiments(self) -> &'static [Experiment] {
        match self {
            Paper::Iter => iter::EXPERIMENTS,
            Paper::Kaml => kaml::EXPERIMENTS,
            Paper::Plus => plus::EXPERIMENTS,
            Paper::Rhik => rhik::EXPERIMENTS,
            Paper::Study => study::EXPERIMENTS,
            Paper::Fdp => fdp::EXPERIMENTS,
        }
    }

    /// The claims, as experiments have them.
    #[cfg(test)]
    pub(super) fn ids(self) -> Vec<&'static str> {
        self.experiments().iter().flat_map(|experiment| experiment.ids).copied().collect()
    }

    /// Runs its claims, one experiment after the other, at a `scale` of its testbed.
    ///
    /// # Errors
    /// When an override is impossible, an experiment does not run to its end, or the observer interrupts.
    pub fn reproduce(
        self,
        overrides: &[Assignment],
        scale: f64,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Reproduction, SimError> {
        let conditions = Conditions { paper: self, overrides: overrides.to_vec(), scale, seed };
        self.experiments().iter().try_for_each(|experiment| experiment.check(&conditions))?;
        let mut reproduction = Reproduction::default();
        for experiment in self.experiments() {
            reproduction.add(experiment.run(&conditions, observer)?);
        }
        reproduction.sort();
        Ok(reproduction)
    }
}

impl Reproduction {
    /// Adds what an experiment found.
    pub fn add(&mut self, findings: Findings) {
        self.claims.extend(findings.claims);
        self.sweep.extend(findings.cells);
        self.figures.extend(findings.figures);
    }

    /// Leaves one claim, and the figures that it rests on.
    pub fn retain(&mut self, id: &str) {
        self.claims.retain(|claim| claim.id == id);
        self.figures.retain(|figure| figure.claims.iter().any(|claim| claim == id));
    }

    /// Puts claims and figures into the order of papers and numbers.
    pub fn sort(&mut self) {
        let number = |id: &str| id.rsplit('.').next().and_then(|number| number.parse::<u32>().ok());
        let order = |claim: &Claim| (claim.id.split('.').next().map(str::to_owned), number(&claim.id));
        self.claims.sort_by_key(order);
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>().ok();
        self.figures.sort_by_key(|figure| (figure.paper.clone(), digits(&figure.number), figure.number.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Verdict;
    use kvssd_measure::Unit;
    use kvssd_measure::figure::{Along, Kind, Values};

    #[test]
    fn a_reproduction_is_a_list_of_claims() {
        let claim = Claim::new("plus.9", "1.9 x", Verdict::NotReproduced, "1/64");
        let claims = vec![claim];
        let json = |sweep| {
            serde_json::to_string(&Reproduction { claims: claims.clone(), sweep, ..Reproduction::default() }).unwrap()
        };
        let claims = r#"{"claims":[{"id":"plus.9","claim":"pairs of 40 B values that fit in 128 GB, plus over original","paper":"2.1 B over 260 M, 8x","ours":"1.9 x","verdict":"not reproduced","scale":"1/64"}]"#;
        assert_eq!(json(Vec::new()), format!("{claims}}}"));
    }

    #[test]
    fn figures_come_in_the_order_of_papers_and_numbers_and_go_with_their_claims() {
        let figure = |paper: &str, number: &str, claims: &[u32]| {
            let (along, values) = (Along::names("workload", ["A"]), Values::linear("throughput", Unit::Plain));
            Figure::new(paper, number, claims, "Faster.", Kind::Bars, along, values).ours("plus", [2.0])
        };
        let figures = vec![figure("plus", "10a", &[1]), figure("plus", "2", &[1, 2]), figure("iter", "7", &[3])];
        let mut reproduction = Reproduction { figures, ..Reproduction::default() };
        reproduction.sort();
        let numbers = |of: &Reproduction| of.figures.iter().map(|figure| figure.number.clone()).collect::<Vec<_>>();
        assert_eq!(numbers(&reproduction), ["7", "2", "10a"]);
        reproduction.retain("plus.2");
        assert_eq!(numbers(&reproduction), ["2"]);
    }

    #[test]
    fn papers_are_known_by_their_names() {
        for paper in Paper::ALL {
            assert_eq!(paper.name().parse::<Paper>().unwrap(), paper);
        }
        assert!("nobody".parse::<Paper>().is_err());
    }
}
