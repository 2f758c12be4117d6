//! The file that says what a sweep runs.
//!
//! ```text
//!   [options]  key = value                                       of every run
//!   [axes]     key = [value, ..] | { from, to, step | times }    each axis with each other
//!   [[pairs]]  key = [value, ..], key = [value, ..]              one axis: the first of each, the second of each, ..
//!   [rows.x]   key = value                                       one axis of names: what is set at each
//! ```
//!
//! A key is an option of `kvssd bench`, or has a dot and is one of `--set`.

use crate::fail::Failure;
use crate::text::one_line;
use kvssd_report::ROW;
use serde::Deserialize;
use serde_json::Map;
use std::path::Path;
use toml::{Table, Value};

/// More runs than anyone waits for.
const POINTS_MAX: usize = 100_000;

/// What a sweep runs.
#[derive(Debug, PartialEq)]
pub struct SweepFile {
    pub options: Vec<Setting>,
    /// An axis of names, each of which stands for settings of its own, before those of every run. It is the outermost one.
    pub rows: Vec<(String, Vec<Setting>)>,
    pub axes: Vec<Axis>,
}

/// A point on the axes.
#[derive(Debug, PartialEq)]
pub struct Place {
    /// Where it is on each axis.
    pub at: Vec<Setting>,
    /// All that is set there.
    pub settings: Vec<Setting>,
}

/// A key and what it is set to.
pub type Setting = (String, Value);

/// Settings of which each point of the sweep has one line: of one key, or of several that change together.
#[derive(Debug, PartialEq)]
pub struct Axis(pub Vec<(String, Vec<Value>)>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    options: Table,
    #[serde(default)]
    axes: Table,
    #[serde(default)]
    pairs: Vec<Table>,
    #[serde(default)]
    rows: Table,
}

impl SweepFile {
    /// Reads the file.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let wrong = Failure::of_input(path);
        let text = std::fs::read_to_string(path).map_err(|why| wrong(format!("cannot be read: {why}")))?;
        Self::parse(&text).map_err(wrong)
    }

    /// Reads its text.
    ///
    /// # Errors
    /// Why it is no such file, in a line.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::of(toml::from_str(text).map_err(|why| one_line(&why))?)
    }

    /// Reads the same as JSON.
    ///
    /// # Errors
    /// As [`SweepFile::parse`].
    pub fn of_json(text: &str) -> Result<Self, String> {
        Self::of(serde_json::from_str(text).map_err(|why| why.to_string())?)
    }

    fn of(written: Written) -> Result<Self, String> {
        let options = flat(written.options);
        let of_axes =
            flat(written.axes).into_iter().map(|(key, value)| Ok(Axis(vec![(key.clone(), values(&key, value)?)])));
        let axes: Vec<Axis> = of_axes.chain(written.pairs.into_iter().map(together)).collect::<Result<_, String>>()?;
        let rows: Vec<_> = written.rows.into_iter().map(row).collect::<Result<_, String>>()?;
        let file = SweepFile { options, rows, axes };
        if file.keys().any(|key| key == ROW) {
            return Err(format!("{ROW} is the axis of the rows: write each as [rows.\"its name\"]"));
        }
        let mut keys: Vec<&str> = file.of_all().chain(file.of_axes()).collect();
        keys.sort_unstable();
        if let Some(twice) = keys.windows(2).find(|two| two[0] == two[1]) {
            return Err(format!("{} is set twice: as an option, on an axis or among pairs", twice[0]));
        }
        let of_rows = || file.rows.iter().flat_map(|(name, row)| row.iter().map(move |(key, _)| (name, key)));
        match of_rows().find(|(_, key)| file.of_axes().any(|other| other == *key)) {
            Some((name, key)) => Err(format!("{key} is set in the row {name} and on an axis")),
            None => Ok(file),
        }
    }

    /// Puts these values on the axis of a key, which there is.
    pub fn set_axis(&mut self, key: &str, values: impl Iterator<Item = String>) {
        let axis = self.axes.iter_mut().flat_map(|axis| &mut axis.0).find(|(name, _)| name == key);
        axis.expect("there is an axis of that key").1 = values.map(Value::String).collect();
    }

    /// Every key that is set, perhaps more than once.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let of_rows = self.rows.iter().flat_map(|(_, row)| row.iter().map(|(key, _)| key.as_str()));
        self.of_all().chain(self.of_axes()).chain(of_rows)
    }

    fn of_all(&self) -> impl Iterator<Item = &str> {
        self.options.iter().map(|(key, _)| key.as_str())
    }

    fn of_axes(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().flat_map(|axis| axis.0.iter().map(|(key, _)| key.as_str()))
    }

    /// Each point: the last axis changes first.
    pub fn points(&self) -> Result<Vec<Place>, String> {
        let rows = self.rows.len().max(1);
        let count = self.axes.iter().try_fold(rows, |count, axis| count.checked_mul(axis.len()));
        if count.is_none_or(|count| count > POINTS_MAX) {
            return Err(format!("its axes have more than {POINTS_MAX} points"));
        }
        let cross = |points: Vec<Vec<Setting>>, axis: &Axis| {
            let point_with =
                |point: Vec<Setting>| (0..axis.len()).map(move |line| [point.clone(), axis.line(line)].concat());
            points.into_iter().flat_map(point_with).collect()
        };
        let crossed = self.axes.iter().fold(vec![Vec::new()], cross);
        if self.rows.is_empty() {
            let place = |at: Vec<Setting>| Place { settings: [self.options.clone(), at.clone()].concat(), at };
            return Ok(crossed.into_iter().map(place).collect());
        }
        let of_row = |(name, row): &(String, Vec<Setting>)| {
            let name = (ROW.to_owned(), Value::String(name.clone()));
            let other = |(key, _): &&Setting| row.iter().all(|(own, _)| own != key);
            let of_all: Vec<Setting> = self.options.iter().filter(other).chain(row).cloned().collect();
            let place = |at: &Vec<Setting>| Place {
                at: [std::slice::from_ref(&name), at].concat(),
                settings: [of_all.clone(), at.clone()].concat(),
            };
            crossed.iter().map(place).collect::<Vec<_>>()
        };
        Ok(self.rows.iter().flat_map(of_row).collect())
    }
}

