//! A figure of a paper, as data: what came out here, and beside it what the paper's text says of it.
//!
//! ```text
//!   along    what is along it: names, or numbers that ascend     YCSB-A uniform    YCSB-A zipfian
//!   values   what is measured, and in which unit                 throughput over original
//!   series   a value for each place, or none                     plus: ours              1.92    1.20
//!                                                                plus: paper, up to      2.1     1.25
//! ```
//!
//! The paper's values are those that its text gives: none is read off a picture.

use crate::Unit;
use serde::{Deserialize, Serialize};

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Whose: the paper's short name.
    pub paper: String,
    /// As the paper counts it, with the part: `2`, `8a`, `5 Update`.
    pub number: String,
    /// What is seen, and what the paper's text says of it.
    pub caption: String,
    /// The claims that rest on it, by id.
    pub claims: Vec<String>,
    /// How it is drawn.
    pub kind: Kind,
    /// What is along it.
    pub along: Along,
    /// What is measured.
    pub values: Values,
    /// Ours first.
    pub series: Vec<Series>,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A group of bars for each name, a bar for each series.
    Bars,
    /// A line for each series. Names have equal distances.
    Lines,
    /// A line for each series: what at most a share of all is. The shares are the places.
    Cdf,
}

/// What is along a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Along {
    /// What the places are of.
    pub title: String,
    /// Of numbers.
    pub unit: Unit,
    /// The places, each of which every series has a value for.
    pub places: Places,
}

/// Places along a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Places {
    /// In ascending order.
    Numbers(Vec<f64>),
    /// In the order in which they are shown.
    Names(Vec<String>),
}

/// What a figure measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Values {
    /// What they are.
    pub title: String,
    /// What they count.
    pub unit: Unit,
    /// How they are laid out.
    pub scale: Scale,
}

/// How values are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// From 0 on.
    Linear,
    /// By their logarithms: of values that are more than 0.
    Log,
}

/// The values of one thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The thing. Ours and the paper's have the same name.
    pub name: String,
    /// Whose.
    pub source: Source,
    /// For each place along the figure; `null` where there is none, or the paper's text says none.
    pub values: Vec<Option<f64>>,
}

/// Whose values they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// Measured here.
    #[serde(rename = "ours")]
    Ours,
    /// The paper's.
    #[serde(rename = "paper")]
    Paper,
    /// The paper says that it is up to this, or at most.
    #[serde(rename = "paper, up to")]
    PaperUpTo,
    /// The paper says that it is at least this.
    #[serde(rename = "paper, at least")]
    PaperAtLeast,
}

/// Beyond it nothing can be drawn.
const VALUE_MAX: f64 = 1e30;

impl Figure {
    /// A figure without series: of a paper, its number, the numbers of the claims that rest on it, and what is seen.
    #[must_use]
    pub fn new(
        paper: &str,
        number: &str,
        claims: &[u32],
        caption: &str,
        kind: Kind,
        along: Along,
        values: Values,
    ) -> Self {
        Figure {
            paper: paper.to_owned(),
            number: number.to_owned(),
            caption: caption.to_owned(),
            claims: claims.iter().map(|claim| format!("{paper}.{claim}")).collect(),
            kind,
            along,
            values,
            series: Vec::new(),
        }
    }

    /// With what was measured here. What is no number is left out.
    #[must_use]
    pub fn ours(self, name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<_> = values.into_iter().map(Some).collect();
        self.with(name, Source::Ours, &values)
    }

    /// With values of a source.
    #[must_use]
    pub fn with(mut self, name: &str, source: Source, values: &[Option<f64>]) -> Self {
        let values = values.iter().map(|value| value.filter(|value| value.is_finite())).collect();
        self.series.push(Series { name: name.to_owned(), source, values });
        self
    }

