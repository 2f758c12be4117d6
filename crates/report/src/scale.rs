//! The two directions of a chart: where a value is, and what stands at the axis.

use kvssd_measure::Unit;

/// A direction. Places are values, their logarithms, or the numbers of names.
#[derive(Clone, Debug)]
pub struct Scale {
    pub title: String,
    pub from: f64,
    pub to: f64,
    /// Places, and what stands there.
    pub ticks: Vec<(f64, String)>,
    is_log: bool,
}

/// An axis of values gets a logarithmic scale when the largest is so many times the smallest.
const LOG_FROM: f64 = 15.0;
const TICKS_MAX: f64 = 5.0;

impl Scale {
    /// From 0 to at least the largest.
    pub fn from_zero(title: &str, most: f64, unit: Unit) -> Scale {
        let most = if most > 0.0 { most } else { 1.0 };
        let step = round_step(most / TICKS_MAX);
        let count = (most * 1.02 / step).ceil() as u32;
        let ticks = (0..=count).map(|number| f64::from(number) * step).map(|at| (at, unit.tick(at))).collect();
        Scale { title: title.to_owned(), from: 0.0, to: f64::from(count) * step, ticks, is_log: false }
    }

    /// Logarithmic, of values above 0, with ticks at 1, 2 and 5 of each power of ten, or at powers alone where there are many.
    pub fn log(title: &str, least: f64, most: f64, unit: Unit) -> Scale {
        let most = most.max(least * 1.2);
        let (from, to) = (least.log10(), most.log10());
        let mantissas: &[f64] = if to - from > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let decades = from.floor() as i32..=to.ceil() as i32;
        let marks = decades.flat_map(|decade| mantissas.iter().map(move |one| one * 10_f64.powi(decade)));
        let round: Vec<f64> = marks.filter(|mark| (from..=to).contains(&mark.log10())).collect();
        let marks = if round.len() > 1 { round } else { steps(least, most) };
        let ticks = marks.into_iter().map(|mark| (mark.log10(), unit.tick(mark))).collect();
        Scale { title: title.to_owned(), from, to, ticks, is_log: true }
    }

    /// From one value to another, which is larger, or else from the first on.
    pub fn between(title: &str, from: f64, to: f64, unit: Unit) -> Scale {
        let to = if from < to { to } else { from + 1.0 };
        let ticks = steps(from, to).into_iter().map(|at| (at, unit.tick(at))).collect();
        Scale { title: title.to_owned(), from, to, ticks, is_log: false }
    }

    /// With a tick at each of the values, at least one, in ascending order.
    pub fn of_values(title: &str, values: &[(f64, String)]) -> Scale {
        let (least, most) = (values[0].0, values[values.len() - 1].0);
        let is_log = least > 0.0 && most / least >= LOG_FROM;
        let mut scale = Scale { title: title.to_owned(), from: 0.0, to: 0.0, ticks: Vec::new(), is_log };
        (scale.from, scale.to) = (scale.place(least), scale.place(most));
        let margin = if least < most { 0.04 * (scale.to - scale.from) } else { 0.5 };
        // Values that are too near to one another share a tick.
        for (value, text) in values {
            let (at, apart) = (scale.place(*value), 2.0 * margin);
            if scale.ticks.last().is_none_or(|(last, _)| at - last >= apart) {
                scale.ticks.push((at, text.clone()));
            }
        }
        (scale.from, scale.to) = (scale.from - margin, scale.to + margin);
        scale
    }

    /// Names one below the other: that of number n from place n to n + 1, counted from above.
    pub fn of_names(names: &[String]) -> Scale {
        let ticks = names.iter().enumerate().map(|(number, name)| (-(number as f64) - 0.5, name.clone())).collect();
        Scale { title: String::new(), from: -(names.len() as f64), to: 0.0, ticks, is_log: false }
    }

    /// Where a value is.
    pub fn place(&self, value: f64) -> f64 {
        if self.is_log { value.max(f64::MIN_POSITIVE).log10() } else { value }
    }

    /// What stands at a place.
    pub fn text_at(&self, place: f64) -> &str {
        let distance = |tick: &&(f64, String)| (tick.0 - place).abs();
        self.ticks.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).map_or("", |(_, text)| text)
    }
}

/// Round values from one to another.
fn steps(from: f64, to: f64) -> Vec<f64> {
    // Rounding must not make a step of the next size.
    let step = round_step((to - from) / TICKS_MAX * (1.0 - 1e-9));
    let (first, last) = ((from / step - 1e-9).ceil() as u64, (to / step + 1e-9).floor() as u64);
    (first..=last).map(|number| number as f64 * step).collect()
}

/// 1, 2 or 5 times a power of ten, at least as large.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| *step >= least).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_reach_over_the_largest() {
        let scale = Scale::from_zero("", 189_975.0, Unit::PerSecond);
        assert_eq!(texts(&scale), ["0", "50 k", "100 k", "150 k", "200 k"]);
        assert!(Scale::from_zero("", 0.0, Unit::Plain).to > 0.0);
        assert_eq!(texts(&Scale::log("", 9_000.0, 110_000.0, Unit::Time)), ["10 us", "20 us", "50 us", "100 us"]);
        assert_eq!(texts(&Scale::log("", 100.0, 1e6, Unit::Time)), ["100 ns", "1 us", "10 us", "100 us", "1 ms"]);
        assert_eq!(
            texts(&Scale::log("", 60e3, 90e3, Unit::Time)),
            ["60 us", "70 us", "80 us", "90 us"],
            "none is 1, 2 or 5"
        );
        assert_eq!(
            texts(&Scale::between("", 0.99, 1.0, Unit::Share)),
            ["99 %", "99.2 %", "99.4 %", "99.6 %", "99.8 %", "100 %"]
        );
    }

    #[test]
    fn values_have_ticks_of_their_own_unless_they_are_too_near() {
        let values = |values: &[f64]| values.iter().map(|value| (*value, value.to_string())).collect::<Vec<_>>();
        let scale = Scale::of_values("", &values(&[250.0, 500.0, 1000.0, 4000.0]));
        assert_eq!(texts(&scale), ["250", "500", "1000", "4000"]);
        assert!(scale.from < scale.place(250.0) && (scale.place(500.0) - 500_f64.log10()).abs() < 1e-12);
        assert_eq!(texts(&Scale::of_values("", &values(&[1.0, 1.01, 2.0]))), ["1", "2"]);
        assert_eq!(scale.text_at(500_f64.log10()), "500");
    }
}