impl Axis {
    fn len(&self) -> usize {
        self.0[0].1.len()
    }

    fn line(&self, number: usize) -> Vec<Setting> {
        self.0.iter().map(|(key, values)| (key.clone(), values[number].clone())).collect()
    }
}

/// Settings as JSON.
pub fn json(settings: &[Setting]) -> Map<String, serde_json::Value> {
    let value = |value: &Value| serde_json::to_value(value).unwrap_or_else(|_| value.to_string().into());
    settings.iter().map(|(key, set_to)| (key.clone(), value(set_to))).collect()
}

/// Settings as options of `kvssd bench`.
pub fn arguments(settings: &[Setting]) -> impl Iterator<Item = String> {
    settings.iter().flat_map(|(key, value)| match value {
        value if key.contains('.') => vec![format!("--set={key}={}", text(value))],
        Value::Array(values) => values.iter().map(|value| format!("--{key}={}", text(value))).collect(),
        value => vec![format!("--{key}={}", text(value))],
    })
}

/// A value as it is given on a command line.
pub fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Keys with dots are tables within tables.
pub fn flat(table: Table) -> Vec<Setting> {
    let under = |(key, value): Setting| match value {
        Value::Table(inner) if !inner.contains_key("from") => {
            flat(inner).into_iter().map(|(name, value)| (format!("{key}.{name}"), value)).collect()
        }
        value => vec![(key, value)],
    };
    table.into_iter().flat_map(under).collect()
}

/// A row of that name.
fn row((name, value): (String, Value)) -> Result<(String, Vec<Setting>), String> {
    match value {
        _ if name.trim().is_empty() || name.contains(char::is_control) => {
            Err(format!("{name:?}: a row has a name of one line"))
        }
        Value::Table(table) => Ok((name, flat(table))),
        _ => Err(format!("{name}: a row is a table: [rows.\"{name}\"]")),
    }
}

