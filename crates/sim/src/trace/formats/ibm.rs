//! IBM's Cloud Object Store, 2019 (SNIA IOTTA, trace set "IBM Object Store"): fields with a space between, without a header.
//!
//! ```text
//!   timestamp ms, REST.<operation>.OBJECT, object, size, first byte, last byte        the last three where there are any
//!   1219008 REST.PUT.OBJECT 8d4fcda3d675bac9 1056
//!   1221974 REST.HEAD.OBJECT 39d177fb735ac5df 528
//!   1232437 REST.GET.OBJECT 3b8255e0609a700d 1456 0 1455
//! ```
//!
//! PUT and COPY store, DELETE deletes, HEAD asks whether it is there. A GET retrieves, and stores when the object is not there
//! ([`Action::Fetch`]): who reads an object has stored it before, maybe before the trace began. A GET without a size is a plain
//! retrieve. The object is the key, as it is written.

use super::super::fields::{BadRecord, number, time_ns};
use super::super::{Action, Request, Requests, TraceFormat};

/// IBM's format.
#[derive(Clone, Copy, Debug)]
pub(in crate::trace) struct Ibm;

const FEW: BadRecord = BadRecord::new("the line", "has fewer than the 3 fields of an object store's request");

impl TraceFormat for Ibm {
    fn tick_ns(&self) -> u64 {
        1_000_000
    }

    fn parse(&mut self, line: &[u8], requests: &mut Requests) -> Result<(), BadRecord> {
        let mut fields = line.split(|&byte| byte == b' ').filter(|field| !field.is_empty());
        let mut must = || fields.next().ok_or(FEW);
        let (time, operation, object) = (must()?, must()?, must()?);
        let mut maybe = |name| match fields.next() {
            None | Some(b"-") => Ok(None),
            Some(text) => number(text).map(Some).ok_or(BadRecord::number(name)),
        };
        let (value_bytes, first, last) = (maybe("size")?, maybe("first byte")?, maybe("last byte")?);
        let action = match operation {
            b"REST.GET.OBJECT" | b"REST.COPY.OBJECT_GET" if value_bytes.is_some() => Action::Fetch,
            b"REST.GET.OBJECT" | b"REST.COPY.OBJECT_GET" => Action::Get,
            b"REST.PUT.OBJECT" | b"REST.COPY.OBJECT" => Action::Set,
            b"REST.DELETE.OBJECT" => Action::Delete,
            b"REST.HEAD.OBJECT" => Action::Exist,
            other => return Err(BadRecord::new("operation", "is none that is known").found(other)),
        };
        let part = match (first, last) {
            (Some(first), Some(last)) if first <= last => Some((first, (last - first).saturating_add(1))),
            (None, None) => None,
            _ => return Err(BadRecord::new("range", "has no first byte that lies before its last")),
        };
        let at_ns = Some(time_ns(time, 1_000_000).ok_or(BadRecord::number("timestamp"))?);
        let request = Request { at_ns, part, ..Request::new(action, value_bytes.unwrap_or(0)) };
        requests.push(object, object.len() as u64, request);
        Ok(())
    }
}
