//! What several tests begin with or look at: whoever comes first makes it.

use kvssd_measure::Quiet;
use kvssd_sim::{Bench, Experiment, Filled, Filling, RunReport};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// Things by what decides them.
pub struct Once<K, T>(Mutex<BTreeMap<K, Arc<OnceLock<T>>>>);

impl<K: Ord, T: Clone> Once<K, T> {
    pub const fn new() -> Self {
        Once(Mutex::new(BTreeMap::new()))
    }

    pub fn get(&self, key: K, make: impl FnOnce() -> T) -> T {
        let one = self.0.lock().unwrap().entry(key).or_default().clone();
        one.get_or_init(make).clone()
    }
}

/// The experiment of a bench of one design, and its drive, which is filled once for all that fill it so.
pub fn filled(bench: &Bench) -> (Experiment, Filled) {
    static FILLED: Once<Filling, Arc<Mutex<Filled>>> = Once::new();
    let experiment = bench.experiments(Experiment::check).unwrap().remove(0);
    let fill = || {
        Arc::new(Mutex::new(
            experiment.fill(&mut Quiet).unwrap_or_else(|error| panic!("{}: {error}", experiment.design_name())),
        ))
    };
    let filled = FILLED.get(experiment.filling(), fill);
    let filled = filled.lock().unwrap().snapshot();
    (experiment, filled)
}

/// Its report.
pub fn run(bench: &Bench) -> RunReport {
    let (experiment, filled) = filled(bench);
    experiment
        .run_on(filled, &mut Quiet)
        .unwrap_or_else(|error| panic!("{}: {error}", experiment.design_name()))
        .remove(0)
}
