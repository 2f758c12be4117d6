//! What is run and measured.

use super::Session;
use super::batches::Batches;
use super::phase::{Limit, Sequences, Watch};
use crate::baseline::Baseline;
use crate::chrome_trace::{RunTrace, TraceWindow};
use crate::error::SimError;
use crate::report::{Run, RunReport};
use crate::rounds::{RoundLog, Rounds};
use crate::series::Series;
use crate::workload::{Distribution, Ycsb, YcsbCore};
use kvssd_measure::Observer;
use kvssd_types::Nanos;
use serde_json::json;

/// A YCSB workload, for how long, and what is looked at.
#[derive(Clone, Copy, Debug)]
pub struct RunPlan {
    /// Which operations.
    pub core: YcsbCore,
    /// How their keys are chosen; none for the workload's own way.
    pub distribution: Option<Distribution>,
    /// Operations of a round.
    pub operations: u64,
    /// Updates of a thread that go as one atomic batch; 1 for each alone.
    pub batch_pairs: u32,
    /// When it ends.
    pub rounds: Rounds,
    /// The intervals of virtual time into which its course is cut, if that is wanted.
    pub series: Option<Nanos>,
    /// The time, from its beginning on, of which everything is recorded, if that is wanted.
    pub trace: Option<TraceWindow>,
}

impl Session {
    /// Runs a YCSB workload and measures it.
    ///
    /// # Errors
    /// When the workload asks for what the design has not, the drive fails, or the observer interrupts.
    pub fn run(
        &mut self,
        core: YcsbCore,
        distribution: Option<Distribution>,
        operations: u64,
        observer: &mut dyn Observer,
    ) -> Result<Run, SimError> {
        let plan =
            RunPlan { core, distribution, operations, batch_pairs: 1, rounds: Rounds::ONE, series: None, trace: None };
        self.run_plan(&plan, observer)
    }

    /// As [`Session::run`], in rounds, and with its course over time.
    ///
    /// # Errors
    /// As [`Session::run`], when there are rounds of nothing, and when the intervals of the series are too many.
    pub fn run_plan(&mut self, plan: &RunPlan, observer: &mut dyn Observer) -> Result<Run, SimError> {
        let RunPlan { core, distribution, operations, .. } = *plan;
        self.check_workload(core)?;
        plan.rounds.check(operations, self.setup.at_once())?;
        let records = self.versions.len() as u64;
        let operations_max = operations.saturating_mul(plan.rounds.most().into());
        let mut workload = Ycsb::new(core, distribution, records, operations_max);
        if self.setup.profile.emulator.first_are_popular {
            workload = workload.unscattered();
        }
        let baseline = Baseline::of(&self.device);
        let distribution = distribution.unwrap_or(core.default_distribution());
        let sequences = match distribution {
            Distribution::Zipfian if self.setup.profile.emulator.one_sequence => Sequences::Same,
            _ => Sequences::Shared,
        };
        let names: &[&'static str] = match plan.batch_pairs {
            _ if core.scans() => &["store", "scan"],
            2.. => &["retrieve", "batch"],
            _ => &["retrieve", "store"],
        };
        let mut log = (plan.rounds != Rounds::ONE)
            .then(|| RoundLog::new(plan.rounds, operations, names, self.clock, &self.device));
        let series = plan.series.map(|length| Box::new(Series::new(self.clock, length, names, &self.device)));
        if let Some(TraceWindow { from, until }) = plan.trace {
            // What works behind the commands may be a little behind the beginning of the run, and belongs to it.
            let begin = if from == Nanos::ZERO { Nanos::ZERO } else { self.clock + from };
            self.device.record(TraceWindow { from: begin, until: self.clock + until });
        }
        let start = self.clock;
        let (limit, watch) = (Limit::Operations(operations), Watch { rounds: log.as_mut(), series });
        self.batches = Batches::of(plan.batch_pairs, self.setup.threads);
        let mut measured =
            self.phase_of(sequences, limit, watch, core.name(), observer, |random| workload.next(random))?;
        self.batches = Batches::default();
        let series = match measured.series.take() {
            Some(series) => Some(series.finish(self.clock, &self.device)?),
            None => None,
        };
        let (measured, baseline, rounds) = match log {
            Some(log) => {
                let (measured, baseline, report) = log.end(measured, &self.device);
                (measured, baseline, Some(report))
            }
            None => (measured, baseline, None),
        };
        let mut run = self.report(core.name(), distribution, records, &baseline, &measured);
        (run.report.rounds, run.report.series) = (rounds, series);
        run.trace = self.device.take_record().map(|record| {
            let RunReport { design, profile, workload, distribution, seed, .. } = &run.report;
            let about = json!({
                "design": design, "profile": profile, "workload": workload, "distribution": distribution, "seed": seed
            });
            RunTrace { record, start, about }
        });
        Ok(run)
    }
}
