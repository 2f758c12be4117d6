//! What a run reports.

mod cache;
mod trace;

pub use cache::{CacheReport, HitReport, LifeReport, PrefixReport};
pub use trace::TraceReport;

use crate::baseline::Baseline;
use crate::chrome_trace::RunTrace;
use crate::interval::Columns;
use crate::measured::Measured;
use crate::rounds::RoundsReport;
use kvssd_device::Device;
use kvssd_flash::{Cause, Counters, PerCause, Profile};
use kvssd_ftl::index::IndexCounters;
use kvssd_ftl::{Spent, SpentOn, Utilization};
use kvssd_measure::LatencySummary;
use kvssd_types::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;

/// What is run.
#[derive(Clone, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) design: &'a str,
    pub(crate) profile: &'a Profile,
    pub(crate) seed: u64,
    pub(crate) workload: &'a str,
    pub(crate) distribution: &'a str,
    pub(crate) records: u64,
}

/// A measured run: the report, and the counters that claims need beside it.
#[derive(Clone, Debug)]
pub struct Run {
    /// What is shown and written.
    pub report: RunReport,
    /// Operations on flash.
    pub flash: Counters,
    /// Bytes of index sections read and written by garbage collection.
    pub gc_index_bytes: u64,
    /// What was recorded of it, where that was asked for.
    pub trace: Option<RunTrace>,
}

/// A run in a report. Everything but `host` is the same for the same seed and options.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "the names, with their units, are the JSON's; docs/REPORT.md says what each means")]
pub struct RunReport {
    pub design: String,
    pub profile: String,
    pub workload: String,
    pub distribution: String,
    pub seed: u64,
    pub records: u64,
    pub operations: u64,
    pub throughput_ops_s: f64,
    pub retrieved_bytes_s: f64,
    pub latency_ns: BTreeMap<&'static str, LatencySummary>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sequence_latency_ns: BTreeMap<&'static str, LatencySummary>,
    pub latency_histograms: BTreeMap<&'static str, String>,
    pub spent_ns: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    pub utilization: BTreeMap<&'static str, BusyReport>,
    pub fill: f64,
    pub flash: FlashReport,
    pub write_amplification: Option<f64>,
    pub read_amplification: Option<f64>,
    pub space_amplification: Option<f64>,
    pub dram: DramReport,
    pub index: IndexReport,
    pub gc: GcReport,
    pub growth: GrowthReport,
    pub wear: WearReport,
    pub channels: ChannelReport,
    pub verified_retrieves: u64,
    pub failed_retrieves: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<RoundsReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Columns>,
    pub simulated_ns: u64,
    pub host: HostReport,
}

/// Pages read and programmed by cause, and blocks erased.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "as RunReport")]
pub struct FlashReport {
    pub reads: BTreeMap<&'static str, u64>,
    pub buffer_hits: BTreeMap<&'static str, u64>,
    pub shared_reads: BTreeMap<&'static str, u64>,
    pub programs: BTreeMap<&'static str, u64>,
    pub erases: u64,
}

/// The share of the time for which resources of a kind were taken.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(missing_docs, reason = "as RunReport")]
pub struct BusyReport {
    pub mean: f64,
    pub max: f64,
}

/// DRAM of the device.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "as RunReport")]
pub struct DramReport {
    pub budget_bytes: u64,
    pub used_bytes: u64,
    pub parts: BTreeMap<&'static str, u64>,
}

/// How the index fared.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "as RunReport")]
pub struct IndexReport {
    pub cache_hit_ratio: Option<f64>,
    pub collisions: u64,
    pub flash_reads_per_lookup_mean: f64,
    pub flash_reads_per_lookup_max: u64,
    pub load_factor: Option<f64>,
    pub slots_scanned_per_lookup_mean: Option<f64>,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub gc_bytes_read: u64,
    pub gc_bytes_written: u64,
}

/// What garbage collection did.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "as RunReport")]
pub struct GcReport {
    pub superblocks: u64,
    pub pairs_moved: u64,
    pub pages_skipped: u64,
    pub busy_ns: u64,
    pub stall_ns: u64,
}

