//! Experiments side by side, the longest first.

use super::kept::Kept;
use crate::fail::Failure;
use crate::output::say;
use crate::progress::Progress;
use indicatif::MultiProgress;
use kvssd_measure::Observer;
use kvssd_papers::claims::{Conditions, Experiment, Findings};
use kvssd_sim::SimError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// An experiment that is to be run.
pub struct Job {
    pub experiment: &'static Experiment,
    pub conditions: Conditions,
}

/// What became of one.
pub struct Found {
    pub ids: &'static [&'static str],
    pub findings: Findings,
    /// How long it took, now or when it was run.
    pub seconds: f64,
}

impl Job {
    /// What it takes, roughly.
    fn seconds(&self) -> f64 {
        let Conditions { paper, scale, .. } = &self.conditions;
        f64::from(self.experiment.seconds) * (scale / paper.default_scale()).max(0.1)
    }
}

/// Runs them on all cores, but those that were kept; gives what was found in the order of the jobs.
pub fn run(jobs: Vec<Job>, kept: Option<&Kept>) -> Result<Vec<Found>, Failure> {
    let (mut found, mut left) = (Vec::new(), Vec::new());
    for (number, job) in jobs.into_iter().enumerate() {
        match kept.and_then(|kept| kept.found(&job)) {
            Some(known) => found.push((number, known)),
            None => left.push((number, job)),
        }
    }
    left.sort_by(|(_, one), (_, other)| one.seconds().total_cmp(&other.seconds()));
    let cores = thread::available_parallelism().map_or(1, usize::from).min(left.len());
    announce(&left, found.len(), cores);
    let (queue, done) = (Mutex::new(left), Mutex::new(found));
    let has_failed = AtomicBool::new(false);
    let bars = MultiProgress::new();
    let work = || -> Result<(), Failure> {
        let mut progress = Until { progress: Progress::among(&bars), has_failed: &has_failed };
        while let Some((number, job)) = pop(&queue).filter(|_| !has_failed.load(Ordering::Relaxed)) {
            let started = Instant::now();
            let findings = job.experiment.run(&job.conditions, &mut progress)?;
            let found = Found { ids: job.experiment.ids, findings, seconds: started.elapsed().as_secs_f64() };
            kept.map_or(Ok(()), |kept| kept.keep(&job, &found))?;
            // What is read back may differ in the last digit of a number: it is what the next run will give, too.
            let found = kept.and_then(|kept| kept.found(&job)).unwrap_or(found);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, found));
        }
        Ok(())
    };
    let work = || work().inspect_err(|_| has_failed.store(true, Ordering::Relaxed));
    let worked: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let ends = workers.into_iter().map(thread::ScopedJoinHandle::join);
        ends.map(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    // That the others were told to end is not why.
    let (interrupted, failed): (Vec<_>, Vec<_>) = worked
        .into_iter()
        .filter_map(Result::err)
        .partition(|failure| matches!(failure, Failure::Sim(SimError::Interrupted)));
    if let Some(failure) = failed.into_iter().chain(interrupted).next() {
        return Err(failure);
    }
    let mut found = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(number, _)| *number);
    Ok(found.into_iter().map(|(_, found)| found).collect())
}

/// A progress that ends when another worker has failed.
struct Until<'a> {
    progress: Progress,
    has_failed: &'a AtomicBool,
}

impl Observer for Until<'_> {
    fn begin(&mut self, phase: &str, total: u64) {
        self.progress.begin(phase, total);
    }

    fn progress(&mut self, done: u64) {
        self.progress.progress(done);
    }

    fn is_interrupted(&self) -> bool {
        self.progress.is_interrupted() || self.has_failed.load(Ordering::Relaxed)
    }
}

fn pop(queue: &Mutex<Vec<(usize, Job)>>) -> Option<(usize, Job)> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// Says how long it will take.
fn announce(left: &[(usize, Job)], found: usize, cores: usize) {
    let seconds = || left.iter().map(|(_, job)| job.seconds());
    let minutes = (seconds().sum::<f64>() / cores.max(1) as f64).max(seconds().fold(0.0, f64::max)) / 60.0;
    let known = if found == 0 { String::new() } else { format!(", {found} were run before") };
    if !left.is_empty() {
        let experiments =
            if left.len() == 1 { "1 experiment".to_owned() } else { format!("{} experiments", left.len()) };
        say(&format!("{experiments}, {cores} at once, about {:.0} min{known}", minutes.ceil()));
    }
}
