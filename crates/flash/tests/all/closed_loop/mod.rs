//! A host that keeps a number of requests in flight: each completion makes it send the next one.

use kvssd_types::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a closed loop came to, its first tenth left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) latency_mean_ns: f64,
    pub(crate) requests_per_s: f64,
}

/// Watches completions, which it is told in the order in which they happen.
pub(crate) struct Meter {
    completions_wanted: u64,
    completions: u64,
    measured_from: Nanos,
    measured_until: Nanos,
    latency_sum_ns: u64,
}

impl Meter {
    pub(crate) fn new(completions_wanted: u64) -> Self {
        Meter {
            completions_wanted,
            completions: 0,
            measured_from: Nanos::ZERO,
            measured_until: Nanos::ZERO,
            latency_sum_ns: 0,
        }
    }

    /// Whether it has seen enough.
    pub(crate) fn is_full(&self) -> bool {
        self.completions == self.completions_wanted
    }

    pub(crate) fn complete(&mut self, arrival: Nanos, done: Nanos) {
        assert!(done >= self.measured_until, "completions come in the order in which they happen");
        self.completions += 1;
        self.measured_until = done;
        if self.completions <= self.warm_up() {
            self.measured_from = done;
        } else {
            self.latency_sum_ns += done.0 - arrival.0;
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        let measured = (self.completions - self.warm_up()) as f64;
        Figures {
            latency_mean_ns: self.latency_sum_ns as f64 / measured,
            requests_per_s: measured / (self.measured_until - self.measured_from).as_seconds(),
        }
    }

    fn warm_up(&self) -> u64 {
        self.completions_wanted / 10
    }
}

/// Keeps `depth` requests in flight until `completions_wanted` are done. `serve` is given the moment when a request
/// arrives, never an earlier one than before, and gives the moment when it is done.
pub(crate) fn run(depth: u32, completions_wanted: u64, mut serve: impl FnMut(Nanos) -> Nanos) -> Figures {
    let mut meter = Meter::new(completions_wanted);
    let mut in_flight: BinaryHeap<_> =
        (0..u64::from(depth)).map(|number| Reverse((serve(Nanos::ZERO), number, Nanos::ZERO))).collect();
    let mut number = u64::from(depth);
    while !meter.is_full() {
        let Reverse((now, _, arrival)) = in_flight.pop().expect("a loop has a depth");
        meter.complete(arrival, now);
        in_flight.push(Reverse((serve(now), number, now)));
        number += 1;
    }
    meter.figures()
}
