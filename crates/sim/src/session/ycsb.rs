//! YCSB in a session: a run, measured.

use super::Session;
use super::batches::Batches;
use super::phase::{Limit, Sequences, Watch};
use crate::baseline::Baseline;
use crate::chrome_trace::{RunTrace, TraceWindow};
use crate::error::SimError;
use crate::host::HostPlan;
use crate::report::{Run, RunReport};
use crate::rounds::{RoundLog, Rounds};
use crate::series::Series;
use crate::setup::Setup;
use crate::workload::{Distribution, PairShape, Ycsb, YcsbCore};
use kvssd_measure::Observer;
use kvssd_types::Nanos;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Fill, overwrite, a workload of YCSB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct YcsbWork {
    /// Which operations.
    pub workload: YcsbCore,
    /// How their keys are chosen.
    pub distribution: Distribution,
    /// Pairs that the drive is filled with.
    pub records: u64,
    /// Random overwrites before the run.
    pub overwrites: u64,
    /// Operations of the run, or of each of its rounds.
    pub operations: u64,
    /// When the run ends.
    pub rounds: Rounds,
    /// The intervals of virtual time into which the report cuts the run's course, if that is wanted.
    pub series_ns: Option<u64>,
    /// The hosts.
    #[serde(flatten)]
    pub hosts: HostPlan,
    /// Updates of a thread that go as one atomic batch; 1 for each alone.
    #[serde(default = "alone")]
    pub batch_pairs: u32,
    /// What the pairs are like.
    #[serde(flatten)]
    pub pairs: PairShape,
}

/// What reports from before there were batches mean.
fn alone() -> u32 {
    1
}

impl YcsbWork {
    /// Operations of all rounds that there may be.
    pub(crate) fn operations_max(&self) -> u64 {
        self.operations.saturating_mul(self.rounds.most().into())
    }
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
        let Setup { records, pairs, hosts, .. } = self.setup;
        let work = YcsbWork {
            workload: core,
            distribution: distribution.unwrap_or(core.default_distribution()),
            records,
            overwrites: 0,
            operations,
            rounds: Rounds::ONE,
            series_ns: None,
            hosts,
            batch_pairs: 1,
            pairs,
        };
        self.run_work(&work, None, observer)
    }

    /// Runs what a work has behind the overwrites, and records everything of that time, if it is wanted, from the beginning of the run on.
    ///
    /// # Errors
    /// As [`Session::run`], when there are rounds of nothing, and when the intervals of the series are too many.
    pub(crate) fn run_work(
        &mut self,
        work: &YcsbWork,
        trace: Option<TraceWindow>,
        observer: &mut dyn Observer,
    ) -> Result<Run, SimError> {
        let YcsbWork { workload: core, distribution, operations, rounds, batch_pairs, .. } = *work;
        self.check_workload(core)?;
        rounds.check(operations, self.setup.hosts.at_once())?;
        let records = self.versions.len() as u64;
        let mut workload = Ycsb::new(core, Some(distribution), records, work.operations_max());
        if self.setup.bed.profile.emulator.first_are_popular {
            workload = workload.unscattered();
        }
        let baseline = Baseline::of(&self.device);
        let sequences = match distribution {
            Distribution::Zipfian if self.setup.bed.profile.emulator.one_sequence => Sequences::Same,
            _ => Sequences::Shared,
        };
        let names: &[&'static str] = match batch_pairs {
            _ if core.scans() => &["store", "scan"],
            2.. => &["retrieve", "batch"],
            _ => &["retrieve", "store"],
        };
        let mut log =
            (rounds != Rounds::ONE).then(|| RoundLog::new(rounds, operations, names, self.clock, &self.device));
        let series = work.series_ns.map(|ns| Box::new(Series::new(self.clock, Nanos(ns), names, &self.device)));
        if let Some(TraceWindow { from, until }) = trace {
            // What works behind the commands may be a little behind the beginning of the run, and belongs to it.
            let begin = if from == Nanos::ZERO { Nanos::ZERO } else { self.clock + from };
            self.device.record(TraceWindow { from: begin, until: self.clock + until });
        }
        let start = self.clock;
        let (limit, watch) = (Limit::Operations(operations), Watch { rounds: log.as_mut(), series });
        self.batches = Batches::of(batch_pairs, self.setup.hosts.threads);
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
