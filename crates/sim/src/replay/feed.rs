//! The next requests of a trace, a few at a time, so that the drive's memory can be told of them.

use crate::trace::{Request, Requests, TraceError, TraceReader};
use kvssd_types::Key;

/// How many requests are read at a time, at least.
const LOOK_AHEAD: usize = 32;

/// Further readers of the same trace, to be replayed behind it.
pub type Rounds<'a> = Box<dyn Iterator<Item = Result<TraceReader<'a>, TraceError>> + 'a>;

/// Requests that were read and not given out yet.
pub(super) struct Feed<'a> {
    reader: TraceReader<'a>,
    further: Rounds<'a>,
    requests: Requests,
    next: usize,
    /// How often the next one was given out.
    given: u32,
    /// Lines of the rounds before, and bad ones among them.
    lines_before: [u64; 2],
    /// The first and the last time of a round by the trace's clock, and by how much this round is later than the first.
    span_ns: Option<(u64, u64)>,
    delay_ns: u64,
}

impl<'a> Feed<'a> {
    pub(super) fn new(reader: TraceReader<'a>, further: Rounds<'a>) -> Self {
        Feed {
            reader,
            further,
            requests: Requests::new(),
            next: 0,
            given: 0,
            lines_before: [0; 2],
            span_ns: None,
            delay_ns: 0,
        }
    }

    /// How long the clock of the trace takes to go on.
    pub(super) fn tick_ns(&self) -> u64 {
        self.reader.tick_ns()
    }

    /// Lines or records of all rounds, and bad ones among them.
    pub(super) fn lines(&self) -> [u64; 2] {
        let [lines, bad] = self.lines_before;
        [lines + self.reader.lines(), bad + self.reader.bad_lines()]
    }

    /// The error of a trace without requests.
    pub(super) fn empty(&self) -> TraceError {
        self.reader.empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.next == self.requests.len()
    }

    /// Reads the next requests, when those before are through.
    pub(super) fn fill(&mut self) -> Result<(), TraceError> {
        assert!(self.is_empty(), "requests are not skipped");
        self.requests.clear();
        self.next = 0;
        self.reader.fill(&mut self.requests, LOOK_AHEAD)?;
        while self.requests.is_empty() {
            let Some(again) = self.further.next() else { return Ok(()) };
            let round_ns = self.span_ns.map_or(Some(0), |(first, last)| (last - first).checked_add(self.tick_ns()));
            let delay_ns = round_ns.and_then(|round_ns| self.delay_ns.checked_add(round_ns));
            self.delay_ns = delay_ns.ok_or(TraceError::Endless)?;
            self.lines_before = self.lines();
            self.reader = again?;
            self.reader.fill(&mut self.requests, LOOK_AHEAD)?;
        }
        for at_ns in self.requests.list().iter().filter_map(|request| request.at_ns) {
            let (first, last) = self.span_ns.unwrap_or((at_ns, at_ns));
            self.span_ns = Some((first, last.max(at_ns)));
        }
        self.requests.delay(self.delay_ns).ok_or(TraceError::Endless)
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
