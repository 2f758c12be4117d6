//! The seam: what a format is, and which there are.

use super::Requests;
use super::fields::BadRecord;
use super::formats::{Csv, Ibm, Meta, Mooncake, OracleGeneral, Twitter};
use crate::workload::WorkloadError;
use std::fmt;
use std::str::FromStr;

/// How a file is cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// At line ends, `\n` or `\r\n`, which do not belong to the piece. Empty lines are passed over.
    Lines,
    /// After so many bytes each time.
    Records(usize),
}

/// A format: the bytes of one line or record in, requests out. It may remember what lines before said, such as a header.
///
/// No bytes make it panic, and it allocates nothing for a piece that is right. A piece that is wrong may leave requests behind; whoever
/// called takes them back.
pub trait TraceFormat {
    /// How the file is cut into pieces.
    fn framing(&self) -> Framing;

    /// How long the clock of the trace takes to go on, in nanoseconds: when within it a request came is not known.
    fn tick_ns(&self) -> u64;

    /// Reads one piece, and adds what it asks for. A header asks for nothing.
    ///
    /// # Errors
    /// What is wrong with it.
    fn parse(&mut self, piece: &[u8], requests: &mut Requests) -> Result<(), BadRecord>;
}

/// A format, by name. What each looks like is in its file, and in `docs/WORKLOADS.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceName {
    /// Twitter's cache clusters.
    Twitter,
    /// Meta's kvcache, of 2022 and of 2024.
    Meta,
    /// IBM's Cloud Object Store.
    Ibm,
    /// libCacheSim's oracleGeneral.
    OracleGeneral,
    /// Mooncake's LLM requests.
    Mooncake,
    /// Any table with a header.
    Csv,
}

impl TraceName {
    /// Every format.
    pub const ALL: [TraceName; 6] = [
        TraceName::Twitter,
        TraceName::Meta,
        TraceName::Ibm,
        TraceName::OracleGeneral,
        TraceName::Mooncake,
        TraceName::Csv,
    ];

    /// The name a user types.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TraceName::Twitter => "twitter",
            TraceName::Meta => "meta",
            TraceName::Ibm => "ibm",
            TraceName::OracleGeneral => "oracle-general",
            TraceName::Mooncake => "mooncake",
            TraceName::Csv => "csv",
        }
    }

    /// A reader of the format. `value_bytes` is the size of values where the trace has none.
    #[must_use]
    pub fn format(self, value_bytes: u64) -> Box<dyn TraceFormat> {
        match self {
            TraceName::Twitter => Box::new(Twitter),
            TraceName::Meta => Box::new(Meta::new()),
            TraceName::Ibm => Box::new(Ibm),
            TraceName::OracleGeneral => Box::new(OracleGeneral),
            TraceName::Mooncake => Box::new(Mooncake::new(value_bytes)),
            TraceName::Csv => Box::new(Csv::new(value_bytes)),
        }
    }

    /// The format of a file that begins with these bytes, where that is beyond doubt: its first line must be one of the format, or the
    /// format's header. Binary formats have nothing to be told by.
    #[must_use]
    pub fn of_content(sample: &[u8]) -> Option<TraceName> {
        const TOLD: [TraceName; 5] =
            [TraceName::Meta, TraceName::Csv, TraceName::Mooncake, TraceName::Ibm, TraceName::Twitter];
        let line = sample.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty())?;
        TOLD.into_iter().find(|name| name.format(0).parse(line, &mut Requests::new()).is_ok())
    }
}

impl fmt::Display for TraceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TraceName {
    type Err = WorkloadError;

    fn from_str(name: &str) -> Result<Self, WorkloadError> {
        TraceName::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| WorkloadError::UnknownName {
            what: "format of traces",
            name: name.to_owned(),
            choices: "twitter, meta, ibm, oracle-general, mooncake, csv",
        })
    }
}
