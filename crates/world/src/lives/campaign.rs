//! Many drives, on as many threads as are given: each lives alone, so that which thread has it does not matter.

use super::report::{Loss, Report};
use super::scenario::Scenario;
use super::words_of;
use kvssd_ftl::Design;
use serde::Serialize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A row that has lost so much need not go on.
const LOSSES_MAX: usize = 5;
/// How often is looked at what has been done.
const LOOK: Duration = Duration::from_millis(100);

/// Scenarios, each with each design, each with each seed.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// What happens.
    pub scenarios: Vec<Scenario>,
    /// The firmware.
    pub designs: Vec<Design>,
    /// The drives.
    pub seeds: Range<u64>,
    /// Threads.
    pub jobs: usize,
}

/// What the drives of a design have come to in a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The scenario.
    pub scenario: &'static str,
    /// The firmware.
    pub design: String,
    /// What was seen.
    pub report: Report,
    /// Seconds of all threads together.
    pub seconds: f64,
    /// What was lost: must be nothing.
    pub losses: Vec<Loss>,
}

impl Campaign {
    /// Drives there are.
    #[must_use]
    pub fn drives(&self) -> u64 {
        (self.rows() as u64).saturating_mul(self.seeds.end.saturating_sub(self.seeds.start))
    }

    fn rows(&self) -> usize {
        self.scenarios.len() * self.designs.len()
    }

    /// Lets all of them live. `watch` is told now and then how many have, and says whether to go on.
    pub fn run(&self, mut watch: impl FnMut(u64) -> bool) -> Vec<Row> {
        let rows = self.scenarios.iter().flat_map(|scenario| {
            let row = |design: &Design| Row {
                scenario: scenario.name,
                design: design.name.to_owned(),
                report: Report::default(),
                seconds: 0.0,
                losses: Vec::new(),
            };
            self.designs.iter().map(row)
        });
        let rows: Vec<Mutex<Row>> = rows.map(Mutex::new).collect();
        let (next, done, is_over) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            while !is_over.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number as u64 >= self.drives() {
                    return;
                }
                // Rows take turns, so that each has had its share when somebody ends it early.
                let (row, seed) = (number % rows.len(), self.seeds.start + (number / rows.len()) as u64);
                self.live(row, seed, &rows[row]);
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..self.jobs).map(|_| scope.spawn(work)).collect();
            while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
                if !watch(done.load(Ordering::Relaxed) as u64) {
                    is_over.store(true, Ordering::Relaxed);
                }
                thread::sleep(LOOK);
            }
        });
        rows.into_iter().map(|row| row.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    fn live(&self, number: usize, seed: u64, row: &Mutex<Row>) {
        let lock = || row.lock().unwrap_or_else(PoisonError::into_inner);
        if lock().losses.len() >= LOSSES_MAX {
            return;
        }
        let (scenario, design) =
            (&self.scenarios[number / self.designs.len()], &self.designs[number % self.designs.len()]);
        let (begun, mut report) = (Instant::now(), Report::default());
        let lived = catch_unwind(AssertUnwindSafe(|| (scenario.run)(design, seed, &mut report)));
        let lived = lived.unwrap_or_else(|panic| {
            let what = format!("panic: {}", words_of(&*panic));
            Err(Loss { seed, life: report.lives, what, history: Vec::new() })
        });
        let mut row = lock();
        row.report += report;
        row.seconds += begun.elapsed().as_secs_f64();
        row.losses.extend(lived.err());
    }
}
