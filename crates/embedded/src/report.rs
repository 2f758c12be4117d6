//! What came out, for people and for programs.

use crate::{Durability, STORES, Workload};
use kvssd_measure::{LatencySummary, columns, grouped, size};
use kvssd_types::Nanos;
use serde::Serialize;

/// One workload on one store.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "the names, with their units, are the JSON's; docs/REPORT.md says what each means")]
pub struct Measurement {
    pub store: &'static str,
    pub workload: &'static str,
    pub durability: &'static str,
    pub round: u32,
    pub threads: u32,
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub records: u64,
    pub operations: u64,
    pub cache_bytes: u64,
    pub wall_ns: u64,
    pub throughput_ops_s: f64,
    pub latency_ns: LatencySummary,
    pub processor_ns: u64,
    pub disk_bytes: u64,
}

impl Measurement {
    /// Processor time of an operation.
    fn processor_us(&self) -> f64 {
        self.processor_ns as f64 / 1e3 / self.operations.max(1) as f64
    }
}

/// All that was measured.
#[derive(Clone, Debug)]
pub struct Report {
    /// In the order in which it was.
    pub measurements: Vec<Measurement>,
}

impl Report {
    /// A table for each durability, size of value and number of threads: a row for each workload and store. The last two columns say how
    /// many times quicker kvssd is than that store, by the clock and by processor time; its ordered namespace where its own has no such
    /// workload. Of several rounds, the one in the middle; of an even number the slower of the two.
    #[must_use]
    pub fn table(&self) -> String {
        let is_first = |measurement: &&Measurement| {
            (measurement.round, measurement.workload, measurement.store) == (1, Workload::ALL[0].name(), STORES[0].name)
        };
        let cells: Vec<_> = self.measurements.iter().filter(is_first).map(|first| self.cell_table(first)).collect();
        cells.join("\n")
    }

    fn cell_table(&self, cell: &Measurement) -> String {
        let heading = ["", "", "op/s", "processor, us/op", "p50", "p99", "kvssd ahead by", "by processor"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        for workload in Workload::ALL {
            let found: Vec<_> = STORES.iter().filter_map(|kind| self.middle(cell, workload, kind.name)).collect();
            let Some(ours) = found.first() else { continue };
            rows.extend(found.iter().map(|theirs| row(theirs, ours)));
        }
        // The room that the stores take when they are full, before the deletes.
        for kind in STORES {
            let Some(full) = self.middle(cell, Workload::Mixed, kind.name) else { continue };
            let mut row = vec!["on disk".to_owned(), kind.name.to_owned(), size(full.disk_bytes)];
            row.resize(heading.len(), String::new());
            rows.push(row);
        }
        let mut before = String::new();
        for row in &mut rows {
            // A workload is named once.
            let name = std::mem::replace(&mut before, row[0].clone());
            if name == before {
                row[0].clear();
            }
        }
        format!("{}\n{}", heading_of(cell, self.rounds()), columns(&rows))
    }

    /// The measurement of a workload on a store that has the middle throughput of all rounds. Of two rounds the quicker would be the best, and
    /// no median.
    fn middle(&self, cell: &Measurement, workload: Workload, store: &str) -> Option<&Measurement> {
        let key = |measurement: &Measurement| (measurement.durability, measurement.value_bytes, measurement.threads);
        let is_wanted =
            |other: &&Measurement| key(other) == key(cell) && (other.workload, other.store) == (workload.name(), store);
        let mut found: Vec<_> = self.measurements.iter().filter(is_wanted).collect();
        found.sort_by(|one, other| one.throughput_ops_s.total_cmp(&other.throughput_ops_s));
        found.get(found.len().saturating_sub(1) / 2).copied()
    }

    fn rounds(&self) -> u32 {
        self.measurements.iter().map(|measurement| measurement.round).max().unwrap_or(0)
    }
}

/// A store's row, and how far ahead `ours` is; nothing of itself.
fn row(theirs: &Measurement, ours: &Measurement) -> Vec<String> {
    let LatencySummary { p50, p99, .. } = theirs.latency_ns;
    let ahead = |ratio: f64| if ours.store == theirs.store { String::new() } else { format!("{ratio:.2}x") };
    vec![
        theirs.workload.to_owned(),
        theirs.store.to_owned(),
        grouped(theirs.throughput_ops_s as u64),
        format!("{:.1}", theirs.processor_us()),
        Nanos(p50).to_string(),
        Nanos(p99).to_string(),
        ahead(ours.throughput_ops_s / theirs.throughput_ops_s),
        ahead(theirs.processor_us() / ours.processor_us()),
    ]
}

fn heading_of(cell: &Measurement, rounds: u32) -> String {
    let promise = Durability::ALL.iter().find(|durability| durability.name() == cell.durability);
    let middle = if rounds > 1 { format!(", median of {rounds} rounds") } else { String::new() };
    format!(
        "{}: {}\n{} records of {} + {} bytes, {} {}, caches of {}{middle}",
        cell.durability,
        promise.map_or("", |durability| durability.promise()),
        grouped(cell.records),
        cell.key_bytes,
        cell.value_bytes,
        cell.threads,
        if cell.threads == 1 { "thread" } else { "threads" },
        size(cell.cache_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_in_the_middle_is_shown() {
        let measurement = |round: u32, throughput_ops_s: f64| Measurement {
            store: STORES[0].name,
            workload: Workload::FillRandom.name(),
            durability: Durability::Sync.name(),
            round,
            threads: 1,
            key_bytes: 16,
            value_bytes: 100,
            records: 1000,
            operations: 1000,
            cache_bytes: 1 << 20,
            wall_ns: 1,
            throughput_ops_s,
            latency_ns: kvssd_measure::Latencies::new().summary(),
            processor_ns: 4_500_000,
            disk_bytes: 0,
        };
        let measurements = vec![measurement(1, 900.0), measurement(2, 1234.0), measurement(3, 5000.0)];
        let two = Report { measurements: measurements[1..].to_vec() };
        let table = Report { measurements }.table();
        assert!(table.contains("1 234") && !table.contains("5 000"), "{table}");
        assert!(table.contains(" 4.5 "), "{table}");
        assert!(table.contains("power loss") && table.contains("median of 3 rounds"), "{table}");
        let first = Measurement { round: 1, ..two.measurements[0].clone() };
        let table = Report { measurements: vec![first, two.measurements[1].clone()] }.table();
        assert!(table.contains("1 234") && !table.contains("5 000"), "of two the slower: {table}");
    }
}