/// An axis of several keys.
fn together(table: Table) -> Result<Axis, String> {
    let keys = flat(table).into_iter().map(|(key, value)| values(&key, value).map(|values| (key, values)));
    let axis = Axis(keys.collect::<Result<_, _>>()?);
    let Some((first, of_first)) = axis.0.first() else { return Err("[[pairs]] has no key".to_owned()) };
    match axis.0.iter().find(|(_, values)| values.len() != of_first.len()) {
        Some((key, values)) => {
            Err(format!("[[pairs]]: {first} has {} values and {key} has {}", of_first.len(), values.len()))
        }
        None => Ok(axis),
    }
}

/// The values of a key on an axis.
fn values(key: &str, value: Value) -> Result<Vec<Value>, String> {
    let values = match value {
        Value::Array(values) => values,
        Value::Table(range) => range
            .try_into::<Range>()
            .map_err(|why| one_line(&why))
            .and_then(|range| range.values())
            .map_err(|why| format!("{key}: {why}"))?,
        _ => return Err(format!("{key}: an axis is a list, or a range such as {{ from = 1, to = 5 }}")),
    };
    if values.is_empty() { Err(format!("{key}: an axis has at least one value")) } else { Ok(values) }
}

/// `{ from = 1, to = 9, step = 2 }` or `{ from = 64, to = 4096, times = 2 }`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    from: Value,
    to: Value,
    step: Option<Value>,
    times: Option<Value>,
}

impl Range {
    fn values(&self) -> Result<Vec<Value>, String> {
        let (next, by): (fn(f64, f64) -> f64, _) = match (&self.step, &self.times) {
            (step, None) => (|at, step| at + step, step.as_ref().unwrap_or(&Value::Integer(1))),
            (None, Some(times)) => (|at, times| at * times, times),
            _ => return Err("a range has step or times".to_owned()),
        };
        let all = [&self.from, &self.to, by];
        let are_whole = all.iter().all(|value| value.is_integer());
        let [Some(from), Some(to), Some(by)] = all.map(number) else {
            return Err("from, to, step and times of a range are numbers".to_owned());
        };
        if next(from, by) <= from {
            return Err("a range goes up: step is above 0, times is above 1 and from above 0".to_owned());
        }
        let mut values = Vec::new();
        let mut at = from;
        // A last step may miss the end by a rounding.
        while at <= to * (1.0 + f64::EPSILON * 16.0) && values.len() <= POINTS_MAX {
            values.push(if are_whole { Value::Integer(at as i64) } else { Value::Float(at) });
            at = next(at, by);
        }
        Ok(values)
    }
}

