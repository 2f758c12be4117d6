//! Jobs side by side, the longest first: as many at once as there are cores, and as their memory fits into the machine's.

mod limits;
mod overall;

pub use self::limits::Limits;
use self::overall::{Count, Overall};
use crate::fail::Failure;
use crate::progress::Progress;
use kvssd_measure::Observer;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Something to be done.
pub struct Job<'a, T> {
    /// Operations that its observer will be told of, roughly: how long it is beside others.
    pub operations: u64,
    /// They are a guess of how long it is, and its observer is told of others: they count when it is done.
    pub is_guess: bool,
    /// What it needs of the machine's memory, at the most.
    pub memory_bytes: u64,
    /// Of what is counted, so many are done with it.
    pub items: usize,
    /// Does it.
    pub work: Work<'a, T>,
}

/// What is done, watched by an observer.
pub type Work<'a, T> = Box<dyn FnOnce(&mut dyn Observer) -> Result<T, Failure> + Send + 'a>;

/// Does all jobs; gives what came of them in their order, or the failure of the first of them that fails: what others do is ended
/// then, except for those before it. Who watches is told how many of `what` are done and how long the others will take.
pub fn run<T: Send>(jobs: Vec<Job<'_, T>>, limits: &Limits, what: &'static str) -> Result<Vec<T>, Failure> {
    run_each(jobs, limits, what).into_iter().map(|(_, result)| result).collect()
}

