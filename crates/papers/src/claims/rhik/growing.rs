//! Write bandwidth while the index grows beyond its cache (rhik.9).

use super::{ASYNC_DEPTH, Drives, HIGHER};
use crate::claims::{Claim, Verdict, scale_name};
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
    pub(super) fn growing(&self, observer: &mut dyn Observer) -> Result<Claim, SimError> {
        let mut left = [0.0; 2];
        let mut shown = Vec::new();
        for (left, design) in left.iter_mut().zip(self.both()) {
            let rates = self.rates_of_growth(design, observer)?;
            *left = rates[rates.len() - 1] / rates[0];
            let rates: Vec<String> = rates.iter().map(|rate| format!("{:.0}", rate / 1e3)).collect();
            shown.push(format!("{} {} k/s, {:.2}x", design.name, rates.join(", "), *left));
        }
        let holds = left[0] >= KEPT && left[1] < KEPT && left[0] >= HIGHER * left[1];
        Ok(Claim::new(
            "rhik.9",
            "stores a second while the index grows to 10x its cache, in eight parts, the last over the first: rhik, multi-level",
            "rhik stays; the multi-level drive drops",
            shown.join("; "),
            Verdict::if_true(holds),
            scale_name(self.scale),
        ))
    }

    /// Stores a second in each part.
    fn rates_of_growth(&self, design: &Design, observer: &mut dyn Observer) -> Result<Vec<f64>, SimError> {
        let records = self.records_over_cache(INDEX_OVER_CACHE) / PARTS * PARTS;
        let mut session = Session::new(&self.setup(design, records, VALUE_BYTES, ASYNC_DEPTH), 0)?;
        let part = |_| {
            let before = session.clock();
            session.fill_more(records / PARTS, observer)?;
            Ok((records / PARTS) as f64 / (session.clock() - before).as_seconds())
        };
        (0..PARTS).map(part).collect()
    }
}
