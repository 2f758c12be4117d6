//! The metrics of the service, as OpenMetrics.

use crate::command_kind::CommandKind;
use crate::completion::Completion;
use crate::subsystem::Subsystem;
use kvssd_nvme_spec::Status;
use kvssd_types::Nanos;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::sync::atomic::AtomicU64;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CommandLabels {
    opcode: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OpcodeLabel {
    opcode: &'static str,
}

/// Counters since the service began.
pub(crate) struct Metrics {
    commands: Family<CommandLabels, Counter>,
    /// Successful commands, by [`CommandKind`].
    successes: [Counter; CommandKind::ALL.len()],
    latencies_family: Family<OpcodeLabel, Histogram, fn() -> Histogram>,
    latencies: [Histogram; CommandKind::ALL.len()],
    /// Bytes of values that hosts stored.
    pub(crate) bytes_in: Counter,
    /// Bytes of values and lists that hosts got.
    pub(crate) bytes_out: Counter,
    pub(crate) connections: Gauge,
    pub(crate) controllers: Gauge,
    /// Connections that were ended for a fault of the peer, or a timeout.
    pub(crate) faults: Counter,
    /// Changes that came again and were not made again.
    pub(crate) recognized: Counter,
}

/// Buckets from 10 us to 5 s.
fn latency_histogram() -> Histogram {
    Histogram::new(exponential_buckets(1e-5, 2.0, 20))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let commands = Family::<CommandLabels, Counter>::default();
        let latencies_family = Family::new_with_constructor(latency_histogram as fn() -> Histogram);
        let labels = |kind: CommandKind| CommandLabels { opcode: kind.name(), status: Status::Success.text() };
        Metrics {
            successes: CommandKind::ALL.map(|kind| commands.get_or_create(&labels(kind)).clone()),
            latencies: CommandKind::ALL
                .map(|kind| latencies_family.get_or_create(&OpcodeLabel { opcode: kind.name() }).clone()),
            commands,
            latencies_family,
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            connections: Gauge::default(),
            controllers: Gauge::default(),
            faults: Counter::default(),
            recognized: Counter::default(),
        }
    }

    /// Counts a completion that is sent at `now`.
    pub(crate) fn count(&self, completion: &Completion, now: Nanos) {
        let index = completion.kind as usize;
        if completion.status.is_success() {
            self.successes[index].inc();
        } else {
            let labels = CommandLabels { opcode: completion.kind.name(), status: completion.status.text() };
            self.commands.get_or_create(&labels).inc();
        }
        self.latencies[index].observe((now - completion.arrived).as_seconds());
    }

    /// Successful commands of a kind.
    pub(crate) fn succeeded(&self, kind: CommandKind) -> u64 {
        self.successes[kind as usize].get()
    }
}

/// All metrics as OpenMetrics text.
#[must_use]
pub fn metrics_page(subsystem: &Subsystem) -> String {
    let metrics = &subsystem.metrics;
    let health = subsystem.health();
    let mut registry = Registry::with_prefix("kvssd");
    registry.register("commands", "Commands by opcode and status", metrics.commands.clone());
    let latencies = metrics.latencies_family.clone();
    registry.register_with_unit("latency", "From a command's arrival to its answer", Unit::Seconds, latencies);
    let bytes = [
        ("written", "Bytes of values that hosts stored", metrics.bytes_in.clone()),
        ("read", "Bytes of values and lists that hosts got", metrics.bytes_out.clone()),
    ];
    for (name, help, counter) in bytes {
        registry.register_with_unit(name, help, Unit::Bytes, counter);
    }
    registry.register("connections", "Connections", metrics.connections.clone());
    registry.register("controllers", "Controllers", metrics.controllers.clone());
    registry.register("faults", "Connections that were ended for what the peer did", metrics.faults.clone());
    registry.register("recognized", "Changes that came again and had been made", metrics.recognized.clone());
    let numbers = [
        ("pairs", "Pairs that are stored", health.pairs),
        ("pair_bytes", "Bytes of their keys and values", health.pair_bytes),
        ("live_bytes", "Bytes of flash that live", health.live_bytes),
        ("capacity_bytes", "Bytes of flash that may live", health.capacity_bytes),
        ("programmed_bytes", "Bytes of flash programmed since the drive was opened", health.programmed_bytes),
        ("erases", "Erases of all blocks", health.erases),
        ("pairs_moved", "Pairs that garbage collection moved since the drive was opened", health.pairs_moved),
        ("wear_percent", "Part of the drive's life that is used", health.used_percent()),
        ("failed", "Whether the drive takes nothing any more", health.has_failed.into()),
    ];
    for (name, help, number) in numbers {
        let gauge = Gauge::<u64, AtomicU64>::default();
        gauge.set(number);
        registry.register(name, help, gauge);
    }
    let amplification = Gauge::<f64, AtomicU64>::default();
    let written = metrics.bytes_in.get();
    amplification.set(if written == 0 { 0.0 } else { health.programmed_bytes as f64 / written as f64 });
    registry.register("write_amplification", "Bytes programmed for each byte that hosts stored", amplification);
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut page, &registry);
    page
}
