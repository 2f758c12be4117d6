//! What MLPerf Storage's benchmark of KV caches asks of its tiers, as it writes it down instead of asking (`kv-cache.py --io-trace-log FILE`;
//! mlcommons/storage, `kv_cache_benchmark/kv_cache/tracer.py` and `docs/io_trace_log_usage.md`, 2026): comma-separated, with a header.
//!
//! ```text
//!   Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase
//!   1740553426.194521,Write,131072,Tier-2,layer0/user0,Evict
//! ```
//!
//! `Tier-2` are the drives; what memory of an accelerator (`Tier-0`) and of the host (`Tier-1`) is asked for comes to none of them, and is passed
//! over. A `Read` is an [`Action::Get`]: what is read was written before, and what a cache let go is computed anew, by a `Write` of its own. What
//! leaves the drives is not in the trace: a cache on the drive says so.

use super::super::fields::{BadRecord, Row, number, time_ns};
use super::super::{Action, Request, Requests, TraceFormat};

/// The columns that are looked at, by their place among [`MlPerf::columns`].
const NAMES: [&str; 5] = ["Timestamp", "Operation", "Object_Size_Bytes", "Tier", "Key"];
const DRIVES: &[u8] = b"Tier-2";
const OTHER_TIERS: [&[u8]; 2] = [b"Tier-0", b"Tier-1"];

/// MLPerf's format.
#[derive(Clone, Debug)]
pub(in crate::trace) struct MlPerf {
    row: Row,
    columns: Option<[usize; NAMES.len()]>,
}

impl Default for MlPerf {
    fn default() -> Self {
        MlPerf { row: Row::new(), columns: None }
    }
}

fn header(row: &Row) -> Result<[usize; NAMES.len()], BadRecord> {
    let mut columns = [0; NAMES.len()];
    for (column, name) in columns.iter_mut().zip(NAMES) {
        *column = row.column(name)?;
    }
    Ok(columns)
}

impl TraceFormat for MlPerf {
    fn tick_ns(&self) -> u64 {
        1_000
    }

    fn parse(&mut self, line: &[u8], requests: &mut Requests) -> Result<(), BadRecord> {
        let Some(columns) = self.row.split_below(&mut self.columns, line, header)? else { return Ok(()) };
        let field = |index: usize| self.row.field(columns[index]);
        let action = match field(1)? {
            b"Read" => Action::Get,
            b"Write" => Action::Set,
            other => return Err(BadRecord::new("Operation", "is neither Read nor Write").found(other)),
        };
        let at_ns = time_ns(field(0)?, 1_000_000_000).ok_or(BadRecord::number("Timestamp"))?;
        let bytes = number(field(2)?).ok_or(BadRecord::number("Object_Size_Bytes"))?;
        match field(3)? {
            DRIVES => requests.push(field(4)?, 0, Request { at_ns: Some(at_ns), ..Request::new(action, bytes) }),
            tier if OTHER_TIERS.contains(&tier) => {}
            other => return Err(BadRecord::new("Tier", "is none of Tier-0, Tier-1 and Tier-2").found(other)),
        }
        Ok(())
    }
}
