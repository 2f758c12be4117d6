//! Figures as people read them.

use crate::grouped;
use serde::{Deserialize, Serialize};

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Of anything, in a second.
    #[serde(rename = "per_s")]
    PerSecond,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Time,
    /// Of memory or flash.
    #[serde(rename = "bytes")]
    Bytes,
    /// Of values, in a second.
    #[serde(rename = "bytes_s")]
    BytesPerSecond,
    /// A part of one.
    #[serde(rename = "share")]
    Share,
    /// Of things, all together.
    #[serde(rename = "count")]
    Count,
    /// A number, such as a ratio.
    #[serde(rename = "number")]
    Plain,
}

impl Unit {
    /// In a cell.
    #[must_use]
    pub fn text(self, figure: f64) -> String {
        match self {
            Unit::PerSecond | Unit::Count => grouped(figure.round() as u64),
            Unit::Time => scaled(figure, &TIMES, 1),
            Unit::Bytes => scaled(figure, &BYTES, 1),
            Unit::BytesPerSecond => scaled(figure, &RATES, 1),
            Unit::Share => format!("{:.1} %", 100.0 * figure),
            Unit::Plain => format!("{figure:.2}"),
        }
    }

    /// At an axis: as short as it can be.
    #[must_use]
    pub fn tick(self, figure: f64) -> String {
        match self {
            Unit::PerSecond | Unit::Count => scaled(figure, &COUNTS, 0),
            Unit::Time => scaled(figure, &TIMES, 0),
            Unit::Bytes => scaled(figure, &BYTES, 0),
            Unit::BytesPerSecond => scaled(figure, &RATES, 0),
            Unit::Share => trimmed(100.0 * figure, 0) + " %",
            Unit::Plain => trimmed(figure, 0),
        }
    }
}

const COUNTS: [(f64, &str); 4] = [(1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")];
const TIMES: [(f64, &str); 4] = [(1e9, " s"), (1e6, " ms"), (1e3, " us"), (1.0, " ns")];
const BYTES: [(f64, &str); 4] = [(1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B")];
const RATES: [(f64, &str); 4] = [(1e9, " GB/s"), (1e6, " MB/s"), (1e3, " kB/s"), (1.0, " B/s")];

/// With the largest of the units that leaves at least 1.
fn scaled(figure: f64, units: &[(f64, &str)], digits: usize) -> String {
    if figure == 0.0 {
        return "0".to_owned();
    }
    let (one, name) = units.iter().find(|(one, _)| figure.abs() >= *one).unwrap_or(&units[units.len() - 1]);
    trimmed(figure / one, digits) + name
}

/// With so many digits behind the point, and as many more as it takes to be right, up to three.
fn trimmed(figure: f64, digits: usize) -> String {
    let text = |digits: usize| format!("{figure:.digits$}");
    let is_right = |text: &str| text.parse::<f64>().is_ok_and(|read| (read - figure).abs() <= 1e-9 * figure.abs());
    if digits > 0 {
        return text(digits);
    }
    (0..3).map(text).find(|text| is_right(text)).unwrap_or_else(|| text(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_right() {
        assert_eq!(Unit::PerSecond.text(189_975.79), "189 976");
        assert_eq!(Unit::Time.text(133_600.0), "133.6 us");
        assert_eq!(Unit::Share.text(0.4755), "47.5 %");
        assert_eq!(
            [0.0, 500.0, 50_000.0, 2.5e6].map(|figure| Unit::PerSecond.tick(figure)),
            ["0", "500", "50 k", "2.5 M"]
        );
        assert_eq!([200.0, 1e5, 1e9].map(|figure| Unit::Time.tick(figure)), ["200 ns", "100 us", "1 s"]);
        assert_eq!([0.0, 0.25, 2.0].map(|figure| Unit::Plain.tick(figure)), ["0", "0.25", "2"]);
    }
}
