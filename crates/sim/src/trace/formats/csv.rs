//! Any table: comma-separated values with a header, quoted where they must be (RFC 4180); a row is a line.
//!
//! | column, any case | meaning | when it is not there |
//! |---|---|---|
//! | `key` | the key | an error |
//! | `op` or `operation` | a command of memcached, or put, store, retrieve, read, write, update, exist, head ([`Action::named`]) | each row is a [`Action::Fetch`] |
//! | `value_size` or `size` | bytes of the value | the caller's |
//! | `key_size` | bytes of the key, if it was longer than it is written | as written |
//! | `timestamp` or `time`, in seconds; `timestamp_ms`, `timestamp_us`, `timestamp_ns` | when; decimals are fine | there is no pace to keep |
//! | `ttl` | counted | |
//! | `stream` or `tenant` | whose pairs die together: a placement handle for each, on a drive that has some | pairs of a size do |
//!
//! Other columns are not looked at; a row with more fields than the header is none. Spaces around a field, also around a key, are no part of it. What each of these is called may be said ([`ColumnName`]).

use super::super::fields::{BadRecord, Row, small_letters, time_ns, ttl_ns};
use super::super::{Action, Framing, Request, Requests, TraceFormat};
use std::str::FromStr;
use xxhash_rust::xxh3::xxh3_64;

/// Columns for the time, and their units in nanoseconds.
const TIMES: [(&[&str], u64); 4] = [
    (&["timestamp", "time", "timestamp_s"], 1_000_000_000),
    (&["timestamp_ms"], 1_000_000),
    (&["timestamp_us"], 1_000),
    (&["timestamp_ns"], 1),
];

const UNKNOWN: BadRecord = BadRecord::new(
    "op",
    "is none that is known, which are get, set, add, replace, append, incr, delete, exist, fetch and what they are also called",
);

/// What a column of a table is called, where that is none of the names in the list above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnName {
    meaning: &'static str,
    name: String,
}

impl ColumnName {
    /// What the column means, as it was given.
    #[must_use]
    pub fn meaning(&self) -> &'static str {
        self.meaning
    }
}

impl FromStr for ColumnName {
    type Err = String;

    /// As `key=obj_id`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (meaning, name) = text.split_once('=').ok_or("write it as meaning=name, such as key=obj_id")?;
        let known = MEANINGS.iter().find(|known| **known == meaning);
        let known =
            known.ok_or_else(|| format!("{meaning} is no meaning of a column; there are {}", MEANINGS.join(", ")))?;
        Ok(ColumnName { meaning: known, name: name.trim().to_owned() })
    }
}

/// What columns mean.
const MEANINGS: [&str; 10] = [
    "key",
    "op",
    "value_size",
    "key_size",
    "timestamp",
    "timestamp_ms",
    "timestamp_us",
    "timestamp_ns",
    "ttl",
    "stream",
];

/// Any table.
#[derive(Clone, Debug)]
pub(in crate::trace) struct Csv {
    row: Row,
    names: Vec<ColumnName>,
    value_bytes: u64,
    columns: Option<Columns>,
}

#[derive(Clone, Copy, Debug)]
struct Columns {
    key: usize,
    operation: Option<usize>,
    value_bytes: Option<usize>,
    key_bytes: Option<usize>,
    time: Option<(usize, u64)>,
    ttl: Option<usize>,
    stream: Option<usize>,
}

impl Csv {
    pub(in crate::trace) fn new(value_bytes: u64, names: Vec<ColumnName>) -> Self {
        Csv { row: Row::new(), names, value_bytes, columns: None }
    }
}

/// The columns of a header; some have names that were `said`.
fn header(row: &Row, said: &[ColumnName]) -> Result<Columns, BadRecord> {
    for column in said {
        row.find(column.meaning, &[&column.name])?.ok_or(BadRecord::lacking(column.meaning))?;
    }
    let find = |names: &[&'static str]| {
        let column = said.iter().find(|column| names.contains(&column.meaning));
        column.map_or_else(|| row.find(names[0], names), |column| row.find(column.meaning, &[&column.name]))
    };
    let is_time_said = said.iter().any(|column| column.meaning.starts_with("timestamp"));
    let is_said = |names: &[&str]| said.iter().any(|column| names.contains(&column.meaning));
    let times = TIMES.iter().filter(|(names, _)| !is_time_said || is_said(names));
    let times = times.map(|(names, unit_ns)| Ok(find(names)?.map(|column| (column, *unit_ns))));
    let times = times.collect::<Result<Vec<_>, _>>()?;
    Ok(Columns {
        key: find(&["key"])?.ok_or(BadRecord::lacking("key"))?,
        operation: find(&["op", "operation"])?,
        value_bytes: find(&["value_size", "size"])?,
        key_bytes: find(&["key_size"])?,
        time: times.into_iter().flatten().next(),
        ttl: find(&["ttl"])?,
        stream: find(&["stream", "tenant"])?,
    })
}

impl TraceFormat for Csv {
    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn tick_ns(&self) -> u64 {
        self.columns.and_then(|columns| columns.time).map_or(0, |(_, unit_ns)| unit_ns)
    }

    fn parse(&mut self, line: &[u8], requests: &mut Requests) -> Result<(), BadRecord> {
        let columns = self.row.split_below(&mut self.columns, line, |row| header(row, &self.names))?;
        let Some(columns) = columns else { return Ok(()) };
        let field = |index| self.row.field(index);
        let mut room = [0; 16];
        let action = match columns.operation.map(field).transpose()? {
            None => Action::Fetch,
            Some(name) => Action::named(small_letters(name, &mut room)).ok_or_else(|| UNKNOWN.found(name))?,
        };
        let time = |text, unit_ns| time_ns(text, unit_ns).ok_or_else(|| BadRecord::number("timestamp").found(text));
        let at_ns = match columns.time {
            None => None,
            Some((index, unit_ns)) => Some(time(field(index)?, unit_ns)?),
        };
        let request = Request {
            at_ns,
            ttl_ns: ttl_ns(self.row.number_or(0, columns.ttl, "ttl")?),
            stream: columns.stream.map(field).transpose()?.map(xxh3_64),
            ..Request::new(action, self.row.number_or(self.value_bytes, columns.value_bytes, "value size")?)
        };
        requests.push(field(columns.key)?, self.row.number_or(0, columns.key_bytes, "key_size")?, request);
        Ok(())
    }
}
