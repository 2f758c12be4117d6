//! The chain of garbage collection: one step behind the other, each as long as the slowest of what it asks for at once.

use crate::drive::Drive;
use crate::queues::{Busy, LOAD_MAX};
use crate::traffic::Traffic;
use kvssd_ftl::index::Changes;

/// How long the chain of collection takes for an operation.
pub(crate) fn collection_ns(drive: &Drive, traffic: &Traffic, busy: &Busy) -> f64 {
    let waiting = busy.dies.clamp(1e-6, LOAD_MAX);
    let side_by_side = |reads: f64, time_ns: f64| {
        if reads <= 0.0 {
            return 0.0;
        }
        let mean = reads / drive.dies;
        let longest = (mean + f64::sqrt(2.0 * mean * drive.dies.ln())).max(1.0);
        // The longest of so many waits.
        let waits_ns = busy.die_wait_ns / waiting * (1.0 + reads.min(drive.dies) * waiting).ln();
        longest * (time_ns + busy.channel_wait_ns) + waits_ns
    };
    let neighbours = drive.neighbours(busy.step_pages);
    let unit_ns = drive.sense_ns + neighbours * drive.page_transfer_ns;
    let victim_steps = traffic.victim_reads / busy.step_pages;
    let map_steps = traffic.map_victim_reads / busy.step_pages;
    let batches = match drive.forecast.changes {
        // First what it asks, then what it changes.
        Changes::InPlace if traffic.asked > 0.0 => 2.0,
        Changes::InPlace => 1.0,
        // Level by level.
        Changes::Merged { .. } => {
            let on_flash = drive.forecast.visits.iter().filter(|visit| visit.in_dram < 1.0);
            on_flash.map(|visit| visit.at_times.map_or(1.0, |at_times| at_times.share)).sum::<f64>().max(1.0)
        }
    };
    let times = &drive.times;
    let core_ns = traffic.asked * times.ask_core_ns + traffic.moved * (times.move_core_ns + times.ask_core_ns);
    (victim_steps + map_steps) * side_by_side(busy.step_pages / neighbours, unit_ns)
        + victim_steps
            * batches
            * side_by_side(traffic.ask_reads / batches / victim_steps.max(1e-12), drive.index_read_ns)
        + core_ns
        + traffic.victims * drive.erase_ns
}