/// Work of the index's own that kept changes out, or all commands.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "as RunReport")]
pub struct GrowthReport {
    pub closures: u64,
    pub closed_ns: u64,
}

/// Erases of a block since the drive was new.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "as RunReport")]
pub struct WearReport {
    pub erases_min: u32,
    pub erases_mean: f64,
    pub erases_max: u32,
}

/// The smallest and the largest share of the programs that a channel got.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "as RunReport")]
pub struct ChannelReport {
    pub program_share_min: Option<f64>,
    pub program_share_max: Option<f64>,
}

/// What the run took of the machine it was run on.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "as RunReport")]
pub struct HostReport {
    pub wall_ns: u64,
    pub peak_rss_bytes: u64,
    pub speedup: f64,
}

impl Run {
    pub(crate) fn new(subject: &Subject<'_>, device: &Device, before: &Baseline, measured: &Measured) -> Self {
        let engine = device.engine();
        let flash = engine.flash_counters().since(&before.flash);
        let index = index_report(&engine.index_counters(), &before.index);
        let page_bytes = f64::from(subject.profile.geometry.page_bytes);
        let per = |bytes: f64, by: u64| (by > 0).then(|| bytes / by as f64);
        let simulated = measured.end - measured.start;
        // In no time nothing has a rate.
        let a_second = |count: u64| if simulated == Nanos::ZERO { 0.0 } else { count as f64 / simulated.as_seconds() };
        let Utilization { live_bytes, pair_bytes, .. } = engine.utilization();
        let dram = engine.dram();
        let (gc, growth) = (engine.gc_counters(), engine.growth_counters());
        let wall_ns = measured.wall.as_nanos() as u64;
        let report = RunReport {
            design: subject.design.to_owned(),
            profile: subject.profile.name.clone(),
            workload: subject.workload.to_owned(),
            distribution: subject.distribution.to_owned(),
            seed: subject.seed,
            records: subject.records,
            operations: measured.operations,
            throughput_ops_s: a_second(measured.operations),
            retrieved_bytes_s: a_second(measured.retrieved_bytes),
            latency_ns: measured.commands().map(|(name, took)| (name, took.summary())).collect(),
            sequence_latency_ns: measured.sequences.iter().map(|(name, took)| (*name, took.summary())).collect(),
            latency_histograms: measured
                .latencies()
                .filter(|(_, took)| !took.is_empty())
                .map(|(name, took)| (name, took.to_base64()))
                .collect(),
            spent_ns: spent_report(&device.spent(), &before.spent),
            utilization: utilization_report(&device.busy(), &before.busy, simulated),
            fill: live_bytes as f64 / subject.profile.geometry.raw_bytes() as f64,
            flash: flash_report(&flash),
            write_amplification: per(flash.programs.total() as f64 * page_bytes, measured.stored_bytes),
            read_amplification: per(flash.reads.total() as f64 * page_bytes, measured.retrieved_bytes),
            space_amplification: per(live_bytes as f64, pair_bytes),
            dram: DramReport {
                budget_bytes: engine.dram_budget_bytes(),
                used_bytes: dram.total_bytes(),
                parts: dram.parts().clone(),
            },
            index,
            gc: GcReport {
                superblocks: gc.superblocks - before.gc.superblocks,
                pairs_moved: gc.pairs_moved - before.gc.pairs_moved,
                pages_skipped: gc.pages_skipped - before.gc.pages_skipped,
                busy_ns: gc.busy_ns - before.gc.busy_ns,
                stall_ns: gc.stall_ns - before.gc.stall_ns,
            },
            growth: GrowthReport {
                closures: growth.closures - before.growth.closures,
                closed_ns: growth.closed_ns - before.growth.closed_ns,
            },
            wear: wear_report(engine.erases()),
            channels: channel_report(&flash.channel_programs),
            verified_retrieves: measured.verified_retrieves,
            failed_retrieves: measured.failed_retrieves,
            trace: None,
            rounds: None,
            series: None,
            simulated_ns: simulated.0,
            host: HostReport {
                wall_ns,
                peak_rss_bytes: peak_rss_bytes(),
                speedup: simulated.0 as f64 / wall_ns.max(1) as f64,
            },
        };
        let gc_index_bytes = report.index.gc_bytes_read + report.index.gc_bytes_written;
        Run { report, flash, gc_index_bytes, trace: None }
    }
}

