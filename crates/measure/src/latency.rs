//! Latencies of commands.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use kvssd_types::Nanos;
use serde::{Deserialize, Serialize};

/// Significant digits of a histogram.
const DIGITS: u8 = 3;

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
        Latencies(Histogram::new(DIGITS).expect("three digits are allowed"))
    }

    /// Adds the latency of a command.
    #[inline]
    pub fn add(&mut self, latency: Nanos) {
        self.0.record(latency.0).expect("the histogram grows");
    }

    /// Adds all latencies of another histogram.
    pub fn merge(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("the histogram grows");
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The whole histogram as others exchange it: HdrHistogram's encoding V2, compressed, in base64. The same latencies give the same
    /// text.
    #[must_use]
    pub fn to_base64(&self) -> String {
        let mut bytes = Vec::new();
        // How a histogram has grown shows in its bytes: one of just the size has not.
        let mut exact = Histogram::new_with_max(self.0.max().max(2), DIGITS).expect("three digits are allowed");
        exact.add(&self.0).expect("it is as large");
        V2DeflateSerializer::new().serialize(&exact, &mut bytes).expect("memory takes bytes");
        STANDARD.encode(bytes)
    }

    /// The histogram that [`Latencies::to_base64`] gave; `None` of anything else.
    #[must_use]
    pub fn from_base64(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok()?;
        let mut histogram = Deserializer::new().deserialize(&mut &bytes[..]).ok()?;
        // It grows when another is merged, as a new one does.
        histogram.auto(true);
        Some(Latencies(histogram))
    }

    /// So large a share of the commands, 0 to 1, took at most this, in nanoseconds.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_comes_back_from_its_text() {
        let mut latencies = Latencies::new();
        (0..50_000u64).for_each(|number| latencies.add(Nanos(1000 + number * number / 100)));
        let again = Latencies::from_base64(&latencies.to_base64()).unwrap();
        assert_eq!(again.0, latencies.0);
        assert_eq!(again.summary(), latencies.summary());
        assert_eq!(again.quantile_ns(0.99), latencies.summary().p99);
        let mut small = Latencies::new();
        small.add(Nanos(1));
        let mut grown = Latencies::from_base64(&small.to_base64()).unwrap();
        grown.merge(&latencies);
        assert_eq!(grown.summary().max, latencies.summary().max);
        assert!(
            ["", "%", "SGVsbG8=", &latencies.to_base64()[..40]].map(Latencies::from_base64).iter().all(Option::is_none)
        );
        let mut in_parts = Latencies::new();
        in_parts.add(Nanos(1));
        in_parts.merge(&latencies);
        latencies.add(Nanos(1));
        assert_eq!(in_parts.to_base64(), latencies.to_base64());
    }
}
