//! How pairs lie in a file, as its name says or the user.

use crate::fail::Failure;
use crate::output::is_stdout;
use clap::ValueEnum;
use kvssd_text::{PairReader, PairWriter};
use std::io::{Read, Write};
use std::path::Path;

/// How pairs lie in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Lines of key,value
    Csv,
    /// Lines of {"key": "...", "value": "..."}
    Json,
}

impl Format {
    /// The format that was asked for, or that of the file's ending.
    pub fn of(path: &Path, asked: Option<Format>) -> Result<Format, Failure> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match (asked, ending.as_deref()) {
            (Some(format), _) => Ok(format),
            (None, Some("csv")) => Ok(Format::Csv),
            (None, Some("json" | "jsonl" | "ndjson")) => Ok(Format::Json),
            (None, _) if is_stdout(path) => Ok(Format::Csv),
            (None, _) => Err(Failure::Input {
                path: path.to_owned(),
                why: "its ending is none of .csv, .json, .jsonl and .ndjson: say --format csv or --format json"
                    .to_owned(),
            }),
        }
    }

    /// Reads pairs of it, for a drive that takes values of at most `value_bytes_max`.
    pub fn reader(self, input: Box<dyn Read>, value_bytes_max: u64) -> PairReader {
        match self {
            Format::Csv => PairReader::csv(input, value_bytes_max),
            Format::Json => PairReader::json(input, value_bytes_max),
        }
    }

    /// Writes pairs in it.
    pub fn writer(self, out: &mut dyn Write) -> PairWriter<'_> {
        match self {
            Format::Csv => PairWriter::csv(out),
            Format::Json => PairWriter::json(out),
        }
    }
}
