//! The runs of a rope, one after the other.

use super::{LITERAL, PATTERN, RopeRef, ZEROS, get_number, seed_bytes};
use crate::Blob;
use kvssd_types::Pattern;
use std::ops::Range;

/// One run of a rope.
#[derive(Clone, Debug)]
pub enum Piece<'a> {
    /// Held bytes.
    Literal(&'a [u8]),
    /// Described bytes.
    Pattern(Pattern),
    /// That many zeros.
    Zeros(usize),
    /// Shared bytes: all of the blob, or a part of it.
    Blob(&'a Blob, Range<usize>),
    /// That many bytes which the firmware gave up ([`Backing::take`](crate::Backing::take)).
    Forgotten(usize),
}

impl Piece<'_> {
    /// The number of bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no piece is empty")]
    pub fn len(&self) -> usize {
        match self {
            Piece::Literal(bytes) => bytes.len(),
            Piece::Pattern(pattern) => pattern.length as usize,
            Piece::Zeros(count) | Piece::Forgotten(count) => *count,
            Piece::Blob(_, part) => part.len(),
        }
    }

    pub(super) fn copy_to(&self, out: &mut [u8]) {
        match self {
            Piece::Literal(bytes) => out.copy_from_slice(bytes),
            Piece::Pattern(pattern) => pattern.fill(0..out.len(), out),
            Piece::Zeros(_) => out.fill(0),
            Piece::Blob(blob, part) => out.copy_from_slice(&blob[part.clone()]),
            Piece::Forgotten(_) => panic!("bytes that the firmware gave up are wanted again"),
        }
    }

    pub(super) fn cut(self, range: Range<usize>) -> Self {
        match self {
            Piece::Literal(bytes) => Piece::Literal(&bytes[range]),
            Piece::Pattern(pattern) => Piece::Pattern(pattern.slice(range)),
            Piece::Zeros(_) => Piece::Zeros(range.len()),
            Piece::Blob(blob, part) => Piece::Blob(blob, part.start + range.start..part.start + range.end),
            Piece::Forgotten(_) => Piece::Forgotten(range.len()),
        }
    }
}

/// The runs of a rope ([`RopeRef::pieces`]).
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    rope: RopeRef<'a>,
    position: usize,
    /// Blobs that were passed.
    blobs: usize,
}

impl<'a> Pieces<'a> {
    pub(super) fn of(rope: RopeRef<'a>) -> Self {
        Pieces { rope, position: 0, blobs: 0 }
    }

    /// The kind, length and code of the next run, which is passed over.
    pub(super) fn next_code(&mut self) -> Option<(usize, usize, &'a [u8])> {
        let (code, start) = (self.rope.code, self.position);
        if start >= code.len() {
            return None;
        }
        let (head, at) = get_number(code, start);
        let (kind, length) = (head & 3, head >> 2);
        self.position = match kind {
            LITERAL => at + length,
            PATTERN => {
                let (offset, seed_at) = get_number(code, at);
                seed_at + seed_bytes(offset & 1 == 1)
            }
            ZEROS => at,
            _ => {
                self.blobs += 1;
                at
            }
        };
        Some((kind, length, &code[start..self.position]))
    }

    /// Passes over the runs that end at or before byte `target` of the rope; returns the byte that the next one starts at.
    fn skip_to(&mut self, target: usize) -> usize {
        let mut start = 0;
        loop {
            let before = (self.position, self.blobs);
            let Some((_, length, _)) = self.next_code() else { return start };
            if start + length > target {
                (self.position, self.blobs) = before;
                return start;
            }
            start += length;
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    #[inline]
    fn next(&mut self) -> Option<Piece<'a>> {
        let code = self.rope.code;
        if self.position >= code.len() {
            return None;
        }
        let (head, at) = get_number(code, self.position);
        let length = head >> 2;
        let (piece, end) = match head & 3 {
            LITERAL => (Piece::Literal(&code[at..at + length]), at + length),
            PATTERN => {
                let (offset, seed_at) = get_number(code, at);
                let end = seed_at + seed_bytes(offset & 1 == 1);
                let mut seed = [0; 8];
                seed[..end - seed_at].copy_from_slice(&code[seed_at..end]);
                let (seed, offset) = (u64::from_le_bytes(seed), (offset >> 1) as u32);
                (Piece::Pattern(Pattern { seed, offset, length: length as u32 }), end)
            }
            ZEROS => (Piece::Zeros(length), at),
            _ => {
                let blob = self.rope.blobs.get(self.blobs).and_then(Option::as_ref);
                self.blobs += 1;
                (blob.map_or(Piece::Forgotten(length), |blob| Piece::Blob(blob, 0..length)), at)
            }
        };
        self.position = end;
        Some(piece)
    }
}

/// The runs of a part of a rope ([`RopeRef::slice`]).
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    pieces: Pieces<'a>,
    position: usize,
    range: Range<usize>,
}

impl<'a> Slice<'a> {
    #[inline]
    pub(super) fn of(rope: RopeRef<'a>, range: Range<usize>) -> Self {
        let mut pieces = Pieces::of(rope);
        let position = pieces.skip_to(range.start);
        Slice { pieces, position, range }
    }
}

impl<'a> Iterator for Slice<'a> {
    type Item = Piece<'a>;

    #[inline]
    fn next(&mut self) -> Option<Piece<'a>> {
        while self.position < self.range.end {
            let piece = self.pieces.next()?;
            let (start, length) = (self.position, piece.len());
            self.position += length;
            if self.position > self.range.start {
                let from = self.range.start.saturating_sub(start);
                let to = length.min(self.range.end - start);
                return Some(if (from, to) == (0, length) { piece } else { piece.cut(from..to) });
            }
        }
        None
    }
}
