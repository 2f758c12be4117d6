//! Group commit: threads that wait for the disk at the same time wait once.
//!
//! ```text
//!   thread 1   execute -> ticket 1, leads: | yields to others   | commit, all up to ticket 3 |
//!   thread 2        execute -> ticket 2, waits ................................................| safe
//!   thread 3            execute -> ticket 3, waits ...........................................| safe
//!   thread 4                                                      waits for the drive |  execute -> ticket 4, leads: ...
//! ```
//!
//! A leader yields to threads that are about to execute, and to those that the last commit released: a thread that writes usually writes again.
//! Without that, threads would split into two groups, each of which waits for a commit of the other. It waits no longer than a commit
//! takes, and not where others want the core.

use crate::Error;
use kvssd_runtime::sync::atomic::{AtomicUsize, Ordering};
use kvssd_runtime::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use kvssd_runtime::time::{Duration, Instant};
use kvssd_runtime::{Doubt, thread};

/// How often a leader yields to threads that are about to execute, or may come again. They execute within a few yields or not soon; threads
/// that do not come cost the leader some 50 us once.
const YIELDS_MAX: usize = 256;

/// The commits of a drive, and the threads that wait for them.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    state: Mutex<State>,
    changed: Condvar,
    /// Threads that are about to execute a change.
    announced: AtomicUsize,
    /// Threads that the last commit released, minus those that have announced a change since.
    returning: AtomicUsize,
    /// Of the leaders.
    known: Mutex<Known>,
}

/// What leaders know of the commits before.
#[derive(Debug, Default)]
struct Known {
    commit_took: Duration,
    /// Whether others want the core.
    doubt: Doubt,
}

#[derive(Debug, Default)]
struct State {
    /// The last ticket that is committed.
    committed: u64,
    is_led: bool,
    /// Threads that wait for the one that leads.
    waiting: usize,
    failure: Option<Error>,
}

/// A thread that is about to execute a change.
pub(crate) struct Announced<'a>(&'a AtomicUsize);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A thread that commits for all. Dropping it notifies the threads that wait, also after a panic.
struct Lead<'a> {
    commits: &'a Commits,
    /// `None` after a panic.
    committed: Option<Result<u64, Error>>,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut state = self.commits.lock();
        state.is_led = false;
        self.commits.returning.store(state.waiting + 1, Ordering::Relaxed);
        match self.committed.take() {
            Some(Ok(last)) => state.committed = state.committed.max(last),
            Some(Err(error)) => state.failure = Some(error),
            None => state.failure = Some(Error::Failed { why: "a thread panicked while it committed".to_owned() }),
        }
        self.commits.changed.notify_all();
    }
}

impl Commits {
    /// Announces a change, until the guard is dropped.
    pub(crate) fn announce(&self) -> Announced<'_> {
        self.announced.fetch_add(1, Ordering::Relaxed);
        // The count stays at 0.
        let _ = self.returning.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |threads| threads.checked_sub(1));
        Announced(&self.announced)
    }

    /// Returns when the change with that ticket is committed. If no thread commits, this one calls `commit`, which
    /// returns the last ticket that it covers.
    pub(crate) fn wait(&self, ticket: u64, commit: impl Fn() -> Result<u64, Error>) -> Result<(), Error> {
        let mut state = self.lock();
        loop {
            if state.committed >= ticket {
                return Ok(());
            }
            if let Some(error) = &state.failure {
                return Err(error.clone());
            }
            if state.is_led {
                state.waiting += 1;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.waiting -= 1;
                continue;
            }
            state.is_led = true;
            drop(state);
            let mut lead = Lead { commits: self, committed: None };
            lead.committed = Some(self.commit_for_all(&commit));
            drop(lead);
            state = self.lock();
        }
    }

    fn commit_for_all(&self, commit: impl Fn() -> Result<u64, Error>) -> Result<u64, Error> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.doubt.prevails() {
            self.yield_to_others(&mut known);
        }
        let began = Instant::now();
        let committed = commit();
        known.commit_took = began.elapsed();
        committed
    }

    fn yield_to_others(&self, known: &mut Known) {
        let began = Instant::now();
        for _ in 0..YIELDS_MAX {
            if self.announced.load(Ordering::Relaxed) == 0 && self.returning.load(Ordering::Relaxed) == 0 {
                return known.doubt.ease();
            }
            let now = Instant::now();
            if now - began >= known.commit_took {
                return;
            }
            thread::yield_now();
            if known.doubt.learn(now.elapsed(), known.commit_took.max(Doubt::SOON)) {
                return;
            }
        }
    }

    /// A panic leaves the state whole, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn threads_that_wait_at_the_same_time_share_a_commit() {
        const THREADS: usize = 8;
        const CHANGES: u64 = 50;
        let (commits, executed, syncs) = (Commits::default(), AtomicU64::new(0), AtomicU64::new(0));
        let barrier = Barrier::new(THREADS);
        let change = || {
            let announced = commits.announce();
            let ticket = executed.fetch_add(1, Ordering::SeqCst) + 1;
            drop(announced);
            let commit = || {
                let last = executed.load(Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(4));
                syncs.fetch_add(1, Ordering::SeqCst);
                Ok(last)
            };
            commits.wait(ticket, commit).unwrap();
            assert!(commits.lock().committed >= ticket);
        };
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    barrier.wait();
                    (0..CHANGES).for_each(|_| change());
                });
            }
        });
        let syncs = syncs.into_inner();
        // All threads together: in two groups it would be twice as many.
        assert!(syncs < 17 * CHANGES / 10, "{syncs} commits of {CHANGES} changes a thread");
    }

    #[test]
    fn a_commit_that_failed_fails_for_all_who_wait() {
        let commits = Commits::default();
        commits.wait(3, || Ok(5)).unwrap();
        commits.wait(5, || panic!("it is committed")).unwrap();
        assert_eq!(commits.wait(6, || Err(Error::Full)), Err(Error::Full));
        assert_eq!(commits.wait(7, || Ok(7)), Err(Error::Full));
        commits.wait(5, || panic!("it is committed")).unwrap();
    }

    #[test]
    fn a_commit_that_panicked_fails_for_all_who_wait() {
        let (commits, led) = (Commits::default(), Barrier::new(2));
        std::thread::scope(|scope| {
            let leader = scope.spawn(|| {
                commits.wait(2, || {
                    led.wait();
                    std::thread::sleep(Duration::from_millis(20));
                    panic!("the disk is on fire")
                })
            });
            led.wait();
            let waited = commits.wait(1, || panic!("another one leads"));
            assert!(matches!(waited, Err(Error::Failed { why }) if why.contains("panicked")));
            assert!(leader.join().is_err());
        });
    }
}
