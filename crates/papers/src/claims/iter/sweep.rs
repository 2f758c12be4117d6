//! The sweep of the IterKVSSD paper's figures 8 to 11: value size x scan length x degree, on a drive that was filled in one of two orders.

use crate::claims::experiment::Context;
use kvssd_flash::Profile;
use kvssd_ftl::{Design, IteratorPlan, PrefetchDegree};
use kvssd_measure::LatencySummary;
use kvssd_measure::Observer;
use kvssd_sim::dbbench::{DbBench, DbBenchSession, DbBenchmark};
use kvssd_sim::{RunReport, SimError};
use serde::{Deserialize, Serialize};

/// The paper's pairs (section 5.1).
pub(super) const PAIRS: f64 = 3e6;
/// Its keys.
const KEY_BYTES: usize = 4;
/// Bytes of values that a drive of the sweep holds at the most, at full scale: what 3 M values of 16 KB take. Of larger ones there are fewer.
const VALUES_BYTES: f64 = PAIRS * 16384.0;
/// Calls of Next in a cell.
const NEXTS: u64 = 16_384;
/// And queries, at the least.
const QUERIES_MIN: u64 = 32;

/// The sizes of values that are swept (section 5.1: 128 B to 128 KB).
pub(super) const VALUE_BYTES: [u32; 5] = [128, 1 << 10, 4 << 10, 16 << 10, 128 << 10];
/// The scan lengths (section 5.3).
pub(super) const SCAN_LENGTHS: [u32; 3] = [128, 512, 2048];
/// The fixed degrees.
pub(super) const DEGREES: [u32; 8] = [0, 1, 2, 4, 8, 16, 32, 64];

/// A cell of the sweep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SweepCell {
    /// `fillrandom` or `fillseq`: how the drive was filled.
    pub order: String,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Calls of Next behind a Seek.
    pub scan_length: u32,
    /// Threads, each with a range of its own.
    pub threads: u32,
    /// Values that are read ahead: a number, or `adaptive`.
    pub degree: String,
    /// Bytes of values a second, of all threads.
    pub bytes_s: f64,
    /// Latencies of Seek.
    pub seek: LatencySummary,
    /// Latencies of Next.
    pub next: LatencySummary,
    /// Mean time of a read of a value (T_d), and of what lies between two pairs beside it (T_A + T_e + T_wait), as the drive measured
    /// them, in nanoseconds.
    pub times_ns: (u64, u64),
    /// Pairs or ends of ranges that were not what they must be.
    pub wrong: u64,
}

/// What every experiment of this paper runs on.
pub(super) struct Bench<'b> {
    pub(super) profile: Profile,
    pub(super) parameters: &'b [(String, String)],
    pub(super) scale: f64,
    pub(super) seed: u64,
}

/// Nothing is read ahead but what `degree` says, and of the index what it needs.
pub(super) fn plan(degree: PrefetchDegree) -> IteratorPlan {
    IteratorPlan { index_prefetch: degree != PrefetchDegree::Fixed(0), prefetch_degree: degree }
}

impl<'b> Bench<'b> {
    pub(super) fn new(context: &'b Context) -> Result<Self, SimError> {
        let Context { profile, parameters, scale, seed } = context;
        Ok(Bench { profile: profile.scaled(*scale)?, parameters, scale: *scale, seed: *seed })
    }

    /// A design with the parameters that were asked for.
    pub(super) fn design(&self, name: &str) -> Result<Design, SimError> {
        let mut design = kvssd_designs::named(name)?;
        for (key, value) in self.parameters {
            if matches!(key.as_str(), "prefetch_degree" | "index_prefetch") {
                return Err(SimError::Setup(format!(
                    "design.{key} is what these claims are about: they set it themselves"
                )));
            }
            design.set(key, value)?;
        }
        Ok(design)
    }