/// A number of a size that a range has.
fn number(value: &Value) -> Option<f64> {
    const EXACT_MAX: f64 = 9e15;
    let number = value.as_integer().map(|whole| whole as f64).or(value.as_float())?;
    (number.abs() <= EXACT_MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(text: &str) -> Vec<String> {
        let file = SweepFile::parse(text).unwrap();
        let line = |place: &Place| arguments(&place.settings).collect::<Vec<_>>().join(" ");
        file.points().unwrap().iter().map(line).collect()
    }

    #[test]
    fn rows_have_names_and_go_before_what_is_for_all() {
        let text = "[options]\nthreads = 4\n[rows.'one by one']\nthreads = 1\nnand.erase_ns = 0\n[rows.many]\n[axes]\nseed = [1, 2]";
        let one = "--threads=1 --set=nand.erase_ns=0 --seed=";
        let many = "--threads=4 --seed=";
        assert_eq!(points(text), [format!("{one}1"), format!("{one}2"), format!("{many}1"), format!("{many}2")]);
        let at = &SweepFile::parse(text).unwrap().points().unwrap()[1].at;
        assert_eq!(json(at), serde_json::from_str("{\"row\": \"one by one\", \"seed\": 2}").unwrap());
    }

    #[test]
    fn axes_are_crossed_in_their_order_and_pairs_go_together() {
        let text = "[axes]\nworkload = ['ycsb-b', 'ycsb-a']\nnand.erase_ns = [1, 2]\n[[pairs]]\nthreads = [1, 20]\nrate = [5.5, 6]";
        let all = points(text);
        assert_eq!(all.len(), 8);
        assert_eq!(all[0], "--workload=ycsb-b --set=nand.erase_ns=1 --threads=1 --rate=5.5");
        assert_eq!(all[1], "--workload=ycsb-b --set=nand.erase_ns=1 --threads=20 --rate=6");
        assert_eq!(all[7], "--workload=ycsb-a --set=nand.erase_ns=2 --threads=20 --rate=6");
        assert_eq!(points("[options]\nscale = 0.5"), ["--scale=0.5"]);
        let lists = "[axes]\ndb-bench = [['fillseq', 'readseq']]\n'nand.read_small_ns' = [[1, 2]]";
        assert_eq!(points(lists), ["--db-bench=fillseq --db-bench=readseq --set=nand.read_small_ns=[1, 2]"]);
    }

    #[test]
    fn the_same_as_json_is_the_same() {
        let text = "[options]\nscale = '1/256'\n[axes]\nnand.erase_ns = [1, 2]\nseed = { from = 1, to = 2 }\n[[pairs]]\nrate = [5.5, 6]";
        let json = r#"{"options": {"scale": "1/256"}, "axes": {"nand": {"erase_ns": [1, 2]}, "seed": {"from": 1, "to": 2}},
            "pairs": [{"rate": [5.5, 6]}]}"#;
        assert_eq!(SweepFile::of_json(json), SweepFile::parse(text));
        assert!(SweepFile::of_json(r#"{"axis": {}}"#).unwrap_err().contains("unknown field `axis`"));
    }

    #[test]
    fn ranges_have_their_ends() {
        assert_eq!(points("[axes]\nseed = { from = 2, to = 4 }"), ["--seed=2", "--seed=3", "--seed=4"]);
        assert_eq!(
            points("[axes]\nkey-bytes = { from = 4, to = 17, times = 2 }"),
            ["--key-bytes=4", "--key-bytes=8", "--key-bytes=16"]
        );
        assert_eq!(points("[axes]\nfill = { from = 0.1, to = 0.3, step = 0.1 }").len(), 3);
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (text, why) in [
            ("[axis]\nseed = [1]", "unknown field `axis`"),
            ("[axes]\nseed = 1", "seed: an axis is a list"),
            ("[axes]\nseed = []", "seed: an axis has at least one value"),
            ("[axes]\nseed = { from = 1, to = 0 }", "at least one value"),
            ("[axes]\nseed = { from = 0, to = 9, times = 2 }", "goes up"),
            ("[axes]\nseed = { from = 0, to = 9, step = 0 }", "goes up"),
            ("[axes]\nseed = { from = 0, to = nan }", "are numbers"),
            ("[axes]\nseed = { from = 0, to = 9, steps = 2 }", "unknown field `steps`"),
            ("[options]\nseed = 1\n[axes]\nseed = [1]", "seed is set twice"),
            ("[[pairs]]\nseed = [1, 2]\nthreads = [1]", "seed has 2 values and threads has 1"),
            ("[[pairs]]", "has no key"),
            ("[rows]\na = 1", "a: a row is a table"),
            ("[rows.'']\nseed = 1", "\"\": a row has a name of one line"),
            ("[rows.\"a\\nb\"]\nseed = 1", "a row has a name of one line"),
            ("[axes]\nrow = ['a']", "row is the axis of the rows"),
            ("[rows.a]\nseed = 1\n[axes]\nseed = [1]", "seed is set in the row a and on an axis"),
            ("seed", "key"),
        ] {
            let message = SweepFile::parse(text).unwrap_err();
            assert!(message.contains(why) && !message.contains('\n'), "{text}: {message}");
        }
        let many = "[axes]\nseed = { from = 1, to = 1000 }\nthreads = { from = 1, to = 1000 }";
        assert!(SweepFile::parse(many).unwrap().points().unwrap_err().contains("100000"));
    }
}
