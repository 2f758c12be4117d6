//! TPC-B and TPC-C on both engines (section V-D, figure 9).

use super::cell::{Bench, THREADS};
use super::drawn::{self, Oltp};
use super::side::{cached, paged};
use crate::claims::{Claim, Verdict, scale_name};
use crate::transactions::pages::{LockedUnit, PAGE_BYTES};
use crate::transactions::{
    Access, Attempt, CachedDrive, RowId, StackDistances, Table, TpcB, TpcBScale, TpcC, TpcCScale, Witness, Workload,
};
use kvssd_sim::SimError;
use kvssd_transactions::TransactionOptions;
use kvssd_types::named_enum;

/// Branches and warehouses (section V-D: a scaling factor of 100).
const FACTOR: u64 = 100;
/// The hit ratio of the smaller cache (section V-D).
const HIT_RATIO: f64 = 0.8;
/// Records a lock (section V-D: 1 and 16).
const RECORDS_PER_LOCK: [u64; 5] = [1, 2, 4, 8, 16];
/// Bytes of most values (section V-D).
const VALUE_BYTES: u32 = 512;
const KEY_BYTES: u32 = 8;
/// Lines of an order on average.
const LINES: u64 = 10;

named_enum! {
    /// One of the three.
    enum Benchmark: "benchmark" {
        AccountUpdate = "AccountUpdate",
        NewOrder = "NewOrder",
        Payment = "Payment",
    }
}

impl Benchmark {
    /// The paper's factor over the page-based engine.
    fn paper(self) -> f64 {
        match self {
            Benchmark::AccountUpdate => 4.0,
            Benchmark::NewOrder => 1.1,
            Benchmark::Payment => 2.0,
        }
    }

    /// Transactions before those that count, and those. Estimates: the log of pages goes around some times.
    fn transactions(self) -> (u64, u64) {
        match self {
            Benchmark::AccountUpdate | Benchmark::Payment => (10_000, 40_000),
            Benchmark::NewOrder => (4_000, 16_000),
        }
    }

    /// All its branches or warehouses, and a part of what each has.
    fn workload(self, bench: &Bench<'_>) -> Result<Box<dyn Workload>, SimError> {
        let thinned = |rows: u64| ((rows as f64 * bench.tables_scale()) as u64).max(1);
        let supplier = TpcCScale::specification(FACTOR).thinned((1.0 / bench.tables_scale()).max(1.0) as u64);
        Ok(match self {
            Benchmark::AccountUpdate => {
                let TpcBScale { branches, accounts_per_branch } = TpcBScale::specification(FACTOR);
                let scale = TpcBScale { branches, accounts_per_branch: thinned(accounts_per_branch) };
                Box::new(TpcB::new(scale, THREADS)?)
            }
            Benchmark::NewOrder => Box::new(TpcC::new(supplier, 0, THREADS, bench.seed)?),
            Benchmark::Payment => Box::new(TpcC::new(supplier, 100, THREADS, bench.seed)?),
        })
    }

    /// Rows that will come to a table.
    fn inserts(self, table: &Table) -> u64 {
        let (warm_up, count) = self.transactions();
        let per_transaction = match (self, table.name) {
            (Benchmark::NewOrder, "orders" | "new_order") => 1,
            (Benchmark::NewOrder, "order_line") => LINES,
            (Benchmark::AccountUpdate | Benchmark::Payment, "history") => 1,
            _ => 0,
        };
        per_transaction * (warm_up + count)
    }
}

/// The rows that transactions accessed, and whether they read them: those that were refused as well, which a cache sees too.
#[derive(Default)]
struct SeenRows(Vec<(RowId, bool)>);

impl Witness for SeenRows {
    fn ended(&mut self, attempt: &Attempt<'_>) {
        let is_read = |access: &Access| matches!(access, Access::Read { .. });
        self.0.extend(attempt.accesses.iter().map(|access| (access.row(), is_read(access))));
    }
}

/// Transactions a second.
struct Rates {
    benchmark: Benchmark,
    /// By [`RECORDS_PER_LOCK`], all rows in the cache.
    cached: [f64; RECORDS_PER_LOCK.len()],
    /// With the smaller cache, and its hit ratio.
    less_cached: (f64, f64),
    /// With locks of records and of pages.
    paged: [f64; 2],
}

impl Rates {
    fn run(bench: &mut Bench<'_>, benchmark: Benchmark) -> Result<Self, SimError> {
        let mut cached = [0.0; RECORDS_PER_LOCK.len()];
        let mut seen = SeenRows::default();
        for (rate, records_per_lock) in cached.iter_mut().zip(RECORDS_PER_LOCK) {
            seen = SeenRows::default();
            *rate = with_cache(bench, benchmark, u64::MAX, records_per_lock, &mut seen)?.0;
        }
        let cache_bytes = cache_bytes_for(bench, benchmark, &seen)?;
        let less_cached = with_cache(bench, benchmark, cache_bytes, 1, &mut SeenRows::default())?;
        let paged =
            [with_pages(bench, benchmark, LockedUnit::Record)?, with_pages(bench, benchmark, LockedUnit::Page)?];
        Ok(Rates { benchmark, cached, less_cached, paged })
    }
}

