//! One of the two engines with a workload's tables on it, and a run of transactions there.

use super::cell::{Bench, KamlCell, THREADS};
use crate::transactions::pages::{LockedUnit, PageEngine, PageOptions};
use crate::transactions::{
    CachedDrive, CachedDriveOptions, Limit, Table, Terminals, TransactionEngine, TransactionReport, Witness, Workload,
    check, load, read,
};
use kvssd_sim::SimError;
use kvssd_transactions::{Granularity, Isolation, TransactionOptions};
use kvssd_types::Nanos;

/// The load factor that tables are made for. An estimate: with it, those of TPC-C take 1.5 of the board's 2 GB (section V-D: they fit).
const LOAD_FACTOR: f64 = 0.65;
/// Of the log, at full scale. An estimate.
const LOG_BYTES: f64 = 4e9;
/// The least log: some of all that is under way.
const LOG_BYTES_MIN: u64 = 16 << 20;
/// More than any value.
const VALUE_BYTES_MAX: u32 = 1024;

/// An engine that is loaded, and when it is.
pub(super) struct Side<E> {
    pub(super) engine: E,
    pub(super) clock: Nanos,
}

/// The cache over the key drive, all of whose rows were read once.
pub(super) fn cached(
    bench: &mut Bench<'_>,
    workload: &dyn Workload,
    inserts: impl Fn(&Table) -> u64,
    cache_bytes: u64,
    records_per_lock: u64,
) -> Result<Side<CachedDrive>, SimError> {
    let tables = workload.tables();
    let slots = tables.iter().map(|table| ((table.rows + inserts(table)) as f64 / LOAD_FACTOR) as u64);
    let (device, start) = bench.key_drive(&bench.protected(), &slots.collect::<Vec<_>>())?;
    let granularity = Granularity::records(records_per_lock);
    let transactions = TransactionOptions { cache_bytes, granularity, ..TransactionOptions::default() };
    let isolation = Isolation::TwoPhaseLocking;
    let mut engine =
        CachedDrive::new(device, CachedDriveOptions { isolation, transactions, value_bytes_max: VALUE_BYTES_MAX })?;
    let mut clock = load(&mut engine, workload, start)?;
    workload.load(&mut |row, _| {
        clock = read(&mut engine, row, clock)?.0;
        Ok(())
    })?;
    Ok(Side { engine, clock })
}

/// The page-based engine on the block drive.
pub(super) fn paged(
    bench: &mut Bench<'_>,
    workload: &dyn Workload,
    pool_pages: usize,
    locked_unit: LockedUnit,
) -> Result<Side<PageEngine>, SimError> {
    let (device, start) = bench.block_drive(&bench.protected())?;
    let log_bytes = ((LOG_BYTES * bench.tables_scale()) as u64).max(LOG_BYTES_MIN) >> 12 << 12;
    let mut engine = PageEngine::new(device, PageOptions { pool_pages, log_bytes, locked_unit })?;
    let clock = load(&mut engine, workload, start)?;
    Ok(Side { engine, clock })
}

impl<E: TransactionEngine> Side<E> {
    /// Runs some transactions that do not count, then `count` that do, and verifies the tables. The witness sees those that count. Gives
    /// what a look at the engine saw before and behind them as well: not what the verification did.
    pub(super) fn run<T>(
        &mut self,
        bench: &mut Bench<'_>,
        workload: &mut dyn Workload,
        (warm_up, count): (u64, u64),
        witness: &mut dyn Witness,
        look: impl Fn(&E) -> T,
    ) -> Result<(TransactionReport, [T; 2]), SimError> {
        let mut terminals = Terminals::new(workload, THREADS, bench.seed, self.clock);
        terminals.run(&mut self.engine, Limit::Transactions(warm_up), &mut (), bench.observer)?;
        let before = look(&self.engine);
        let report = terminals.run(&mut self.engine, Limit::Transactions(count), witness, bench.observer)?;
        let after = look(&self.engine);
        self.clock = terminals.clock();
        let acknowledged = terminals.acknowledged().clone();
        let found = check(&mut self.engine, workload, &acknowledged, self.clock)?;
        match found.holds() {
            true => Ok((report, [before, after])),
            false => Err(SimError::Setup(format!("the tables are not what they must be: {found:?}"))),
        }
    }
}

impl Bench<'_> {
    /// Keeps a measurement of transactions; gives transactions a second.
    pub(super) fn keep_transactions(
        &mut self,
        claim: &'static str,
        (parameter, setting): (&'static str, String),
        value_bytes: u32,
        report: &TransactionReport,
    ) -> f64 {
        let ended = |kind: &crate::transactions::KindReport| (kind.committed + kind.rolled_back) as f64;
        let all: f64 = report.kinds.iter().map(ended).sum();
        let latencies = report.kinds.iter().map(|kind| kind.latency_ns.mean * ended(kind)).sum::<f64>();
        self.cells.push(KamlCell {
            claim: claim.to_owned(),
            side: report.engine.clone(),
            workload: report.workload.clone(),
            value_bytes,
            parameter: parameter.to_owned(),
            setting,
            threads: report.terminals,
            per_second: report.transactions_per_s,
            latency_ns_mean: latencies / all.max(1.0),
        });
        report.transactions_per_s
    }
}
