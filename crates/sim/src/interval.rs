//! The figures of a part of a run: an interval of its series, or one of its rounds.

use crate::baseline::Baseline;
use kvssd_device::Device;
use kvssd_measure::Latencies;
use kvssd_types::Nanos;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// What the hosts saw between two moments.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) length: Nanos,
    /// When it ended, from the beginning of the run on.
    pub(crate) end: Nanos,
    pub(crate) operations: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) retrieved_bytes: u64,
    pub(crate) latencies: Vec<(&'static str, Option<&'a Latencies>)>,
}

/// A part of a run, as `docs/REPORT.md` says.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "the names, with their units, are the JSON's; docs/REPORT.md says what each means")]
pub struct Interval {
    pub end_ns: u64,
    pub operations: u64,
    pub throughput_ops_s: f64,
    #[serde(flatten)]
    pub latencies: Map<String, Value>,
    pub free_superblocks: u64,
    pub gc_superblocks: u64,
    pub gc_pairs_moved: u64,
    pub gc_busy_ns: u64,
    pub gc_stall_ns: u64,
    pub growth_closed_ns: u64,
    pub flash_reads: u64,
    pub flash_programs: u64,
    pub flash_erases: u64,
    pub write_amplification: Option<f64>,
    pub read_amplification: Option<f64>,
    pub index_cache_hit_ratio: Option<f64>,
    pub dram_used_bytes: u64,
}

impl Interval {
    /// Of what was seen since the drive's counters were `before`, until they became `after`, which is now.
    pub(crate) fn new(seen: &Seen<'_>, device: &Device, before: &Baseline, after: &Baseline) -> Self {
        let engine = device.engine();
        let flash = after.flash.since(&before.flash);
        let page_bytes = f64::from(engine.geometry().page_bytes);
        let per = |pages: u64, bytes: u64| (bytes > 0).then(|| pages as f64 * page_bytes / bytes as f64);
        let (gc, gc_before) = (after.gc, before.gc);
        let accesses = after.index.section_accesses - before.index.section_accesses;
        let misses = after.index.section_misses - before.index.section_misses;
        Interval {
            end_ns: seen.end.0,
            operations: seen.operations,
            throughput_ops_s: seen.operations as f64 / seen.length.as_seconds().max(1e-9),
            latencies: latency_figures(&seen.latencies),
            free_superblocks: engine.free_superblocks() as u64,
            gc_superblocks: gc.superblocks - gc_before.superblocks,
            gc_pairs_moved: gc.pairs_moved - gc_before.pairs_moved,
            gc_busy_ns: gc.busy_ns - gc_before.busy_ns,
            gc_stall_ns: gc.stall_ns - gc_before.stall_ns,
            growth_closed_ns: after.growth.closed_ns - before.growth.closed_ns,
            flash_reads: flash.reads.total(),
            flash_programs: flash.programs.total(),
            flash_erases: flash.erases,
            write_amplification: per(flash.programs.total(), seen.stored_bytes),
            read_amplification: per(flash.reads.total(), seen.retrieved_bytes),
            index_cache_hit_ratio: (accesses > 0).then(|| 1.0 - misses as f64 / accesses as f64),
            dram_used_bytes: engine.dram().total_bytes(),
        }
    }
}

/// `retrieve_p99_ns` and its like; null where there was no such command.
fn latency_figures(latencies: &[(&'static str, Option<&Latencies>)]) -> Map<String, Value> {
    let mut figures = Map::new();
    for (name, took) in latencies {
        let took = took.map(Latencies::summary).filter(|took| took.count > 0);
        figures.insert(format!("{name}_count"), json!(took.as_ref().map_or(0, |took| took.count)));
        figures.insert(format!("{name}_mean_ns"), json!(took.as_ref().map(|took| took.mean)));
        figures.insert(format!("{name}_p50_ns"), json!(took.as_ref().map(|took| took.p50)));
        figures.insert(format!("{name}_p99_ns"), json!(took.as_ref().map(|took| took.p99)));
        figures.insert(format!("{name}_p999_ns"), json!(took.as_ref().map(|took| took.p999)));
        figures.insert(format!("{name}_max_ns"), json!(took.as_ref().map(|took| took.max)));
    }
    figures
}

/// Intervals as columns of equal length, which a data frame takes as they are.
#[derive(Clone, Debug)]
pub struct Columns(Vec<Interval>);

impl Columns {
    pub(crate) fn new(intervals: Vec<Interval>) -> Self {
        Columns(intervals)
    }

    /// The intervals, in their order.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        &self.0
    }
}

impl Serialize for Columns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut columns: Map<String, Value> = Map::new();
        for interval in &self.0 {
            let Value::Object(figures) = serde_json::to_value(interval).map_err(serde::ser::Error::custom)? else {
                continue;
            };
            for (name, figure) in figures {
                if let Value::Array(column) = columns.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
                    column.push(figure);
                }
            }
        }
        columns.serialize(serializer)
    }
}
