//! The bytes that have come and are not understood yet.

use crate::limits::{CAPSULE_DATA_BYTES_MAX, PDU_DATA_BYTES_MAX};

/// Room for the longest PDU, and for what a host has sent behind it meanwhile.
const CAPACITY_BYTES: usize = 2 * PDU_DATA_BYTES_MAX as usize;
/// What is read at a time where nothing longer is on its way.
const SPARE_BYTES_MIN: usize = 4 * CAPSULE_DATA_BYTES_MAX as usize;

/// A buffer that is read into at its end and taken from at its begin. It grows when a PDU needs it, to a bound.
#[derive(Debug, Default)]
pub(crate) struct InputBuffer {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl InputBuffer {
    /// What has come.
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[self.begin..self.end]
    }

    /// Where more can be put, once there is room for a whole PDU of `needs_bytes`.
    pub(crate) fn spare(&mut self, needs_bytes: usize) -> &mut [u8] {
        let wanted = needs_bytes.saturating_sub(self.end - self.begin).max(SPARE_BYTES_MIN);
        if self.bytes.len() - self.end < wanted {
            self.bytes.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
            // A host that sends much at a time is read in larger pieces from then on.
            let least = if self.bytes.is_empty() { 0 } else { CAPACITY_BYTES };
            let length = (self.end + wanted).max(least).max(self.bytes.len());
            self.bytes.resize(length, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// So many bytes were put there.
    pub(crate) fn fill(&mut self, count: usize) {
        self.end += count;
        assert!(self.end <= self.bytes.len(), "more came than there was room for");
    }

    /// So many bytes are understood.
    pub(crate) fn consume(&mut self, count: usize) {
        self.begin += count;
        assert!(self.begin <= self.end, "what has not come cannot be understood");
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
    }
}