    /// Why it cannot be drawn, if it cannot.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let places = self.along.places.count();
        let is_drawn = |value: f64| match self.values.scale {
            Scale::Linear => (0.0..=VALUE_MAX).contains(&value),
            Scale::Log => value > 0.0 && value <= VALUE_MAX,
        };
        if let Some(series) = self.series.iter().find(|series| series.values.len() != places) {
            return Some(format!("{} has {} values for {places} places", series.name, series.values.len()));
        }
        if let Some(value) = self.all().find(|value| !is_drawn(*value)) {
            return Some(format!("{value} cannot be drawn"));
        }
        match &self.along.places {
            Places::Numbers(_) if self.kind == Kind::Bars => Some("bars have names along them".to_owned()),
            Places::Names(_) if self.kind == Kind::Cdf => Some("shares are numbers".to_owned()),
            Places::Numbers(numbers) if !numbers.iter().all(|number| (0.0..=VALUE_MAX).contains(number)) => {
                Some("a place along it cannot be drawn".to_owned())
            }
            Places::Numbers(numbers) if !numbers.is_sorted_by(|left, right| left < right) => {
                Some("the places along it do not ascend".to_owned())
            }
            Places::Numbers(_) | Places::Names(_) if places == 0 || self.all().next().is_none() => {
                Some("there is nothing in it".to_owned())
            }
            Places::Numbers(_) | Places::Names(_) => None,
        }
    }

    /// All values that there are.
    pub fn all(&self) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(|series| &series.values).flatten().copied()
    }
}

impl Along {
    /// Names.
    #[must_use]
    pub fn names<N: ToString>(title: &str, names: impl IntoIterator<Item = N>) -> Self {
        let names = names.into_iter().map(|name| name.to_string()).collect();
        Along { title: title.to_owned(), unit: Unit::Plain, places: Places::Names(names) }
    }

    /// Numbers.
    #[must_use]
    pub fn numbers(title: &str, unit: Unit, numbers: impl IntoIterator<Item = f64>) -> Self {
        Along { title: title.to_owned(), unit, places: Places::Numbers(numbers.into_iter().collect()) }
    }
}

impl Values {
    /// From 0 on.
    #[must_use]
    pub fn linear(title: &str, unit: Unit) -> Self {
        Values { title: title.to_owned(), unit, scale: Scale::Linear }
    }

    /// By their logarithms.
    #[must_use]
    pub fn log(title: &str, unit: Unit) -> Self {
        Values { scale: Scale::Log, ..Values::linear(title, unit) }
    }
}

impl Places {
    fn count(&self) -> usize {
        match self {
            Places::Numbers(numbers) => numbers.len(),
            Places::Names(names) => names.len(),
        }
    }
}

impl Series {
    /// What it is called beside the others.
    #[must_use]
    pub fn label(&self) -> String {
        let name = &self.name;
        match self.source {
            Source::Ours => name.clone(),
            Source::Paper => format!("{name} (paper)"),
            Source::PaperUpTo => format!("{name} (paper, up to)"),
            Source::PaperAtLeast => format!("{name} (paper, at least)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(along: Along, values: &[Option<f64>]) -> Figure {
        let measured = Values::log("throughput over original", Unit::Plain);
        let kind = if matches!(along.places, Places::Names(_)) { Kind::Bars } else { Kind::Lines };
        Figure::new("plus", "2", &[1, 2], "Faster.", kind, along, measured).with("plus", Source::PaperUpTo, values)
    }

    #[test]
    fn a_figure_is_an_object_with_series() {
        let figure = figure(Along::names("workload", ["A", "B"]), &[Some(2.1), None]).ours("plus", [1.9, f64::NAN]);
        let json = serde_json::to_string(&figure).unwrap();
        let expected = r#"{"paper":"plus","number":"2","caption":"Faster.","claims":["plus.1","plus.2"],"kind":"bars","along":{"title":"workload","unit":"number","places":["A","B"]},"values":{"title":"throughput over original","unit":"number","scale":"log"},"series":[{"name":"plus","source":"paper, up to","values":[2.1,null]},{"name":"plus","source":"ours","values":[1.9,null]}]}"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<Figure>(&json).unwrap(), figure);
        assert_eq!(figure.fault(), None);
    }

    #[test]
    fn what_cannot_be_drawn_is_said() {
        let fault = |along: Along, values: &[Option<f64>]| figure(along, values).fault().unwrap();
        let numbers = |numbers: &[f64]| Along::numbers("keys", Unit::Count, numbers.iter().copied());
        assert_eq!(fault(numbers(&[1.0, 2.0]), &[Some(1.0)]), "plus has 1 values for 2 places");
        assert_eq!(fault(numbers(&[1.0]), &[Some(0.0)]), "0 cannot be drawn");
        assert_eq!(fault(numbers(&[2.0, 1.0]), &[Some(1.0), None]), "the places along it do not ascend");
        assert_eq!(fault(numbers(&[1.0]), &[None]), "there is nothing in it");
        let mut bars = figure(numbers(&[1.0]), &[Some(1.0)]);
        bars.kind = Kind::Bars;
        assert_eq!(bars.fault().unwrap(), "bars have names along them");
    }
}
