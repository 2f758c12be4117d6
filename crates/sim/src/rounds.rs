//! A run in rounds, one behind the other without a pause: their figures, whether they are steady, and how far to trust their mean.

use crate::interval::{Columns, Interval, Seen};
use crate::measured::{Baseline, Measured};
use crate::steady::{Confidence, STEADY_ROUNDS, Steadiness};
use kvssd_device::Device;
use kvssd_measure::Latencies;
use serde::Serialize;
use std::collections::BTreeMap;

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// After so many rounds. One is a run as such, and nothing is said of rounds.
    Count(u32),
    /// When five rounds were steady, and after so many at the latest. Those five are what is reported.
    UntilSteady {
        /// The most rounds.
        most: u32,
    },
}

impl Rounds {
    /// A run as such.
    pub const ONE: Rounds = Rounds::Count(1);

    /// The most there may be.
    #[must_use]
    pub fn most(self) -> u32 {
        match self {
            Rounds::Count(rounds) | Rounds::UntilSteady { most: rounds } => rounds,
        }
    }
}

/// What is said of the rounds of a run.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "the names, with their units, are the JSON's; docs/REPORT.md says what each means")]
pub struct RoundsReport {
    pub reported_first: usize,
    pub reported_last: usize,
    pub columns: Columns,
    pub confidence_95: BTreeMap<&'static str, Confidence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyReport>,
}

/// Whether the last five rounds are steady, figure by figure.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "as RoundsReport")]
pub struct SteadyReport {
    pub is_steady: bool,
    pub figures: BTreeMap<&'static str, Steadiness>,
}

/// A round that is over.
#[derive(Debug)]
struct Round {
    measured: Measured,
    after: Baseline,
    interval: Interval,
    /// The mean latency of its commands.
    latency_mean_ns: f64,
}

/// The rounds of a run that goes on.
#[derive(Debug)]
pub(crate) struct RoundLog {
    rounds: Rounds,
    operations: u64,
    before: Baseline,
    names: Vec<&'static str>,
    over: Vec<Round>,
}

impl RoundLog {
    /// Of a run that begins now, with so many operations a round and these latencies.
    pub(crate) fn new(rounds: Rounds, operations: u64, names: &[&'static str], device: &Device) -> Self {
        RoundLog { rounds, operations, before: Baseline::of(device), names: names.to_vec(), over: Vec::new() }
    }

    /// A round is over; gives the operations of the next one, 0 when there is none.
    pub(crate) fn end_round(&mut self, measured: &mut Measured, device: &Device) -> u64 {
        let mut part = measured.take_part();
        part.operations = self.operations;
        self.push(part, device);
        let goes_on = match self.rounds {
            Rounds::Count(count) => self.over.len() < count as usize,
            Rounds::UntilSteady { most } => {
                self.over.len() < most as usize && !self.steady().is_some_and(|steady| steady.is_steady)
            }
        };
        if goes_on { self.operations } else { 0 }
    }

    fn push(&mut self, measured: Measured, device: &Device) {
        let start = self.over.first().map_or(measured.start, |first| first.measured.start);
        let before = self.over.last().map_or(&self.before, |last| &last.after);
        let after = Baseline::of(device);
        let found: BTreeMap<&str, &Latencies> = measured.latencies().collect();
        let seen = Seen {
            length: measured.end - measured.start,
            end: measured.end - start,
            operations: measured.operations,
            stored_bytes: measured.stored_bytes,
            retrieved_bytes: measured.retrieved_bytes,
            latencies: self.names.iter().map(|&name| (name, found.get(name).copied())).collect(),
        };
        let interval = Interval::new(&seen, device, before, &after);
        let summaries: Vec<_> = measured.latencies().map(|(_, took)| took.summary()).collect();
        let count = summaries.iter().map(|took| took.count).sum::<u64>();
        let sum = summaries.iter().map(|took| took.mean * took.count as f64).sum::<f64>();
        self.over.push(Round { measured, after, interval, latency_mean_ns: sum / count.max(1) as f64 });
    }

    /// The run is over. `rest` is what operations of the last round did after it. Gives what was measured in the rounds that are reported,
    /// the drive's counters before those, and what is said of all of them.
    pub(crate) fn end(mut self, rest: Measured, device: &Device) -> (Measured, Baseline, RoundsReport) {
        let last = self.over.pop().expect("a run has a round");
        let (wall, mut measured) = (rest.wall, last.measured);
        measured.append(rest);
        self.push(measured, device);
        let first = match self.rounds {
            Rounds::Count(_) => 0,
            Rounds::UntilSteady { .. } => self.over.len().saturating_sub(STEADY_ROUNDS),
        };
        let figures = figures_of(&self.over[first..]);
        let report = RoundsReport {
            reported_first: first + 1,
            reported_last: self.over.len(),
            columns: Columns::new(self.over.iter().map(|round| round.interval.clone()).collect()),
            confidence_95: figures
                .iter()
                .filter(|(_, figures)| figures.len() > 1)
                .map(|(&name, figures)| (name, Confidence::of(figures)))
                .collect(),
            steady: self.steady(),
        };
        let before = first.checked_sub(1).map_or(self.before, |before| self.over[before].after.clone());
        let mut reported = self.over.drain(first..).map(|round| round.measured);
        let mut measured = reported.next().expect("a run has a round");
        reported.for_each(|next| measured.append(next));
        measured.wall = wall;
        (measured, before, report)
    }

    /// Whether the last five rounds are steady; none when there were fewer.
    fn steady(&self) -> Option<SteadyReport> {
        let last = &self.over[self.over.len().checked_sub(STEADY_ROUNDS)?..];
        let of_all = figures_of(last);
        let figures: BTreeMap<_, _> = of_all.iter().map(|(&name, figures)| (name, Steadiness::of(figures))).collect();
        Some(SteadyReport { is_steady: figures.values().all(Steadiness::is_steady), figures })
    }
}

/// The figures of rounds that are to be steady, by name.
fn figures_of(rounds: &[Round]) -> BTreeMap<&'static str, Vec<f64>> {
    let mut figures: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for round in rounds {
        let Interval { throughput_ops_s, write_amplification, .. } = round.interval;
        figures.entry("throughput_ops_s").or_default().push(throughput_ops_s);
        figures.entry("latency_mean_ns").or_default().push(round.latency_mean_ns);
        if let Some(write_amplification) = write_amplification {
            figures.entry("write_amplification").or_default().push(write_amplification);
        }
    }
    figures
}
