//! libCacheSim's own format (<https://github.com/1a1a11a/libCacheSim>, `lcs.h`): a header of 1024 bytes that says what records look like, then
//! records, all low end first, packed.
//!
//! ```text
//!   0    u64 magic | 240 bytes: "<" and a letter of Python's struct module for each field
//!   248  u8 each, the number of the field from 1 on or 0: object, size, time, last access, next access, operation, TTL, ...
//!   1000 u32 number of fields | u32 bytes of a record | u64 version | u64 magic
//! ```
//!
//! Times and TTLs are seconds. Without an operation a record is a request that stores the object when it is not there ([`Action::Fetch`]), as
//! caches do that replay it; with one it is a command of memcached.

use super::super::fields::{BadRecord, ttl_ns};
use super::super::{Action, Framing, Request, Requests, TraceFormat};
use std::ops::Range;

const HEADER_BYTES: usize = 1024;
const MAGIC: [u8; 8] = 0x1234_5678_9abc_def0_u64.to_le_bytes();
const FORMAT: Range<usize> = 8..248;
/// Where the header says which fields are which: object, size, time, operation, TTL.
const FIELDS: [usize; 5] = [248, 249, 250, 253, 254];
const RECORD_BYTES: Range<usize> = 1004..1008;
const END_MAGIC: Range<usize> = 1016..1024;

/// libCacheSim's operations, by number.
const OPERATIONS: [&[u8]; 15] = [
    b"nop", b"get", b"gets", b"set", b"add", b"cas", b"replace", b"append", b"prepend", b"delete", b"incr", b"decr",
    b"read", b"write", b"update",
];

/// libCacheSim's format.
#[derive(Clone, Debug, Default)]
pub(in crate::trace) struct Lcs {
    layout: Option<Layout>,
}

/// Where in a record the fields lie.
#[derive(Clone, Debug)]
struct Layout {
    record_bytes: usize,
    object: Range<usize>,
    size: Option<Range<usize>>,
    time: Option<Range<usize>>,
    operation: Option<Range<usize>>,
    ttl: Option<Range<usize>>,
}

impl Lcs {
    /// Whether a file begins as these do.
    pub(in crate::trace) fn is_begun(sample: &[u8]) -> bool {
        sample.starts_with(&MAGIC)
    }
}

/// A header that does not say what its records are.
fn unreadable(why: &'static str) -> BadRecord {
    BadRecord { is_fatal: true, ..BadRecord::new("the header", why) }
}

impl Layout {
    fn of(header: &[u8]) -> Result<Layout, BadRecord> {
        if header.len() < HEADER_BYTES || !Lcs::is_begun(header) || header[END_MAGIC] != MAGIC {
            return Err(unreadable("is none of libCacheSim's lcs"));
        }
        let format = &header[FORMAT];
        let letters = format.split(|&byte| byte == 0).next().unwrap_or_default();
        let letters = letters.strip_prefix(b"<").ok_or(unreadable("does not say that its fields are low end first"))?;
        let mut places: Vec<Range<usize>> = Vec::with_capacity(letters.len());
        for letter in letters {
            let start = places.last().map_or(0, |before| before.end);
            let bytes = match letter {
                b'b' | b'B' | b'c' => 1,
                b'h' | b'H' => 2,
                b'i' | b'I' => 4,
                b'q' | b'Q' => 8,
                _ => return Err(unreadable("has a field that is no whole number")),
            };
            places.push(start..start + bytes);
        }
        let record_bytes = places.last().map_or(0, |last| last.end);
        let said = header[RECORD_BYTES].iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte));
        if said != record_bytes || record_bytes == 0 {
            return Err(unreadable("says another size of records than its fields have"));
        }
        let [object, size, time, operation, ttl] = FIELDS.map(|at| usize::from(header[at]));
        let place = |number: usize| match number.checked_sub(1) {
            None => Ok(None),
            Some(index) => places.get(index).cloned().map(Some).ok_or(unreadable("names a field that is not there")),
        };
        Ok(Layout {
            record_bytes,
            object: place(object)?.ok_or(unreadable("names no field for objects"))?,
            size: place(size)?,
            time: place(time)?,
            operation: place(operation)?,
            ttl: place(ttl)?,
        })
    }
}

impl TraceFormat for Lcs {
    fn framing(&self) -> Framing {
        Framing::Records(self.layout.as_ref().map_or(HEADER_BYTES, |layout| layout.record_bytes))
    }

    fn tick_ns(&self) -> u64 {
        1_000_000_000
    }

    fn parse(&mut self, record: &[u8], requests: &mut Requests) -> Result<(), BadRecord> {
        let Some(layout) = &self.layout else {
            self.layout = Some(Layout::of(record)?);
            return Ok(());
        };
        if record.len() < layout.record_bytes {
            return Err(BadRecord::new("the record", "has too few bytes: the file is cut"));
        }
        let number = |place: &Range<usize>| {
            record[place.clone()].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
        };
        let maybe = |place: &Option<Range<usize>>| place.as_ref().map(number);
        let action = match maybe(&layout.operation) {
            None => Action::Fetch,
            Some(0) => return Ok(()),
            Some(number) => {
                let name = usize::try_from(number).ok().and_then(|number| OPERATIONS.get(number));
                let action = name.and_then(|name| Action::named(name));
                action.ok_or(BadRecord::new("the operation", "is none that is known"))?
            }
        };
        let at_ns =
            maybe(&layout.time).map(|seconds| seconds.checked_mul(1_000_000_000).ok_or(BadRecord::number("the time")));
        let request = Request {
            at_ns: at_ns.transpose()?,
            ttl_ns: ttl_ns(maybe(&layout.ttl).unwrap_or(0)),
            ..Request::new(action, maybe(&layout.size).unwrap_or(0))
        };
        requests.push(&number(&layout.object).to_be_bytes(), 8, request);
        Ok(())
    }
}
