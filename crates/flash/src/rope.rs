//! Ropes: runs of bytes of which some are held and some only described.
//!
//! A rope is kept as a string of codes, so that a page full of generated records costs a hundred bytes, not four thousand:
//!
//! ```text
//!   code := head, then by its two lowest bits          head = length << 2 | kind, as LEB128
//!     0  literal   `length` bytes
//!     1  pattern   first byte of the pattern << 1 | wide as LEB128, seed u64 if wide, u48 otherwise
//!     2  zeros     nothing
//!     3  blob      nothing: it is the next of the rope's blobs, whose bytes are shared, not copied
//! ```
//!
//! Beside the code a rope lists where its blobs start, so that one is found without a walk.
//!
//! This is how memory keeps pages, not what lies in flash: that is always the bytes a rope stands for ([`RopeRef::copy_to`]).

mod pieces;
mod show;

pub use pieces::{Piece, Pieces, Slice};

use crate::Blob;
use kvssd_types::{Pattern, Value, ValueBuilder};
use std::ops::Range;
use std::sync::Arc;

/// From this length on shared bytes are kept as a blob; shorter ones are cheaper as a copy.
const BLOB_BYTES_MIN: usize = 256;

const LITERAL: usize = 0;
const PATTERN: usize = 1;
const ZEROS: usize = 2;
const BLOB: usize = 3;

/// Seeds below 2^48 are kept in six bytes.
const NARROW_SEED_BITS: u32 = 48;

fn seed_bytes(wide: bool) -> usize {
    if wide { 8 } else { NARROW_SEED_BITS as usize / 8 }
}

/// A rope that can grow.
#[derive(Clone, Debug, Default)]
pub struct Rope {
    code: Vec<u8>,
    blobs: Vec<Option<Blob>>,
    starts: Vec<u8>,
    length: usize,
}

/// A rope to look at.
#[derive(Clone, Copy, Debug)]
pub struct RopeRef<'a> {
    pub(crate) code: &'a [u8],
    /// Empty when the firmware gave all of them up.
    pub(crate) blobs: &'a [Option<Blob>],
    /// The byte that each blob starts at, as u32.
    pub(crate) starts: &'a [u8],
}

/// Bytes of a blob's start.
pub(crate) const START_BYTES: usize = 4;

/// What the code of a rope begins with that is one literal of a known length, for who reads its bytes from elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct LiteralHead(Vec<u8>);

impl LiteralHead {
    pub(crate) fn new(length: usize) -> Self {
        let mut code = Vec::new();
        put_number(&mut code, length << 2 | LITERAL);
        LiteralHead(code)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Rope {
    /// The number of bytes that the rope stands for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the rope stands for no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Makes the rope empty and keeps its memory.
    #[inline]
    pub fn clear(&mut self) {
        self.code.clear();
        self.blobs.clear();
        self.starts.clear();
        self.length = 0;
    }

    /// The rope to look at.
    #[must_use]
    pub fn as_ref(&self) -> RopeRef<'_> {
        RopeRef { code: &self.code, blobs: &self.blobs, starts: &self.starts }
    }

    /// Appends bytes.
    #[inline]
    pub fn push_literal(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.head(bytes.len(), LITERAL);
            self.code.extend_from_slice(bytes);
        }
    }

    /// Appends described bytes.
    pub fn push_pattern(&mut self, pattern: Pattern) {
        if pattern.length > 0 {
            self.head(pattern.length as usize, PATTERN);
            let wide = pattern.seed >> NARROW_SEED_BITS != 0;
            put_number(&mut self.code, (pattern.offset as usize) << 1 | usize::from(wide));
            self.code.extend_from_slice(&pattern.seed.to_le_bytes()[..seed_bytes(wide)]);
        }
    }

    /// Appends zeros.
    #[inline]
    pub fn push_zeros(&mut self, count: usize) {
        if count > 0 {
            self.head(count, ZEROS);
        }
    }