/// The cache for the smaller hit ratio, by what was read and written when all rows had been read before.
fn cache_bytes_for(bench: &Bench<'_>, benchmark: Benchmark, seen: &SeenRows) -> Result<u64, SimError> {
    let mut rows = Vec::new();
    benchmark.workload(bench)?.load(&mut |row, _| {
        rows.push((row, false));
        Ok(())
    })?;
    rows.extend(&seen.0);
    let records = StackDistances::of(rows.into_iter()).records_for(HIT_RATIO);
    Ok(TransactionOptions::cache_bytes_of(records, KEY_BYTES, VALUE_BYTES))
}

/// Transactions a second on the key drive, and the hit ratio.
fn with_cache(
    bench: &mut Bench<'_>,
    benchmark: Benchmark,
    cache_bytes: u64,
    records_per_lock: u64,
    seen: &mut SeenRows,
) -> Result<(f64, f64), SimError> {
    let mut workload = benchmark.workload(bench)?;
    let inserts = |table: &Table| benchmark.inserts(table);
    let mut side = cached(bench, &*workload, inserts, cache_bytes, records_per_lock)?;
    let look = |engine: &CachedDrive| engine.counters().cache;
    let (report, [before, after]) = side.run(bench, &mut *workload, benchmark.transactions(), seen, look)?;
    let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
    let hit_ratio = hits as f64 / (hits + misses).max(1) as f64;
    let setting = match cache_bytes {
        u64::MAX => ("records_per_lock", records_per_lock.to_string()),
        _ => ("hit_ratio", format!("{hit_ratio:.2}")),
    };
    Ok((bench.keep_transactions("kaml.7", setting, VALUE_BYTES, &report), hit_ratio))
}

/// Transactions a second on pages, all of which are in memory.
fn with_pages(bench: &mut Bench<'_>, benchmark: Benchmark, locked_unit: LockedUnit) -> Result<f64, SimError> {
    let mut workload = benchmark.workload(bench)?;
    let rows = |table: &Table| (table.rows + benchmark.inserts(table)) * u64::from(table.value_bytes);
    let bytes: u64 = workload.tables().iter().map(rows).sum();
    // Twice what they take, for what pages have beside values, and for pages that are not full.
    let pool_pages = (2 * bytes / u64::from(PAGE_BYTES)) as usize;
    let mut side = paged(bench, &*workload, pool_pages, locked_unit)?;
    let (report, _) = side.run(bench, &mut *workload, benchmark.transactions(), &mut (), |_| ())?;
    let setting = ("locked_unit", format!("{locked_unit:?}").to_lowercase());
    Ok(bench.keep_transactions("kaml.7", setting, VALUE_BYTES, &report))
}

/// Both engines, and their locks (kaml.7 and .8).
pub(super) fn transactions(bench: &mut Bench<'_>) -> Result<[Claim; 2], SimError> {
    let mut all = Vec::new();
    for benchmark in Benchmark::ALL {
        all.push(Rates::run(bench, benchmark)?);
    }
    let drawn = all.iter().map(|Rates { benchmark, cached, less_cached, paged }| Oltp {
        transaction: benchmark.name(),
        paper: benchmark.paper(),
        over_record_locks: [cached[0], cached[RECORDS_PER_LOCK.len() - 1], less_cached.0, paged[0], paged[1]]
            .map(|rate| rate / paged[0]),
    });
    bench.figures.push(drawn::transactions(&drawn.collect::<Vec<_>>()));
    Ok([against_pages(&all, bench), by_lock(&all, bench)])
}

fn against_pages(all: &[Rates], bench: &Bench<'_>) -> Claim {
    let shown = all.iter().map(|rates| {
        let Rates { benchmark, cached, less_cached: (less_cached, hit_ratio), paged } = rates;
        let (ratio, less) = (cached[0] / paged[0], less_cached / paged[0]);
        format!("{} {ratio:.2}x (hit ratio {hit_ratio:.2}: {less:.2}x)", benchmark.name())
    });
    let verdicts = all.iter().map(|rates| Verdict::of(rates.benchmark.paper(), rates.cached[0] / rates.paged[0], 1.0));
    Claim::new("kaml.7", shown.collect::<Vec<_>>().join(", "), Verdict::worst(verdicts), scale_of(bench))
}

fn by_lock(all: &[Rates], bench: &Bench<'_>) -> Claim {
    let mut shown = Vec::new();
    let mut worst: [f64; 2] = [0.0; 2];
    for Rates { benchmark, cached, paged, .. } in all {
        let changes = [cached[RECORDS_PER_LOCK.len() - 1] / cached[0] - 1.0, paged[1] / paged[0] - 1.0];
        shown.push(format!("{} {:+.0} %; {:+.0} %", benchmark.name(), changes[0] * 100.0, changes[1] * 100.0));
        worst = [worst[0].min(changes[0]), worst[1].min(changes[1])];
    }
    let papers = [(-0.47, worst[0]), (-0.8, worst[1])];
    Claim::new(
        "kaml.8",
        format!("{:+.0} %; {:+.0} % ({})", worst[0] * 100.0, worst[1] * 100.0, shown.join(", ")),
        Verdict::worst(papers.map(|(paper, ours)| Verdict::of(paper, ours, 0.0))),
        scale_of(bench),
    )
}

fn scale_of(bench: &Bench<'_>) -> String {
    let rows = scale_name(bench.tables_scale());
    format!("{}, rows {rows}, {FACTOR} branches and warehouses, {THREADS} terminals", bench.scale_name())
}
