//! The next requests of a trace, a few at a time, so that the drive's memory can be told of them.

use crate::trace::{Request, Requests, TraceError, TraceReader};
use kvssd_types::Key;

/// How many requests are read at a time, at least.
const LOOK_AHEAD: usize = 32;

/// Requests that were read and not given out yet.
pub(super) struct Feed<'a> {
    reader: TraceReader<'a>,
    requests: Requests,
    next: usize,
    /// How often the next one was given out.
    given: u32,
}

impl<'a> Feed<'a> {
    pub(super) fn new(reader: TraceReader<'a>) -> Self {
        Feed { reader, requests: Requests::new(), next: 0, given: 0 }
    }

    pub(super) fn reader(&self) -> &TraceReader<'a> {
        &self.reader
    }

    pub(super) fn is_empty(&self) -> bool {
        self.next == self.requests.len()
    }

    /// Reads the next requests, when those before are through.
    pub(super) fn fill(&mut self) -> Result<(), TraceError> {
        assert!(self.is_empty(), "requests are not skipped");
        self.requests.clear();
        self.next = 0;
        self.reader.fill(&mut self.requests, LOOK_AHEAD)
    }

    /// What was read last.
    pub(super) fn requests(&self) -> &Requests {
        &self.requests
    }

    pub(super) fn peek(&self) -> &Request {
        &self.requests.list()[self.next]
    }

    /// Gives out the next request, each as many times as it says.
    pub(super) fn next(&mut self) -> (&Request, Key<'_>) {
        let request = &self.requests.list()[self.next];
        self.given += 1;
        if self.given >= request.times {
            self.given = 0;
            self.next += 1;
        }
        (request, self.requests.key(request))
    }
}
