//! How pairs lie in a file, as the user says, its name, or what it begins with.

use crate::fail::Failure;
use crate::output::is_dash;
use clap::ValueEnum;
use kvssd_text::{PairReader, PairWriter};
use std::io::{self, Cursor, Read, Write};
use std::path::{Path, PathBuf};

/// The most that is looked at of an input that begins with nothing to see.
const BEGIN_BYTES_MAX: usize = 1 << 12;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// How pairs lie in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Lines of key,value
    Csv,
    /// Lines of {"key": "...", "value": "..."}
    Json,
}

impl Format {
    /// The format that was asked for, or that of the ending of the file to be written.
    pub fn of(path: &Path, asked: Option<Format>) -> Result<Format, Failure> {
        let of_name = || if is_dash(path) { Some(Format::Csv) } else { Format::of_name(path) };
        asked.or_else(of_name).ok_or_else(|| unknown(path))
    }

    /// As [`Format::of`], of a file to be read: where its name does not tell, what it begins with may. The input comes back whole.
    pub fn of_input(
        path: &Path,
        asked: Option<Format>,
        mut input: Box<dyn Read>,
    ) -> Result<(Format, Box<dyn Read>), Failure> {
        if let Some(format) = asked.or_else(|| Format::of_name(&without_packing(path))) {
            return Ok((format, input));
        }
        let cannot = |error: io::Error| Failure::of_input(path)(format!("cannot be read: {error}"));
        let begin = begin(&mut *input).map_err(cannot)?;
        let format = if begins_a_pair(&begin) { Some(Format::Json) } else { Format::of(path, None).ok() };
        Ok((format.ok_or_else(|| unknown(path))?, Box::new(Cursor::new(begin).chain(input))))
    }

    fn of_name(path: &Path) -> Option<Format> {
        match path.extension()?.to_string_lossy().to_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "json" | "jsonl" | "ndjson" => Some(Format::Json),
            _ => None,
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

fn unknown(path: &Path) -> Failure {
    let why = "its ending is none of .csv, .json, .jsonl and .ndjson: say --format csv or --format json";
    Failure::of_input(path)(why.to_owned())
}

/// `pairs.csv` of `pairs.csv.gz`.
fn without_packing(path: &Path) -> PathBuf {
    let is_packed =
        path.extension().is_some_and(|ending| ["gz", "zst"].iter().any(|of| ending.eq_ignore_ascii_case(of)));
    if is_packed { path.with_extension("") } else { path.to_owned() }
}

/// What an input begins with: as much as tells [`begins_a_pair`], which waits for no second line of somebody who types.
fn begin(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    let mut visible = 0;
    while begin.len() < BEGIN_BYTES_MAX && Read::take(&mut *input, 1).read_to_end(&mut begin)? == 1 {
        let byte = begin[begin.len() - 1];
        visible += u8::from(!byte.is_ascii_whitespace() && !BYTE_ORDER_MARK.contains(&byte));
        // What does not begin as an object need not be looked at any longer.
        if visible == 2 || (visible == 1 && byte != b'{' && !byte.is_ascii_whitespace()) {
            break;
        }
    }
    Ok(begin)
}

/// Whether bytes begin as `{"key": ..}` does. No line of CSV that `dump` writes does: it has a field with quotes in quotes.
fn begins_a_pair(bytes: &[u8]) -> bool {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    text.trim_ascii_start().strip_prefix(b"{").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"\""))
}
