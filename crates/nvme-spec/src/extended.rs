//! I/O commands of this project's own, of vendor specific opcodes: keys of up to 255 bytes, and iterators.
//!
//! ```text
//!   81h Store      data: key, value                dword 10: bytes of the value   dword 11: 7:0 bytes of the key, 15:8 options
//!   83h Retrieve   data: key, and the value back   dword 10: bytes of the buffer  dword 11: 7:0 bytes of the key
//!   87h List       data: key, and the list back    dword 10: bytes of the buffer  dword 11: 7:0 bytes of the key, 0 for none
//!   91h Delete     data: key                       dword 11: 7:0 bytes of the key
//!   95h Exist      data: key                       dword 11: 7:0 bytes of the key
//!
//!   A1h create an iterator    data: prefix, first key, end     dword 10: 7:0, 15:8, 23:16 their bytes
//!                             dword 11: bit 0 descending, bit 1 keys only, bit 2 there is an end    -> dword 0: its number
//!   A2h next       data back: pairs                dword 10: bytes of the buffer  dword 12: number  dword 13: most pairs
//!   A3h seek       data: key, and pairs back       as A2h, and dword 11: 7:0 bytes of the key, 0 for the beginning
//!   A8h destroy an iterator                        dword 12: number
//!
//!   pairs          u32 pairs | u32 bytes of the next | u16 bytes of the key, u16 0, u32 bytes of the value, key, value, zeros | ...
//! ```
//!
//! Commands of the first five are those of the Key Value command set in all else: results, conditions, and the serials of
//! numbered changes. Data goes both ways with 83h, 87h and A3h: the key is in the capsule, and what comes back comes as
//! C2HData. An entry of pairs is padded to a multiple of 4 B. No pairs are the end, unless the bytes that the next one
//! takes are told.

use crate::{Status, SubmissionEntry};
use alloc::vec::Vec;

/// Opcodes of these commands. Bits 1:0 are the direction of data.
#[expect(missing_docs, reason = "the names are those of the commands")]
pub mod opcode {
    pub const STORE: u8 = 0x81;
    pub const RETRIEVE: u8 = 0x83;
    pub const LIST: u8 = 0x87;
    pub const DELETE: u8 = 0x91;
    pub const EXIST: u8 = 0x95;
    pub const CREATE_ITERATOR: u8 = 0xa1;
    pub const NEXT: u8 = 0xa2;
    pub const SEEK: u8 = 0xa3;
    pub const DESTROY_ITERATOR: u8 = 0xa8;

    /// All of them.
    pub const ALL: [u8; 9] = [STORE, RETRIEVE, LIST, DELETE, EXIST, CREATE_ITERATOR, NEXT, SEEK, DESTROY_ITERATOR];
}

/// Length of the longest key.
pub const KEY_BYTES_MAX: usize = 255;

const DESCENDING: u32 = 1;
const KEYS_ONLY: u32 = 1 << 1;
const HAS_END: u32 = 1 << 2;

/// Length of the numbers before the first pair.
pub const PAIRS_HEADER_BYTES: usize = 8;
const PAIR_HEADER_BYTES: usize = 8;

/// The keys that an iterator goes along: those that begin with `prefix`, from `first` on and before `end`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IteratorRange {
    /// What all keys begin with; empty for any.
    pub prefix: Vec<u8>,
    /// The least key; empty for none.
    pub first: Vec<u8>,
    /// The least key that is too great.
    pub end: Option<Vec<u8>>,
    /// From the greatest key to the least.
    pub descending: bool,
    /// Without values.
    pub keys_only: bool,
}

impl IteratorRange {
    pub(crate) fn lead(&self) -> Vec<u8> {
        [&self.prefix[..], &self.first, self.end.as_deref().unwrap_or_default()].concat()
    }

    /// Of parts that are longer than a key can be, nobody makes a command.
    pub(crate) fn write_to(&self, entry: &mut SubmissionEntry) {
        let bytes = |part: &[u8]| part.len().min(KEY_BYTES_MAX) as u32;
        let end = self.end.as_deref().unwrap_or_default();
        entry.dword10 = (bytes(&self.prefix) | bytes(&self.first) << 8 | bytes(end) << 16).into();
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let flags = flag(self.descending, DESCENDING) | flag(self.keys_only, KEYS_ONLY);
        entry.dword11 = (flags | flag(self.end.is_some(), HAS_END)).into();
    }

