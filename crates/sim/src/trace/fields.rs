//! Fields of a line: numbers, times, columns by name.

use std::fmt;

/// As much of a wrong field is shown.
const FOUND_BYTES_MAX: usize = 40;

const TWICE: &str = "has two columns of one name in the header: rename one of them";

/// Why a line or record is none of its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// Where it is wrong.
    pub field: &'static str,
    /// What stands there, or its beginning, where that helps.
    pub found: Option<Box<str>>,
    /// What is wrong there.
    pub why: &'static str,
    /// Whether nothing after it can be read either: a header that lacks a column, or has it twice.
    pub is_fatal: bool,
}

impl BadRecord {
    /// A wrong field.
    #[must_use]
    pub const fn new(field: &'static str, why: &'static str) -> Self {
        BadRecord { field, found: None, why, is_fatal: false }
    }

    /// The same, with what stands there.
    #[must_use]
    pub fn found(self, text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&text[..text.len().min(FOUND_BYTES_MAX)]);
        BadRecord { found: Some(text.into()), ..self }
    }

    /// A field that should be a number.
    #[must_use]
    pub const fn number(field: &'static str) -> Self {
        BadRecord::new(field, "is no number that can be")
    }

    /// A header with two columns of one name, of which one would be passed over.
    fn twice(column: &'static str) -> Self {
        BadRecord { is_fatal: true, ..BadRecord::new(column, TWICE) }
    }

    /// Whether it is a header that has a column twice.
    pub(super) fn is_twice(&self) -> bool {
        self.why == TWICE
    }

    /// A header that lacks a column.
    pub(super) fn lacking(column: &'static str) -> Self {
        let why = "has no column in the header, neither by its own name nor by that of --column";
        BadRecord { is_fatal: true, ..BadRecord::new(column, why) }
    }
}

impl fmt::Display for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Some(found) => write!(f, "{} {found:?} {}", self.field, self.why),
            None => write!(f, "{} {}", self.field, self.why),
        }
    }
}

/// A text without the mark of byte order that some programs begin files with.
pub(super) fn unmarked(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// A number in decimal digits and nothing else.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { number.checked_mul(10)?.checked_add(digit.into()) }
    })
}

/// A time to live in seconds; none where it is 0, for ever.
pub(super) fn ttl_ns(seconds: u64) -> Option<u64> {
    (seconds > 0).then(|| seconds.saturating_mul(1_000_000_000))
}

/// A time with or without decimals, in units of `unit_ns` nanoseconds, which is a power of ten.
pub(super) fn time_ns(text: &[u8], unit_ns: u64) -> Option<u64> {
    let point = text.iter().position(|&byte| byte == b'.').unwrap_or(text.len());
    let mut time = number(&text[..point])?.checked_mul(unit_ns)?;
    let mut place_ns = unit_ns;
    for byte in text.get(point + 1..).unwrap_or_default() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        place_ns /= 10;
        time = time.checked_add(place_ns * u64::from(digit))?;
    }
    Some(time)
}

/// Room for a command's name in small letters; longer ones are none of those that are known.
pub(super) fn small_letters<'room>(name: &[u8], room: &'room mut [u8; 16]) -> &'room [u8] {
    let length = name.len().min(room.len());
    room[..length].copy_from_slice(&name[..length]);
    room[..length].make_ascii_lowercase();
    if name.len() > room.len() { &[] } else { &room[..length] }
}

const MORE: &str = "is behind the last column of the header: quote a field that has a comma in it";

/// The most columns of a table: the widest trace that is known has 10.
const COLUMNS_MAX: usize = 64;

/// A line of comma-separated values, quoted where they must be (RFC 4180), in buffers that are used again. Spaces around a field are no part
/// of it.
#[derive(Clone, Debug)]
pub(super) struct Row {
    reader: csv_core::Reader,
    bytes: Vec<u8>,
    ends: [usize; COLUMNS_MAX],
    count: usize,
    /// The fields of the header, once there is one.
    columns: usize,
}

impl Row {
    pub(super) fn new() -> Self {
        Row {
            reader: csv_core::Reader::new(),
            bytes: Vec::new(),
            ends: [0; COLUMNS_MAX],
            count: 0,
            columns: COLUMNS_MAX,
        }
    }

    /// Splits a line, which has no more fields than the header. Empty ones behind those are passed over.
    pub(super) fn split(&mut self, line: &[u8]) -> Result<(), BadRecord> {
        self.cut(line)?;
        let more = (self.columns..self.count).find_map(|index| self.get(index).filter(|field| !field.is_empty()));
        more.map_or(Ok(()), |more| Err(BadRecord::new("the field", MORE).found(more)))
    }

    /// Splits a line, and gives the `columns` of the table. The first line is the header, in which they are found: it gives none.
    pub(super) fn split_below<C: Copy>(
        &mut self,
        columns: &mut Option<C>,
        line: &[u8],
        find: impl FnOnce(&Row) -> Result<C, BadRecord>,
    ) -> Result<Option<C>, BadRecord> {
        if columns.is_some() {
            self.split(line)?;
            return Ok(*columns);
        }
        self.split_header(line)?;
        *columns = Some(find(self)?);
        Ok(None)
    }

    fn split_header(&mut self, line: &[u8]) -> Result<(), BadRecord> {
        self.cut(line).map_err(|bad| BadRecord { is_fatal: true, ..bad })?;
        self.columns = self.count;
        Ok(())
    }