    /// Appends shared bytes.
    pub fn push_blob(&mut self, blob: Blob) {
        if blob.len() < BLOB_BYTES_MIN {
            self.push_literal(&blob);
        } else {
            self.starts.extend_from_slice(&(self.length as u32).to_le_bytes());
            self.head(blob.len(), BLOB);
            self.blobs.push(Some(blob));
        }
    }

    /// Appends all of another rope and empties it. Its blobs move over as they are: nobody touches their bytes.
    pub fn push_rope(&mut self, source: &mut Rope) {
        let mut blobs = std::mem::take(&mut source.blobs).into_iter();
        let mut pieces = RopeRef { blobs: &[], ..source.as_ref() }.pieces();
        while let Some((kind, length, code)) = pieces.next_code() {
            if kind == BLOB {
                self.push_blob(blobs.next().flatten().expect("a rope to move holds its blobs, in order"));
            } else {
                self.code.extend_from_slice(code);
                self.length += length;
            }
        }
        source.clear();
    }

    /// Appends the bytes of a value.
    #[inline]
    pub fn push_value(&mut self, value: &Value) {
        match value {
            Value::Bytes(bytes) => self.push_blob(bytes.clone()),
            Value::Pattern(pattern) => self.push_pattern(*pattern),
        }
    }

    /// Appends a part of another rope.
    pub fn push_slice(&mut self, source: RopeRef<'_>, range: Range<usize>) {
        // A piece of a blob becomes one of its own, so that forgetting it frees what it holds.
        self.push_pieces(source.slice(range), |blob, part| Arc::<[u8]>::from(&blob[part]).into());
    }

    /// Appends a part of another rope, whose blobs it shares: what is kept of one keeps the memory of all of it. For who does not keep it.
    pub fn push_shared(&mut self, source: RopeRef<'_>, range: Range<usize>) {
        self.push_pieces(source.slice(range), Blob::part);
    }

    fn push_pieces(&mut self, pieces: Slice<'_>, part_of: impl Fn(&Blob, Range<usize>) -> Blob) {
        for piece in pieces {
            match piece {
                Piece::Literal(bytes) => self.push_literal(bytes),
                Piece::Pattern(pattern) => self.push_pattern(pattern),
                Piece::Zeros(count) => self.push_zeros(count),
                Piece::Blob(blob, part) if part.len() == blob.len() => self.push_blob(blob.clone()),
                Piece::Blob(blob, part) => self.push_blob(part_of(blob, part)),
                Piece::Forgotten(_) => panic!("bytes that the firmware gave up are wanted again"),
            }
        }
    }

    #[inline]
    fn head(&mut self, length: usize, kind: usize) {
        put_number(&mut self.code, length << 2 | kind);
        self.length += length;
    }

    pub(crate) fn blobs_mut(&mut self) -> &mut Vec<Option<Blob>> {
        &mut self.blobs
    }
}

impl<'a> RopeRef<'a> {
    /// The rope of a [`LiteralHead`] and the bytes behind it.
    pub(crate) fn of_literal(code: &'a [u8]) -> Self {
        RopeRef { code, blobs: &[], starts: &[] }
    }

