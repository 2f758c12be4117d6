//! A trace from its bytes: cuts them into lines or records, numbers these, and says what is done about bad ones.

use super::fields::unmarked;
use super::{BadRecord, Framing, Requests, TraceFormat};
use std::io::{self, Read};
use thiserror::Error;

/// How much of a file is looked at to tell its format.
pub const SAMPLE_BYTES: usize = 1 << 16;

/// The longest line: some two hundred thousand blocks of an LLM's request. Also the size of the buffer.
const LINE_BYTES_MAX: usize = 1 << 21;

/// What is done about lines that are none of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadLines {
    /// The first one is an error.
    #[default]
    Stop,
    /// They are passed over and counted.
    Skip,
}

/// Why a trace cannot be read on.
#[derive(Debug, Error)]
pub enum TraceError {
    /// A line or record is none of the format.
    #[error("{what} {number}: {bad}")]
    Bad {
        /// `line` or `record`.
        what: &'static str,
        /// Its number, from 1 on.
        number: u64,
        /// What is wrong.
        bad: BadRecord,
    },
    /// A line without an end.
    #[error("line {number} has more than {LINE_BYTES_MAX} bytes: this is no such trace")]
    Long {
        /// Its number, from 1 on.
        number: u64,
    },
    /// Nothing is asked for.
    #[error("it has no request ({what}s that were read: {number})")]
    Empty {
        /// `line` or `record`.
        what: &'static str,
        /// How many there are, a header and bad ones among them.
        number: u64,
    },
    /// Its times pass what can be told.
    #[error(
        "repeated so often its times pass 2^64 ns (584 years), which is as late as it gets: ask for a smaller --repeat"
    )]
    Endless,
    /// It is to be read once more.
    #[error("it cannot be read again: {0}")]
    Again(io::Error),
    /// The file, or what it is compressed with.
    #[error("after {what} {number} it cannot be read: {why}")]
    Io {
        /// `line` or `record`.
        what: &'static str,
        /// The last one that was read whole.
        number: u64,
        /// What the system says.
        why: io::Error,
    },
}

/// Reads requests.
pub struct TraceReader<'a> {
    input: Box<dyn Read + 'a>,
    format: Box<dyn TraceFormat>,
    bad_lines: BadLines,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    is_at_end: bool,
    number: u64,
    bad: u64,
}

impl<'a> TraceReader<'a> {
    /// Of `input`, whose first bytes were read already and are given as `sample`.
    #[must_use]
    pub fn new(input: impl Read + 'a, sample: &[u8], format: Box<dyn TraceFormat>, bad_lines: BadLines) -> Self {
        let mut buffer = vec![0; LINE_BYTES_MAX.max(sample.len())];
        buffer[..sample.len()].copy_from_slice(sample);
        TraceReader {
            input: Box::new(input),
            format,
            bad_lines,
            buffer,
            start: 0,
            end: sample.len(),
            is_at_end: false,
            number: 0,
            bad: 0,
        }
    }

    /// See [`TraceFormat::tick_ns`].
    #[must_use]
    pub fn tick_ns(&self) -> u64 {
        self.format.tick_ns()
    }

    /// Lines or records so far, good and bad, headers and empty ones with them.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.number
    }

    /// Bad ones among them.
    #[must_use]
    pub fn bad_lines(&self) -> u64 {
        self.bad
    }

    /// Adds requests until there are `wanted` or the trace is at its end; a line may bring more.
    ///
    /// # Errors
    /// When a line is bad and bad ones are not skipped, or the file cannot be read.
    pub fn fill(&mut self, requests: &mut Requests, wanted: usize) -> Result<(), TraceError> {
        while requests.len() < wanted {
            let Some((from, to)) = self.next_piece()? else { return Ok(()) };
            self.number += 1;
            let from = if self.number == 1 { to - self.without_mark(from, to) } else { from };
            if from == to {
                continue;
            }
            let before = requests.len();
            if let Err(bad) = self.format.parse(&self.buffer[from..to], requests) {
                requests.truncate(before);
                self.bad += 1;
                if bad.is_fatal || self.bad_lines == BadLines::Stop {
                    return Err(TraceError::Bad { what: self.what(), number: self.number, bad });
                }
            }
        }
        Ok(())
    }

    /// Where the next line or record lies in the buffer, if there is one.
    fn next_piece(&mut self) -> Result<Option<(usize, usize)>, TraceError> {
        let mut searched = self.start;
        loop {
            let found = match self.format.framing() {
                Framing::Lines => memchr::memchr(b'\n', &self.buffer[searched..self.end]).map(|at| {
                    let end = searched + at;
                    (end, end + 1)
                }),
                Framing::Records(bytes) => {
                    Some(self.start + bytes).filter(|end| *end <= self.end).map(|end| (end, end))
                }
            };
            // The last line may lack its end; a record that does is wrong, which its format sees.
            let last = (self.end, self.end);
            if let Some((end, next)) = found.or((self.is_at_end && self.start < self.end).then_some(last)) {
                let from = std::mem::replace(&mut self.start, next);
                let is_crlf = self.format.framing() == Framing::Lines && self.buffer[from..end].ends_with(b"\r");
                return Ok(Some((from, end - usize::from(is_crlf))));
            }
            if self.is_at_end {
                return Ok(None);
            }
            let unread = self.end - self.start;
            self.read_more()?;
            searched = self.start + unread;
        }
    }

    /// Reads on, behind what is not parsed yet.
    fn read_more(&mut self) -> Result<(), TraceError> {
        if self.end == self.buffer.len() {
            if self.start == 0 {
                return Err(TraceError::Long { number: self.number + 1 });
            }
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.is_at_end = count == 0;
                    self.end += count;
                    return Ok(());
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(TraceError::Io { what: self.what(), number: self.number, why }),
            }
        }
    }

    /// The length of the first line behind a mark of byte order, which is no part of what it says.
    fn without_mark(&self, from: usize, to: usize) -> usize {
        let piece = &self.buffer[from..to];
        if self.format.framing() == Framing::Lines { unmarked(piece).len() } else { piece.len() }
    }

    /// The error of a trace without requests.
    #[must_use]
    pub fn empty(&self) -> TraceError {
        TraceError::Empty { what: self.what(), number: self.number }
    }

    fn what(&self) -> &'static str {
        match self.format.framing() {
            Framing::Lines => "line",
            Framing::Records(_) => "record",
        }
    }
}
