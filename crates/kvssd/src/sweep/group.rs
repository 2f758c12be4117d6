//! Runs that begin with the same drive: it is filled once, and each of them gets a copy of it.
//!
//! ```text
//!   runs -> groups of one filling, as many as keep the cores busy -> a job each
//! ```

use super::folder::Folder;
use super::plan::Run;
use crate::fail::Failure;
use crate::report::Report;
use crate::workers::{Job, Limits};
use kvssd_measure::Observer;
use kvssd_sim::{Experiment, Filled, RunReport, SimError};
use std::collections::BTreeMap;

/// Runs of one filling.
pub struct Group<'a> {
    runs: Vec<&'a Run>,
}

impl<'a> Group<'a> {
    /// Groups of these runs. Where they are fewer than the cores, the longest are cut in two: another fill costs less than an idle core.
    /// Where a drive and its copy do not fit into the memory, nothing is shared.
    pub fn of(runs: &[&'a Run], limits: &Limits) -> Vec<Group<'a>> {
        let mut by_filling: BTreeMap<_, Vec<&Run>> = BTreeMap::new();
        for run in runs {
            by_filling.entry(run.experiment.filling()).or_default().push(run);
        }
        let mut groups = Vec::new();
        for runs in by_filling.into_values() {
            match 2 * drive_bytes(&runs) <= limits.memory_bytes {
                true => groups.push(Group { runs }),
                false => groups.extend(runs.into_iter().map(|run| Group { runs: vec![run] })),
            }
        }
        while groups.len() < limits.cores
            && let Some(longest) =
                groups.iter_mut().filter(|group| group.runs.len() > 1).max_by_key(|group| group.operations())
        {
            let half = longest.runs.split_off(longest.runs.len().div_ceil(2));
            groups.push(Group { runs: half });
        }
        groups
    }

    fn operations(&self) -> u64 {
        let fill = self.runs.first().map_or(0, |run| run.experiment.work.operations_of_fill());
        self.runs.iter().map(|run| run.experiment.work.operations_of_run()).fold(fill, u64::saturating_add)
    }

    /// Memory that is needed at the most: of the drive, and of the copy that a run is on while others wait for theirs.
    pub fn memory_bytes(&self) -> u64 {
        self.runs.len().min(2) as u64 * drive_bytes(&self.runs)
    }

    /// Makes the reports that no other process makes; gives the runs that others make.
    pub fn job(self, folder: &'a Folder) -> Job<'a, Vec<&'a Run>> {
        let (operations, memory_bytes, items) = (self.operations(), self.memory_bytes(), self.runs.len());
        Job {
            operations,
            is_guess: false,
            memory_bytes,
            items,
            work: Box::new(move |observer| self.make(folder, observer)),
        }
    }

    fn make(self, folder: &Folder, observer: &mut dyn Observer) -> Result<Vec<&'a Run>, Failure> {
        let mut left = self.runs.len();
        let mut drive = None;
        let mut of_others = Vec::new();
        for run in self.runs {
            left -= 1;
            let make = || Report::make(&run.experiment, |one| run_next(one, &mut drive, left > 0, observer));
            if !folder.make_if_free(run, make)? {
                of_others.push(run);
            }
            observer.item_done();
        }
        Ok(of_others)
    }
}

/// What the largest drive of these takes.
fn drive_bytes(runs: &[&Run]) -> u64 {
    runs.iter().map(|run| run.memory_bytes).max().unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Plan;

    #[test]
    fn a_drive_is_shared_where_its_copy_fits_too_and_no_core_is_left_idle() {
        let plan = Plan::of_json(
            r#"{ "options": { "design": "plus", "scale": "1/512" }, "axes": { "workload": ["ycsb-a", "ycsb-b", "ycsb-c"] } }"#,
        );
        let plan = plan.unwrap();
        let runs: Vec<&Run> = plan.runs().into_iter().map(|(_, run)| run).collect();
        let bytes = runs[0].memory_bytes;
        let lengths = |cores, memory_bytes| {
            let groups = Group::of(&runs, &Limits { cores, memory_bytes });
            groups.iter().map(|group| (group.runs.len(), group.memory_bytes() / bytes)).collect::<Vec<_>>()
        };
        assert_eq!(lengths(1, 2 * bytes), [(3, 2)]);
        assert_eq!(lengths(2, 2 * bytes), [(2, 2), (1, 1)]);
        assert_eq!(lengths(8, 2 * bytes), [(1, 1); 3]);
        assert_eq!(lengths(1, 2 * bytes - 1), [(1, 1); 3]);
    }
}
