//! Write bandwidth while the index grows beyond its cache (rhik.9).

use super::{ASYNC_DEPTH, Drives, HIGHER, drawn};
use crate::claims::{Claim, Findings, Verdict, scale_name};
use kvssd_ftl::Design;
use kvssd_measure::Observer;
use kvssd_sim::{Session, SimError};

/// Bytes of a value. The paper's figure 2 names keys only: an estimate, so small that so many keys fit.
const VALUE_BYTES: u32 = 64;
/// The index grows to so many times its cache, where it outgrew it long ago.
const INDEX_OVER_CACHE: f64 = 10.0;
/// The pairs are stored in so many parts, each of which is a point of the figure.
const PARTS: u64 = 8;
/// What counts as no drop: the 20 % of the house.
const KEPT: f64 = 0.8;

impl Drives {
    pub(super) fn growing(&self, observer: &mut dyn Observer) -> Result<Findings, SimError> {
        let [rhik, multilevel] = self.both();
        let rates = [self.rates_of_growth(rhik, observer)?, self.rates_of_growth(multilevel, observer)?];
        let left = rates.each_ref().map(|rates| rates[rates.len() - 1] / rates[0]);
        let shown = self.both().into_iter().zip(&rates).zip(left).map(|((design, rates), left)| {
            let rates: Vec<String> = rates.iter().map(|rate| format!("{:.0}", rate / 1e3)).collect();
            format!("{} {} k/s, {left:.2}x", design.name, rates.join(", "))
        });
        let holds = left[0] >= KEPT && left[1] < KEPT && left[0] >= HIGHER * left[1];
        let claim =
            Claim::new("rhik.9", shown.collect::<Vec<_>>().join("; "), Verdict::if_true(holds), scale_name(self.scale));
        let pairs: Vec<f64> = (1..=PARTS).map(|part| (part * self.part_of_growth()) as f64).collect();
        Ok(Findings::from(claim).with([drawn::growing(&pairs, &rates)]))
    }

    /// Pairs of each part.
    fn part_of_growth(&self) -> u64 {
        self.records_over_cache(INDEX_OVER_CACHE) / PARTS
    }

    /// Stores a second in each part.
    fn rates_of_growth(&self, design: &Design, observer: &mut dyn Observer) -> Result<Vec<f64>, SimError> {
        let records = self.part_of_growth();
        let mut session = Session::new(&self.setup(design, records * PARTS, VALUE_BYTES, ASYNC_DEPTH), 0)?;
        let part = |_| {
            let before = session.clock();
            session.fill_more(records, observer)?;
            Ok(records as f64 / (session.clock() - before).as_seconds())
        };
        (0..PARTS).map(part).collect()
    }
}
