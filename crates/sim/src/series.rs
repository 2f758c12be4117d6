//! A run over virtual time, cut into intervals of equal length.
//!
//! ```text
//!   operations and latencies    belong to the interval in which they are done
//!   counters of the drive       are read when the first command behind an interval arrives
//! ```

use crate::baseline::Baseline;
use crate::error::SimError;
use crate::interval::{Columns, Interval, Seen};
use kvssd_device::Device;
use kvssd_measure::Latencies;
use kvssd_types::Nanos;
use std::collections::{BTreeMap, VecDeque};

/// More intervals than anyone plots.
const INTERVALS_MAX: usize = 100_000;

/// What the hosts see done in an interval.
#[derive(Debug, Default)]
struct Tally {
    operations: u64,
    latencies: BTreeMap<&'static str, Latencies>,
}

/// The intervals of a run.
#[derive(Debug)]
pub(crate) struct Series {
    start: Nanos,
    length: Nanos,
    closed: Vec<Interval>,
    /// From the first interval that is not over.
    open: VecDeque<Tally>,
    before: Baseline,
    pub(crate) stored_bytes: u64,
    pub(crate) retrieved_bytes: u64,
    /// Every name of a latency.
    names: Vec<&'static str>,
}

impl Series {
    /// Of a run that begins at `start` with these latencies.
    pub(crate) fn new(start: Nanos, length: Nanos, names: &[&'static str], device: &Device) -> Self {
        Series {
            start,
            length,
            closed: Vec::new(),
            open: VecDeque::new(),
            before: Baseline::of(device),
            stored_bytes: 0,
            retrieved_bytes: 0,
            names: names.to_vec(),
        }
    }

    /// A command that arrived at `at`, or the first of several.
    pub(crate) fn add_command(&mut self, name: &'static str, at: Nanos, done: Nanos) {
        self.tally(done).latencies.entry(name).or_default().add(done - at);
    }

    /// An operation is done then.
    pub(crate) fn add_operation(&mut self, done: Nanos) {
        self.tally(done).operations += 1;
    }

    /// What is done at the very end of an interval belongs to it.
    fn tally(&mut self, done: Nanos) -> &mut Tally {
        let number = ((done - self.start).0.saturating_sub(1) / self.length.0) as usize;
        // Beyond the most there may be, the end of the run refuses it.
        let place = number.saturating_sub(self.closed.len()).min(INTERVALS_MAX);
        if place >= self.open.len() {
            self.open.resize_with(place + 1, Tally::default);
        }
        &mut self.open[place]
    }

    /// Nothing comes before `now` any more: intervals that ended before are over.
    ///
    /// # Errors
    /// When there are more of them than make sense.
    pub(crate) fn advance(&mut self, now: Nanos, device: &Device) -> Result<(), SimError> {
        while self.end() < now {
            self.close(self.end(), device)?;
        }
        Ok(())
    }

    /// The run ended at `end`.
    ///
    /// # Errors
    /// As [`Series::advance`].
    pub(crate) fn finish(mut self, end: Nanos, device: &Device) -> Result<Columns, SimError> {
        self.advance(end, device)?;
        self.close(end, device)?;
        Ok(Columns::new(self.closed))
    }

    /// When the first interval that is not over ends.
    fn end(&self) -> Nanos {
        self.start + Nanos((self.closed.len() as u64 + 1).saturating_mul(self.length.0))
    }

    fn close(&mut self, end: Nanos, device: &Device) -> Result<(), SimError> {
        if self.closed.len() == INTERVALS_MAX {
            let why = format!("--series {} cuts the run into more than {INTERVALS_MAX} intervals", self.length);
            return Err(SimError::Setup(format!("{why}: ask for longer ones")));
        }
        let Tally { operations, latencies } = self.open.pop_front().unwrap_or_default();
        let begin = self.start + Nanos(self.closed.len() as u64 * self.length.0);
        let after = Baseline::of(device);
        let seen = Seen {
            length: end - begin,
            end: end - self.start,
            operations,
            stored_bytes: std::mem::take(&mut self.stored_bytes),
            retrieved_bytes: std::mem::take(&mut self.retrieved_bytes),
            latencies: self.names.iter().map(|&name| (name, latencies.get(name))).collect(),
        };
        self.closed.push(Interval::new(&seen, device, &self.before, &after));
        self.before = after;
        Ok(())
    }
}
