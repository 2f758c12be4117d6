//! Figures side by side, for people.

use crate::report::{CacheReport, RunReport, TraceReport};
use crate::rounds::RoundsReport;
use kvssd_measure::{LatencySummary, columns, grouped, size};
use kvssd_types::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// A figure of a report, or of a part that only some have.
type Figure<R> = (&'static str, fn(&R) -> String);
type ByCause = (&'static str, fn(&RunReport) -> &BTreeMap<&'static str, u64>);

/// A table with a line a figure and a column a run.
#[must_use]
pub fn comparison(runs: &[&RunReport]) -> String {
    columns(&rows(runs))
}

fn rows(runs: &[&RunReport]) -> Vec<Vec<String>> {
    let row = |name: &str, figure: &dyn Fn(&RunReport) -> String| row_of(runs, name, figure);
    let heading = |name: &str| row(name, &|_| String::new());
    let mut rows = Vec::new();
    rows.push(row("", &|run| run.design.clone()));
    rows.push(row("workload", &|run| format!("{} {}", run.workload, run.distribution)));
    FIGURES.iter().for_each(|(name, figure)| rows.push(row(name, figure)));
    for name in others(runs) {
        rows.push(row(&format!("{name} mean, p99 / p99.9"), &|run| {
            let latency = run.latency_ns.get(name).or(run.sequence_latency_ns.get(name));
            latency.filter(|latency| latency.count > 0).map_or("-".to_owned(), |latency| {
                format!("{}, {} / {}", Nanos(latency.mean as u64), Nanos(latency.p99), Nanos(latency.p999))
            })
        }));
    }
    rows.extend(part(runs, "rounds, means with 95 % confidence", &ROUND_FIGURES, |run| run.rounds.as_ref()));
    rows.extend(part(runs, "trace", &TRACE_FIGURES, |run| run.trace.as_ref()));
    rows.extend(part(runs, "cache", &CACHE_FIGURES, |run| run.trace.as_ref()?.cache.as_ref()));
    for (title, counts) in PAGES_BY_CAUSE {
        rows.push(heading(title));
        for cause in runs.iter().take(1).flat_map(|run| counts(run).keys()) {
            if runs.iter().any(|run| counts(run)[cause] > 0) {
                rows.push(row(&format!("  {cause}"), &|run| grouped(counts(run)[cause])));
            }
        }
    }
    rows.push(heading("device DRAM"));
    let mut parts: Vec<&str> = runs.iter().flat_map(|run| run.dram.parts.keys().copied()).collect();
    parts.sort_unstable();
    parts.dedup();
    for part in parts {
        rows.push(row(&format!("  {part}"), &|run| {
            run.dram.parts.get(part).map_or("-".to_owned(), |&bytes| size(bytes))
        }));
    }
    rows.push(row("  used of budget", &|run| {
        format!("{} of {}", size(run.dram.used_bytes), size(run.dram.budget_bytes))
    }));
    rows.push(row("verified / failed retrieves", &|run| {
        format!("{} / {}", grouped(run.verified_retrieves), grouped(run.failed_retrieves))
    }));
    rows.push(row("simulated time", &|run| Nanos(run.simulated_ns).to_string()));
    rows.push(row("simulated, op/s of this machine", &|run| {
        grouped((run.operations as f64 / (run.host.wall_ns.max(1) as f64 / 1e9)) as u64)
    }));
    rows.push(row("faster than real time", &|run| format!("{:.2}x", run.host.speedup)));
    rows
}

fn row_of(runs: &[&RunReport], name: &str, figure: &dyn Fn(&RunReport) -> String) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(runs.iter().map(|run| figure(run))).collect()
}

/// The rows of a part that some run has.
fn part<P>(
    runs: &[&RunReport],
    title: &str,
    figures: &[Figure<P>],
    of: fn(&RunReport) -> Option<&P>,
) -> Vec<Vec<String>> {
    if runs.iter().all(|run| of(run).is_none()) {
        return Vec::new();
    }
    let heading = row_of(runs, title, &|_| String::new());
    let row = |(name, figure): &Figure<P>| row_of(runs, name, &|run| of(run).map_or("-".to_owned(), figure));
    std::iter::once(heading).chain(figures.iter().map(row)).collect()
}

/// What some run did beside retrieves and stores.
fn others(runs: &[&RunReport]) -> BTreeSet<&'static str> {
    let all = runs.iter().flat_map(|run| run.latency_ns.iter().chain(&run.sequence_latency_ns));
    let done = all.filter(|(_, latency)| latency.count > 0).map(|(name, _)| *name);
    done.filter(|name| !matches!(*name, "retrieve" | "store")).collect()
}

