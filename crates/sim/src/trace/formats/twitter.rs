//! Twitter's cache clusters, 2020 (<https://github.com/twitter/cache-trace>): comma-separated, without a header.
//!
//! ```text
//!   timestamp s, key, key size, value size, client, operation, TTL s
//!   0,q:q:1:8WTfjZU14ee,17,213,4,get,0
//! ```
//!
//! The operation is one of get, gets, set, add, replace, cas, append, prepend, delete, incr and decr ([`Action::named`]). The key may hold
//! commas: the fields around it are counted from both ends. The client is not looked at.

use super::super::fields::{BadRecord, number, time_ns, ttl_ns};
use super::super::{Action, Request, Requests, TraceFormat};

/// Twitter's format.
#[derive(Clone, Copy, Debug)]
pub(in crate::trace) struct Twitter;

const UNKNOWN: BadRecord = BadRecord::new(
    "operation",
    "is none that is known, which are get, gets, set, add, replace, cas, append, prepend, delete, incr and decr",
);
const FEW: BadRecord = BadRecord::new("the line", "has fewer than the 7 fields of a Twitter trace");

impl TraceFormat for Twitter {
    fn tick_ns(&self) -> u64 {
        1_000_000_000
    }

    fn parse(&mut self, line: &[u8], requests: &mut Requests) -> Result<(), BadRecord> {
        let (time, rest) = cut(line, memchr::memchr(b',', line))?;
        let (rest, ttl) = cut(rest, memchr::memrchr(b',', rest))?;
        let (rest, operation) = cut(rest, memchr::memrchr(b',', rest))?;
        let (rest, _client) = cut(rest, memchr::memrchr(b',', rest))?;
        let (rest, value_bytes) = cut(rest, memchr::memrchr(b',', rest))?;
        let (key, key_bytes) = cut(rest, memchr::memrchr(b',', rest))?;
        let action = Action::named(operation).ok_or_else(|| UNKNOWN.found(operation))?;
        let request = Request {
            at_ns: Some(time_ns(time, 1_000_000_000).ok_or(BadRecord::number("timestamp"))?),
            ttl_ns: ttl_ns(number(ttl).ok_or(BadRecord::number("TTL"))?),
            ..Request::new(action, number(value_bytes).ok_or(BadRecord::number("value size"))?)
        };
        requests.push(key, number(key_bytes).ok_or(BadRecord::number("key size"))?, request);
        Ok(())
    }
}

/// The fields before and after a comma.
fn cut(line: &[u8], comma: Option<usize>) -> Result<(&[u8], &[u8]), BadRecord> {
    comma.map(|at| (&line[..at], &line[at + 1..])).ok_or(FEW)
}
