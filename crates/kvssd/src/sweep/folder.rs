//! The folder of a sweep: an index, and a report of each run, which one process makes while others wait.

use super::plan::{Plan, Run};
use crate::Outcome;
use crate::fail::Failure;
use crate::kept::{Claim, Kept, refuse_foreign};
use crate::output::{counted, note};
use crate::report::Report;
use kvssd_measure::{Observer, Quiet};
use kvssd_sim::SimError;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// What helps where an index is not one: the runs go by their hashes, and need none.
const REMEDY: &str =
    "give another folder, or remove it if it was the index and is damaged: the runs that are there are taken over";

/// The folder.
pub struct Folder {
    reports: Kept,
}

impl Folder {
    /// The folder with the index of a plan in it. It is made.
    ///
    /// # Errors
    /// When it cannot be written, or has somebody else's index.
    pub fn open(path: &Path, plan: &Plan) -> Result<Folder, Failure> {
        refuse_foreign(&path.join("index.json"), REMEDY, is_index)?;
        refuse_foreign(&path.join("index.part"), REMEDY, begins_an_index)?;
        let folder = Folder { reports: Kept::open(&path.join("runs"))? };
        let kept = Kept::open(path)?;
        let index = plan.index();
        let left = kept.found("index").map_or(0, |before| reports_of(&before).difference(&reports_of(&index)).count());
        if left > 0 {
            let (runs, folder) = (counted(left, "run"), path.display());
            note(&format!(
                "{folder}: the index was of another sweep or program: {runs} of it are not in this one's, and stay"
            ));
        }
        kept.wait("index", &Quiet)?.keep(&index)?;
        Ok(folder)
    }

    /// The folder, if it is there.
    pub(super) fn find(path: &Path) -> Result<Option<Folder>, Failure> {
        let reports = path.join("runs");
        if !reports.is_dir() {
            return Ok(None);
        }
        Ok(Some(Folder { reports: Kept::open(&reports)? }))
    }

    /// The report of a run, if it is there and whole. One that was copied from another run's is not.
    #[must_use]
    pub fn found(&self, run: &Run) -> Option<Report> {
        self.reports.found(&run.hash).filter(|report: &Report| report.is_of(&run.hash))
    }

    /// The right to make the report of a run; none while another process has it.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn claim(&self, run: &Run) -> Result<Option<Claim>, Failure> {
        self.reports.claim(&run.hash)
    }

    /// Makes the report of a run, unless another process does; gives whether it is there.
    pub(super) fn make_if_free(
        &self,
        run: &Run,
        make: impl FnOnce() -> Result<Report, SimError>,
    ) -> Result<bool, Failure> {
        match self.claim(run)? {
            Some(claim) => self.make_with(claim, run, make).map(|()| true),
            None => Ok(false),
        }
    }

    /// Makes the report of a run, or waits for the process that does.
    pub(super) fn make(&self, run: &Run, observer: &mut dyn Observer) -> Outcome {
        let claim = self.reports.wait(&run.hash, observer)?;
        self.make_with(claim, run, || Report::make(&run.experiment, |experiment| experiment.run(observer)))
    }

    fn make_with(&self, claim: Claim, run: &Run, make: impl FnOnce() -> Result<Report, SimError>) -> Outcome {
        if self.found(run).is_some() {
            return Ok(());
        }
        claim.keep(&make()?)
    }
}

/// Whether these are the bytes of an index, of whichever sweep and build.
fn is_index(bytes: &[u8]) -> bool {
    serde_json::from_slice(bytes).is_ok_and(|index: Value| index["axes"].is_array() && index["points"].is_array())
}

/// The names of the reports in an index.
fn reports_of(index: &Value) -> BTreeSet<String> {
    let points = index["points"].as_array().into_iter().flatten();
    points.filter_map(|point| point["report"].as_str().map(str::to_owned)).collect()
}

/// Whether these may be what a process that was killed has left of an index: maybe nothing.
fn begins_an_index(bytes: &[u8]) -> bool {
    const BEGIN: &[u8] = b"{\n  \"program\": {";
    bytes.starts_with(BEGIN) || BEGIN.starts_with(bytes)
}