const FIGURES: [Figure<RunReport>; 18] = [
    ("records", |run| grouped(run.records)),
    ("operations", |run| grouped(run.operations)),
    ("throughput, op/s", |run| {
        if run.simulated_ns == 0 { "-".to_owned() } else { grouped(run.throughput_ops_s.round() as u64) }
    }),
    ("retrieve mean", |run| mean(run, "retrieve")),
    ("retrieve p50 / p99", |run| percentiles(run, "retrieve")),
    ("retrieve p99.9 / max", |run| tail(run, "retrieve")),
    ("store mean", |run| mean(run, "store")),
    ("store p50 / p99", |run| percentiles(run, "store")),
    ("store p99.9 / max", |run| tail(run, "store")),
    ("write amplification", |run| ratio(run.write_amplification)),
    ("read amplification", |run| ratio(run.read_amplification)),
    ("space amplification", |run| ratio(run.space_amplification)),
    ("index cache hits", |run| {
        run.index.cache_hit_ratio.map_or("-".to_owned(), |hits| format!("{:.1} %", hits * 100.0))
    }),
    ("index reads / look-up, max", |run| {
        format!("{:.2}, {}", run.index.flash_reads_per_lookup_mean, run.index.flash_reads_per_lookup_max)
    }),
    ("key collisions", |run| grouped(run.index.collisions)),
    ("garbage collection busy, share", |run| {
        format!("{:.0} %", run.gc.busy_ns as f64 / run.simulated_ns.max(1) as f64 * 100.0)
    }),
    ("block erases", |run| grouped(run.flash.erases)),
    ("erases a block, min / mean / max", |run| {
        format!("{} / {:.1} / {}", run.wear.erases_min, run.wear.erases_mean, run.wear.erases_max)
    }),
];

const ROUND_FIGURES: [Figure<RoundsReport>; 5] = [
    ("  rounds in all, reported", |rounds| {
        let RoundsReport { reported_first, reported_last, .. } = rounds;
        format!("{}, {reported_first} to {reported_last}", rounds.columns.intervals().len())
    }),
    ("  throughput, op/s", |rounds| confidence(rounds, "throughput_ops_s", |figure| grouped(figure.round() as u64))),
    ("  latency mean", |rounds| confidence(rounds, "latency_mean_ns", |figure| Nanos(figure as u64).to_string())),
    ("  write amplification", |rounds| confidence(rounds, "write_amplification", |figure| format!("{figure:.2}"))),
    ("  steady, the last five", |rounds| {
        rounds.steady.as_ref().map_or("-", |steady| if steady.is_steady { "yes" } else { "no" }).to_owned()
    }),
];

const TRACE_FIGURES: [Figure<TraceReport>; 11] = [
    ("  lines / bad", |trace| pair(trace.lines, trace.bad_lines)),
    ("  hits / misses", |trace| pair(trace.hits, trace.misses)),
    ("  misses filled / joined", |trace| pair(trace.filled, trace.joined)),
    ("  exist yes / no", |trace| pair(trace.exist_hits, trace.exist_misses)),
    ("  deleted / not there", |trace| pair(trace.deleted, trace.nothing_to_delete)),
    ("  not stored: condition / full", |trace| pair(trace.not_stored, trace.refused_full)),
    ("  values cut / keys hashed", |trace| pair(trace.values_cut, trace.keys_hashed)),
    ("  times to live ignored", |trace| grouped(trace.ttls_ignored)),
    ("  pairs at the end", |trace| grouped(trace.pairs)),
    ("  blocks of prefixes / loaded", |trace| {
        trace.prefixes.map_or("-".to_owned(), |prefixes| pair(prefixes.blocks, prefixes.loaded_blocks))
    }),
    ("  life of the drive", |trace| trace.life.map_or("-".to_owned(), |life| format!("{:.2} years", life.years))),
];

const CACHE_FIGURES: [Figure<CacheReport>; 6] = [
    ("  policy", |cache| [&[cache.eviction.to_owned()], &cache.admission[..]].concat().join(", ")),
    ("  hits of requests / of bytes", |cache| {
        let [requests, bytes] = cache.hits.ratios();
        let of_bytes = if cache.hits.bytes == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * bytes) };
        format!("{:.1} % / {of_bytes}", 100.0 * requests)
    }),
    ("  came in / kept out", |cache| pair(cache.admitted, cache.kept_out)),
    ("  evicted / expired", |cache| pair(cache.evicted, cache.expired)),
    ("  holds / may hold", |cache| format!("{} / {}", size(cache.held_bytes), size(cache.budget_bytes_end))),
    ("  may hold as planned", |cache| size(cache.budget_bytes)),
];

const PAGES_BY_CAUSE: [ByCause; 2] =
    [("flash reads, pages", |run| &run.flash.reads), ("flash programs, pages", |run| &run.flash.programs)];

fn pair(one: u64, other: u64) -> String {
    format!("{} / {}", grouped(one), grouped(other))
}

fn confidence(rounds: &RoundsReport, name: &str, write: fn(f64) -> String) -> String {
    let confidence = rounds.confidence_95.get(name);
    confidence.map_or("-".to_owned(), |found| format!("{} +- {}", write(found.mean), write(found.half_width)))
}

fn mean(run: &RunReport, command: &str) -> String {
    took(run, command, |took| Nanos(took.mean as u64).to_string())
}

fn percentiles(run: &RunReport, command: &str) -> String {
    took(run, command, |took| format!("{} / {}", Nanos(took.p50), Nanos(took.p99)))
}

fn tail(run: &RunReport, command: &str) -> String {
    took(run, command, |took| format!("{} / {}", Nanos(took.p999), Nanos(took.max)))
}

/// What commands took, if there were any.
fn took(run: &RunReport, command: &str, write: impl Fn(&LatencySummary) -> String) -> String {
    run.latency_ns.get(command).filter(|took| took.count > 0).map_or("-".to_owned(), write)
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
}
