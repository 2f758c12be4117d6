//! How pairs lie in a file: CSV lines without a header, or JSON lines.

use crate::counted::{Counted, InputBytes};
use crate::{decode, field};
use kvssd_types::KEY_BYTES_MAX;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::rc::Rc;

/// A line of CSV behind the last one: where it is not read as a line, a quote before it has no end.
const CSV_END: &[u8] = b"\n\0end of the pairs";

/// The longest line of a drive that takes such values: a pair of the largest size with each byte as an escape of six letters.
fn line_bytes_max(value_bytes_max: u64) -> u64 {
    6 * (KEY_BYTES_MAX as u64 + value_bytes_max) + 64
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonPair {
    key: String,
    value: String,
}

/// Lets no more by than it may.
struct Limited<R> {
    inner: Counted<R>,
    bytes: InputBytes,
    bytes_max: Rc<Cell<u64>>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.read() >= self.bytes_max.get() {
            return Err(io::Error::other(TOO_LONG));
        }
        self.inner.read(buffer)
    }
}

/// A key and its value, unless the file is at its end.
pub type MaybePair = Option<(Vec<u8>, Vec<u8>)>;

type Input = Limited<Box<dyn Read>>;
type CsvInput = io::Chain<Input, &'static [u8]>;

const TOO_LONG: &str = "it is longer than any pair";

/// Reads pairs.
pub struct PairReader {
    lines: Lines,
    bytes: InputBytes,
    /// How far the input may be read for the line that is next.
    bytes_max: Rc<Cell<u64>>,
    value_bytes_max: u64,
}

enum Lines {
    Csv { reader: Box<csv::Reader<CsvInput>>, record: csv::ByteRecord },
    Json { reader: BufReader<Input>, number: u64, line: Vec<u8> },
}

impl PairReader {
    /// Of lines of `key,value`, for a drive that takes values of at most `value_bytes_max`.
    #[must_use]
    pub fn csv(input: Box<dyn Read>, value_bytes_max: u64) -> Self {
        Self::new(input, value_bytes_max, |input| {
            let reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input.chain(CSV_END));
            Lines::Csv { reader: Box::new(reader), record: csv::ByteRecord::new() }
        })
    }

    /// Of lines of `{"key": "...", "value": "..."}`, for such a drive.
    #[must_use]
    pub fn json(input: Box<dyn Read>, value_bytes_max: u64) -> Self {
        Self::new(input, value_bytes_max, |input| Lines::Json {
            reader: BufReader::new(input),
            number: 0,
            line: Vec::new(),
        })
    }

    fn new(input: Box<dyn Read>, value_bytes_max: u64, lines: impl FnOnce(Input) -> Lines) -> Self {
        let (bytes, bytes_max) = (InputBytes::default(), Rc::new(Cell::new(0)));
        let inner = Counted::new(input, &bytes);
        let input = Limited { inner, bytes: bytes.clone(), bytes_max: Rc::clone(&bytes_max) };
        PairReader { lines: lines(input), bytes, bytes_max, value_bytes_max }
    }

    /// Bytes that were read so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.read()
    }

    /// The next pair, if there is one.
    ///
    /// # Errors
    /// What is wrong, with the number of the line.
    pub fn next_pair(&mut self) -> Result<MaybePair, String> {
        let line_bytes_max = line_bytes_max(self.value_bytes_max);
        self.bytes_max.set(self.bytes.read() + line_bytes_max + 1);
        let (number, read) = match &mut self.lines {
            Lines::Csv { reader, record } => {
                let read = next_csv(reader, record);
                (record.position().map_or(0, csv::Position::line), read)
            }
            Lines::Json { reader, number, line } => {
                let read = next_json(reader, number, line, line_bytes_max);
                (*number, read)
            }
        };
        let checked = read.and_then(|pair| match &pair {
            Some((key, _)) if !(1..=KEY_BYTES_MAX).contains(&key.len()) => {
                Err(format!("a key has 1 to {KEY_BYTES_MAX} bytes, not {}", key.len()))
            }
            Some((_, value)) if value.len() as u64 > self.value_bytes_max => {
                let (bytes, bytes_max) = (value.len(), self.value_bytes_max);
                Err(format!("a value of {bytes} bytes is too large: this drive takes {bytes_max}"))
            }
            _ => Ok(pair),
        });
        checked.map_err(|why| format!("line {number}: {why}"))
    }
}

fn next_csv(reader: &mut csv::Reader<CsvInput>, record: &mut csv::ByteRecord) -> Result<MaybePair, String> {
    if !reader.read_byte_record(record).map_err(|error| error.to_string())? {
        return Ok(None);
    }
    match (record.len(), record.get(0), record.get(1)) {
        (1, Some(line), _) if *line == CSV_END[1..] => Ok(None),
        (fields, ..) if record.get(fields - 1).is_some_and(|last| last.ends_with(CSV_END)) => {
            Err("a quote has no end: the file was cut".to_owned())
        }
        (2, Some(key), Some(value)) => Ok(Some((decode(key)?, decode(value)?))),
        (1, ..) => Err("it has 1 field, and a pair is key,value".to_owned()),
        (fields, ..) => Err(format!("it has {fields} fields, and a pair is key,value")),
    }
}

fn next_json(
    reader: &mut BufReader<Input>,
    number: &mut u64,
    line: &mut Vec<u8>,
    line_bytes_max: u64,
) -> Result<MaybePair, String> {
    loop {
        line.clear();
        *number += 1;
        let read = reader.take(line_bytes_max + 1).read_until(b'\n', line);
        if read.map_err(|error| error.to_string())? == 0 {
            return Ok(None);
        }
        if line.len() as u64 > line_bytes_max {
            return Err(TOO_LONG.to_owned());
        }
        if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
            let JsonPair { key, value } = serde_json::from_slice(line)
                .map_err(|error| format!("it is no pair {{\"key\": \"...\", \"value\": \"...\"}}: {error}"))?;
            return Ok(Some((decode(key.as_bytes())?, decode(value.as_bytes())?)));
        }
    }
}

