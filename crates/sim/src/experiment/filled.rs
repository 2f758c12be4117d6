//! A drive that is filled once, for several experiments.
//!
//! ```text
//!   experiment -> filling: what decides the drive as it is when the run begins
//!                    |
//!                    +- fill -> Filled --+- snapshot -> Filled -> run_on
//!                                        +- snapshot -> Filled -> run_on       each exactly as if it had filled its own
//!                                        +- run_on
//! ```

use super::{Experiment, Work};
use crate::chrome_trace::{RunTrace, TraceWindow};
use crate::dbbench::DbBenchSession;
use crate::error::SimError;
use crate::report::{Run, RunReport};
use crate::session::Session;
use kvssd_measure::Observer;

/// What decides a drive as it is when the run of an experiment begins: experiments of the same filling may begin with one drive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Filling(String);

/// A drive as it is when the run of an experiment begins.
pub struct Filled {
    begun: Begun,
    filling: Filling,
}

/// Work as far as experiments of one filling have it in common, with what was measured on the way.
pub(super) enum Begun {
    Ycsb(Box<Session>),
    Kvbench(Box<Session>, Box<Run>),
    DbBench(Box<DbBenchSession>, Vec<Run>),
}

impl Experiment {
    /// What decides the drive as it is when the run begins.
    #[must_use]
    pub fn filling(&self) -> Filling {
        let Experiment { design, profile, scale, seed, work } = self;
        Filling(format!("{design:?} {profile:?} {scale:?} {seed} {}", work.filling()))
    }

    /// A new drive, brought to where the run begins.
    ///
    /// # Errors
    /// As [`Experiment::run`].
    pub fn fill(&self, observer: &mut dyn Observer) -> Result<Filled, SimError> {
        Ok(Filled { begun: self.work.fill(&self.bed()?, observer)?, filling: self.filling() })
    }

    /// As [`Experiment::run`], from there on.
    ///
    /// # Errors
    /// As [`Experiment::run`], and when the drive was filled otherwise.
    pub fn run_on(&self, filled: Filled, observer: &mut dyn Observer) -> Result<Vec<RunReport>, SimError> {
        Ok(self.runs_on(filled, None, observer)?.into_iter().map(|run| run.report).collect())
    }

    /// As [`Experiment::run_on`], of YCSB, with a record of everything in a window of virtual time.
    ///
    /// # Errors
    /// As [`Experiment::run_on`], and when it is none of YCSB.
    pub fn run_recorded_on(
        &self,
        filled: Filled,
        window: TraceWindow,
        observer: &mut dyn Observer,
    ) -> Result<(RunReport, RunTrace), SimError> {
        if !matches!(self.work, Work::Ycsb(_)) {
            return Err(SimError::Setup("--trace-out shows a run of YCSB".to_owned()));
        }
        let run = self.runs_on(filled, Some(window), observer)?.remove(0);
        Ok((run.report, run.trace.expect("it was recorded")))
    }

    fn runs_on(
        &self,
        filled: Filled,
        window: Option<TraceWindow>,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Run>, SimError> {
        if filled.filling != self.filling() {
            return Err(SimError::Setup("the drive was filled for other experiments".to_owned()));
        }
        self.check()?;
        self.work.run_on(filled.begun, window, observer)
    }
}

impl Filled {
    /// The same drive at the same moment once more: from here on the two live apart.
    #[must_use]
    pub fn snapshot(&self) -> Filled {
        let begun = match &self.begun {
            Begun::Ycsb(session) => Begun::Ycsb(Box::new(session.snapshot())),
            Begun::Kvbench(session, run) => Begun::Kvbench(Box::new(session.snapshot()), run.clone()),
            Begun::DbBench(session, runs) => Begun::DbBench(Box::new(session.snapshot()), runs.clone()),
        };
        Filled { begun, filling: self.filling.clone() }
    }
}
