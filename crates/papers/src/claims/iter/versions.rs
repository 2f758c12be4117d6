//! Versions: what they take of DRAM (iter.6), and that each sees what it must (iter.8).

use super::sweep::Bench;
use crate::claims::Verdict;
use kvssd_designs::LsmPlan;
use kvssd_flash::Profile;
use kvssd_measure::Observer;
use kvssd_sim::SimError;
use kvssd_sim::dbbench::{DbBench, DbBenchSession, DbBenchmark};

/// The pairs of the paper's example (section 4.2), at full scale.
const EXAMPLE_PAIRS: f64 = 25e6;
/// Pages of its tables: 48 KB.
const TABLE_PAGES: u32 = 3;
/// Iterators that are made on it, each with changes behind it.
const ITERATORS: u64 = 100;
/// Queries that are checked beside changes (claims: at least 10^5), and their length.
const CHECKED_SCANS: u64 = 100_000;
const CHECKED_LENGTH: u32 = 8;
const CHECKED_RECORDS: u64 = 90_000;
const CHECKED_VALUE_BYTES: u32 = 1000;

impl Bench<'_> {
    /// The Summary of 25 M pairs, and what 100 versions of a tree take.
    pub(super) fn summary(&self, observer: &mut dyn Observer) -> Result<(String, Verdict), SimError> {
        let page_bytes = self.profile.geometry.page_bytes;
        let tables = LsmPlan::tables(TABLE_PAGES, EXAMPLE_PAIRS as u64, 4, page_bytes);
        let table_bytes = u64::from(TABLE_PAGES * page_bytes);
        let summary_bytes = 4 * tables;
        let share = summary_bytes as f64 / (tables * table_bytes) as f64;
        let (pairs, used) = self.live_versions(observer)?;
        let ours = format!(
            "{:.1} KB, {:.4} %; {ITERATORS} iterators, each of another version, on {pairs} pairs: {used}",
            summary_bytes as f64 / 1e3,
            share * 100.0
        );
        let verdicts = [Verdict::of(25.0, summary_bytes as f64 / 1e3, 0.0), Verdict::of(0.008, share * 100.0, 0.0)];
        Ok((ours, Verdict::worst(verdicts)))
    }

    /// Makes iterators, with as many changes after each as make a new version; gives the pairs, and the DRAM for people.
    fn live_versions(&self, observer: &mut dyn Observer) -> Result<(u64, String), SimError> {
        let records = (EXAMPLE_PAIRS * self.scale) as u64;
        let bench = DbBench { records, key_bytes: 4, value_bytes: 32, scan_length: 1, threads: 1, seed: self.seed };
        let mut session = DbBenchSession::new(&self.design("iter")?, &self.profile, &bench)?;
        session.run(DbBenchmark::FillSeq, records, observer)?;
        for _ in 0..ITERATORS {
            if !session.keep_iterator()? {
                break;
            }
            // A MemTable of keys of four bytes, and a bit more.
            session.run(DbBenchmark::Overwrite, 4200, observer)?;
        }
        let dram = session.device().engine().dram();
        let part = |name: &str| dram.parts().get(name).copied().unwrap_or(0);
        let parts = ["index_cursors", "index_tables", "index_summary", "held_records"];
        let live = session.device().engine().iterators();
        let shown: Vec<String> = parts.iter().map(|name| format!("{name} {:.2} MB", part(name) as f64 / 1e6)).collect();
        Ok((records, format!("{live} live, {}", shown.join(", "))))
    }

    /// Ranges beside a thread that puts and deletes, on drives that are small and full enough to be collected all the while.
    pub(super) fn consistency(&self, observer: &mut dyn Observer) -> Result<(String, Verdict), SimError> {
        // A small part of a drive with DRAM for more iterators than its own.
        let dram_bytes = ("memory.dram_bytes".to_owned(), (4u64 << 30).to_string());
        let profile = Profile::load("kvvirt", &[dram_bytes])?.scaled(1.0 / 512.0)?;
        let (mut shown, mut holds) = (Vec::new(), true);
        for design in ["pink", "iter"] {
            let bench = DbBench {
                records: CHECKED_RECORDS,
                key_bytes: 4,
                value_bytes: CHECKED_VALUE_BYTES,
                scan_length: CHECKED_LENGTH,
                threads: 2,
                seed: self.seed,
            };
            let mut session = DbBenchSession::new(&self.design(design)?, &profile, &bench)?;
            session.run(DbBenchmark::FillRandom, CHECKED_RECORDS, observer)?;
            // Until garbage collection has something to do.
            session.run(DbBenchmark::Overwrite, 2 * CHECKED_RECORDS, observer)?;
            let report = session.run(DbBenchmark::SeekRandomWhileChanging, CHECKED_SCANS, observer)?.report;
            let deletes = report.latency_ns.get("delete").map_or(0, |deletes| deletes.count);
            shown.push(format!(
                "{design} {} of {} pairs in {CHECKED_SCANS} ranges, beside {} changes, {} pages of tables written, {} pairs moved",
                report.failed_retrieves,
                report.verified_retrieves + report.failed_retrieves,
                report.latency_ns["store"].count + deletes,
                report.flash.programs["index"],
                report.gc.pairs_moved,
            ));
            let is_attacked = report.gc.pairs_moved > CHECKED_SCANS / 10 && report.flash.programs["index"] > 1000;
            holds &= report.failed_retrieves == 0 && is_attacked;
        }
        Ok((shown.join("; "), Verdict::if_true(holds)))
    }
}
