//! The experiments behind claims: as many at once as there are cores; what they find is kept in a folder, and one that fails stops no other.

use crate::fail::Failure;
use crate::kept::Kept;
use crate::output::{counted, note, time};
use crate::program::content_hash;
use crate::workers::{self, Job, Limits};
use kvssd_measure::Observer;
use kvssd_papers::claims::{Conditions, Experiment, Findings};
use kvssd_sim::SimError;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// An experiment that is to be run.
pub struct Wanted {
    pub experiment: &'static Experiment,
    pub conditions: Conditions,
}

/// What became of one.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    /// The claims that it is behind.
    pub ids: Vec<String>,
    pub conditions: String,
    pub findings: Findings,
    /// How long it took, now or when it was run.
    pub seconds: f64,
}

impl Wanted {
    /// What it takes, roughly.
    fn seconds(&self) -> f64 {
        let Conditions { paper, scale, .. } = &self.conditions;
        f64::from(self.experiment.seconds) * (scale / paper.default_scale()).max(0.1)
    }

    /// What it is kept as: others, and other programs, have files of their own.
    fn name(&self) -> String {
        let id = self.experiment.ids[0];
        format!("{id}-{}", content_hash(&(id, format!("{:?}", self.conditions))))
    }

    /// What was kept of it. What was copied from another one is not.
    fn found(&self, kept: Option<&Kept>) -> Option<Found> {
        let is_of_this = |found: &Found| {
            found.ids.iter().eq(self.experiment.ids) && found.conditions == format!("{:?}", self.conditions)
        };
        kept?.found(&self.name()).filter(is_of_this)
    }

    fn job<'a>(&'a self, kept: Option<&'a Kept>) -> Job<'a, Result<Found, Failure>> {
        Job {
            // How many it has is not known before: milliseconds tell as well how long it is beside others.
            operations: (self.seconds() * 1000.0) as u64,
            is_guess: true,
            // None of them needs more than a machine with as many cores has.
            memory_bytes: 0,
            items: 1,
            work: Box::new(move |observer| self.find(kept, observer)),
        }
    }

    /// Runs it, or takes what another process found by now; gives why it fails. An error ends the others as well.
    fn find(&self, kept: Option<&Kept>, observer: &mut dyn Observer) -> Result<Result<Found, Failure>, Failure> {
        let claim = kept.map(|kept| kept.wait(&self.name(), observer)).transpose()?;
        if let Some(found) = self.found(kept) {
            return Ok(Ok(found));
        }
        let started = Instant::now();
        let findings = match self.experiment.run(&self.conditions, observer) {
            Ok(findings) => findings,
            Err(SimError::Interrupted) => return Err(SimError::Interrupted.into()),
            Err(why) => {
                return Ok(Err(Failure::Claims { ids: self.experiment.ids.join(", "), why: Box::new(why.into()) }));
            }
        };
        let ids = self.experiment.ids.iter().map(|id| (*id).to_owned()).collect();
        let (conditions, seconds) = (format!("{:?}", self.conditions), started.elapsed().as_secs_f64());
        let found = Found { ids, conditions, findings, seconds };
        claim.map_or(Ok(()), |claim| claim.keep(&found))?;
        Ok(Ok(found))
    }
}

/// Runs them, but those that were kept; gives what was found in their order, and why others failed.
pub fn run(wanted: &[Wanted], kept: Option<&Kept>) -> Result<(Vec<Found>, Vec<Failure>), Failure> {
    let mut found: Vec<Option<Found>> = wanted.iter().map(|wanted| wanted.found(kept)).collect();
    let left: Vec<&Wanted> =
        wanted.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(one, _)| one).collect();
    let limits = Limits::of_machine();
    announce(&left, wanted.len() - left.len(), limits.cores.min(left.len()));
    let new = workers::run(left.iter().map(|wanted| wanted.job(kept)).collect(), &limits, "experiments")?;
    let mut failures = Vec::new();
    for (place, new) in found.iter_mut().filter(|found| found.is_none()).zip(new) {
        *place = new.map_err(|why| failures.push(why)).ok();
    }
    Ok((found.into_iter().flatten().collect(), failures))
}

/// Says how long it will take.
fn announce(left: &[&Wanted], found: usize, cores: usize) {
    let seconds = || left.iter().map(|wanted| wanted.seconds());
    let longest = (seconds().sum::<f64>() / cores.max(1) as f64).max(seconds().fold(0.0, f64::max));
    let known = if found == 0 { String::new() } else { format!(", {found} were run before") };
    if !left.is_empty() {
        let experiments = counted(left.len(), "experiment");
        note(&format!("{experiments}, {cores} at once, about {}{known}", time(Duration::from_secs_f64(longest))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_papers::claims::Paper;

    #[test]
    fn one_that_fails_takes_nothing_from_the_others() {
        let wanted =
            [("iter.5", Paper::Iter, 1.0 / 128.0), ("kaml.12", Paper::Kaml, 1.0 / 64.0)].map(|(id, paper, scale)| {
                let experiment = paper.experiments().iter().find(|one| one.ids == [id]).expect("it is a claim");
                Wanted { experiment, conditions: Conditions { paper, overrides: Vec::new(), scale, seed: 1 } }
            });
        let (found, failures) = run(&wanted, None).unwrap();
        assert_eq!(found.iter().map(|found| found.ids.clone()).collect::<Vec<_>>(), [["kaml.12"]]);
        let failures: Vec<String> = failures.iter().map(Failure::to_string).collect();
        assert!(
            failures.len() == 1 && failures[0].starts_with("iter.5: the drive had DRAM for 14 iterators"),
            "{failures:?}"
        );
    }
}
