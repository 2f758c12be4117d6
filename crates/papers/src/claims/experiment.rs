//! Experiments: what is run for one claim or several, and which assumptions of the paper's testbed its figures may hang on.
//!
//! ```text
//!   Experiment --run--> claims on the drive as it should be
//!       |  all come out
//!       +--run under all that is known of the testbed--> claims, with what is lost by it
//!       |  one does not come out
//!       +--run under each assumption alone, and under all--> claims with an ablation each
//! ```

use super::{Ablation, Cell, Claim, Paper, Verdict};
use kvssd_flash::Profile;
use kvssd_measure::{Figure, Observer};
use kvssd_sim::SimError;
use kvssd_sim::bench::{Assignment, split_overrides};
use serde::{Deserialize, Serialize};

/// What all that is known of a testbed is called in tables.
const ALL: &str = "all of these";
/// And what it is without one of it.
const ALL_BUT: &str = "all but";

/// What an experiment is run with.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Whose.
    pub paper: Paper,
    /// Keys of the profile and parameters of the designs (`design.name`), with what they are set to.
    pub overrides: Vec<Assignment>,
    /// The part of the paper's testbed.
    pub scale: f64,
    /// Of everything that is random.
    pub seed: u64,
}

/// The same, with the testbed loaded.
pub(super) struct Context {
    /// The testbed, unscaled.
    pub(super) profile: Profile,
    /// What is put over the designs.
    pub(super) parameters: Vec<Assignment>,
    pub(super) scale: f64,
    pub(super) seed: u64,
}

/// What was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Findings {
    /// The claims, in the order of their numbers.
    pub claims: Vec<Claim>,
    /// The cells that they were read from, where the paper sweeps over something.
    pub cells: Vec<Cell>,
    /// The figures of the paper that the claims rest on.
    pub figures: Vec<Figure>,
}

impl Findings {
    /// With figures that the claims rest on.
    pub(super) fn with(mut self, figures: impl IntoIterator<Item = Figure>) -> Self {
        self.figures.extend(figures);
        self
    }
}

impl From<Vec<Claim>> for Findings {
    fn from(claims: Vec<Claim>) -> Self {
        Findings { claims, cells: Vec::new(), figures: Vec::new() }
    }
}

impl From<Claim> for Findings {
    fn from(claim: Claim) -> Self {
        vec![claim].into()
    }
}

/// Something that a paper's testbed does and ours does not.
#[derive(Debug)]
pub struct Assumption {
    /// What it is called in tables.
    pub name: &'static str,
    /// What the testbed is told.
    pub set: Settings,
    /// Whether it is known of the paper's testbed (docs/TESTBEDS.md). What is not only shows where the paper's figure would lie, and proves
    /// nothing.
    pub is_fact: bool,
}

/// Keys of a profile or parameters of a design, with what they are set to.
type Settings = &'static [(&'static str, &'static str)];

impl Assumption {
    /// What is known of the paper's testbed.
    pub(super) const fn fact(name: &'static str, set: Settings) -> Self {
        Assumption { name, set, is_fact: true }
    }

    /// What may be so.
    pub(super) const fn guess(name: &'static str, set: Settings) -> Self {
        Assumption { name, set, is_fact: false }
    }
}

/// What is run for some claims.
#[derive(Debug)]
pub struct Experiment {
    /// The claims.
    pub ids: &'static [&'static str],
    /// How long it takes at the paper's default scale, its ablation with it, in seconds of one core. An estimate.
    pub seconds: u32,
    /// Builds the drives that it will run.
    pub(super) check: fn(&Context) -> Result<(), SimError>,
    pub(super) run: fn(&Context, &mut dyn Observer) -> Result<Findings, SimError>,
    /// What its figures may hang on.
    pub assumptions: &'static [Assumption],
    /// Whether its paper sweeps over something: its findings have cells then.
    pub has_cells: bool,
}

