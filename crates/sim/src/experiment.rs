//! An experiment: a drive and what is done with it, with nothing left to a default. It is what a report is of, and all that is
//! needed to make the report again.
//!
//! ```text
//!   Bench, options -> Experiment { design, profile, scale, seed, work } <-> JSON
//!                          |
//!                          +- check   what is impossible, before anything is run
//!                          +- run     a new drive -> the reports of its runs
//! ```

mod estimate;
mod filled;
mod memory;
mod names;
mod work;

pub use filled::{Filled, Filling};
pub use work::{DbBenchWork, KvBenchWork, Work};

pub use crate::session::YcsbWork;

use crate::error::SimError;
use crate::report::RunReport;
use crate::setup::{Bed, Setup};
use kvssd_flash::Profile;
use kvssd_ftl::{Design, DesignError, DesignTable};
use kvssd_measure::Observer;
use serde::{Deserialize, Serialize};

/// A drive and what is done with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The firmware: its name, its parts and every parameter.
    pub design: DesignTable,
    /// The whole testbed.
    pub profile: Profile,
    /// The part of the testbed's capacity and DRAM that the drive has.
    pub scale: f64,
    /// Of everything that is random.
    pub seed: u64,
    /// What is done.
    pub work: Work,
}

/// Finds what is impossible: [`Experiment::check`] of what is to be run, [`Experiment::check_on_paper`] of what is to be reckoned.
pub type Check = fn(&Experiment) -> Result<(), SimError>;

impl Experiment {
    /// The name of the design.
    #[must_use]
    pub fn design_name(&self) -> &str {
        self.design.get("name").map_or("", String::as_str)
    }

    /// Finds what is impossible, without running anything.
    ///
    /// # Errors
    /// As [`Experiment::run`], except for what shows only while the drive works.
    pub fn check(&self) -> Result<(), SimError> {
        self.work.check(&self.bed()?)
    }

    /// Runs it on a new drive; gives a report for each of its runs, also where values were wrong ([`RunReport::failed_retrieves`]).
    ///
    /// # Errors
    /// When this program has no such design, anything in it is impossible, the drive is full or fails, or the observer interrupts.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<Vec<RunReport>, SimError> {
        self.check()?;
        let begun = self.work.fill(&self.bed()?, observer)?;
        let runs = self.work.run_on(begun, None, observer)?;
        Ok(runs.into_iter().map(|run| run.report).collect())
    }

    /// The part of the flash that the records of a workload of YCSB fill; none of other work.
    ///
    /// # Errors
    /// When this program has no such drive.
    pub fn filled_share(&self) -> Result<Option<f64>, SimError> {
        let Work::Ycsb(work) = &self.work else { return Ok(None) };
        let Bed { design, profile, .. } = self.bed()?;
        let charged = Setup::bytes_charged(&design, &profile, work.pairs.key_bytes, &work.pairs.value_sizes(0)?);
        Ok(Some(work.records as f64 * charged / profile.geometry.raw_bytes() as f64))
    }

    fn bed(&self) -> Result<Bed, SimError> {
        Ok(Bed { design: self.design()?, profile: self.profile.scaled(self.scale)?, seed: self.seed })
    }

    /// This program's design of that name, with all parameters as the table has them.
    fn design(&self) -> Result<Design, DesignError> {
        let mut design = kvssd_designs::named(self.design_name())?;
        let preset = design.table();
        for part in Design::PARTS {
            if let Some(other) = self.design.get(part).filter(|other| preset.get(part) != Some(other)) {
                design.set(part, other)?;
            }
        }
        for (key, _) in design.parameters() {
            if let Some(value) = Design::value_in(&self.design, key) {
                design.set(key, value)?;
            }
        }
        let here = design.table();
        let differs = |key: &&String| here.get(*key) != self.design.get(*key);
        match here.keys().chain(self.design.keys()).find(differs) {
            None => Ok(design),
            Some(key) => Err(DesignError::Parameter {
                key: key.clone(),
                why: format!(
                    "{} has {} in this program, and {} in the experiment",
                    design.name,
                    here.get(key).map_or("none", String::as_str),
                    self.design.get(key).map_or("none", String::as_str)
                ),
            }),
        }
    }
}
