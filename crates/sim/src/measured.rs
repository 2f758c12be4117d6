//! What the hosts see of a phase.

use crate::series::Series;
use kvssd_measure::Latencies;
use kvssd_types::Nanos;
use std::collections::BTreeMap;
use std::time::Duration;

/// What the hosts saw in a phase, or in a round of it.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) operations: u64,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) retrieves: Latencies,
    pub(crate) stores: Latencies,
    /// Of commands that only some workloads have, by name.
    pub(crate) others: BTreeMap<&'static str, Latencies>,
    /// Of what hosts do with several commands.
    pub(crate) sequences: BTreeMap<&'static str, Latencies>,
    pub(crate) stored_bytes: u64,
    pub(crate) retrieved_bytes: u64,
    pub(crate) verified_retrieves: u64,
    pub(crate) failed_retrieves: u64,
    pub(crate) wall: Duration,
    /// The same over time, where that is asked for.
    pub(crate) series: Option<Box<Series>>,
}

impl Default for Measured {
    fn default() -> Self {
        Measured::from(Nanos::ZERO, None)
    }
}

impl Measured {
    /// Nothing yet, of a phase that begins at `start`.
    pub(crate) fn from(start: Nanos, series: Option<Box<Series>>) -> Self {
        Measured {
            operations: 0,
            start,
            end: start,
            retrieves: Latencies::new(),
            stores: Latencies::new(),
            others: BTreeMap::new(),
            sequences: BTreeMap::new(),
            stored_bytes: 0,
            retrieved_bytes: 0,
            verified_retrieves: 0,
            failed_retrieves: 0,
            wall: Duration::ZERO,
            series,
        }
    }

    /// A retrieve that arrived at `at` and brought so many bytes.
    pub(crate) fn add_retrieve(&mut self, at: Nanos, done: Nanos, bytes: u64) {
        self.retrieves.add(done - at);
        self.count("retrieve", at, done, 0, bytes);
    }

    /// A store that arrived at `at`, of so many bytes of key and value.
    pub(crate) fn add_store(&mut self, at: Nanos, done: Nanos, bytes: u64) {
        self.stores.add(done - at);
        self.count("store", at, done, bytes, 0);
    }

    /// A command that only some workloads have, with so many bytes of keys and values that were stored.
    pub(crate) fn add_other(&mut self, name: &'static str, at: Nanos, done: Nanos, bytes: u64) {
        self.others.entry(name).or_default().add(done - at);
        self.count(name, at, done, bytes, 0);
    }

    /// What a host did with several commands, which brought so many bytes.
    pub(crate) fn add_sequence(&mut self, name: &'static str, at: Nanos, done: Nanos, bytes: u64) {
        self.sequences.entry(name).or_default().add(done - at);
        self.count(name, at, done, 0, bytes);
    }

    /// What crossed the link, and the command over time.
    fn count(&mut self, name: &'static str, at: Nanos, done: Nanos, stored_bytes: u64, retrieved_bytes: u64) {
        self.stored_bytes += stored_bytes;
        self.retrieved_bytes += retrieved_bytes;
        if let Some(series) = &mut self.series {
            series.add_command(name, at, done);
            series.stored_bytes += stored_bytes;
            series.retrieved_bytes += retrieved_bytes;
        }
    }

    /// The last command of an operation is done then.
    pub(crate) fn operation_ends(&mut self, done: Nanos) {
        self.end = self.end.max(done);
        if let Some(series) = &mut self.series {
            series.add_operation(done);
        }
    }

    /// All latencies by name, those of sequences with them.
    pub(crate) fn latencies(&self) -> impl Iterator<Item = (&'static str, &Latencies)> {
        self.commands().chain(self.sequences.iter().map(|(name, took)| (*name, took)))
    }

    /// The latencies of commands by name.
    pub(crate) fn commands(&self) -> impl Iterator<Item = (&'static str, &Latencies)> {
        let usual = [("retrieve", &self.retrieves), ("store", &self.stores)];
        usual.into_iter().chain(self.others.iter().map(|(name, took)| (*name, took)))
    }

    /// Ends this part of the phase; what comes belongs to the next one, which this becomes.
    pub(crate) fn take_part(&mut self) -> Measured {
        let next = Measured::from(self.end, self.series.take());
        std::mem::replace(self, next)
    }

    /// Adds the part that follows.
    pub(crate) fn append(&mut self, next: Measured) {
        self.operations += next.operations;
        self.end = next.end;
        self.retrieves.merge(&next.retrieves);
        self.stores.merge(&next.stores);
        for (all, more) in [(&mut self.others, next.others), (&mut self.sequences, next.sequences)] {
            more.into_iter().for_each(|(name, took)| all.entry(name).or_default().merge(&took));
        }
        self.stored_bytes += next.stored_bytes;
        self.retrieved_bytes += next.retrieved_bytes;
        self.verified_retrieves += next.verified_retrieves;
        self.failed_retrieves += next.failed_retrieves;
        self.wall += next.wall;
        self.series = self.series.take().or(next.series);
    }
}