    /// The runs of the rope, in order.
    #[must_use]
    pub fn pieces(self) -> Pieces<'a> {
        Pieces::of(self)
    }

    /// The runs that make up the bytes of `range`.
    #[must_use]
    #[inline]
    pub fn slice(self, range: Range<usize>) -> Slice<'a> {
        Slice::of(self, range)
    }

    /// Writes the bytes from `start` on to `out`, as many as it takes.
    ///
    /// # Panics
    /// When the rope ends before that, or the bytes were forgotten.
    pub fn copy_to(self, start: usize, out: &mut [u8]) {
        let copied = self.copy_some(start, out);
        assert_eq!(copied, out.len(), "the rope ends before its reader");
    }

    /// As [`RopeRef::copy_to`], up to the end of the rope; returns the bytes that were written.
    ///
    /// # Panics
    /// When the bytes were forgotten.
    pub fn copy_some(self, start: usize, out: &mut [u8]) -> usize {
        let wanted = out.len();
        let mut rest = out;
        for piece in self.slice(start..start + wanted) {
            let (here, after) = rest.split_at_mut(piece.len());
            piece.copy_to(here);
            rest = after;
        }
        wanted - rest.len()
    }

    /// Hands the bytes of `range` to a value that is put together.
    ///
    /// # Panics
    /// When bytes in the range were forgotten.
    pub fn push_to(self, range: Range<usize>, value: &mut ValueBuilder) {
        for piece in self.slice(range) {
            match piece {
                Piece::Literal(bytes) => value.push_bytes(bytes),
                Piece::Pattern(pattern) => value.push_pattern(pattern),
                Piece::Zeros(count) => value.push_bytes(&vec![0; count]),
                Piece::Blob(blob, part) => value.push_bytes(&blob[part]),
                Piece::Forgotten(_) => panic!("bytes that the firmware gave up are wanted again"),
            }
        }
    }

    /// The bytes of `range` as a blob: shared where the rope keeps just them as one, a copy otherwise.
    #[must_use]
    pub fn blob(self, range: Range<usize>) -> Blob {
        if let Some(blob) = self.blob_slot(range.start).and_then(Option::as_ref)
            && blob.len() == range.len()
        {
            return blob.clone();
        }
        let mut bytes = vec![0; range.len()];
        self.copy_to(range.start, &mut bytes);
        bytes.into()
    }

    /// As [`RopeRef::blob`], if the rope has all of these bytes.
    ///
    /// # Panics
    /// When bytes in the range were forgotten.
    #[must_use]
    #[inline]
    pub fn whole_blob(self, range: Range<usize>) -> Option<Blob> {
        if let Some(blob) = self.blob_slot(range.start).and_then(Option::as_ref)
            && blob.len() == range.len()
        {
            return Some(blob.clone());
        }
        if let Some(bytes) = self.in_one_piece(range.clone()) {
            return Some(Arc::<[u8]>::from(bytes).into());
        }
        let mut bytes = vec![0; range.len()];
        (self.copy_some(range.start, &mut bytes) == range.len()).then(|| bytes.into())
    }

    /// The bytes of `range`, if the rope keeps them in one piece.
    #[must_use]
    pub fn in_one_piece(self, range: Range<usize>) -> Option<&'a [u8]> {
        match self.slice(range.clone()).next()? {
            Piece::Literal(bytes) if bytes.len() == range.len() => Some(bytes),
            Piece::Blob(blob, part) if part.len() == range.len() => Some(&blob[part]),
            _ => None,
        }
    }

    /// The number of the blob that starts at byte `start`, if one does.
    pub(crate) fn blob_number_at(self, start: usize) -> Option<usize> {
        let start = (start as u32).to_le_bytes();
        self.starts.chunks_exact(START_BYTES).position(|other| other == start)
    }

    /// The place of the blob that starts at byte `start`, if one does: it may be empty.
    pub(crate) fn blob_slot(self, start: usize) -> Option<&'a Option<Blob>> {
        self.blobs.get(self.blob_number_at(start)?)
    }
}

pub(crate) fn put_number(code: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        code.push(number as u8 | 0x80);
        number >>= 7;
    }
    code.push(number as u8);
}

/// The number at `position` and the position behind it; zero past the end.
#[inline]
pub(crate) fn get_number(code: &[u8], mut position: usize) -> (usize, usize) {
    let (mut number, mut shift) = (0, 0);
    while let Some(&byte) = code.get(position) {
        position += 1;
        number |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
        shift += 7;
    }
    (number, position)
}

#[cfg(test)]
mod tests;
