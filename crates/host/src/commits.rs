//! Group commit: threads that wait for the disk at the same time wait once.
//!
//! ```text
//!   thread 1   execute -> ticket 1, leads: | yields to others   | commit, all up to ticket 3 |
//!   thread 2        execute -> ticket 2, waits ................................................| safe
//!   thread 3            execute -> ticket 3, waits ...........................................| safe
//!   thread 4                                                            execute -> ticket 4, waits | leads: ...
//! ```
//!
//! A leader yields to threads that are about to execute, and to those that the last commit released: a thread that writes usually writes again.
//! Without that, threads would split into two groups, each of which waits for a commit of the other. It waits no longer than a commit
//! takes, and not where others want the core.
//!
//! Those who wait for it stay awake where commits are short: each that sleeps is woken tens of microseconds late.
//!
//! Where others want the cores, whoever sleeps has one back milliseconds later. There nobody waits for a leader that waits for the disk, if
//! there is room for one more commit: each sleeps for its own.

use crate::Error;
use kvssd_runtime::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use kvssd_runtime::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use kvssd_runtime::time::{Duration, Instant};
use kvssd_runtime::{Doubt, thread};

/// How often a leader yields to threads that are about to execute, or may come again. They execute within a few yields or not soon; threads
/// that do not come cost the leader some 50 us once.
const YIELDS_MAX: usize = 256;

/// How long a thread waits awake for the one that leads, and the longest commit that it does so for. An estimate: to sleep and be woken takes
/// half as long.
const AWAKE: Duration = Duration::from_micros(200);

/// The commits of a drive, and the threads that wait for them.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    /// Commits that are under way at the same time, at the most.
    leaders_max: usize,
    state: Mutex<State>,
    changed: Condvar,
    /// The last ticket that is committed.
    committed: AtomicU64,
    /// Commits that have ended, well or not.
    ended: AtomicU64,
    /// Threads that wait for one that leads.
    waiting: AtomicUsize,
    /// Threads that are about to execute a change.
    announced: AtomicUsize,
    /// Threads that the last commit released, minus those that have announced a change since.
    returning: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    /// Threads that commit.
    leaders: usize,
    /// Those of the waiting threads that sleep.
    asleep: usize,
    /// How long the last commit took.
    took: Duration,
    /// Whether others want the cores.
    doubt: Doubt,
    /// Whether that is so while the commit is under way that began last.
    are_cores_wanted: bool,
    failure: Option<Error>,
}

impl State {
    /// Who yields and is away for longer than this has left the core to somebody who keeps it.
    fn away_max(&self) -> Duration {
        self.took.max(Doubt::SOON)
    }

    /// A thread was away for so long. That counts once a commit.
    fn was_away(&mut self, away: Duration) {
        if !self.are_cores_wanted {
            self.are_cores_wanted = self.doubt.learn(away, self.away_max());
        }
    }
}

/// How it ended that a thread let others run.
enum Yielded {
    /// With what it waited for.
    Done,
    /// It waited for long enough.
    Late,
    /// It was away for too long.
    Away(Duration),
}

/// A thread that is counted until this is dropped.
pub(crate) struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn of(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A thread that commits for all. Dropping it notifies the threads that wait, also after a panic.
struct Lead<'a> {
    commits: &'a Commits,
    took: Duration,
    /// `None` after a panic.
    committed: Option<Result<u64, Error>>,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let commits = self.commits;
        let mut state = commits.lock();
        (state.leaders, state.took) = (state.leaders - 1, self.took);
        commits.returning.store(commits.waiting.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        match self.committed.take() {
            Some(Ok(last)) => _ = commits.committed.fetch_max(last, Ordering::Release),
            Some(Err(error)) => state.failure = Some(error),
            None => state.failure = Some(Error::Failed { why: "a thread panicked while it committed".to_owned() }),
        }
        commits.ended.fetch_add(1, Ordering::Release);
        if state.asleep > 0 {
            commits.changed.notify_all();
        }
    }
}

impl Commits {
    /// Commits, so many at the same time at the most.
    pub(crate) fn new(leaders_max: usize) -> Self {
        Commits { leaders_max, ..Commits::default() }
    }

