//! What is counted of the service.

use crate::command_kind::CommandKind;
use crate::completion::Completion;
use kvssd_nvme_spec::Status;
use kvssd_types::Nanos;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CommandLabels {
    opcode: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OpcodeLabel {
    opcode: &'static str,
}

/// Counters since the service began.
pub(crate) struct Metrics {
    pub(crate) commands: Family<CommandLabels, Counter>,
    /// Successful commands, by [`CommandKind`].
    successes: [Counter; CommandKind::ALL.len()],
    pub(crate) latencies_family: Family<OpcodeLabel, Histogram, fn() -> Histogram>,
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