/// As [`run`]; gives what came of each job that was begun, with its number.
pub fn run_each<T: Send>(
    jobs: Vec<Job<'_, T>>,
    limits: &Limits,
    what: &'static str,
) -> Vec<(usize, Result<T, Failure>)> {
    let cores = limits.cores.min(jobs.len());
    let overall = Overall::new(what, &jobs, cores);
    let queue = Queue::new(jobs, limits.memory_bytes);
    let done = Mutex::new(Vec::new());
    let work = || {
        while let Some(Taken { number, work, memory: _memory, operations, items }) = queue.take() {
            let progress = Progress::among(overall.bars());
            let count = overall.count(operations, items);
            let mut observer = Watched { progress, count, number, first_failed: &queue.first_failed };
            let result = work(&mut observer);
            match &result {
                Ok(_) => observer.count.end(),
                Err(_) => _ = queue.first_failed.fetch_min(number, Ordering::Relaxed),
            }
            lock(&done).push((number, result));
        }
    };
    thread::scope(|scope| {
        // Where the machine gives fewer threads, this one works too.
        let spawn = || thread::Builder::new().spawn_scoped(scope, work);
        let workers: Vec<_> = (0..cores).map_while(|_| spawn().ok()).collect();
        if workers.len() < cores {
            work();
        }
        for worker in workers {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done
}

/// The jobs that nobody does yet.
struct Queue<'a, T> {
    state: Mutex<State<'a, T>>,
    /// Memory was given back.
    freed: Condvar,
    /// The number of the first job that failed, of those that were done.
    first_failed: AtomicUsize,
}

struct State<'a, T> {
    /// With their numbers, the longest last.
    left: Vec<(usize, Job<'a, T>)>,
    free_bytes: u64,
    running: usize,
}

/// A job that somebody does.
struct Taken<'q, 'a, T> {
    number: usize,
    operations: u64,
    items: usize,
    work: Work<'a, T>,
    memory: Memory<'q, 'a, T>,
}

/// Memory that a job has, until this is dropped: also by a panic, or the others would wait for ever.
struct Memory<'q, 'a, T> {
    queue: &'q Queue<'a, T>,
    bytes: u64,
}

impl<'a, T> Queue<'a, T> {
    fn new(jobs: Vec<Job<'a, T>>, free_bytes: u64) -> Self {
        let mut left: Vec<_> = jobs.into_iter().enumerate().collect();
        // Of jobs that are as long, the first is done first.
        left.sort_by_key(|(number, job)| (job.operations, usize::MAX - number));
        let state = Mutex::new(State { left, free_bytes, running: 0 });
        Queue { state, freed: Condvar::new(), first_failed: AtomicUsize::new(usize::MAX) }
    }

    /// The longest job that fits into the memory that is left; one that never will is done alone.
    fn take(&self) -> Option<Taken<'_, 'a, T>> {
        let mut state = lock(&self.state);
        loop {
            let first_failed = self.first_failed.load(Ordering::Relaxed);
            state.left.retain(|(number, _)| *number < first_failed);
            if state.left.is_empty() {
                return None;
            }
            let fits = state.left.iter().rposition(|(_, job)| job.memory_bytes <= state.free_bytes);
            if let Some(position) = fits.or((state.running == 0).then(|| state.left.len() - 1)) {
                let (number, Job { operations, memory_bytes, items, work, .. }) = state.left.remove(position);
                let bytes = memory_bytes.min(state.free_bytes);
                state.free_bytes -= bytes;
                state.running += 1;
                return Some(Taken { number, operations, items, work, memory: Memory { queue: self, bytes } });
            }
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<T> Drop for Memory<'_, '_, T> {
    fn drop(&mut self) {
        let mut state = lock(&self.queue.state);
        state.free_bytes += self.bytes;
        state.running -= 1;
        self.queue.freed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows a job, counts its operations, and ends it when one before it has failed.
struct Watched<'a> {
    progress: Progress,
    count: Count<'a>,
    number: usize,
    first_failed: &'a AtomicUsize,
}

impl Observer for Watched<'_> {
    fn begin(&mut self, phase: &str, total: u64) {
        self.progress.begin(phase, total);
        self.count.begin();
    }

    fn progress(&mut self, done: u64) {
        self.progress.progress(done);
        self.count.progress(done);
    }

    fn item_done(&mut self) {
        self.count.item_done();
    }

    fn is_interrupted(&self) -> bool {
        self.progress.is_interrupted() || self.first_failed.load(Ordering::Relaxed) < self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_sim::SimError;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    fn job<'a, T>(operations: u64, memory_bytes: u64, work: impl FnOnce() -> T + Send + 'a) -> Job<'a, T> {
        Job { operations, is_guess: false, memory_bytes, items: 1, work: Box::new(move |_| Ok(work())) }
    }

    #[test]
    fn what_comes_of_jobs_is_in_their_order_and_the_longest_begins_first() {
        let begun = Mutex::new(Vec::new());
        let begin = |operations| lock(&begun).push(operations);
        let jobs = [3, 1, 4, 1, 5].map(|operations| job(operations, 0, move || begin(operations)));
        let limits = Limits { cores: 1, memory_bytes: 0 };
        run(jobs.into(), &limits, "jobs").unwrap();
        assert_eq!(*lock(&begun), [5, 4, 3, 1, 1]);
        let jobs = (0..100).map(|number| job(number % 7, 0, move || number)).collect();
        assert_eq!(run(jobs, &Limits { cores: 4, ..limits }, "jobs").unwrap(), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn memory_bounds_what_runs_at_once_and_the_largest_runs_alone() {
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let work = |bytes: u64| {
            let (now, most) = (&now, &most);
            move || {
                most.fetch_max(now.fetch_add(bytes, Ordering::Relaxed) + bytes, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(2));
                now.fetch_sub(bytes, Ordering::Relaxed);
            }
        };
        let limits = Limits { cores: 8, memory_bytes: 10 };
        let jobs = (0..50).map(|number| 1 + number % 5).map(|bytes| job(bytes, bytes, work(bytes))).collect();
        run(jobs, &limits, "jobs").unwrap();
        assert!((6..=10).contains(&most.load(Ordering::Relaxed)), "{most:?}");
        let jobs = [4, 25, 3].map(|bytes| job(bytes, bytes, work(bytes)));
        run(jobs.into(), &limits, "jobs").unwrap();
        assert_eq!(most.load(Ordering::Relaxed), 25);
    }

    #[test]
    fn the_first_job_that_fails_is_what_is_said_whoever_fails_sooner() {
        let fails = |millis: u64, why: &'static str| -> Work<'_, ()> {
            Box::new(move |_| {
                thread::sleep(Duration::from_millis(millis));
                Err(Failure::Sim(SimError::Setup(why.to_owned())))
            })
        };
        let waits = |observer: &mut dyn Observer| {
            while !observer.is_interrupted() {
                thread::sleep(Duration::from_millis(1));
            }
            Err(Failure::Sim(SimError::Interrupted))
        };
        let works = vec![
            Box::new(|_: &mut dyn Observer| Ok(())) as Work<'_, ()>,
            fails(20, "first"),
            fails(0, "second"),
            Box::new(waits),
        ];
        let jobs = works
            .into_iter()
            .map(|work| Job { operations: 1, is_guess: false, memory_bytes: 0, items: 1, work })
            .collect();
        let why = run(jobs, &Limits { cores: 4, memory_bytes: 0 }, "jobs").unwrap_err().to_string();
        assert_eq!(why, "first");
    }
}
