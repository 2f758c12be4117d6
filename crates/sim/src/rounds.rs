//! A run in rounds, one behind the other without a pause: their figures, whether they are steady, and how far to trust their mean.

use crate::baseline::Baseline;
use crate::error::SimError;
use crate::interval::{Columns, Interval, Seen};
use crate::measured::Measured;
use crate::steady::{Confidence, STEADY_ROUNDS, Steadiness};
use kvssd_device::Device;
use kvssd_measure::Latencies;
use kvssd_types::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A round begins when the last operation of the one before is done: one that is not much longer than what is under way at once could be done
/// by then.
const AT_ONCE_PER_ROUND: u64 = 4;

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

    /// Checks the numbers, with so many operations in each round, of which so many are under way at once.
    ///
    /// # Errors
    /// [`SimError::Setup`], in one line.
    pub fn check(self, operations: u64, at_once: u64) -> Result<(), SimError> {
        let why = match self {
            Rounds::ONE => return Ok(()),
            rounds if rounds.most() == 0 || operations == 0 => {
                "--operations and --rounds must be above 0 where there are rounds".to_owned()
            }
            _ if operations < AT_ONCE_PER_ROUND * at_once => format!(
                "--operations {operations}: a round is to have {AT_ONCE_PER_ROUND} times the operations that are under way at once, {} at least",
                AT_ONCE_PER_ROUND * at_once
            ),
            Rounds::UntilSteady { most } if (most as usize) < STEADY_ROUNDS => {
                format!("--rounds {most}: {STEADY_ROUNDS} rounds must be steady, so ask for as many at least")
            }
            _ => return Ok(()),
        };
        Err(SimError::Setup(why))
    }

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

/// The figures of a round that is over.
#[derive(Clone, Debug)]
struct Round {
    interval: Interval,
    /// The mean latency of its commands.
    latency_mean_ns: f64,
}

/// What was measured in a round, or in several together.
#[derive(Debug)]
struct Part {
    measured: Measured,
    /// The drive's counters before it.
    before: Baseline,
}

/// The rounds of a run that goes on.
#[derive(Debug)]
pub(crate) struct RoundLog {
    rounds: Rounds,
    operations: u64,
    names: Vec<&'static str>,
    start: Nanos,
    /// The drive's counters before the round at hand.
    before: Baseline,
    over: Vec<Round>,
    /// Of rounds that may be reported, the last one alone.
    parts: VecDeque<Part>,
}

impl RoundLog {
    /// Of a run that begins at `start`, now, with so many operations a round, above 0, and these latencies.
    pub(crate) fn new(rounds: Rounds, operations: u64, names: &[&'static str], start: Nanos, device: &Device) -> Self {
        let before = Baseline::of(device);
        let (over, parts) = (Vec::new(), VecDeque::new());
        RoundLog { rounds, operations, names: names.to_vec(), start, before, over, parts }
    }

    /// A round is over; gives the operations of the next one, 0 when there is none.
    pub(crate) fn end_round(&mut self, measured: &mut Measured, device: &Device) -> u64 {
        let mut measured = measured.take_part();
        measured.operations = self.operations;
        let before = std::mem::replace(&mut self.before, Baseline::of(device));
        self.push(Part { measured, before }, device);
        let goes_on = match self.rounds {
            Rounds::Count(count) => self.over.len() < count as usize,
            Rounds::UntilSteady { most } => {
                self.over.len() < most as usize && !self.steady().is_some_and(|steady| steady.is_steady)
            }
        };
        if !goes_on {
            return 0;
        }
        // A histogram takes much more memory than the figures of a round.
        match self.rounds {
            Rounds::UntilSteady { .. } if self.parts.len() == STEADY_ROUNDS => drop(self.parts.pop_front()),
            Rounds::UntilSteady { .. } => {}
            Rounds::Count(_) => {
                let last = if self.parts.len() > 1 { self.parts.pop_back() } else { None };
                if let (Some(all), Some(last)) = (self.parts.front_mut(), last) {
                    all.measured.append(last.measured);
                }
            }
        }
        self.operations
    }

    /// Adds a round, whose end is now.
    fn push(&mut self, part: Part, device: &Device) {
        let measured = &part.measured;
        let found: BTreeMap<&str, &Latencies> = measured.latencies().collect();
        let seen = Seen {
            length: measured.end - measured.start,
            end: measured.end - self.start,
            operations: measured.operations,
            stored_bytes: measured.stored_bytes,
            retrieved_bytes: measured.retrieved_bytes,
            latencies: self.names.iter().map(|&name| (name, found.get(name).copied())).collect(),
        };
        let interval = Interval::new(&seen, device, &part.before, &Baseline::of(device));
        let summaries: Vec<_> = measured.latencies().map(|(_, took)| took.summary()).collect();
        let count = summaries.iter().map(|took| took.count).sum::<u64>();
        let sum = summaries.iter().map(|took| took.mean * took.count as f64).sum::<f64>();
        self.over.push(Round { interval, latency_mean_ns: sum / count.max(1) as f64 });
        self.parts.push_back(part);
    }

    /// The run is over. `rest` is what operations of the last round did after it. Gives what was measured in the rounds that are reported,
    /// the drive's counters before those, and what is said of all of them.
    pub(crate) fn end(mut self, rest: Measured, device: &Device) -> (Measured, Baseline, RoundsReport) {
        let wall = rest.wall;
        let mut last = self.parts.pop_back().expect("a run has a round");
        self.over.pop();
        last.measured.append(rest);
        self.push(last, device);
        let steady = self.steady();
        let RoundLog { rounds, over, parts, .. } = self;
        let first = match rounds {
            Rounds::Count(_) => 0,
            Rounds::UntilSteady { .. } => over.len().saturating_sub(STEADY_ROUNDS),
        };
        let figures = figures_of(&over[first..]);
        let several = figures.iter().filter(|(_, figures)| figures.len() > 1);
        let report = RoundsReport {
            reported_first: first + 1,
            reported_last: over.len(),
            confidence_95: several.map(|(&name, figures)| (name, confidence_of(name, figures))).collect(),
            steady,
            columns: Columns::new(over.into_iter().map(|round| round.interval).collect()),
        };
        let mut parts = parts.into_iter();
        let Part { mut measured, before } = parts.next().expect("a run has a round");
        parts.for_each(|next| measured.append(next.measured));
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

/// Rounds do the same work each, in different times.
fn confidence_of(name: &str, figures: &[f64]) -> Confidence {
    if name == "throughput_ops_s" { Confidence::of_rates(figures) } else { Confidence::of(figures) }
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