impl Experiment {
    /// Of these claims, which takes so many seconds, and whose figures hang on nothing that is assumed.
    pub(super) const fn new(
        ids: &'static [&'static str],
        seconds: u32,
        check: fn(&Context) -> Result<(), SimError>,
        run: fn(&Context, &mut dyn Observer) -> Result<Findings, SimError>,
    ) -> Self {
        Experiment { ids, seconds, check, run, assumptions: &[], has_cells: false }
    }

    /// The same, of a sweep.
    pub(super) const fn with_cells(mut self) -> Self {
        self.has_cells = true;
        self
    }

    /// The same, whose figures may hang on these.
    pub(super) const fn assuming(mut self, assumptions: &'static [Assumption]) -> Self {
        self.assumptions = assumptions;
        self
    }

    /// Refuses conditions under which a drive of it, or of its ablation, cannot be.
    ///
    /// # Errors
    /// What is impossible.
    pub fn check(&self, conditions: &Conditions) -> Result<(), SimError> {
        let alone = self.assumptions.iter().map(|assumption| vec![assumption]);
        let all = [Vec::new(), self.facts()];
        all.into_iter().chain(alone).try_for_each(|assumed| (self.check)(&conditions.context(&assumed)?))
    }

    /// Runs it on the drive as it should be and under all that is known of the testbed. If a claim does not come out, also under each
    /// assumption and, where all that are known show more than each alone, under all but one.
    ///
    /// # Errors
    /// When the conditions are impossible, a drive fails, or the observer interrupts.
    pub fn run(&self, conditions: &Conditions, observer: &mut dyn Observer) -> Result<Findings, SimError> {
        let mut findings = (self.run)(&conditions.context(&[])?, observer)?;
        assert_drawable(&findings.figures, self.ids);
        assert_eq!(self.has_cells, !findings.cells.is_empty(), "{:?} say whether they have cells", self.ids);
        let have_come_out = findings.claims.iter().all(|claim| claim.verdict.has_come_out());
        let facts = self.facts();
        let claims = &mut findings.claims;
        let mut assume = |assumed: String, assumptions: &[&Assumption], claims: &mut Vec<Claim>| {
            let under = (self.run)(&conditions.context(assumptions)?, observer)?;
            for (claim, Claim { ours, verdict, .. }) in claims.iter_mut().zip(under.claims) {
                claim.ablation.push(Ablation { assumed: assumed.clone(), ours, verdict });
            }
            Ok::<(), SimError>(())
        };
        // Guesses explain what does not come out, and say nothing of what does: that is run with the facts, of which one alone is all.
        let alone =
            self.assumptions.iter().filter(|assumption| !have_come_out || facts.len() == 1 && assumption.is_fact);
        for assumption in alone {
            assume(assumption.name.to_owned(), &[assumption], claims)?;
        }
        if facts.len() > 1 {
            assume(ALL.to_owned(), &facts, claims)?;
            if claims.iter().any(|claim| claim.is_shown_by_all_alone(&facts)) {
                for left_out in &facts {
                    let others: Vec<&Assumption> =
                        facts.iter().copied().filter(|fact| fact.name != left_out.name).collect();
                    assume(format!("{ALL_BUT} {}", left_out.name), &others, claims)?;
                }
            }
        }
        claims.iter_mut().for_each(|claim| claim.prove(&facts));
        Ok(findings)
    }

    fn facts(&self) -> Vec<&Assumption> {
        self.assumptions.iter().filter(|assumption| assumption.is_fact).collect()
    }
}

/// Asserts that every figure can be drawn, and is of claims that are among `ids`.
pub(super) fn assert_drawable(figures: &[Figure], ids: &[&str]) {
    for figure in figures {
        let name = format!("figure {} of {}", figure.number, figure.paper);
        assert_eq!(figure.fault(), None, "{name}");
        let are_known = figure.claims.iter().all(|claim| ids.contains(&claim.as_str()));
        assert!(are_known && !figure.claims.is_empty(), "{name}: {:?} are not of {ids:?}", figure.claims);
    }
}

impl Claim {
    fn is_reproduced_with(&self, assumed: &str) -> bool {
        let mut rows = self.ablation.iter().filter(|row| row.assumed == assumed);
        rows.any(|row| row.verdict == Verdict::Reproduced)
    }

