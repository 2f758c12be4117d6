//! Runs that begin with the same drive: it is filled once, and each of them gets a copy of it.
//!
//! ```text
//!   runs -> groups of one filling, as many as keep the cores busy -> a job each
//! ```

use super::folder::Folder;
use super::plan::Run;
use crate::fail::Failure;
use crate::report::Report;
use crate::workers::Job;
use kvssd_measure::Observer;
use kvssd_sim::{Experiment, Filled, RunReport, SimError};
use std::collections::BTreeMap;

/// Runs of one filling.
pub struct Group<'a>(Vec<&'a Run>);

impl<'a> Group<'a> {
    /// Groups of these runs. Where they are fewer than the cores, the longest are cut in two: another fill costs less than an idle core.
    pub fn of(runs: &[&'a Run], cores: usize) -> Vec<Group<'a>> {
        let mut by_filling: BTreeMap<_, Vec<&Run>> = BTreeMap::new();
        for run in runs {
            by_filling.entry(run.experiment.filling()).or_default().push(run);
        }
        let mut groups: Vec<Group<'_>> = by_filling.into_values().map(Group).collect();
        while groups.len() < cores
            && let Some(longest) =
                groups.iter_mut().filter(|group| group.0.len() > 1).max_by_key(|group| group.operations())
        {
            let half = longest.0.split_off(longest.0.len().div_ceil(2));
            groups.push(Group(half));
        }
        groups
    }

    fn operations(&self) -> u64 {
        let fill = self.0.first().map_or(0, |run| run.experiment.work.operations_of_fill());
        self.0.iter().map(|run| run.experiment.work.operations_of_run()).fold(fill, u64::saturating_add)
    }

    /// Memory that is needed at the most: of the drive, and of the copy that a run is on while others wait for theirs.
    pub fn memory_bytes(&self) -> u64 {
        let drives = self.0.len().min(2) as u64;
        drives * self.0.iter().map(|run| run.memory_bytes).max().unwrap_or(0)
    }

    /// Makes the reports that no other process makes; gives the runs that others make.
    pub fn job(self, folder: &'a Folder) -> Job<'a, Vec<&'a Run>> {
        let (operations, memory_bytes, items) = (self.operations(), self.memory_bytes(), self.0.len());
        Job { operations, memory_bytes, items, work: Box::new(move |observer| self.make(folder, observer)) }
    }

    fn make(self, folder: &Folder, observer: &mut dyn Observer) -> Result<Vec<&'a Run>, Failure> {
        let mut left = self.0.len();
        let mut drive = None;
        let mut of_others = Vec::new();
        for run in self.0 {
            left -= 1;
            let make = || Report::make(&run.experiment, |one| run_next(one, &mut drive, left > 0, observer));
            if !folder.make_if_free(run, make)? {
                of_others.push(run);
            }
        }
        Ok(of_others)
    }
}

/// Runs an experiment on the drive that is there, or on a new one; leaves a copy as it was if others follow.
fn run_next(
    experiment: &Experiment,
    drive: &mut Option<Filled>,
    others_follow: bool,
    observer: &mut dyn Observer,
) -> Result<Vec<RunReport>, SimError> {
    let filled = match drive.take() {
        Some(filled) => filled,
        None => experiment.fill(observer)?,
    };
    *drive = others_follow.then(|| filled.snapshot());
    experiment.run_on(filled, observer)
}
