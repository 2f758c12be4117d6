//! YCSB on both engines (section V-E, figure 10).

use super::cell::{Bench, THREADS};
use super::side::{cached, paged};
use super::{drawn, paper};
use crate::claims::{Claim, Verdict};
use crate::transactions::YcsbTransactions;
use crate::transactions::pages::{LockedUnit, PAGE_BYTES};
use kvssd_sim::SimError;
use kvssd_sim::workload::YcsbCore;

/// The workloads of table III.
const CORES: [YcsbCore; 5] = [YcsbCore::A, YcsbCore::B, YcsbCore::C, YcsbCore::D, YcsbCore::F];
/// Records, and bytes of each (section V-E).
const RECORDS: f64 = 20e6;
const VALUE_BYTES: u32 = 1024;
/// Memory of either engine for records or pages (section V-E: 8 GB).
const MEMORY_BYTES: f64 = 8e9;
/// Transactions before those that count, and those. Estimates.
const TRANSACTIONS: (u64, u64) = (200_000, 100_000);

/// Both engines under each workload (kaml.9).
pub(super) fn workloads(bench: &mut Bench<'_>) -> Result<Claim, SimError> {
    let records = (RECORDS * bench.tables_scale()) as u64;
    let memory_bytes = (MEMORY_BYTES * bench.tables_scale()) as u64;
    let mut ratios = Vec::new();
    for core in CORES {
        let all = TRANSACTIONS.0 + TRANSACTIONS.1;
        let workload = || YcsbTransactions::new(core, records, VALUE_BYTES, all);
        let setting = || ("memory_bytes", memory_bytes.to_string());
        let mut on_keys = workload()?;
        let mut side = cached(bench, &on_keys, |_| all / 10, memory_bytes, 1)?;
        let (report, _) = side.run(bench, &mut on_keys, TRANSACTIONS, &mut (), |_| ())?;
        let keys = bench.keep_transactions("kaml.9", setting(), VALUE_BYTES, &report);
        let mut on_pages = workload()?;
        let pool_pages = (memory_bytes / u64::from(PAGE_BYTES)) as usize;
        let mut side = paged(bench, &on_pages, pool_pages, LockedUnit::Record)?;
        let (report, _) = side.run(bench, &mut on_pages, TRANSACTIONS, &mut (), |_| ())?;
        ratios.push(keys / bench.keep_transactions("kaml.9", setting(), VALUE_BYTES, &report));
    }
    let [least, largest] =
        [ratios.iter().copied().fold(f64::INFINITY, f64::min), ratios.iter().copied().fold(0.0, f64::max)];
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    let ours = [least, largest, mean];
    let named = CORES.iter().map(ToString::to_string).zip(ratios.iter().copied());
    bench.figures.push(drawn::ycsb(named, ours));
    let shown = CORES.iter().zip(&ratios).map(|(core, ratio)| format!("{core} {ratio:.2}x"));
    Ok(Claim::new(
        "kaml.9",
        format!("{least:.2}x to {largest:.2}x, mean {mean:.2}x ({})", shown.collect::<Vec<_>>().join(", ")),
        Verdict::worst([0, 1, 2].map(|at: usize| Verdict::of(paper::YCSB[at], ours[at], 1.0))),
        format!("{}, {records} records, {THREADS} terminals", bench.scale_name()),
    ))
}
