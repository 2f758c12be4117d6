//! All jobs together: how many are done, and how long the others will take. A bar on a terminal, elsewhere a line now and then.

use super::Job;
use crate::output::{is_quiet, note, time};
use crate::progress::{LINE_EVERY, bar, time_left};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Who counts all jobs.
pub struct Overall {
    /// What is counted.
    what: &'static str,
    items: usize,
    items_done: AtomicUsize,
    operations: u64,
    operations_done: AtomicU64,
    /// Operations are guesses: only jobs that ended tell how long others will take.
    is_guess: bool,
    /// What the jobs took that are done, all together.
    took_ns: AtomicU64,
    cores: usize,
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
        let is_guess = jobs.iter().any(|job| job.is_guess);
        if is_guess && let Ok(style) = ProgressStyle::with_template("{msg:<24} {bar:40} {percent:>3} %") {
            bar.set_style(style);
        }
        let last_line = (!stderr().is_terminal()).then_some(Mutex::new(started));
        let (items_done, operations_done, took_ns) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Overall {
            what,
            items,
            items_done,
            operations,
            operations_done,
            is_guess,
            took_ns,
            cores,
            started,
            last_line,
            bars,
            bar,
        }
    }

    /// The bars, of all jobs and of those that run.
    pub fn bars(&self) -> &MultiProgress {
        &self.bars
    }

    /// Begins to count a job of so many operations.
    pub fn count(&self, operations: u64, items: usize) -> Count<'_> {
        Count { overall: self, operations, begun: Instant::now(), items, of_phases: 0, done: 0 }
    }

    /// How long the others will take, in words, once that is known. All cores have worked since the start, on what is done and on
    /// what is not.
    fn left(&self, done: u64) -> Option<String> {
        if done == 0 || !self.is_guess {
            return (done > 0).then(|| time_left(self.started, done, self.operations));
        }
        let took = Duration::from_nanos(self.took_ns.load(Ordering::Relaxed));
        let all = took.mul_f64(self.operations as f64 / done as f64 / self.cores.max(1) as f64);
        all.checked_sub(self.started.elapsed()).map(time)
    }

    fn add(&self, operations: u64) {
        let done = self.operations_done.fetch_add(operations, Ordering::Relaxed) + operations;
        let (what, items_done) = (self.what, self.items_done.load(Ordering::Relaxed));
        self.bar.set_position(done);
        self.bar.set_message(format!("{items_done} of {} {what}", self.items));
        let Some(last_line) = &self.last_line else { return };
        let mut last_line = last_line.lock().unwrap_or_else(PoisonError::into_inner);
        if last_line.elapsed() >= LINE_EVERY {
            *last_line = Instant::now();
            let left = self.left(done).map(|left| format!(", about {left} left")).unwrap_or_default();
            note(&format!("{items_done} of {} {what} done{left}", self.items));
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
    begun: Instant,
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

    /// So many of the phase are done. Of a guess nothing counts before all is done.
    pub fn progress(&mut self, of_phase: u64) {
        self.done_until(if self.overall.is_guess { 0 } else { self.of_phases.saturating_add(of_phase) });
    }

    fn done_until(&mut self, done: u64) {
        let done = done.clamp(self.done, self.operations);
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
        self.overall.took_ns.fetch_add(self.begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.done_until(self.operations);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    #[test]
    fn how_long_guesses_take_is_known_from_those_that_are_done() {
        let job =
            |operations| Job { operations, is_guess: true, memory_bytes: 0, items: 1, work: Box::new(|_| Ok(())) };
        let overall = Overall::new("jobs", &[job(1000), job(9000)], 1);
        let left = || overall.left(overall.operations_done.load(Ordering::Relaxed));
        let mut first = overall.count(1000, 1);
        first.begin();
        // It tells of far more than was guessed, and is not done.
        first.progress(1_000_000);
        assert_eq!(left(), None);
        sleep(Duration::from_millis(500));
        first.end();
        let took_s = overall.started.elapsed().as_secs();
        let seconds: u64 = left().unwrap().strip_suffix(" s").unwrap().parse().unwrap();
        assert!((3..10 * (took_s + 1)).contains(&seconds), "nine times what the first has taken: {seconds} s");
    }
}
