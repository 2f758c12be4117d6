//! Misses of the index cache on traces (rhik.2). IBM's are not at hand: these are made up, with as many objects as the index of a cluster
//! of the paper has room for in its cache, or not (`cluster.rs`).

use super::cluster::ClusterTrace;
use super::{ASYNC_DEPTH, Drives, HIGHER, drawn};
use crate::claims::{Claim, Findings, Verdict, scale_name};
use kvssd_ftl::Design;
use kvssd_measure::Observer;
use kvssd_sim::replay::{ReplaySetup, Trace};
use kvssd_sim::trace::{BadLines, TraceName, TraceReader};
use kvssd_sim::{Exhausted, SimError};

/// The index of each cluster over its cache. The paper says of four of its eight that they need very little (022, 026, 052, 072), of two
/// that they need significantly more (083, 096), and names no figure; these are estimates.
const SMALL: [f64; 4] = [0.02, 0.05, 0.1, 0.2];
const ABOUT_EQUAL: [f64; 2] = [0.8, 1.2];
const LARGE: [f64; 2] = [4.0, 10.0];
/// What counts as equal, in shares of the accesses and in reads a look-up.
const EQUAL: f64 = 0.01;

/// How the cache of an index fared.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Misses {
    /// Of the accesses, the share that missed.
    ratio: f64,
    /// Flash reads of a look-up.
    reads: f64,
}

/// Of both designs.
type Pair = [Misses; 2];

impl Drives {
    pub(super) fn misses(&self, observer: &mut dyn Observer) -> Result<Findings, SimError> {
        let mut of = |sizes: &[f64]| {
            let both = |&times: &f64| self.misses_of_both(times, observer);
            sizes.iter().map(both).collect::<Result<Vec<Pair>, SimError>>()
        };
        let (small, about_equal, large) = (of(&SMALL)?, of(&ABOUT_EQUAL)?, of(&LARGE)?);
        let sizes = [&SMALL[..], &ABOUT_EQUAL, &LARGE].concat();
        let found = [&small[..], &about_equal, &large].concat();
        let shown: Vec<String> = sizes
            .iter()
            .zip(&found)
            .map(|(times, [rhik, multilevel])| {
                let ratios = format!("{:.1} / {:.1} %", rhik.ratio * 100.0, multilevel.ratio * 100.0);
                format!("{times}x {ratios} ({:.2} / {:.2})", rhik.reads, multilevel.reads)
            })
            .collect();
        let ratios = [0, 1].map(|design: usize| found.iter().map(|pair| pair[design].ratio).collect());
        let claim = Claim::new("rhik.2", shown.join("; "), verdict(&small, &large), scale_name(self.scale));
        Ok(Findings::from(claim).with([drawn::misses(&sizes, ratios)]))
    }

    fn misses_of_both(&self, times: f64, observer: &mut dyn Observer) -> Result<Pair, SimError> {
        let objects = self.records_over_cache(times);
        Ok([self.replay(&self.rhik, objects, observer)?, self.replay(&self.multilevel, objects, observer)?])
    }

    fn replay(&self, design: &Design, objects: u64, observer: &mut dyn Observer) -> Result<Misses, SimError> {
        let name = TraceName::Ibm;
        let text = ClusterTrace::new(objects, self.seed);
        let reader = TraceReader::new(text, b"", name.format(0), BadLines::Stop);
        let setup = ReplaySetup::new(design.clone(), self.profile.clone(), self.seed);
        let setup = ReplaySetup { queue_depth: ASYNC_DEPTH, ..setup };
        let report = setup.replay(Trace::once(name, reader), observer)?;
        let counts = report.trace.unwrap_or_default();
        let wrong = counts.wrong_answers + report.failed_retrieves;
        if wrong > 0 {
            return Err(SimError::WrongAnswers(wrong));
        }
        if counts.refused_full > 0 {
            let (what, design) = (Exhausted::Flash, design.name.to_owned());
            return Err(SimError::Full { what, design, stored: counts.pairs, records: objects });
        }
        let ratio = report.index.cache_hit_ratio.map_or(0.0, |hits| 1.0 - hits);
        Ok(Misses { ratio, reads: report.index.flash_reads_per_lookup_mean })
    }
}

/// The claim is about the share of accesses that miss. That of an 8-level look-up is held down by its accesses to small levels, which hit:
/// where look-ups alone show it, it is the direction.
fn verdict(small: &[Pair], large: &[Pair]) -> Verdict {
    let shows = |of: fn(&Misses) -> f64| {
        let is_equal = |[rhik, multilevel]: &Pair| (of(rhik) - of(multilevel)).abs() <= EQUAL;
        let is_higher = |[rhik, multilevel]: &Pair| of(multilevel) >= HIGHER * of(rhik) && of(multilevel) > 0.0;
        small.iter().all(is_equal) && large.iter().all(is_higher)
    };
    match (shows(|misses| misses.ratio), shows(|misses| misses.reads)) {
        (true, true) => Verdict::Reproduced,
        (_, true) => Verdict::Direction,
        _ => Verdict::NotReproduced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::{Conditions, Paper};
    use kvssd_measure::Quiet;

    fn pair(rhik: f64, multilevel: f64) -> Pair {
        [rhik, multilevel].map(|reads| Misses { ratio: reads, reads })
    }

    #[test]
    fn the_large_must_be_higher_and_the_small_equal() {
        assert_eq!(verdict(&[pair(0.0, 0.0)], &[pair(0.5, 0.6)]), Verdict::Reproduced);
        assert_eq!(verdict(&[pair(0.0, 0.0)], &[pair(0.5, 0.6), pair(0.9, 0.8)]), Verdict::NotReproduced);
        let by_look_up = [0.5, 0.6].map(|reads| Misses { ratio: 0.5, reads });
        assert_eq!(verdict(&[pair(0.0, 0.0)], &[by_look_up]), Verdict::Direction);
        assert_eq!(verdict(&[pair(0.0, 0.02)], &[pair(0.5, 0.6)]), Verdict::NotReproduced);
    }

    #[test]
    fn an_index_that_fits_its_cache_misses_nothing() {
        let conditions = Conditions { paper: Paper::Rhik, overrides: Vec::new(), scale: 1.0 / 64.0, seed: 1 };
        let drives = Drives::new(&conditions.context(&[]).unwrap()).unwrap();
        let misses = drives.replay(&drives.rhik, 1_000, &mut Quiet).unwrap();
        assert_eq!(misses, Misses { ratio: 0.0, reads: 0.0 });
    }
}
