//! How long doubling takes (rhik.3): all tables split before the next command comes in, as in the paper.

use super::{Drives, INDEX_OVER_CACHE, drawn};
use crate::claims::{Claim, Findings, Verdict, scale_name};
use kvssd_device::Device;
use kvssd_flash::RopeBacking;
use kvssd_ftl::Design;
use kvssd_measure::Observer;
use kvssd_sim::{Exhausted, SimError};
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

impl Drives {
    pub(super) fn doubling(&self, observer: &mut dyn Observer) -> Result<Findings, SimError> {
        let mut design = self.rhik.clone();
        design.set("incremental", "false")?;
        let doublings = self.doublings(&design, observer)?;
        let rates = rates(&doublings);
        let pairs: Vec<f64> = doublings.iter().skip(1).map(|doubling| doubling.pairs as f64).collect();
        let paper = (PAPER.map(|(keys, _)| keys), rate_max());
        Ok(Findings::from(claim(&doublings, scale_name(self.scale))).with([drawn::doubling(&pairs, &rates, paper)]))
    }

    /// Stores pairs one after the other on a new drive, and looks at each doubling on the way.
    fn doublings(&self, design: &Design, observer: &mut dyn Observer) -> Result<Vec<Doubling>, SimError> {
        let records = self.records_over_cache(INDEX_OVER_CACHE);
        let keys = self.setup(design, records, VALUE_BYTES, 1).pairs.keys()?;
        let mut device = Device::new(design, &self.profile, Box::new(RopeBacking::new(self.profile.geometry)))?;
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
                    let (what, design) = (Exhausted::of(device.engine().lacks()), design.name.to_owned());
                    return Err(SimError::Full { what, design, stored: record, records });
                }
                Err(other) => return Err(SimError::Drive(other)),
            }
            clock = completion.done;
            let growth = device.engine().growth_counters();
            if growth.closures > before.closures {
                // The store that waited is not among the pairs that were moved.
                let (pairs, took_ns) = (record, growth.closed_ns - before.closed_ns);
                doublings.push(Doubling { pairs, took_ns });
                before = growth;
            }
            if record.is_multiple_of(REPORT_EVERY) {
                observer.progress(record);
                if observer.is_interrupted() {
                    return Err(SimError::Interrupted);
                }
            }
        }
        Ok(doublings)
    }
}

/// The time a key of each doubling over that of the one before.
fn rates(doublings: &[Doubling]) -> Vec<f64> {
    doublings.windows(2).map(|pair| pair[1].ns_a_key() / pair[0].ns_a_key()).collect()
}

fn claim(doublings: &[Doubling], scale: String) -> Claim {
    let rates = rates(doublings);
    let shown: Vec<String> = rates.iter().map(|rate| format!("{rate:.3}")).collect();
    let ends: Vec<String> = [doublings.first(), doublings.last()]
        .into_iter()
        .flatten()
        .map(|doubling| {
            let (pairs, took_ms) = (doubling.pairs as f64 / 1e3, doubling.took_ns as f64 / 1e6);
            format!("{pairs:.0} k keys {took_ms:.1} ms, {:.0} ns a key", doubling.ns_a_key())
        })
        .collect();
    // "Mostly" at most 1: the middle one is judged, and the highest is said.
    let mut sorted = rates;
    sorted.sort_unstable_by(f64::total_cmp);
    let (median, highest) = (sorted.get(sorted.len() / 2).copied(), sorted.last().copied().unwrap_or(0.0));
    let ours = format!(
        "{}, median {:.3}, at most {highest:.3}, bound {:.3} ({})",
        shown.join(", "),
        median.unwrap_or(0.0),
        rate_max(),
        ends.join("; ")
    );
    Claim::new(
        "rhik.3",
        ours,
        median.map_or(Verdict::NotReproduced, |median| Verdict::at_most(rate_max(), median)),
        scale,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(took_ns: &[u64]) -> Verdict {
        let doubling = |(number, &took_ns): (usize, &u64)| Doubling { pairs: 1000 << number, took_ns };
        let doublings: Vec<Doubling> = took_ns.iter().enumerate().map(doubling).collect();
        claim(&doublings, String::new()).verdict
    }

    #[test]
    fn the_bound_is_what_the_papers_own_figures_grow_by() {
        assert!((1.018..1.020).contains(&rate_max()), "{}", rate_max());
    }

    #[test]
    fn the_time_a_key_must_not_grow() {
        assert_eq!(verdict(&[500, 1000, 2000]), Verdict::Reproduced);
        assert_eq!(verdict(&[500, 900, 1830]), Verdict::Reproduced);
        assert_eq!(verdict(&[500, 1900, 3800, 7600]), Verdict::Reproduced, "one of three grows");
        assert_eq!(verdict(&[500, 1900, 4000, 7600]), Verdict::NotReproduced, "two of three grow");
        assert_eq!(verdict(&[500]), Verdict::NotReproduced, "nothing to judge");
    }
}