    /// Whether it is reproduced under all that is known of the testbed, and under nothing of it alone.
    fn is_shown_by_all_alone(&self, facts: &[&Assumption]) -> bool {
        !self.verdict.has_come_out()
            && self.is_reproduced_with(ALL)
            && !facts.iter().any(|fact| self.is_reproduced_with(fact.name))
    }

    /// What is reproduced under all that is known of the testbed is proven, and the assumptions that make the difference are named:
    /// those that are enough alone or, if none is, those without which it is not reproduced. What came out by itself keeps its verdict,
    /// and is marked where it would not come out so.
    fn prove(&mut self, facts: &[&Assumption]) {
        if self.ablation.iter().all(|row| row.ours == self.ours) {
            // These explain nothing.
            self.ablation.clear();
        }
        let all = if facts.len() == 1 { facts[0].name } else { ALL };
        if self.verdict.has_come_out() {
            let is_lost = self.ablation.iter().any(|row| row.assumed == all && !row.verdict.has_come_out());
            self.lost_with = is_lost.then(|| all.to_owned());
            return;
        }
        if !self.is_reproduced_with(all) {
            return;
        }
        let names = facts.iter().map(|fact| fact.name);
        self.cause = Some(if self.is_shown_by_all_alone(facts) {
            let is_needed = |name: &&str| !self.is_reproduced_with(&format!("{ALL_BUT} {name}"));
            match names.filter(is_needed).collect::<Vec<_>>() {
                needed if needed.is_empty() => "several together, none of which is needed".to_owned(),
                needed => format!("together: {}", needed.join("; ")),
            }
        } else {
            names.filter(|name| self.is_reproduced_with(name)).collect::<Vec<_>>().join("; ")
        });
        self.verdict = Verdict::Proven;
    }
}

