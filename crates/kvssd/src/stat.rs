//! `kvssd stat`: how full a drive is and what it does, once or again and again.
//!
//! An image is opened for each look, so that it can be used in between; it cannot be looked at while another process writes it. A
//! drive on the wire is looked at while others use it.

use crate::Outcome;
use crate::arguments::image::StatOptions;
use crate::fail::{Failure, is_url};
use crate::output::{print, write_to};
use crate::pairs::open_to_read;
use kvssd_host::{FirmwareStats, Stats, Store, TrafficStats};
use kvssd_measure::{grouped, size};
use serde_json::{Value, json};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Lines between two headings.
const HEADING_LINES: u64 = 20;
/// Columns of a line, and how wide they are.
const COLUMNS: [(&str, usize); 8] = [
    ("pairs", 12),
    ("live", 10),
    ("full", 7),
    ("changes/s", 11),
    ("lookups/s", 11),
    ("stored/s", 11),
    ("write amp.", 10),
    ("erases", 10),
];

/// A look at a drive.
struct Look {
    stats: Stats,
    at: Instant,
}

/// Says how full a drive is.
pub fn run(options: &StatOptions) -> Outcome {
    let StatOptions { image, watch, json } = options;
    let mut looks = Looks { image, store: None };
    let Some(seconds) = *watch else {
        let Look { stats, .. } = looks.next()?;
        return print(&if *json { format!("{}\n", object(&stats, None)) } else { page(&stats) });
    };
    write_to(Path::new("-"), |out| {
        let mut last: Option<Look> = None;
        for number in 0u64.. {
            let look = looks.next()?;
            let mut text = String::new();
            if *json {
                text += &object(&look.stats, since(last.as_ref(), &look).as_ref()).to_string();
            } else {
                if number.is_multiple_of(HEADING_LINES) {
                    text += &(row(&COLUMNS.map(|(name, _)| name.to_owned())) + "\n");
                }
                text += &line(&look.stats, since(last.as_ref(), &look).as_ref());
            }
            let written = writeln!(out, "{text}").and_then(|()| out.flush());
            written.map_err(Failure::of_output(Path::new("standard output")))?;
            last = Some(look);
            sleep(Duration::from_secs(seconds));
        }
        Ok(())
    })
}

/// Looks at one drive.
struct Looks<'a> {
    image: &'a Path,
    /// A drive on the wire stays connected.
    store: Option<Store>,
}

impl Looks<'_> {
    fn next(&mut self) -> Result<Look, Failure> {
        let store = self.store.take().map_or_else(|| open_to_read(self.image), Ok)?;
        let stats = store.stats().map_err(Failure::of_store(self.image))?;
        self.store = Some(store).filter(|_| is_url(self.image));
        Ok(Look { stats, at: Instant::now() })
    }
}

/// What was done between two looks, a second.
struct Rates {
    changes: f64,
    lookups: f64,
    stored_bytes: f64,
    /// In between, not since the drive is served.
    write_amplification: Option<f64>,
}

fn since(last: Option<&Look>, look: &Look) -> Option<Rates> {
    let last = last?;
    let (before, after) = (last.stats.traffic?, look.stats.traffic?);
    let seconds = (look.at - last.at).as_secs_f64().max(1e-9);
    // A drive that was started again counts from zero.
    let rate = |of: fn(&TrafficStats) -> u64| of(&after).saturating_sub(of(&before)) as f64 / seconds;
    let programmed = |stats: &Stats| stats.firmware.map(|firmware| firmware.pages_programmed * firmware.page_bytes);
    let programmed_bytes = programmed(&look.stats).zip(programmed(&last.stats));
    let stored_bytes = after.stored_bytes.saturating_sub(before.stored_bytes);
    Some(Rates {
        changes: rate(|traffic| traffic.changes),
        lookups: rate(|traffic| traffic.lookups),
        stored_bytes: rate(|traffic| traffic.stored_bytes),
        write_amplification: programmed_bytes
            .filter(|_| stored_bytes > 0)
            .map(|(after, before)| after.saturating_sub(before) as f64 / stored_bytes as f64),
    })
}