    pub(crate) fn from_entry(entry: &SubmissionEntry, data: &[u8]) -> Result<Self, Status> {
        let [prefix, first, end, high] = entry.dword10.get().to_le_bytes().map(usize::from);
        let flags = entry.dword11.get();
        let has_end = flags & HAS_END != 0;
        if flags & !(DESCENDING | KEYS_ONLY | HAS_END) != 0 || high != 0 || end > 0 && !has_end {
            return Err(Status::InvalidField);
        }
        let data = data.get(..prefix + first + end).ok_or(Status::SglLengthInvalid)?;
        let (front, end) = data.split_at(prefix + first);
        Ok(IteratorRange {
            prefix: front[..prefix].to_vec(),
            first: front[prefix..].to_vec(),
            end: has_end.then(|| end.to_vec()),
            descending: flags & DESCENDING != 0,
            keys_only: flags & KEYS_ONLY != 0,
        })
    }
}

/// Whether it is one of these opcodes.
#[must_use]
pub fn is(opcode: u8) -> bool {
    opcode::ALL.contains(&opcode)
}

/// How many bytes of data come before the value of a Store, or alone.
#[must_use]
pub fn lead_bytes(entry: &SubmissionEntry) -> usize {
    match entry.opcode {
        opcode::CREATE_ITERATOR => entry.dword10.get().to_le_bytes()[..3].iter().map(|&bytes| usize::from(bytes)).sum(),
        opcode::NEXT | opcode::DESTROY_ITERATOR => 0,
        opcode if is(opcode) => usize::from(entry.dword11.get() as u8),
        _ => 0,
    }
}

/// Writes pairs of an iterator, up to the length of a host's buffer.
#[derive(Debug)]
pub struct PairsWriter {
    bytes: Vec<u8>,
    bytes_max: usize,
    pairs: u32,
    next_bytes: u32,
}

impl PairsWriter {
    /// No pairs yet, for a buffer of `bytes_max`; `None` if not even the numbers fit that come before them.
    #[must_use]
    pub fn new(bytes_max: usize) -> Option<Self> {
        let bytes = Vec::from([0; PAIRS_HEADER_BYTES]);
        (bytes_max >= PAIRS_HEADER_BYTES).then_some(PairsWriter { bytes, bytes_max, pairs: 0, next_bytes: 0 })
    }

    /// Appends a pair; false if there is no room for it: then it is the next.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> bool {
        let entry_bytes = PAIR_HEADER_BYTES + (key.len() + value.len()).next_multiple_of(4);
        let end = self.bytes.len() + entry_bytes;
        if end > self.bytes_max || key.len() > KEY_BYTES_MAX {
            self.next_bytes = (PAIRS_HEADER_BYTES + entry_bytes) as u32;
            return false;
        }
        self.bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.bytes.resize(end, 0);
        self.pairs += 1;
        true
    }

    /// The number of pairs so far.
    #[must_use]
    pub fn pairs(&self) -> u32 {
        self.pairs
    }

    /// Bytes so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The data.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes[..4].copy_from_slice(&self.pairs.to_le_bytes());
        self.bytes[4..PAIRS_HEADER_BYTES].copy_from_slice(&self.next_bytes.to_le_bytes());
        self.bytes
    }
}

/// The data of an iterator's command ends early, or has a key that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairsTruncated;

/// Reads pairs of an iterator.
#[derive(Clone, Copy, Debug)]
pub struct PairsReader<'a> {
    rest: &'a [u8],
    pairs: u32,
    /// Bytes of a buffer that takes the next pair, if it did not fit; else 0.
    pub next_bytes: u32,
}

impl<'a> PairsReader<'a> {
    /// A reader of that data.
    ///
    /// # Errors
    /// [`PairsTruncated`] if it has not even the numbers that come before the pairs.
    pub fn new(data: &'a [u8]) -> Result<Self, PairsTruncated> {
        let (header, rest) = data.split_first_chunk::<PAIRS_HEADER_BYTES>().ok_or(PairsTruncated)?;
        let header = u64::from_le_bytes(*header);
        Ok(PairsReader { rest, pairs: header as u32, next_bytes: (header >> 32) as u32 })
    }

    fn pair(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (header, rest) = self.rest.split_first_chunk::<PAIR_HEADER_BYTES>()?;
        let header = u64::from_le_bytes(*header);
        let (key_bytes, value_bytes) = (header as u32 as usize, (header >> 32) as usize);
        let end = key_bytes.checked_add(value_bytes)?;
        let pair = rest.get(..end).filter(|_| (1..=KEY_BYTES_MAX).contains(&key_bytes))?;
        self.rest = rest.get(end.next_multiple_of(4)..)?;
        Some(pair.split_at(key_bytes))
    }
}

impl<'a> Iterator for PairsReader<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), PairsTruncated>;

    /// Ends after an error.
    fn next(&mut self) -> Option<Self::Item> {
        self.pairs = self.pairs.checked_sub(1)?;
        let pair = self.pair();
        if pair.is_none() {
            self.pairs = 0;
        }
        Some(pair.ok_or(PairsTruncated))
    }
}