impl Conditions {
    /// The testbed, with assumptions put over what was asked for.
    pub(super) fn context(&self, assumptions: &[&Assumption]) -> Result<Context, SimError> {
        let assumed = assumptions.iter().flat_map(|assumption| assumption.set);
        let assumed = assumed.map(|&(key, value)| (key.to_owned(), value.to_owned()));
        let overrides: Vec<Assignment> = self.overrides.iter().cloned().chain(assumed).collect();
        let (parameters, for_profile) = split_overrides(&overrides);
        let profile = Profile::load(self.paper.profile(), &for_profile)?;
        Ok(Context { profile, parameters, scale: self.scale, seed: self.seed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::STATED;
    use kvssd_measure::Quiet;

    const FACTS: [Assumption; 2] = [
        Assumption::fact("slow erases", &[("nand.erase_ns", "2")]),
        Assumption::fact("one core", &[("core_costs.cores", "1")]),
    ];
    const GUESS: [Assumption; 1] = [Assumption::guess("one core", &[("core_costs.cores", "1")])];

    /// It holds where all of the first two are assumed.
    fn found(context: &Context) -> u64 {
        u64::from(context.profile.nand.erase_ns == 2) + u64::from(context.profile.core_costs.cores == 1)
    }

    fn claim(needed: u64, context: &Context) -> Findings {
        let verdict = Verdict::if_true(found(context) >= needed);
        Claim::new("plus.1", found(context).to_string(), verdict, "full").into()
    }

    fn run(
        assumptions: &'static [Assumption],
        run: fn(&Context, &mut dyn Observer) -> Result<Findings, SimError>,
    ) -> Claim {
        let conditions = Conditions { paper: Paper::Plus, overrides: Vec::new(), scale: 1.0, seed: 1 };
        let experiment = Experiment::new(&["plus.1"], 1, |_| Ok(()), run).assuming(assumptions);
        experiment.run(&conditions, &mut Quiet).unwrap().claims.remove(0)
    }

    #[test]
    fn a_claim_that_needs_all_assumptions_is_proven_by_them() {
        let proven = run(&FACTS, |context, _| Ok(claim(2, context)));
        let cause = "together: slow erases; one core";
        assert_eq!((proven.verdict, proven.cause.as_deref()), (Verdict::Proven, Some(cause)));
        let rows: Vec<(&str, &str)> = proven.ablation.iter().map(|row| (&*row.assumed, &*row.ours)).collect();
        let alone = [("slow erases", "1"), ("one core", "1"), ("all of these", "2")];
        assert_eq!(rows, [&alone[..], &[("all but slow erases", "1"), ("all but one core", "1")]].concat());
        let either = run(&FACTS, |context, _| Ok(claim(1, context)));
        assert_eq!(either.cause.as_deref(), Some("slow erases; one core"));
    }

    #[test]
    fn what_comes_out_is_tried_under_all_that_is_known_alone_and_what_is_guessed_proves_nothing() {
        let reproduced = run(&FACTS, |context, _| Ok(claim(0, context)));
        let rows: Vec<(&str, &str)> = reproduced.ablation.iter().map(|row| (&*row.assumed, &*row.ours)).collect();
        assert_eq!((reproduced.verdict, &rows[..]), (Verdict::Reproduced, &[("all of these", "2")][..]));
        assert_eq!(reproduced.lost_with, None);
        let explained = run(&GUESS, |context, _| Ok(claim(0, context)));
        assert_eq!(
            (explained.verdict, explained.ablation.len()),
            (Verdict::Reproduced, 0),
            "guesses are for what does not"
        );
        let guessed = run(&GUESS, |context, _| Ok(claim(1, context)));
        assert_eq!((guessed.verdict, guessed.ablation[0].verdict), (Verdict::NotReproduced, Verdict::Reproduced));
    }

    #[test]
    fn what_does_not_come_out_under_what_is_known_is_marked_and_keeps_its_verdict() {
        const LOST: fn(&Context) -> Findings = |context| {
            let verdict = Verdict::if_true(found(context) == 0);
            Claim::new("plus.1", found(context).to_string(), verdict, "full").into()
        };
        let marked = run(&FACTS, |context, _| Ok(LOST(context)));
        assert_eq!((marked.verdict, marked.lost_with.as_deref()), (Verdict::Reproduced, Some("all of these")));
        let marked = run(&FACTS[1..], |context, _| Ok(LOST(context)));
        assert_eq!((marked.verdict, marked.lost_with.as_deref()), (Verdict::Reproduced, Some("one core")));
        let guessed = run(&GUESS, |context, _| Ok(LOST(context)));
        assert_eq!(guessed.lost_with, None);
    }

    #[test]
    fn every_claim_of_every_paper_belongs_to_one_experiment() {
        for (paper, count) in Paper::ALL.into_iter().zip([14, 12, 12, 9, 10, 2]) {
            let of = |experiment: &'static Experiment| experiment.ids;
            let mut ids: Vec<&str> = paper.experiments().iter().flat_map(of).copied().collect();
            ids.sort_unstable_by_key(|id| id.rsplit('.').next().unwrap().parse::<u32>().unwrap());
            let expected: Vec<String> = (1..=count).map(|number| format!("{}.{number}", paper.name())).collect();
            assert_eq!(ids, expected);
            let stated = STATED.lines().filter_map(|line| line.split(' ').next());
            assert!(stated.filter(|id| id.starts_with(paper.name())).eq(expected), "each is stated, in their order");
        }
    }

    #[test]
    fn every_assumption_is_one_that_a_testbed_can_make() {
        for paper in Paper::ALL {
            let conditions = Conditions { paper, overrides: Vec::new(), scale: 1.0, seed: 1 };
            for assumption in paper.experiments().iter().flat_map(|experiment| experiment.assumptions) {
                let context =
                    conditions.context(&[assumption]).unwrap_or_else(|error| panic!("{assumption:?}: {error}"));
                let plain = conditions.context(&[]).unwrap();
                let is_other = context.profile != plain.profile || context.parameters != plain.parameters;
                assert!(is_other, "{assumption:?} changes nothing");
            }
        }
    }
}
