//! Mooncake's LLM requests (FAST 2025, <https://github.com/kvcache-ai/Mooncake>): JSON lines.
//!
//! ```text
//!   {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48]}
//! ```
//!
//! The time is in milliseconds. Each hash id stands for a block of about 512 tokens whose keys and values were computed: is it there? Then
//! it is retrieved, else it is computed and stored ([`Action::Probe`]). How large a block is depends on the model and is not in the
//! trace; one of an 8B model has 64 MiB, more than a drive's largest value. The size is the caller's.

use super::super::fields::BadRecord;
use super::super::{Action, Block, Request, Requests, TraceFormat};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Mooncake's format.
#[derive(Clone, Debug)]
pub(in crate::trace) struct Mooncake {
    value_bytes: u64,
    ids: Vec<u64>,
}

impl Mooncake {
    pub(in crate::trace) fn new(value_bytes: u64) -> Self {
        Mooncake { value_bytes, ids: Vec::new() }
    }
}

impl TraceFormat for Mooncake {
    fn tick_ns(&self) -> u64 {
        1_000_000
    }

    fn parse(&mut self, line: &[u8], requests: &mut Requests) -> Result<(), BadRecord> {
        self.ids.clear();
        let mut json = serde_json::Deserializer::from_slice(line);
        let found = Line(&mut self.ids).deserialize(&mut json).and_then(|found| json.end().map(|()| found));
        let (time_ms, has_ids) = found.map_err(|_| BadRecord::new("the line", "is no JSON of a request"))?;
        if !has_ids {
            return Err(BadRecord::new("hash_ids", "is not there"));
        }
        let time_ns = |time_ms: f64| (time_ms * 1e6).round() as u64;
        let at_ns = time_ms.filter(|time_ms| (0.0..1e12).contains(time_ms)).map(time_ns);
        let at_ns = Some(at_ns.ok_or(BadRecord::number("timestamp"))?);
        let of = self.ids.len() as u32;
        for (number, id) in (0..of).zip(&self.ids) {
            let block = Some(Block { number, of });
            let request = Request { at_ns, block, ..Request::new(Action::Probe, self.value_bytes) };
            requests.push(&id.to_be_bytes(), 8, request);
        }
        Ok(())
    }
}

/// Reads an object: its time in milliseconds, and whether it has hash ids, which go to the vector.
struct Line<'a>(&'a mut Vec<u64>);

impl<'de> DeserializeSeed<'de> for Line<'_> {
    type Value = (Option<f64>, bool);

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Line<'_> {
    type Value = (Option<f64>, bool);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with timestamp and hash_ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut time_ms, mut has_ids) = (None, false);
        while let Some(name) = map.next_key::<Name>()? {
            match name {
                Name::Timestamp => time_ms = Some(map.next_value::<f64>()?),
                Name::HashIds => {
                    map.next_value_seed(Ids(self.0))?;
                    has_ids = true;
                }
                Name::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok((time_ms, has_ids))
    }
}

/// The names that are looked at.
#[derive(serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Name {
    Timestamp,
    HashIds,
    #[serde(other)]
    Other,
}

struct Ids<'a>(&'a mut Vec<u64>);

impl<'de> DeserializeSeed<'de> for Ids<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Ids<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut ids: A) -> Result<(), A::Error> {
        while let Some(id) = ids.next_element::<u64>()? {
            self.0.push(id);
        }
        Ok(())
    }
}
