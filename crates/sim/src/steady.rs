//! Whether figures of rounds are steady, and how far their mean can be trusted.
//!
//! ```text
//!   steady (SNIA SSS-PTS 2.0.2, 3.4.3: the last five rounds)     of their mean
//!     excursion   largest - smallest                             at most 20 %
//!     slope       rise of the line through them, end to end      at most 10 %
//! ```
//!
//! A confidence interval is that of Student's t over rounds as batches (batch means: Law, *Simulation Modeling and Analysis*, 9.5.3), or over
//! seeds: whatever gives figures that do not depend on one another.

use serde::Serialize;

/// The rounds that must be steady.
pub const STEADY_ROUNDS: usize = 5;
/// The most rounds in which a drive becomes steady, or it is said not to (SNIA SSS-PTS).
pub const ROUNDS_MAX: u32 = 25;

const EXCURSION_MAX: f64 = 0.2;
const SLOPE_MAX: f64 = 0.1;

/// How much a figure changes over rounds, as parts of its mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names are the JSON's; docs/REPORT.md says what each means")]
pub struct Steadiness {
    pub mean: f64,
    pub excursion: f64,
    pub slope: f64,
}

impl Steadiness {
    /// Of a figure of each round, at least two.
    #[must_use]
    pub fn of(figures: &[f64]) -> Self {
        let (count, mean) = count_and_mean(figures);
        let largest = figures.iter().copied().fold(f64::MIN, f64::max);
        let smallest = figures.iter().copied().fold(f64::MAX, f64::min);
        let middle = (count - 1.0) / 2.0;
        let from_middle = || (0..figures.len()).map(|number| number as f64 - middle);
        let rise = from_middle().zip(figures).map(|(distance, figure)| distance * figure).sum::<f64>()
            / from_middle().map(|distance| distance * distance).sum::<f64>();
        let part = |change: f64| if mean == 0.0 { 0.0 } else { (change / mean).abs() };
        Steadiness { mean, excursion: part(largest - smallest), slope: part(rise * (count - 1.0)) }
    }

    /// Whether it changes as little as the rule wants.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.excursion <= EXCURSION_MAX && self.slope <= SLOPE_MAX
    }
}

/// A mean, and how far the true one is from it at most, with a confidence of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "as Steadiness")]
pub struct Confidence {
    pub mean: f64,
    pub half_width: f64,
}

impl Confidence {
    /// Of figures that do not depend on one another, at least two.
    #[must_use]
    pub fn of(figures: &[f64]) -> Self {
        let (count, mean) = count_and_mean(figures);
        let variance = figures.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Confidence { mean, half_width: student_t(figures.len() - 1) * (variance / count).sqrt() }
    }

    /// Of rates, above 0, of parts that do the same work each: by the times that they take, so that the mean is the rate of all together.
    /// That of the rates themselves would count a slow part for less than it takes.
    #[must_use]
    pub fn of_rates(rates: &[f64]) -> Self {
        let times: Vec<f64> = rates.iter().map(|rate| rate.recip()).collect();
        let Confidence { mean, half_width } = Confidence::of(&times);
        Confidence { mean: mean.recip(), half_width: half_width / (mean * mean) }
    }
}

fn count_and_mean(figures: &[f64]) -> (f64, f64) {
    let count = figures.len() as f64;
    (count, figures.iter().sum::<f64>() / count)
}

/// The quantile of 97.5 % of Student's t, by degrees of freedom; from 30 on by its expansion (Abramowitz and Stegun, 26.7.5), which then
/// lacks less than 0.0002.
fn student_t(degrees: usize) -> f64 {
    const QUANTILES: [f64; 29] = [
        12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604,
        2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518,
        2.0484, 2.0452,
    ];
    const NORMAL: f64 = 1.959_964;
    QUANTILES.get(degrees.wrapping_sub(1)).copied().unwrap_or_else(|| {
        let (normal, degrees) = (NORMAL, degrees as f64);
        let first = (normal.powi(3) + normal) / 4.0;
        let second = (5.0 * normal.powi(5) + 16.0 * normal.powi(3) + 3.0 * normal) / 96.0;
        normal + first / degrees + second / (degrees * degrees)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_types::Random;

    #[test]
    fn steady_is_what_moves_and_slopes_little() {
        let is_steady = |figures: [f64; 5]| Steadiness::of(&figures).is_steady();
        assert!(is_steady([100.0, 100.0, 100.0, 100.0, 100.0]) && is_steady([0.0; 5]));
        // A fifth from smallest to largest, without a slope; and a little more.
        assert!(is_steady([90.0, 110.0, 100.0, 110.0, 90.0]));
        assert!(!is_steady([89.0, 110.0, 100.0, 110.0, 89.0]));
        // A slope of a tenth, and a little more.
        assert!(is_steady([95.0, 97.5, 100.0, 102.5, 105.0]) && is_steady([105.0, 102.5, 100.0, 97.5, 95.0]));
        assert!(!is_steady([94.0, 97.0, 100.0, 103.0, 106.0]));
        let Steadiness { mean, excursion, slope } = Steadiness::of(&[94.0, 97.0, 100.0, 103.0, 106.0]);
        assert!(mean == 100.0 && (excursion - 0.12).abs() < 1e-12 && (slope - 0.12).abs() < 1e-12);
    }

    #[test]
    fn a_confidence_interval_has_the_true_mean_in_it_as_often_as_it_says() {
        let mut random = Random::new(1);
        for count in [3, 10, 40] {
            let mut hits = 0;
            for _ in 0..4000 {
                // The sum of twelve is as good as normal.
                let figures: Vec<f64> =
                    (0..count).map(|_| (0..12).map(|_| random.unit()).sum::<f64>() - 6.0 + 50.0).collect();
                let Confidence { mean, half_width } = Confidence::of(&figures);
                hits += u32::from((mean - 50.0).abs() <= half_width);
            }
            assert!((3735..=3865).contains(&hits), "{hits} of 4000 with {count} figures");
        }
    }

    #[test]
    fn a_slow_part_counts_for_what_it_takes() {
        // 300 operations in 1 s and 300 in 3 s are 600 in 4 s.
        let Confidence { mean, half_width } = Confidence::of_rates(&[300.0, 100.0]);
        assert!((mean - 150.0).abs() < 1e-9 && (half_width / mean - student_t(1) / 2.0).abs() < 1e-9);
        let [rates, figures] = [Confidence::of_rates, Confidence::of].map(|of| of(&[99.0, 100.0, 101.0]));
        assert!((rates.half_width / figures.half_width - 1.0).abs() < 1e-3, "{rates:?} {figures:?}");
    }

    #[test]
    fn quantiles_go_on_where_the_table_ends() {
        assert!((student_t(30) - 2.0423).abs() < 2e-4 && (student_t(120) - 1.9799).abs() < 1e-4);
        assert!((1..200).all(|degrees| student_t(degrees) > student_t(degrees + 1)));
    }
}
