//! All jobs together: how many are done, and how long the others will take. A bar on a terminal, elsewhere a line now and then.

use super::Job;
use crate::output::{is_quiet, note};
use crate::progress::{LINE_EVERY, bar, time_left};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Who counts all jobs.
pub struct Overall {
    /// What is counted.
    what: &'static str,
    items: usize,
    items_done: AtomicUsize,
    operations: u64,
    operations_done: AtomicU64,
    started: Instant,
    /// When the last line was printed; none on a terminal.
    last_line: Option<Mutex<Instant>>,
    bars: MultiProgress,
    bar: ProgressBar,
}

impl Overall {
    /// Of jobs, counted as `what`. They have a bar of their own beside those of each if they are more than are done at once.
    pub fn new<T>(what: &'static str, jobs: &[Job<'_, T>], cores: usize) -> Self {
        let operations = jobs.iter().map(|job| job.operations).sum();
        let items = jobs.iter().map(|job| job.items).sum();
        let bars = if is_quiet() {
            MultiProgress::with_draw_target(ProgressDrawTarget::hidden())
        } else {
            MultiProgress::new()
        };
        let started = Instant::now();
        let bar = match jobs.len() > cores {
            true => bar(operations, &format!("0 of {items} {what}"), Some(&bars)),
            false => ProgressBar::hidden(),
        };
        let last_line = (!stderr().is_terminal()).then_some(Mutex::new(started));
        let (items_done, operations_done) = (AtomicUsize::new(0), AtomicU64::new(0));
        Overall { what, items, items_done, operations, operations_done, started, last_line, bars, bar }
    }

    /// The bars, of all jobs and of those that run.
    pub fn bars(&self) -> &MultiProgress {
        &self.bars
    }

    /// Begins to count a job of so many operations.
    pub fn count(&self, operations: u64, items: usize) -> Count<'_> {
        Count { overall: self, operations, items, of_phases: 0, done: 0 }
    }

    fn add(&self, operations: u64) {
        let done = self.operations_done.fetch_add(operations, Ordering::Relaxed) + operations;
        let (what, items_done) = (self.what, self.items_done.load(Ordering::Relaxed));
        self.bar.set_position(done);
        self.bar.set_message(format!("{items_done} of {} {what}", self.items));
        let Some(last_line) = &self.last_line else { return };
        let mut last_line = last_line.lock().unwrap_or_else(PoisonError::into_inner);
        if last_line.elapsed() >= LINE_EVERY && done > 0 {
            *last_line = Instant::now();
            let left = time_left(self.started, done, self.operations);
            note(&format!("{items_done} of {} {what} done, about {left} left", self.items));
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
    /// Those that are not done.
    items: usize,
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

    /// One of its items is done.
    pub fn item_done(&mut self) {
        let items = self.items.min(1);
        self.items -= items;
        self.overall.items_done.fetch_add(items, Ordering::Relaxed);
    }

    /// The job is done.
    pub fn end(&mut self) {
        self.overall.items_done.fetch_add(std::mem::take(&mut self.items), Ordering::Relaxed);
        self.progress(u64::MAX);
    }
}
