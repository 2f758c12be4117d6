//! Latencies of commands.

use hdrhistogram::Histogram;
use kvssd_types::Nanos;
use serde::{Deserialize, Serialize};

/// A histogram of latencies with three significant digits.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

/// The figures of a histogram, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// The number of commands.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Half of them took at most this.
    pub p50: u64,
    /// 99 % of them took at most this.
    pub p99: u64,
    /// 99.9 % of them took at most this.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

impl Latencies {
    /// No latencies.
    #[must_use]
    pub fn new() -> Self {
        Latencies(Histogram::new(3).expect("three digits are allowed"))
    }

    /// Adds the latency of a command.
    pub fn add(&mut self, latency: Nanos) {
        self.0.record(latency.0).expect("the histogram grows");
    }

    /// Adds all latencies of another histogram.
    pub fn merge(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("the histogram grows");
    }

    /// The figures.
    #[must_use]
    pub fn summary(&self) -> LatencySummary {
        LatencySummary {
            count: self.0.len(),
            mean: if self.0.is_empty() { 0.0 } else { self.0.mean() },
            p50: self.0.value_at_quantile(0.5),
            p99: self.0.value_at_quantile(0.99),
            p999: self.0.value_at_quantile(0.999),
            max: self.0.max(),
        }
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}