/// Writes pairs.
pub struct PairWriter<'a> {
    lines: WrittenLines<'a>,
}

enum WrittenLines<'a> {
    Csv(Box<csv::Writer<&'a mut dyn Write>>),
    /// With the line that is written.
    Json(&'a mut dyn Write, Vec<u8>),
}

impl<'a> PairWriter<'a> {
    /// Lines of `key,value` to `out`.
    #[must_use]
    pub fn csv(out: &'a mut dyn Write) -> Self {
        PairWriter { lines: WrittenLines::Csv(Box::new(csv::Writer::from_writer(out))) }
    }

    /// Lines of `{"key": "...", "value": "..."}` to `out`.
    #[must_use]
    pub fn json(out: &'a mut dyn Write) -> Self {
        PairWriter { lines: WrittenLines::Json(out, Vec::new()) }
    }

    /// Writes a pair.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn write(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let (key, value) = (field(key), field(value));
        match &mut self.lines {
            WrittenLines::Csv(writer) => writer.write_record([&key, &value]).map_err(io_error),
            WrittenLines::Json(out, line) => {
                line.clear();
                serde_json::to_writer(&mut *line, &JsonPair { key, value })?;
                line.push(b'\n');
                out.write_all(line)
            }
        }
    }

    /// Nothing more comes.
    ///
    /// # Errors
    /// As [`PairWriter::write`].
    pub fn finish(self) -> io::Result<()> {
        match self.lines {
            WrittenLines::Csv(mut writer) => writer.flush(),
            WrittenLines::Json(out, _) => out.flush(),
        }
    }
}

fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Reading = fn(Box<dyn Read>, u64) -> PairReader;

    #[test]
    fn what_is_written_is_read_again() {
        let texts: [&[u8]; 12] = [
            b"plain",
            b"a,b",
            b"\"q\"",
            b" space ",
            b"two\nlines",
            b"tab\t",
            b"cr\r\n",
            b"hex:00",
            b"\0\x01\xff",
            "\u{feff}mark".as_bytes(),
            "\u{1f600}".as_bytes(),
            b"#no comment",
        ];
        for is_csv in [true, false] {
            for first in texts {
                let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = vec![(first.to_vec(), Vec::new())];
                pairs.extend(texts.map(|text| (text.to_vec(), [text, first].concat())));
                let mut file = Vec::new();
                let mut writer = if is_csv { PairWriter::csv(&mut file) } else { PairWriter::json(&mut file) };
                pairs.iter().for_each(|(key, value)| writer.write(key, value).unwrap());
                writer.finish().unwrap();
                let read = if is_csv { PairReader::csv } else { PairReader::json };
                let mut reader = read(Box::new(io::Cursor::new(file)), 8 << 20);
                for pair in pairs {
                    assert_eq!(reader.next_pair().unwrap(), Some(pair));
                }
                assert_eq!(reader.next_pair().unwrap(), None);
            }
        }
    }

    #[test]
    fn of_a_quote_that_has_no_end_no_more_is_read_than_a_pair_has() {
        let text: &[u8] = b"a,\"";
        let mut reader = PairReader::csv(Box::new(text.chain(io::repeat(b'x'))), 8);
        assert_eq!(reader.next_pair(), Err(format!("line 1: {TOO_LONG}")));
        assert!(reader.bytes() < 1 << 16);
    }

    #[test]
    fn a_line_that_ends_with_the_file_is_a_pair() {
        for text in ["a,1", "a,1\n", "a,1\r\n", "a,\"1\"", "\"a\",\"1\"\n\n"] {
            let mut reader = PairReader::csv(Box::new(text.as_bytes()), 8);
            let pairs = [reader.next_pair(), reader.next_pair(), reader.next_pair()];
            assert_eq!(pairs, [Ok(Some((b"a".to_vec(), b"1".to_vec()))), Ok(None), Ok(None)], "{text:?}");
        }
    }

    #[test]
    fn a_wrong_line_is_named_with_its_number() {
        let (csv, json): (Reading, Reading) = (PairReader::csv, PairReader::json);
        for (read, text, named) in [
            (csv, "a,1\nb\n", ["line 2", "1 field,"]),
            (csv, "a,1\nb,2,3\n", ["line 2", "3 fields"]),
            (csv, "a,1\n\"b\nb\",2\n,3\n", ["line 4", "1 to 255"]),
            (csv, "hex:0,1\n", ["line 1", "hex:"]),
            (csv, "a,1\nb,\"2", ["line 2", "a quote has no end"]),
            (csv, "a,1\n\"b\n,2\nc,3\n", ["line 2", "a quote has no end"]),
            (csv, "a,12345678\nb,123456789\n", ["line 2", "takes 8"]),
            (json, "{\"key\": \"a\", \"value\": \"1\"}\n\n{\"key\": \"b\"}\n", ["line 3", "value"]),
            (json, "{\"key\": \"a\", \"value\": \"1\", \"more\": 1}\n", ["line 1", "more"]),
            (json, "nonsense", ["line 1", "key"]),
        ] {
            let mut reader = read(Box::new(text.as_bytes()), 8);
            let failure = loop {
                match reader.next_pair() {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("{text:?} is taken for right"),
                    Err(failure) => break failure,
                }
            };
            assert!(failure.starts_with("line ") && named.iter().all(|name| failure.contains(name)), "{failure}");
            assert_eq!(failure.lines().count(), 1);
        }
    }
}
