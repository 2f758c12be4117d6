//! Meta's kvcache, 2022 and 2024 (CacheLib, "CacheBench traces"): comma-separated, columns by the names in the header.
//!
//! ```text
//!   2022   key,op,size,op_count,key_size
//!   2024   op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase
//! ```
//!
//! `op` is GET, GET_LEASE, SET, SET_LEASE or DELETE, any case. A line stands for `op_count` requests, which follow each other. `op_time`
//! is in seconds. A column that is not there is as if it were empty; `key`, `op` and `op_count` must be there, which tells this
//! format from any other table.

use super::super::fields::{BadRecord, Row, number, small_letters, time_ns, ttl_ns};
use super::super::{Action, Request, Requests, TraceFormat};

/// The most requests of a line: no second of a cache has more of a key, and a slip of a digit must not take a day.
const OPERATIONS_MAX: u64 = 1_000_000;

/// Meta's format.
#[derive(Clone, Debug)]
pub(in crate::trace) struct Meta {
    row: Row,
    columns: Option<Columns>,
}

#[derive(Clone, Copy, Debug)]
struct Columns {
    key: usize,
    operation: usize,
    count: usize,
    value_bytes: Option<usize>,
    key_bytes: Option<usize>,
    time: Option<usize>,
    ttl: Option<usize>,
}

impl Meta {
    pub(in crate::trace) fn new() -> Self {
        Meta { row: Row::new(), columns: None }
    }
}

fn header(row: &Row) -> Result<Columns, BadRecord> {
    Ok(Columns {
        key: row.column("key")?,
        operation: row.column("op")?,
        count: row.column("op_count")?,
        value_bytes: row.find("size", &["size"])?,
        key_bytes: row.find("key_size", &["key_size"])?,
        time: row.find("op_time", &["op_time"])?,
        ttl: row.find("ttl", &["ttl"])?,
    })
}

impl TraceFormat for Meta {
    fn tick_ns(&self) -> u64 {
        1_000_000_000
    }

    fn parse(&mut self, line: &[u8], requests: &mut Requests) -> Result<(), BadRecord> {
        let Some(columns) = self.row.split_below(&mut self.columns, line, header)? else { return Ok(()) };
        let field = |index| self.row.field(index);
        let maybe = |index, name| self.row.number_or(0, index, name);
        let mut room = [0; 16];
        let action = match small_letters(field(columns.operation)?, &mut room) {
            b"get" | b"get_lease" => Action::Get,
            b"set" | b"set_lease" => Action::Set,
            b"delete" => Action::Delete,
            _ => {
                let why = "is none that is known, which are GET, GET_LEASE, SET, SET_LEASE and DELETE";
                return Err(BadRecord::new("op", why).found(field(columns.operation)?));
            }
        };
        let times = number(field(columns.count)?).filter(|count| (1..=OPERATIONS_MAX).contains(count));
        let at_ns = match columns.time.map(field).transpose()? {
            None => None,
            Some(text) => Some(time_ns(text, 1_000_000_000).ok_or(BadRecord::number("op_time"))?),
        };
        let request = Request {
            at_ns,
            times: times.ok_or(BadRecord::new("op_count", "is no number from 1 to a million"))? as u32,
            ttl_ns: ttl_ns(maybe(columns.ttl, "ttl")?),
            ..Request::new(action, maybe(columns.value_bytes, "size")?)
        };
        requests.push(field(columns.key)?, maybe(columns.key_bytes, "key_size")?, request);
        Ok(())
    }
}
