//! Lives of workloads on the reference engine.

use super::access::{check, load};
use super::consistency::Consistency;
use super::program::Workload;
use super::reference::Reference;
use super::report::TransactionReport;
use super::row::Rows;
use super::terminals::{Limit, Terminals};
use super::witness::Witness;
use kvssd_measure::Quiet;
use kvssd_types::Nanos;

const SEED: u64 = 11;

pub(super) struct Life {
    pub(super) report: TransactionReport,
    pub(super) consistency: Consistency,
}

pub(super) fn live(workload: &mut dyn Workload, engine: &mut Reference, terminals: u32, transactions: u64) -> Life {
    live_before(workload, engine, terminals, transactions, &mut ())
}

/// Loads, runs and verifies, before a witness.
pub(super) fn live_before(
    workload: &mut dyn Workload,
    engine: &mut Reference,
    terminals: u32,
    transactions: u64,
    witness: &mut dyn Witness,
) -> Life {
    let start = load(engine, workload, Nanos::ZERO).unwrap();
    let mut all = Terminals::new(workload, terminals, SEED, start);
    // Two runs, so that one begins where another has ended.
    all.run(engine, Limit::Transactions(transactions / 3), witness, &mut Quiet).unwrap();
    let first = all.acknowledged().clone();
    let rest = transactions - transactions / 3;
    let mut report = all.run(engine, Limit::Transactions(rest), witness, &mut Quiet).unwrap();
    let (clock, acknowledged) = (all.clock(), all.acknowledged().clone());
    for (kind, of_kind) in report.kinds.iter_mut().enumerate() {
        of_kind.committed += first.commits_of_kind(kind);
        assert_eq!(of_kind.committed, acknowledged.commits_of_kind(kind));
    }
    let consistency = check(engine, workload, &acknowledged, clock).unwrap();
    Life { report, consistency }
}

/// Loads, runs for some time, stops in the middle and verifies what is committed then, as after a power cut.
pub(super) fn live_until(
    workload: &mut dyn Workload,
    engine: &mut Reference,
    terminals: u32,
    stop: Nanos,
) -> Consistency {
    let start = load(engine, workload, Nanos::ZERO).unwrap();
    let mut all = Terminals::new(workload, terminals, SEED, start);
    all.run(engine, Limit::Until(start + stop), &mut (), &mut Quiet).unwrap();
    let acknowledged = all.acknowledged().clone();
    let mut read = |row: super::row::RowId| Ok(engine.record(row.record(&row.key_bytes())));
    workload.check(&mut Rows(&mut read), &acknowledged).unwrap()
}