    fn cut(&mut self, line: &[u8]) -> Result<(), BadRecord> {
        if self.bytes.len() < line.len() {
            self.bytes.resize(line.len(), 0);
        }
        self.count = 0;
        if memchr::memchr(b'"', line).is_none() {
            return self.cut_plain(line);
        }
        self.reader.reset();
        let (mut rest, mut written) = (line, 0);
        loop {
            let (result, read, out, ends) =
                self.reader.read_record(rest, &mut self.bytes[written..], &mut self.ends[self.count..]);
            rest = &rest[read..];
            written += out;
            self.count += ends;
            match result {
                csv_core::ReadRecordResult::Record | csv_core::ReadRecordResult::End => return self.check_quotes(),
                // Nothing more comes: the next call, with no input, ends the record.
                csv_core::ReadRecordResult::InputEmpty if self.count < COLUMNS_MAX => {}
                _ => return Err(BadRecord::new("the line", "has too many fields")),
            }
        }
    }

    /// Quotes behind a space would be a part of the field, and quote nothing.
    fn check_quotes(&self) -> Result<(), BadRecord> {
        let start = |index: usize| if index == 0 { 0 } else { self.ends[index - 1] };
        let raw = |index: usize| &self.bytes[start(index)..self.ends[index]];
        let is_late = |field: &[u8]| field.starts_with(b" ") && field.trim_ascii_start().starts_with(b"\"");
        match (0..self.count).map(raw).find(|field| is_late(field)) {
            Some(late) => Err(BadRecord::new("the field", "has a space before its quotes: take it away").found(late)),
            None => Ok(()),
        }
    }

    /// A line without quotes, as nearly all are.
    fn cut_plain(&mut self, line: &[u8]) -> Result<(), BadRecord> {
        let mut written = 0;
        for field in line.split(|&byte| byte == b',') {
            let end = self.ends.get_mut(self.count).ok_or(BadRecord::new("the line", "has too many fields"))?;
            self.bytes[written..written + field.len()].copy_from_slice(field);
            written += field.len();
            *end = written;
            self.count += 1;
        }
        Ok(())
    }

    /// The field at an index, if there is one.
    pub(super) fn get(&self, index: usize) -> Option<&[u8]> {
        let start = if index == 0 { 0 } else { *self.ends[..self.count].get(index - 1)? };
        Some(self.bytes[start..*self.ends[..self.count].get(index)?].trim_ascii())
    }

    /// The field at an index, which a line must have.
    pub(super) fn field(&self, index: usize) -> Result<&[u8], BadRecord> {
        self.get(index).ok_or(BadRecord::new("the line", "has too few fields"))
    }

    /// The number in a column that may be missing, or empty.
    pub(super) fn number_or(&self, otherwise: u64, index: Option<usize>, name: &'static str) -> Result<u64, BadRecord> {
        match index.map(|index| self.field(index)).transpose()? {
            None | Some(b"") => Ok(otherwise),
            Some(text) => number(text).ok_or_else(|| BadRecord::number(name).found(text)),
        }
    }

    /// The index of a column that the header must name.
    pub(super) fn column(&self, name: &'static str) -> Result<usize, BadRecord> {
        self.find(name, &[name])?.ok_or(BadRecord::lacking(name))
    }

    /// The index of the column of that meaning, which the header names one of these ways, if it is there.
    pub(super) fn find(&self, meaning: &'static str, names: &[&str]) -> Result<Option<usize>, BadRecord> {
        let name = |index: usize| self.get(index).unwrap_or_default();
        let is_named = |index: usize| names.iter().any(|known| name(index).eq_ignore_ascii_case(known.as_bytes()));
        let found = (0..self.count).find(|&index| is_named(index));
        let is_twice =
            |index: usize| (index + 1..self.count).any(|other| name(other).eq_ignore_ascii_case(name(index)));
        if found.is_some_and(is_twice) { Err(BadRecord::twice(meaning)) } else { Ok(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_read_or_refused() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert!([&b""[..], b"-1", b"1 ", b"0x1", b"18446744073709551616"].iter().all(|text| number(text).is_none()));
        assert_eq!(time_ns(b"12", 1_000_000_000), Some(12_000_000_000));
        assert_eq!(time_ns(b"12.5", 1_000_000), Some(12_500_000));
        assert_eq!(time_ns(b"0.1234567899", 1_000_000_000), Some(123_456_789));
        assert!([&b"."[..], b"1.x", b".5", b"99999999999999999999"].iter().all(|text| time_ns(text, 1000).is_none()));
    }

    #[test]
    fn rows_are_split_with_and_without_quotes() {
        let mut row = Row::new();
        for (line, fields) in [
            (&b"a,b,c"[..], vec![&b"a"[..], b"b", b"c"]),
            (b"a,,", vec![b"a", b"", b""]),
            (b"\"a,\"\"b\",c", vec![b"a,\"b", b"c"]),
            (b" a b ,\t1,\"c, d\" ,", vec![b"a b", b"1", b"c, d", b""]),
            (b" a b ,\t1, ", vec![b"a b", b"1", b""]),
            (b"", vec![b""]),
        ] {
            row.split(line).unwrap();
            let found: Vec<&[u8]> = (0..).map_while(|index| row.get(index)).collect();
            assert_eq!(found, fields, "{line:?}");
        }
        row.split_header(b"key,op").unwrap();
        assert!(row.split(b"a,b,,").is_ok());
        assert_eq!(row.split(b"\"a\", \"b\"").unwrap_err().found.as_deref(), Some(" \"b\""));
        assert_eq!(row.split(b"a,b,,c,d").unwrap_err().found.as_deref(), Some("c"));
        assert!(row.split(&[b','; 100]).is_err());
        assert!(row.split(&[&b"\""[..], &[b'"', b','].repeat(100)].concat()).is_err() || row.count <= COLUMNS_MAX);
    }
}
