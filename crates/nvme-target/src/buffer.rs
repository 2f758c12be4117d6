//! The bytes that have come and are not decoded yet.

use crate::limits::{CAPSULE_DATA_BYTES_MAX, PDU_DATA_BYTES_MAX};

/// Room for the longest PDU, and for as much behind it.
const CAPACITY_BYTES: usize = 2 * PDU_DATA_BYTES_MAX as usize;
/// The least that is read at a time.
const SPARE_BYTES_MIN: usize = 4 * CAPSULE_DATA_BYTES_MAX as usize;

/// A queue of bytes: reads append at its end, decoding consumes at its front. It grows to the longest PDU, not further.
#[derive(Debug, Default)]
pub(crate) struct InputBuffer {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl InputBuffer {
    /// The bytes to decode.
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[self.begin..self.end]
    }

    /// Where to read to. With the bytes to decode there is room for a PDU of `needs_bytes`.
    pub(crate) fn spare(&mut self, needs_bytes: usize) -> &mut [u8] {
        let wanted = needs_bytes.saturating_sub(self.end - self.begin).max(SPARE_BYTES_MIN);
        if self.bytes.len() - self.end < wanted {
            self.bytes.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
            // Once a host has sent more than the first buffer, larger pieces are read.
            let least = if self.bytes.is_empty() { 0 } else { CAPACITY_BYTES };
            let length = (self.end + wanted).max(least).max(self.bytes.len());
            self.bytes.resize(length, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Notes that `count` bytes were read to [`InputBuffer::spare`].
    pub(crate) fn fill(&mut self, count: usize) {
        self.end += count;
        assert!(self.end <= self.bytes.len(), "more came than there was room for");
    }

    /// Drops the first `count` bytes: they are decoded.
    pub(crate) fn consume(&mut self, count: usize) {
        self.begin += count;
        assert!(self.begin <= self.end, "more is consumed than has come");
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
    }
}
