//! libCacheSim's oracleGeneral (<https://github.com/1a1a11a/libCacheSim>): records of 24 bytes, low end first, packed.
//!
//! ```text
//!   u32 time s | u64 object | u32 size | i64 when it is asked for again, or -1
//! ```
//!
//! There are no operations: each record is a request that stores the object when it is not there ([`Action::Fetch`]), as caches do that
//! replay it. The last field is for caches that know the future, and not looked at. No 24 bytes are wrong.

use super::super::fields::BadRecord;
use super::super::{Action, Framing, Request, Requests, TraceFormat};

const RECORD_BYTES: usize = 24;

/// libCacheSim's format.
#[derive(Clone, Copy, Debug)]
pub(in crate::trace) struct OracleGeneral;

impl TraceFormat for OracleGeneral {
    fn framing(&self) -> Framing {
        Framing::Records(RECORD_BYTES)
    }

    fn tick_ns(&self) -> u64 {
        1_000_000_000
    }

    fn parse(&mut self, record: &[u8], requests: &mut Requests) -> Result<(), BadRecord> {
        let record: &[u8; RECORD_BYTES] =
            record.try_into().map_err(|_| BadRecord::new("the record", "has fewer than 24 bytes: the file is cut"))?;
        let number = |at: usize, bytes: usize| {
            record[at..at + bytes].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
        };
        let at_ns = Some(number(0, 4) * 1_000_000_000);
        let object = number(4, 8).to_be_bytes();
        requests.push(&object, 8, Request { at_ns, ..Request::new(Action::Fetch, number(12, 4)) });
        Ok(())
    }
}
