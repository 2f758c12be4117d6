//! A run of a report, and what its figures are called.

use kvssd_measure::Latencies;
use kvssd_measure::Unit;
use serde_json::Value;

/// A figure of a run.
#[derive(Clone, Copy)]
pub struct Figure {
    pub name: &'static str,
    pub unit: Unit,
    /// Where a run has it.
    pub pointer: &'static str,
    /// What its confidence interval is called, of a run in rounds.
    pub of_rounds: Option<&'static str>,
    /// Whether it has a chart.
    pub is_drawn: bool,
}

const fn figure(name: &'static str, unit: Unit, pointer: &'static str) -> Figure {
    Figure { name, unit, pointer, of_rounds: None, is_drawn: false }
}

const fn drawn(name: &'static str, unit: Unit, pointer: &'static str) -> Figure {
    Figure { is_drawn: true, ..figure(name, unit, pointer) }
}

const fn of_rounds(figure: Figure, name: &'static str) -> Figure {
    Figure { of_rounds: Some(name), ..figure }
}

/// Those of the table, in its order.
pub const FIGURES: [Figure; 14] = [
    of_rounds(drawn("throughput, op/s", Unit::PerSecond, "/throughput_ops_s"), "throughput_ops_s"),
    of_rounds(drawn("write amplification", Unit::Plain, "/write_amplification"), "write_amplification"),
    drawn("read amplification", Unit::Plain, "/read_amplification"),
    figure("space amplification", Unit::Plain, "/space_amplification"),
    figure("retrieve p50", Unit::Time, "/latency_ns/retrieve/p50"),
    drawn("retrieve p99", Unit::Time, "/latency_ns/retrieve/p99"),
    figure("retrieve p99.9", Unit::Time, "/latency_ns/retrieve/p999"),
    figure("store p50", Unit::Time, "/latency_ns/store/p50"),
    drawn("store p99", Unit::Time, "/latency_ns/store/p99"),
    figure("store p99.9", Unit::Time, "/latency_ns/store/p999"),
    figure("batch p50", Unit::Time, "/latency_ns/batch/p50"),
    drawn("batch p99", Unit::Time, "/latency_ns/batch/p99"),
    figure("index cache hits", Unit::Share, "/index/cache_hit_ratio"),
    figure("device DRAM", Unit::Bytes, "/dram/used_bytes"),
];

/// A run, as a report has it.
#[derive(Clone, Debug)]
pub struct Run(pub Value);

impl Run {
    /// The number at a JSON pointer.
    pub fn number(&self, pointer: &str) -> Option<f64> {
        // Of commands that there were none of there is no latency.
        let (of_command, _) = pointer.rsplit_once('/')?;
        if self.0.pointer(of_command).is_some_and(|took| took.get("count").is_some_and(|count| count == 0)) {
            return None;
        }
        number(self.0.pointer(pointer)?)
    }

    /// The numbers at a JSON pointer, by name.
    pub fn numbers(&self, pointer: &str) -> Vec<(&str, f64)> {
        let fields = self.0.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
        fields.filter_map(|(name, value)| Some((name.as_str(), number(value)?))).collect()
    }

    /// Which commands have a histogram of latencies.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.0["latency_histograms"].as_object().into_iter().flatten().map(|(command, _)| command.as_str())
    }

    /// The latencies of a command.
    pub fn latencies(&self, command: &str) -> Option<Latencies> {
        Latencies::from_base64(self.0["latency_histograms"][command].as_str()?)
    }

    /// A column of figures over time: of its series, else of its rounds.
    pub fn column(&self, name: &str) -> Option<Vec<Option<f64>>> {
        let columns = self.0.get("series").or_else(|| self.0.pointer("/rounds/columns"))?;
        Some(columns.get(name)?.as_array()?.iter().map(number).collect())
    }
}

/// A number such as a run can have: sums of them stay finite.
fn number(value: &Value) -> Option<f64> {
    const MOST: f64 = 1e30;
    value.as_f64().filter(|number| (0.0..=MOST).contains(number))
}
