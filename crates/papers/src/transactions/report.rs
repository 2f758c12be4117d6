//! What a run of transactions gave.

use super::program::End;
use kvssd_measure::{Latencies, LatencySummary};
use kvssd_types::Nanos;
use serde::Serialize;

/// The figures of a run. Latencies are those of whole transactions, from the first attempt's beginning to the answer to the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransactionReport {
    /// The engine.
    pub engine: String,
    /// The workload.
    pub workload: String,
    /// The terminals.
    pub terminals: u32,
    /// Virtual time.
    pub seconds: f64,
    /// Commits in a second. What a program rolled back is not counted.
    pub transactions_per_s: f64,
    /// Attempts that the engine refused, all kinds together: each was tried again.
    pub refused: u64,
    /// Each kind of transactions.
    pub kinds: Vec<KindReport>,
}

/// The figures of one kind of transactions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindReport {
    /// The kind.
    pub kind: &'static str,
    /// Transactions that committed.
    pub committed: u64,
    /// Those that rolled back because their program wants it.
    pub rolled_back: u64,
    /// Attempts that the engine refused.
    pub refused: u64,
    /// From the beginning to the answer, of both.
    pub latency_ns: LatencySummary,
}

#[derive(Default)]
struct Count {
    committed: u64,
    rolled_back: u64,
    refused: u64,
    latencies: Latencies,
}

/// The counts of a run.
pub(super) struct Tally(Vec<(&'static str, Count)>);

impl Tally {
    pub(super) fn new(kinds: &[&'static str]) -> Self {
        Tally(kinds.iter().map(|kind| (*kind, Count::default())).collect())
    }

    pub(super) fn ended_with(&mut self, kind: usize, end: End, latency: Nanos) {
        let count = &mut self.0[kind].1;
        match end {
            End::Commit => count.committed += 1,
            End::RollBack => count.rolled_back += 1,
        }
        count.latencies.add(latency);
    }

    pub(super) fn refused(&mut self, kind: usize) {
        self.0[kind].1.refused += 1;
    }

    /// Transactions that ended.
    pub(super) fn ended(&self) -> u64 {
        self.0.iter().map(|(_, count)| count.committed + count.rolled_back).sum()
    }

    pub(super) fn report(&self, engine: &str, workload: &str, terminals: u32, took: Nanos) -> TransactionReport {
        let committed: u64 = self.0.iter().map(|(_, count)| count.committed).sum();
        let kinds = self.0.iter().map(|(kind, count)| KindReport {
            kind,
            committed: count.committed,
            rolled_back: count.rolled_back,
            refused: count.refused,
            latency_ns: count.latencies.summary(),
        });
        TransactionReport {
            engine: engine.to_owned(),
            workload: workload.to_owned(),
            terminals,
            seconds: took.as_seconds(),
            transactions_per_s: if took == Nanos::ZERO { 0.0 } else { committed as f64 / took.as_seconds() },
            refused: self.0.iter().map(|(_, count)| count.refused).sum(),
            kinds: kinds.collect(),
        }
    }
}