fn full(stats: &Stats) -> f64 {
    stats.live_bytes as f64 / stats.capacity_bytes.max(1) as f64 * 100.0
}

fn page(stats: &Stats) -> String {
    let mut lines = Vec::new();
    if stats.has_failed {
        lines.push(("state", "it has failed: its service says why, and has to be started again".to_owned()));
    }
    if let Some(FirmwareStats { pairs, pair_bytes, .. }) = stats.firmware {
        lines.push(("pairs", pairs.to_string()));
        lines.push(("pair bytes", pair_bytes.to_string()));
    }
    lines.push(("live bytes", format!("{} ({:.1} % of capacity)", stats.live_bytes, full(stats))));
    lines.push(("capacity bytes", stats.capacity_bytes.to_string()));
    lines.push(("largest value", stats.value_bytes_max.to_string()));
    if let Some(firmware) = stats.firmware {
        let FirmwareStats { flash_bytes, dram_bytes, dram_bytes_max, erases, blocks, erases_max, .. } = firmware;
        let mean = erases as f64 / blocks.max(1) as f64;
        lines.push(("flash bytes", flash_bytes.to_string()));
        // Those of a host that does not see all namespaces are not told.
        if blocks > 0 {
            lines.push(("index and tables", format!("{dram_bytes} of {dram_bytes_max} bytes")));
            lines.push(("wear", format!("{erases} erases; of a block {mean:.2}, of the most erased {erases_max}")));
        }
    }
    if let Some(TrafficStats { changes, lookups, stored_bytes, retrieved_bytes, .. }) = stats.traffic {
        lines.push(("served", format!("{changes} changes, {lookups} lookups")));
        lines.push(("bytes in and out", format!("{stored_bytes} stored, {retrieved_bytes} retrieved")));
    }
    if let Some(amplification) = stats.write_amplification() {
        lines.push(("write amplif.", format!("{amplification:.2} bytes programmed for each that was stored")));
    }
    lines.iter().map(|(name, figure)| format!("{name:<18}{figure}\n")).collect()
}

fn line(stats: &Stats, rates: Option<&Rates>) -> String {
    let nothing = || "-".to_owned();
    let rate = |of: fn(&Rates) -> f64| rates.map_or_else(nothing, |rates| grouped(of(rates).round() as u64));
    let amplification = rates.and_then(|rates| rates.write_amplification);
    row(&[
        stats.firmware.map_or_else(nothing, |firmware| grouped(firmware.pairs)),
        size(stats.live_bytes),
        format!("{:.1} %", full(stats)),
        rate(|rates| rates.changes),
        rate(|rates| rates.lookups),
        rates.map_or_else(nothing, |rates| size(rates.stored_bytes as u64)),
        amplification.map_or_else(nothing, |amplification| format!("{amplification:.2}")),
        stats.firmware.filter(|firmware| firmware.blocks > 0).map_or_else(nothing, |firmware| grouped(firmware.erases)),
    ])
}

fn row(cells: &[String; COLUMNS.len()]) -> String {
    let padded = cells.iter().zip(COLUMNS).map(|(cell, (_, width))| format!("{cell:>width$}"));
    padded.collect::<Vec<_>>().join(" ")
}

fn object(stats: &Stats, rates: Option<&Rates>) -> Value {
    let traffic = stats.traffic.map(|traffic| {
        json!({
            "changes": traffic.changes,
            "lookups": traffic.lookups,
            "stored_bytes": traffic.stored_bytes,
            "retrieved_bytes": traffic.retrieved_bytes,
            "processor_ns": traffic.processor_ns,
        })
    });
    let per_second = rates.map(|rates| {
        json!({ "changes": rates.changes, "lookups": rates.lookups, "stored_bytes": rates.stored_bytes,
            "write_amplification": rates.write_amplification })
    });
    json!({
        "design": stats.design,
        "has_failed": stats.has_failed,
        "live_bytes": stats.live_bytes,
        "capacity_bytes": stats.capacity_bytes,
        "value_bytes_max": stats.value_bytes_max,
        "write_amplification": stats.write_amplification(),
        "firmware": stats.firmware,
        "traffic": traffic,
        "since_last_look": per_second,
    })
}
