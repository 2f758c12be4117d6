//! Experiments side by side, the longest first.

use super::kept::Kept;
use crate::fail::Failure;
use crate::output::say;
use crate::progress::Progress;
use indicatif::MultiProgress;
use kvssd_papers::claims::{Conditions, Experiment, Findings};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Runs them on all cores; takes what was kept.
pub fn run(jobs: Vec<Job>, kept: Option<&Kept>) -> Result<Vec<Found>, Failure> {
    let (mut found, mut left) = (Vec::new(), Vec::new());
    for job in jobs {
        match kept.and_then(|kept| kept.found(&job)) {
            Some(known) => found.push(known),
            None => left.push(job),
        }
    }
    left.sort_by(|one, other| one.seconds().total_cmp(&other.seconds()));
    let cores = thread::available_parallelism().map_or(1, usize::from).min(left.len());
    announce(&left, found.len(), cores);
    let (queue, done) = (Mutex::new(left), Mutex::new(Vec::new()));
    let has_failed = AtomicBool::new(false);
    let bars = MultiProgress::new();
    let work = || -> Result<(), Failure> {
        let mut progress = Progress::among(&bars);
        while let Some(job) = pop(&queue).filter(|_| !has_failed.load(Ordering::Relaxed)) {
            let started = Instant::now();
            let run = job.experiment.run(&job.conditions, &mut progress);
            let findings = run.inspect_err(|_| has_failed.store(true, Ordering::Relaxed))?;
            let found = Found { ids: job.experiment.ids, findings, seconds: started.elapsed().as_secs_f64() };
            if let Some(kept) = kept {
                kept.keep(&job, &found)?;
            }
            done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(found);
        }
        Ok(())
    };
    let worked: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    worked.into_iter().collect::<Result<(), Failure>>()?;
    found.extend(done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()));
    Ok(found)
}

fn pop(queue: &Mutex<Vec<Job>>) -> Option<Job> {
    queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop()
}

/// Says how long it will take.
fn announce(left: &[Job], found: usize, cores: usize) {
    let (sum, longest) = left
        .iter()
        .map(Job::seconds)
        .fold((0.0, 0.0f64), |(sum, longest), seconds| (sum + seconds, longest.max(seconds)));
    let minutes = (sum / cores.max(1) as f64).max(longest) / 60.0;
    let known = if found == 0 { String::new() } else { format!(", {found} were run before") };
    if !left.is_empty() {
        let experiments =
            if left.len() == 1 { "1 experiment".to_owned() } else { format!("{} experiments", left.len()) };
        say(&format!("{experiments}, {cores} at once, about {:.0} min{known}", minutes.ceil()));
    }
}