    /// A drive of a design without pairs, and how many it is for.
    pub(super) fn new_drive(&self, design: &str, value_bytes: u32) -> Result<(DbBenchSession, u64), SimError> {
        let most = PAIRS.min(VALUES_BYTES / f64::from(value_bytes));
        let records = (most * self.scale) as u64;
        let (scan_length, threads, seed) = (SCAN_LENGTHS[0], 1, self.seed);
        let bench = DbBench { records, key_bytes: KEY_BYTES, value_bytes, scan_length, threads, seed };
        Ok((DbBenchSession::new(&self.design(design)?, &self.profile, &bench)?, records))
    }

    /// A drive of a design that was filled in one of two orders.
    pub(super) fn filled(
        &self,
        design: &str,
        fill: DbBenchmark,
        value_bytes: u32,
        observer: &mut dyn Observer,
    ) -> Result<DbBenchSession, SimError> {
        let (mut session, records) = self.new_drive(design, value_bytes)?;
        session.run(fill, records, observer)?;
        Ok(session)
    }
}

/// Goes along ranges on a drive that was filled.
pub(super) fn ranges(
    session: &mut DbBenchSession,
    scan_length: u32,
    threads: u32,
    plan: IteratorPlan,
    observer: &mut dyn Observer,
) -> Result<RunReport, SimError> {
    session.set(scan_length, threads);
    session.set_iterator_plan(plan);
    let queries = (NEXTS / u64::from(scan_length)).max(QUERIES_MIN) * u64::from(threads);
    Ok(session.run(DbBenchmark::SeekRandom, queries, observer)?.report)
}

/// Runs a cell on a drive that was filled.
pub(super) fn cell(
    session: &mut DbBenchSession,
    order: DbBenchmark,
    (value_bytes, scan_length, threads): (u32, u32, u32),
    plan: IteratorPlan,
    observer: &mut dyn Observer,
) -> Result<SweepCell, SimError> {
    let report = ranges(session, scan_length, threads, plan, observer)?;
    let (read, interval) = session.device().engine().iterator_times();
    Ok(SweepCell {
        order: order.name().to_owned(),
        value_bytes,
        scan_length,
        threads,
        degree: match plan.prefetch_degree {
            PrefetchDegree::Fixed(degree) => degree.to_string(),
            PrefetchDegree::Adaptive => "adaptive".to_owned(),
            PrefetchDegree::Followed => "followed".to_owned(),
        },
        bytes_s: report.retrieved_bytes_s,
        seek: report.latency_ns["seek"].clone(),
        next: report.latency_ns["next"].clone(),
        times_ns: (read.0, interval.0),
        wrong: report.failed_retrieves,
    })
}

/// Cells of one drive, order, size and length, by degree.
pub(super) struct Row<'c> {
    pub(super) cells: Vec<&'c SweepCell>,
}

pub(super) fn rows(cells: &[SweepCell]) -> Vec<Row<'_>> {
    let name = |cell: &SweepCell| (cell.order.clone(), cell.value_bytes, cell.scan_length, cell.threads);
    let chunks = cells.chunk_by(|left, right| name(left) == name(right));
    chunks.map(|cells| Row { cells: cells.iter().collect() }).collect()
}

impl Row<'_> {
    pub(super) fn degree(&self, degree: &str) -> Option<&SweepCell> {
        self.cells.iter().copied().find(|cell| cell.degree == degree)
    }

    /// The cells of fixed degrees, in order.
    pub(super) fn fixed(&self) -> impl Iterator<Item = &SweepCell> {
        self.cells.iter().copied().filter(|cell| cell.degree != "adaptive")
    }

    /// The highest throughput of a fixed degree, in bytes a second.
    pub(super) fn best(&self) -> f64 {
        self.fixed().map(|cell| cell.bytes_s).fold(0.0, f64::max)
    }

    /// How many times the throughput without reading ahead the best is.
    pub(super) fn gain(&self) -> f64 {
        self.degree("0").map_or(0.0, |none| self.best() / none.bytes_s)
    }
}