type SpentBy = [(&'static str, Spent); 3];

fn spent_report(now: &SpentBy, before: &SpentBy) -> BTreeMap<&'static str, BTreeMap<&'static str, u64>> {
    let each = now.iter().zip(before);
    each.map(|((name, now), (_, before))| {
        let spent = now.since(before);
        (*name, SpentOn::ALL.iter().map(|&part| (part.name(), spent.of(part).0)).collect())
    })
    .collect()
}

type Busy = [(&'static str, Vec<Nanos>)];

fn utilization_report(now: &Busy, before: &Busy, simulated: Nanos) -> BTreeMap<&'static str, BusyReport> {
    let share = |(now, before): (&Nanos, &Nanos)| (*now - *before).as_seconds() / simulated.as_seconds().max(1e-9);
    let each = now.iter().zip(before);
    each.map(|((name, now), (_, before))| {
        let shares: Vec<f64> = now.iter().zip(before).map(share).collect();
        let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        (*name, BusyReport { mean, max: shares.iter().copied().fold(0.0, f64::max) })
    })
    .collect()
}

fn index_report(now: &IndexCounters, before: &IndexCounters) -> IndexReport {
    let lookups = now.lookups - before.lookups;
    let accesses = now.section_accesses - before.section_accesses;
    let misses = now.section_misses - before.section_misses;
    IndexReport {
        cache_hit_ratio: (accesses > 0).then(|| 1.0 - misses as f64 / accesses as f64),
        collisions: now.collisions - before.collisions,
        flash_reads_per_lookup_mean: (now.flash_reads - before.flash_reads) as f64 / lookups.max(1) as f64,
        flash_reads_per_lookup_max: now.flash_reads_max,
        load_factor: (now.slots > 0).then(|| now.slots_taken as f64 / now.slots as f64),
        slots_scanned_per_lookup_mean: (now.slots > 0)
            .then(|| (now.slots_scanned - before.slots_scanned) as f64 / lookups.max(1) as f64),
        bytes_read: now.bytes_read.commands - before.bytes_read.commands,
        bytes_written: now.bytes_written.commands - before.bytes_written.commands,
        gc_bytes_read: now.bytes_read.background - before.bytes_read.background,
        gc_bytes_written: now.bytes_written.background - before.bytes_written.background,
    }
}

fn flash_report(flash: &Counters) -> FlashReport {
    FlashReport {
        reads: by_name(&flash.reads),
        buffer_hits: by_name(&flash.buffer_hits),
        shared_reads: by_name(&flash.shared_reads),
        programs: by_name(&flash.programs),
        erases: flash.erases,
    }
}

fn by_name(counts: &PerCause) -> BTreeMap<&'static str, u64> {
    Cause::ALL.iter().map(|&cause| (cause.name(), counts[cause])).collect()
}

fn wear_report(erases: impl Iterator<Item = u32>) -> WearReport {
    let (mut count, mut sum, mut min, mut max) = (0u64, 0u64, u32::MAX, 0);
    for block in erases {
        count += 1;
        sum += u64::from(block);
        min = min.min(block);
        max = max.max(block);
    }
    WearReport { erases_min: min, erases_mean: sum as f64 / count.max(1) as f64, erases_max: max }
}

fn channel_report(programs: &[u64]) -> ChannelReport {
    let total: u64 = programs.iter().sum();
    let share = |count: Option<&u64>| count.filter(|_| total > 0).map(|&count| count as f64 / total as f64);
    ChannelReport { program_share_min: share(programs.iter().min()), program_share_max: share(programs.iter().max()) }
}

/// The most memory that this process has had so far; zero where the system does not tell.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}
