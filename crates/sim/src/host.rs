//! The hosts: who submits the next command, and when.
//!
//! ```text
//!   closed loop   each of threads x queue depth slots submits when its last command is done
//!   open loop     commands arrive at a rate, or when a trace says, however long the drive takes
//! ```

use kvssd_types::{Nanos, Random};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When commands come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// When the command before is done.
    Closed,
    /// At random (exponentially distributed) intervals, so many a second on the average.
    Open {
        /// Commands a second.
        rate_per_s: f64,
    },
    /// When the trace that is replayed says.
    Trace,
}

/// How many hosts there are, and how fast they go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostPlan {
    /// Host threads.
    pub threads: u32,
    /// Commands of a thread that are under way at once.
    pub queue_depth: u32,
    /// Commands a second, however long the drive takes; none for a closed loop.
    pub rate_per_s: Option<f64>,
}

impl HostPlan {
    /// A closed loop.
    #[must_use]
    pub fn closed(threads: u32, queue_depth: u32) -> Self {
        HostPlan { threads, queue_depth, rate_per_s: None }
    }

    /// When their commands come.
    #[must_use]
    pub fn pace(&self) -> Pace {
        self.rate_per_s.map_or(Pace::Closed, |rate_per_s| Pace::Open { rate_per_s })
    }

    /// How many operations are under way at once in a closed loop; 0 where they come by themselves.
    pub(crate) fn at_once(&self) -> u64 {
        let slots = u64::from(self.threads) * u64::from(self.queue_depth);
        if self.rate_per_s.is_none() { slots } else { 0 }
    }
}

/// What a host does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// The next operation of the workload, for this thread.
    Next {
        /// The thread.
        thread: u32,
    },
    /// The next command of a scan.
    GoOn {
        /// The thread.
        thread: u32,
        /// The scan's number.
        scan: u64,
    },
    /// The write of a read-modify-write whose read is done.
    WriteBack {
        /// The thread.
        thread: u32,
        /// What was read.
        record: u64,
    },
}

/// The hosts of one phase, as a queue of turns.
#[derive(Debug)]
pub struct Hosts {
    pace: Pace,
    threads: u32,
    turns: BinaryHeap<Reverse<(Nanos, u64, Turn)>>,
    arrivals: Random,
    count: u64,
    /// No operation begins any more.
    is_over: bool,
}

impl Hosts {
    /// Of `threads` threads with `queue_depth` commands each, from `start` on.
    #[must_use]
    pub fn new(pace: Pace, threads: u32, queue_depth: u32, start: Nanos, seed: u64) -> Self {
        let arrivals = Random::stream(seed, u64::MAX - 1);
        let mut hosts = Hosts { pace, threads, turns: BinaryHeap::new(), arrivals, count: 0, is_over: false };
        match pace {
            Pace::Closed => {
                for slot in 0..threads * queue_depth {
                    hosts.push(start, Turn::Next { thread: slot % threads });
                }
            }
            Pace::Open { .. } => hosts.arrive(start, 0),
            Pace::Trace => {}
        }
        hosts
    }

    /// The next turn and when it is.
    ///
    /// # Panics
    /// When no turn is left. Only hosts of a trace, and those that have ended, come to that.
    pub fn pop(&mut self) -> (Nanos, Turn) {
        let Reverse((at, _, turn)) = self.turns.pop().expect("there is a turn");
        if let (Pace::Open { .. }, Turn::Next { thread }, false) = (self.pace, turn, self.is_over) {
            self.arrive(at, (thread + 1) % self.threads);
        }
        (at, turn)
    }

    /// No operation begins any more; what has begun goes on.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// When the next turn is, if there is one.
    #[must_use]
    pub fn next_at(&self) -> Option<Nanos> {
        self.turns.peek().map(|Reverse((at, ..))| *at)
    }

    /// An operation of `thread` is done.
    pub fn done(&mut self, at: Nanos, thread: u32) {
        if self.pace == Pace::Closed {
            self.push(at, Turn::Next { thread });
        }
    }

    /// A command of a scan is done.
    pub fn go_on(&mut self, at: Nanos, turn: Turn) {
        self.push(at, turn);
    }

    /// The read of a read-modify-write is done.
    pub fn write_back(&mut self, at: Nanos, thread: u32, record: u64) {
        self.push(at, Turn::WriteBack { thread, record });
    }

    /// The next operation comes at `at`: for [`Pace::Trace`], which must be told before the next turn.
    pub fn arrive_at(&mut self, at: Nanos) {
        self.push(at, Turn::Next { thread: 0 });
    }

    fn arrive(&mut self, after: Nanos, thread: u32) {
        let Pace::Open { rate_per_s } = self.pace else { return };
        let interval_s = -(1.0 - self.arrivals.unit()).ln() / rate_per_s;
        self.push(after + Nanos((interval_s * 1e9) as u64), Turn::Next { thread });
    }

    fn push(&mut self, at: Nanos, turn: Turn) {
        self.count += 1;
        self.turns.push(Reverse((at, self.count, turn)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_loop_keeps_its_rate_whatever_the_drive_does() {
        let mut hosts = Hosts::new(Pace::Open { rate_per_s: 1e6 }, 4, 1, Nanos::ZERO, 1);
        let last = (0..100_000).map(|_| hosts.pop().0).last().unwrap();
        assert!((last.as_seconds() - 0.1).abs() < 0.002, "{last}");
    }

    /// Where they come faster than time goes, what has begun would have no turn any more.
    #[test]
    fn behind_the_end_of_an_open_loop_nothing_comes_but_what_has_begun() {
        let mut hosts = Hosts::new(Pace::Open { rate_per_s: 1e12 }, 1, 1, Nanos::ZERO, 1);
        assert_eq!(hosts.pop(), (Nanos::ZERO, Turn::Next { thread: 0 }));
        hosts.write_back(Nanos(1000), 0, 5);
        hosts.end();
        let left: Vec<_> = std::iter::from_fn(|| hosts.next_at().map(|_| hosts.pop().1)).collect();
        assert_eq!(left, [Turn::Next { thread: 0 }, Turn::WriteBack { thread: 0, record: 5 }]);
    }

    #[test]
    fn a_closed_loop_has_as_many_turns_as_slots() {
        let mut hosts = Hosts::new(Pace::Closed, 3, 2, Nanos(7), 1);
        let threads: Vec<_> = (0..6).map(|_| hosts.pop()).collect();
        let thread = |thread| (Nanos(7), Turn::Next { thread });
        assert_eq!(threads, [0, 1, 2, 0, 1, 2].map(thread));
        hosts.done(Nanos(9), 2);
        hosts.write_back(Nanos(8), 1, 5);
        assert_eq!(hosts.pop(), (Nanos(8), Turn::WriteBack { thread: 1, record: 5 }));
        assert_eq!(hosts.pop(), (Nanos(9), Turn::Next { thread: 2 }));
    }
}
