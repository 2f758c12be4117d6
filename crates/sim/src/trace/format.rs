//! The seam: what a format is, and which there are.

use super::Requests;
use super::fields::{BadRecord, unmarked};
use super::formats::{ColumnName, Csv, Ibm, Lcs, LmCache, Meta, MlPerf, Mooncake, OracleGeneral, Twitter, Vscsi};
use kvssd_types::named_enum;

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
/// No bytes make it panic, and it allocates nothing for a line that is right. A piece that is wrong may leave requests behind; whoever
/// called takes them back.
pub trait TraceFormat {
    /// How the file is cut into pieces.
    fn framing(&self) -> Framing {
        Framing::Lines
    }

    /// How long the clock of the trace takes to go on, in nanoseconds: when within it a request came is not known.
    fn tick_ns(&self) -> u64;

    /// Reads one piece, and adds what it asks for. A header asks for nothing.
    ///
    /// # Errors
    /// What is wrong with it.
    fn parse(&mut self, piece: &[u8], requests: &mut Requests) -> Result<(), BadRecord>;
}

named_enum! {
    /// A format, by name. What each looks like is in its file, and in `docs/WORKLOADS.md`.
    pub enum TraceName: "format of traces" {
        /// Twitter's cache clusters.
        Twitter = "twitter",
        /// Meta's kvcache, of 2022 and of 2024.
        Meta = "meta",
        /// IBM's Cloud Object Store.
        Ibm = "ibm",
        /// libCacheSim's oracleGeneral.
        OracleGeneral = "oracle-general",
        /// libCacheSim's lcs.
        Lcs = "lcs",
        /// VMware's traces of disks.
        Vscsi = "vscsi",
        /// LMCache's recordings.
        LmCache = "lmcache",
        /// What MLPerf Storage's benchmark of caches asks of its drives.
        MlPerf = "mlperf",
        /// Mooncake's LLM requests.
        Mooncake = "mooncake",
        /// Any table with a header.
        Csv = "csv",
    }
}

/// A reader of [`TraceName::Csv`] whose columns have other names.
#[must_use]
pub fn table(value_bytes: u64, names: Vec<ColumnName>) -> Box<dyn TraceFormat> {
    Box::new(Csv::new(value_bytes, names))
}

impl TraceName {
    /// A reader of the format. `value_bytes` is the size of values where the trace has none.
    #[must_use]
    pub fn format(self, value_bytes: u64) -> Box<dyn TraceFormat> {
        match self {
            TraceName::Twitter => Box::new(Twitter),
            TraceName::Meta => Box::new(Meta::new()),
            TraceName::Ibm => Box::new(Ibm),
            TraceName::OracleGeneral => Box::new(OracleGeneral),
            TraceName::Lcs => Box::new(Lcs::default()),
            TraceName::Vscsi => Box::new(Vscsi::default()),
            TraceName::LmCache => Box::new(LmCache::default()),
            TraceName::MlPerf => Box::new(MlPerf::default()),
            TraceName::Mooncake => Box::new(Mooncake::new(value_bytes)),
            TraceName::Csv => table(value_bytes, Vec::new()),
        }
    }

    /// The format of a file that begins with these bytes, where that is beyond doubt: its first line must be one of the format, or the
    /// format's header. oracle-general and vscsi have nothing to be told by.
    #[must_use]
    pub fn of_content(sample: &[u8]) -> Option<TraceName> {
        const TOLD: [TraceName; 6] = [
            TraceName::Meta,
            TraceName::MlPerf,
            TraceName::Csv,
            TraceName::Mooncake,
            TraceName::Ibm,
            TraceName::Twitter,
        ];
        if Lcs::is_begun(sample) {
            return Some(TraceName::Lcs);
        }
        if LmCache::is_begun(sample) {
            return Some(TraceName::LmCache);
        }
        let line =
            unmarked(sample).split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty())?;
        // A header with a column twice is told too: what is wrong with it is said when it is read.
        let is_told = |read: Result<(), BadRecord>| read.map_or_else(|bad| bad.is_twice(), |()| true);
        TOLD.into_iter().find(|name| is_told(name.format(0).parse(line, &mut Requests::new())))
    }
}
