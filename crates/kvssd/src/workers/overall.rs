//! All jobs together: how many are done, and how long the others will take. A bar on a terminal, elsewhere a line now and then.

use crate::output::{say, time};
use crate::progress::bar;
use indicatif::{MultiProgress, ProgressBar};
use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a line is said.
const LINE_EVERY: Duration = Duration::from_secs(20);

/// Who counts all jobs.
pub struct Overall {
    /// What is counted; nobody is told if it has no name.
    what: Option<&'static str>,
    jobs: usize,
    jobs_done: AtomicU64,
    operations: u64,
    operations_done: AtomicU64,
    started: Instant,
    /// When the last line was said; none on a terminal.
    said: Option<Mutex<Instant>>,
    bars: MultiProgress,
    bar: ProgressBar,
}

impl Overall {
    pub fn new(what: Option<&'static str>, jobs: usize, operations: u64) -> Self {
        let (bars, started) = (MultiProgress::new(), Instant::now());
        let bar = match what {
            Some(what) => bar(operations, &format!("0 of {jobs} {what}"), Some(&bars)),
            None => ProgressBar::hidden(),
        };
        let said = (!stderr().is_terminal()).then_some(Mutex::new(started));
        let (jobs_done, operations_done) = (AtomicU64::new(0), AtomicU64::new(0));
        Overall { what, jobs, jobs_done, operations, operations_done, started, said, bars, bar }
    }

    /// The bars, of all jobs and of those that run.
    pub fn bars(&self) -> &MultiProgress {
        &self.bars
    }

    /// Begins to count a job of so many operations.
    pub fn count(&self, operations: u64) -> Count<'_> {
        Count { overall: self, operations, of_phases: 0, done: 0 }
    }

    fn add(&self, operations: u64) {
        let done = self.operations_done.fetch_add(operations, Ordering::Relaxed) + operations;
        let (Some(what), jobs_done) = (self.what, self.jobs_done.load(Ordering::Relaxed)) else { return };
        self.bar.set_position(done);
        self.bar.set_message(format!("{jobs_done} of {} {what}", self.jobs));
        let Some(said) = &self.said else { return };
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.elapsed() >= LINE_EVERY && done > 0 {
            *said = Instant::now();
            let left = self.operations.saturating_sub(done) as f64 / done as f64;
            let left = time(self.started.elapsed().mul_f64(left));
            say(&format!("{jobs_done} of {} {what} done, about {left} left", self.jobs));
        }
    }
}

impl Drop for Overall {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The operations of one job.
pub struct Count<'a> {
    overall: &'a Overall,
    operations: u64,
    /// Of the phases that ended.
    of_phases: u64,
    /// Those that were counted.
    done: u64,
}

impl Count<'_> {
    /// A phase begins.
    pub fn begin(&mut self) {
        self.of_phases = self.done;
    }

    /// So many of the phase are done.
    pub fn progress(&mut self, of_phase: u64) {
        let done = self.of_phases.saturating_add(of_phase).clamp(self.done, self.operations);
        self.overall.add(done - self.done);
        self.done = done;
    }

    /// The job is done.
    pub fn end(&mut self) {
        self.overall.jobs_done.fetch_add(1, Ordering::Relaxed);
        self.progress(u64::MAX);
    }
}
