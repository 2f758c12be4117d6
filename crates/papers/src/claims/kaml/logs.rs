//! The logs that a namespace writes to (section V-C, figure 8).
//!
//! The collector frees superblocks where logs run out of them. Where it cannot keep up, records go to logs of other targets, and more is
//! written than a namespace's own logs can take: with 4 KB and many threads on few logs, that is what is measured.

use super::cell::{Bench, THREADS};
use super::{drawn, paper};
use crate::claims::{Claim, Verdict};
use crate::transactions::MicroKind;
use kvssd_sim::SimError;

/// The logs of figure 8.
const LOGS: [u32; 3] = [16, 32, 64];
/// Records, of which the paper does not tell the size: the claim is judged with the larger, which need more of the flash. Chosen before
/// the first run.
const RECORD_BYTES: [u32; 2] = [512, 4096];
/// Threads: the claim is judged with the paper's eight; more show what the logs can take. Chosen before the first run.
const MANY_THREADS: u32 = 32;
/// The load factor of the table: so few records that the smallest number of logs has room for them several times over.
const LOAD_FACTOR: f64 = 0.1;
/// Records that are updated in a measurement. With 512 B the smallest number of logs has room for all that is written; with 4 KB, of which
/// a page holds one, it has not, and the collector works.
const PAIRS: u64 = 100_000;

/// Throughput by the number of logs (kaml.6).
pub(super) fn more_logs(bench: &mut Bench<'_>) -> Result<Claim, SimError> {
    let slots = bench.slots();
    let records = (slots as f64 * LOAD_FACTOR) as u64;
    let (mut shown, mut judged, mut all) = (Vec::new(), 0.0, Vec::new());
    for record_bytes in RECORD_BYTES {
        let mut rates = [[0.0; LOGS.len()]; 2];
        for (number, logs) in LOGS.into_iter().enumerate() {
            let mut drive = bench.micro(Some(slots), record_bytes, records)?;
            drive.set_logs(logs)?;
            drive.run(MicroKind::Insert, records, bench.observer)?;
            for (threads, rates) in [THREADS, MANY_THREADS].into_iter().zip(&mut rates) {
                drive.set(threads, 1)?;
                let report = drive.run(MicroKind::Update, PAIRS, bench.observer)?;
                rates[number] = bench.keep("kaml.6", ("logs", logs.to_string()), &report);
            }
        }
        all.push((record_bytes, rates));
        let [few, many] = rates.map(|rates| rates[LOGS.len() - 1] / rates[0]);
        shown.push(format!("{record_bytes} B {few:.2}x, with {MANY_THREADS} threads {many:.2}x"));
        judged = few;
    }
    bench.figures.push(drawn::logs(&LOGS, [THREADS, MANY_THREADS], &all));
    Ok(Claim::new(
        "kaml.6",
        format!("{judged:.2}x ({})", shown.join("; ")),
        Verdict::of(paper::LOGS, judged, 1.0),
        format!("{}, {records} records", bench.scale_name()),
    ))
}
