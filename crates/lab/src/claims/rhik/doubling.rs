//! How long doubling takes (rhik.3): all tables split before the next command comes in, as in the paper.
//!
//! Judged are the doublings that write more than the write buffer takes: the others end in memory, while the flash still programs. All of the
//! paper's are of that kind (11 M keys are 370 MB of tables, and the buffer has 4 MiB), but the buffer does not scale with a drive.

use super::{Bench, INDEX_OVER_CACHE};
use crate::claims::{Claim, Verdict, scale_name};
use crate::error::LabError;
use crate::observer::Observer;
use kvssd_device::Device;
use kvssd_flash::RopeBacking;
use kvssd_ftl::Design;
use kvssd_ftl::index::{RecordTable, SectionForm};
use kvssd_types::{Command, KEY_BYTES_MAX, KvError, Nanos, Pattern, StoreCondition, Value};

/// How often the observer is told, in stores.
const REPORT_EVERY: u64 = 1 << 12;
const VALUE_BYTES: u32 = 64;
/// The paper's two figures (section V-B): keys and the time to double, which is 0.45 and 0.50 ns a key.
const PAPER: [(f64, f64); 2] = [(11e6, 5e6), (345e6, 172e6)];

/// All tables were split.
#[derive(Clone, Copy, Debug)]
struct Doubling {
    /// The pairs that there were.
    pairs: u64,
    /// How long no command got in.
    took_ns: u64,
    /// The tables that were written.
    written_bytes: u64,
}

impl Doubling {
    fn ns_a_key(self) -> f64 {
        self.took_ns as f64 / self.pairs as f64
    }
}

/// What the paper's own time for a key grows by from one doubling to the next: "mostly" 1 at the most allows for as much.
fn rate_max() -> f64 {
    let [(few, quick_ns), (many, slow_ns)] = PAPER;
    let doublings = (many / few).log2();
    ((slow_ns / many) / (quick_ns / few)).powf(1.0 / doublings)
}

impl Bench<'_> {
    pub(super) fn doubling(&self, design: &Design, observer: &mut dyn Observer) -> Result<Claim, LabError> {
        let mut design = design.clone();
        design.set("incremental", "false")?;
        let doublings = self.doublings(&design, observer)?;
        Ok(claim(&doublings, self.profile.memory.write_buffer_bytes, scale_name(self.scale)))
    }

    /// Stores pairs one after the other on a new drive, and looks at each doubling on the way.
    fn doublings(&self, design: &Design, observer: &mut dyn Observer) -> Result<Vec<Doubling>, LabError> {
        let records = self.records_over_cache(INDEX_OVER_CACHE);
        let keys = self.setup(design, records, VALUE_BYTES, 1).keys()?;
        let mut device = Device::new(design, self.profile, Box::new(RopeBacking::new(self.profile.geometry)))?;
        observer.begin(&format!("{} doublings", design.name), records);
        let (mut doublings, mut before, mut clock) = (Vec::new(), device.engine().growth_counters(), Nanos::ZERO);
        let mut room = [0; KEY_BYTES_MAX];
        for record in 0..records {
            let value = Value::Pattern(Pattern { seed: record, offset: 0, length: VALUE_BYTES });
            let key = keys.write(record, &mut room);
            let completion = device.submit(Command::Store { key, value, condition: StoreCondition::Always }, clock);
            match completion.reply {
                Ok(_) => {}
                Err(KvError::CapacityExceeded) => {
                    return Err(LabError::Full { design: design.name.to_owned(), stored: record, records });
                }
                Err(other) => return Err(LabError::Drive(other)),
            }
            clock = completion.done;
            let growth = device.engine().growth_counters();
            if growth.closures > before.closures {
                // The store that waited is not among the pairs that were moved.
                let (pairs, took_ns) = (record, growth.closed_ns - before.closed_ns);
                doublings.push(Doubling { pairs, took_ns, written_bytes: tables_bytes(&device) });
                before = growth;
            }
            if record.is_multiple_of(REPORT_EVERY) {
                observer.progress(record);
                if observer.is_interrupted() {
                    return Err(LabError::Interrupted);
                }
            }
        }
        Ok(doublings)
    }
}

/// All tables of a directory as deep everywhere, as it is right after it doubled.
fn tables_bytes(device: &Device) -> u64 {
    let form = RecordTable::new(device.engine().geometry().page_bytes, 64);
    let directory_bytes = device.engine().dram().parts().get("index_directory").copied().unwrap_or(0);
    directory_bytes / form.directory_entry_bytes() * u64::from(form.bytes_max())
}

fn claim(doublings: &[Doubling], buffer_bytes: u64, scale: String) -> Claim {
    let buffered = doublings.iter().take_while(|doubling| doubling.written_bytes <= buffer_bytes).count();
    let rates: Vec<f64> = doublings.windows(2).map(|pair| pair[1].ns_a_key() / pair[0].ns_a_key()).collect();
    // The rate over the last that fitted the buffer compares the two kinds.
    let (within, beyond) = rates.split_at(buffered.min(rates.len()));
    let shown = |rates: &[f64]| rates.iter().map(|rate| format!("{rate:.3}")).collect::<Vec<_>>().join(", ");
    let ends: Vec<String> = [doublings.first(), doublings.get(buffered), doublings.last()]
        .into_iter()
        .flatten()
        .map(|doubling| {
            let (pairs, took_ms) = (doubling.pairs as f64 / 1e3, doubling.took_ns as f64 / 1e6);
            format!("{pairs:.0} k keys {took_ms:.1} ms, {:.0} ns a key", doubling.ns_a_key())
        })
        .collect();
    let highest = beyond.iter().copied().fold(0.0, f64::max);
    Claim {
        id: "rhik.3",
        claim: "resize, no command let in: time a key to double, each doubling over the last",
        paper: "rate mostly <= 1 (11 M keys 5 ms, 345 M keys 172 ms)",
        ours: format!(
            "{}, bound {:.3}; up to the first that the write buffer does not hold {} ({})",
            shown(beyond),
            rate_max(),
            shown(within),
            ends.join("; ")
        ),
        verdict: if beyond.is_empty() { Verdict::NotReproduced } else { Verdict::at_most(rate_max(), highest) },
        scale,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of doublings that write 100, 200, 400 bytes and so on.
    fn verdict(took_ns: &[u64], buffer_bytes: u64) -> Verdict {
        let doubling = |(number, &took_ns): (usize, &u64)| Doubling {
            pairs: 1000 << number,
            took_ns,
            written_bytes: 100 << number,
        };
        let doublings: Vec<Doubling> = took_ns.iter().enumerate().map(doubling).collect();
        claim(&doublings, buffer_bytes, String::new()).verdict
    }

    #[test]
    fn the_bound_is_what_the_papers_own_figures_grow_by() {
        assert!((1.018..1.020).contains(&rate_max()), "{}", rate_max());
    }

    #[test]
    fn the_time_a_key_must_not_grow_beyond_the_buffer() {
        assert_eq!(verdict(&[500, 1000, 2000], 0), Verdict::Reproduced);
        assert_eq!(verdict(&[500, 900, 1830], 0), Verdict::Reproduced);
        assert_eq!(verdict(&[500, 900, 1900], 0), Verdict::NotReproduced);
        assert_eq!(verdict(&[500, 4000, 8000], 100), Verdict::Reproduced);
        assert_eq!(verdict(&[500, 4000, 9000], 100), Verdict::NotReproduced);
        assert_eq!(verdict(&[500, 1000], 100), Verdict::NotReproduced, "nothing to judge");
    }
}
