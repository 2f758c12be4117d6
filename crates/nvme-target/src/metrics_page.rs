//! The metrics of the service, as OpenMetrics.

use crate::subsystem::Subsystem;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::sync::atomic::AtomicU64;

/// All metrics as OpenMetrics text.
#[must_use]
pub fn metrics_page(subsystem: &Subsystem) -> String {
    let metrics = &subsystem.metrics;
    let health = subsystem.health();
    let (utilization, firmware) = (&health.utilization, &health.firmware);
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
        ("pairs", "Pairs that are stored", utilization.pairs),
        ("pair_bytes", "Bytes of their keys and values", utilization.pair_bytes),
        ("live_bytes", "Bytes of flash that live", utilization.live_bytes),
        ("capacity_bytes", "Bytes of flash that may live", utilization.capacity_bytes),
        ("programmed_bytes", "Bytes of flash programmed since the drive was opened", health.programmed_bytes()),
        ("erases", "Erases of all blocks", firmware.erases),
        ("pairs_moved", "Pairs that garbage collection moved since the drive was opened", firmware.pairs_moved),
        ("wear_percent", "Part of the drive's life that is used", health.firmware.used_percent()),
        ("failed", "Whether the drive takes nothing any more", health.has_failed.into()),
    ];
    for (name, help, number) in numbers {
        let gauge = Gauge::<u64, AtomicU64>::default();
        gauge.set(number);
        registry.register(name, help, gauge);
    }
    let amplification = Gauge::<f64, AtomicU64>::default();
    let written = metrics.bytes_in.get();
    amplification.set(if written == 0 { 0.0 } else { health.programmed_bytes() as f64 / written as f64 });
    registry.register("write_amplification", "Bytes programmed for each byte that hosts stored", amplification);
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut page, &registry);
    page
}