    /// Announces a change, until the guard is dropped.
    pub(crate) fn announce(&self) -> Counted<'_> {
        let announced = Counted::of(&self.announced);
        // The count stays at 0.
        let _ = self.returning.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |threads| threads.checked_sub(1));
        announced
    }

    /// Returns when the change with that ticket is committed. If no thread commits, or none is to be waited for, this one calls `commit`, which
    /// returns the last ticket that it covers.
    pub(crate) fn wait(&self, ticket: u64, commit: impl Fn() -> Result<u64, Error>) -> Result<(), Error> {
        while !self.is_committed(ticket) {
            let state = self.lock();
            if self.is_committed(ticket) {
                break;
            }
            if let Some(error) = &state.failure {
                return Err(error.clone());
            }
            let leaders_max = if state.are_cores_wanted { self.leaders_max } else { 1 };
            if state.leaders < leaders_max { self.lead(state, &commit) } else { self.wait_for_leader(state) }
        }
        Ok(())
    }

    fn is_committed(&self, ticket: u64) -> bool {
        self.committed.load(Ordering::Acquire) >= ticket
    }

    /// Returns when a commit has ended that is under way.
    fn wait_for_leader<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        let before = self.ended.load(Ordering::Relaxed);
        let has_ended = || self.ended.load(Ordering::Acquire) != before;
        let _waiting = Counted::of(&self.waiting);
        if state.took < AWAKE && !state.are_cores_wanted {
            let away_max = state.away_max();
            drop(state);
            let yielded = yield_until(has_ended, usize::MAX, AWAKE, away_max);
            if matches!(yielded, Yielded::Done) {
                return;
            }
            state = self.lock();
            if let Yielded::Away(away) = yielded {
                state.was_away(away);
            }
        }
        while !has_ended() {
            state.asleep += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep -= 1;
        }
    }

    /// Commits for all.
    fn lead(&self, mut state: MutexGuard<'_, State>, commit: impl Fn() -> Result<u64, Error>) {
        (state.leaders, state.are_cores_wanted) = (state.leaders + 1, state.doubt.prevails());
        let (is_alone, took, away_max) = (state.are_cores_wanted, state.took, state.away_max());
        drop(state);
        let mut lead = Lead { commits: self, took, committed: None };
        if !is_alone {
            let has_all = || self.announced.load(Ordering::Relaxed) == 0 && self.returning.load(Ordering::Relaxed) == 0;
            match yield_until(has_all, YIELDS_MAX, took, away_max) {
                Yielded::Done => self.lock().doubt.ease(),
                Yielded::Late => {}
                Yielded::Away(away) => self.lock().was_away(away),
            }
        }
        let began = Instant::now();
        lead.committed = Some(commit());
        lead.took = began.elapsed();
    }

    /// A panic leaves the state whole, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets others run until something is so, but not too often, for too long, or where they keep the core.
fn yield_until(is_so: impl Fn() -> bool, yields_max: usize, long: Duration, away_max: Duration) -> Yielded {
    let began = Instant::now();
    let mut looked = began;
    for _ in 0..yields_max {
        if is_so() {
            return Yielded::Done;
        }
        if looked - began >= long {
            return Yielded::Late;
        }
        thread::yield_now();
        let now = Instant::now();
        if now - looked > away_max {
            return Yielded::Away(now - looked);
        }
        looked = now;
    }
    Yielded::Late
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
        let (commits, executed, syncs) = (Commits::new(1), AtomicU64::new(0), AtomicU64::new(0));
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
            assert!(commits.committed.load(Ordering::Acquire) >= ticket);
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

    /// Commits that are under way at the same time, at the most, of four threads that wait for one each.
    fn most_at_a_time(commits: &Commits) -> usize {
        let (barrier, under_way, most) = (Barrier::new(4), AtomicUsize::new(0), AtomicUsize::new(0));
        let commit = |ticket| {
            most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(30));
            under_way.fetch_sub(1, Ordering::SeqCst);
            Ok(ticket)
        };
        std::thread::scope(|scope| {
            for ticket in 1..=4 {
                let (barrier, commit) = (&barrier, &commit);
                scope.spawn(move || {
                    barrier.wait();
                    commits.wait(ticket, || commit(ticket)).unwrap();
                });
            }
        });
        most.into_inner()
    }

    #[test]
    fn where_others_want_the_cores_commits_go_side_by_side() {
        for leaders_max in [1, 2] {
            let commits = Commits::new(leaders_max);
            commits.lock().doubt.learn(Duration::from_secs(1), Duration::ZERO);
            assert_eq!(most_at_a_time(&commits), leaders_max);
        }
    }

    #[test]
    fn a_commit_that_failed_fails_for_all_who_wait() {
        let commits = Commits::new(1);
        commits.wait(3, || Ok(5)).unwrap();
        commits.wait(5, || panic!("it is committed")).unwrap();
        assert_eq!(commits.wait(6, || Err(Error::Full)), Err(Error::Full));
        assert_eq!(commits.wait(7, || Ok(7)), Err(Error::Full));
        commits.wait(5, || panic!("it is committed")).unwrap();
    }

    #[test]
    fn a_commit_that_panicked_fails_for_all_who_wait() {
        let (commits, led) = (Commits::new(1), Barrier::new(2));
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
