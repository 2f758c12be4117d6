//! Records: pairs as they lie in the log.
//!
//! ```text
//!   [key length u8] [key] [value length u32, little endian] [value] [zeros to the next grain]
//! ```
//!
//! The head, which is all but the value, never straddles two pages; the value may run on over any number of them.

use crate::layout::address::Grain;
use kvssd_flash::rope::{Rope, RopeRef};
use kvssd_types::{Key, KvError, Value};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A pair: where it lies and how large it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairPlace {
    /// The first grain of its record.
    pub place: Grain,
    /// Bytes of its key.
    pub key_bytes: u32,
    /// Bytes of its value.
    pub value_bytes: u32,
}

/// What a record's head says. A block of a block drive is a record without a key, and has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// Bytes of the key.
    pub key_bytes: u32,
    /// Bytes of the value.
    pub value_bytes: u32,
}

/// Bytes of a head without its key.
const FIXED_BYTES: usize = 1 + 4;

impl PairPlace {
    /// The head of its record.
    #[must_use]
    pub fn head(&self) -> RecordHead {
        RecordHead { key_bytes: self.key_bytes, value_bytes: self.value_bytes }
    }
}

impl RecordHead {
    /// The head of the record of a pair.
    pub(crate) fn of(key: Key<'_>, value: &Value) -> Self {
        RecordHead { key_bytes: key.bytes().len() as u32, value_bytes: value.len() as u32 }
    }

    /// Bytes of the head of a record with a key of `key_bytes`.
    #[must_use]
    pub fn bytes_for(key_bytes: usize) -> usize {
        FIXED_BYTES + key_bytes
    }

    /// Bytes of the head.
    #[must_use]
    pub fn bytes(&self) -> usize {
        if self.key_bytes == 0 { 0 } else { Self::bytes_for(self.key_bytes as usize) }
    }

    /// Bytes of the whole record.
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        self.bytes() + self.value_bytes as usize
    }

    /// The bytes of the value that are so many from a first one on, as far as there are any.
    pub(crate) fn value_range(&self, (offset_bytes, length_bytes): (u32, u32)) -> Range<usize> {
        let first = offset_bytes.min(self.value_bytes);
        first as usize..(first + length_bytes.min(self.value_bytes - first)) as usize
    }

    /// The pair of this head, at a place.
    #[must_use]
    pub fn at(&self, place: Grain) -> PairPlace {
        PairPlace { place, key_bytes: self.key_bytes, value_bytes: self.value_bytes }
    }

    /// Reads the head at byte `start` of a page.
    ///
    /// # Errors
    /// [`KvError::Unrecovered`] when there is no record.
    pub fn read(page: RopeRef<'_>, start: usize, page_bytes: usize) -> Result<Self, KvError> {
        let damaged = || KvError::Unrecovered("a page holds no record where the index says so".to_owned());
        let mut key_bytes = [0];
        page.copy_some(start, &mut key_bytes);
        let key_bytes = u32::from(key_bytes[0]);
        let length_at = start + 1 + key_bytes as usize;
        if key_bytes == 0 || length_at + 4 > page_bytes {
            return Err(damaged());
        }
        let mut value_bytes = [0; 4];
        // A page that is still gathered may end before.
        let is_whole = page.copy_some(length_at, &mut value_bytes) == value_bytes.len();
        let value_bytes = u32::from_le_bytes(value_bytes);
        if !is_whole || value_bytes as usize > kvssd_types::VALUE_BYTES_MAX {
            return Err(damaged());
        }
        Ok(RecordHead { key_bytes, value_bytes })
    }

    /// The head of the record at byte `start` of a page if the record is that of `key`.
    #[must_use]
    pub fn matching(page: RopeRef<'_>, start: usize, page_bytes: usize, key: Key<'_>) -> Option<Self> {
        let key = key.bytes();
        let length_at = 1 + key.len();
        if start + length_at + 4 > page_bytes {
            return None;
        }
        let mut room = [0; FIXED_BYTES + 255];
        let head = match page.in_one_piece(start..start + length_at + 4) {
            Some(head) => head,
            None => {
                page.copy_some(start, &mut room[..length_at + 4]);
                &room
            }
        };
        if usize::from(head[0]) != key.len() || head[1..length_at] != *key {
            return None;
        }
        let mut value_bytes = [0; 4];
        value_bytes.copy_from_slice(&head[length_at..length_at + 4]);
        Some(RecordHead { key_bytes: key.len() as u32, value_bytes: u32::from_le_bytes(value_bytes) })
    }

    /// The key of the record at byte `start` of a page; `key` is room for the longest one.
    pub fn key<'a>(&self, page: RopeRef<'_>, start: usize, key: &'a mut [u8; 255]) -> &'a [u8] {
        let key = &mut key[..self.key_bytes as usize];
        page.copy_to(start + 1, key);
        key
    }
}

/// Writes a record to an empty `rope`.
pub fn write_record(key: Key<'_>, value: &Value, rope: &mut Rope) {
    let mut head = [0; FIXED_BYTES + 255];
    let key = key.bytes();
    let length_at = 1 + key.len();
    head[0] = key.len() as u8;
    head[1..length_at].copy_from_slice(key);
    head[length_at..length_at + 4].copy_from_slice(&(value.len() as u32).to_le_bytes());
    rope.push_literal(&head[..length_at + 4]);
    rope.push_value(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_reads_back(key in prop::collection::vec(any::<u8>(), 1..256), value in prop::collection::vec(any::<u8>(), 0..400), start in 0usize..64) {
            let mut page = Rope::default();
            page.push_zeros(start);
            let mut record = Rope::default();
            write_record(Key::new(&key).unwrap(), &Value::from(&value[..]), &mut record);
            page.push_slice(record.as_ref(), 0..record.len());
            let head = RecordHead::read(page.as_ref(), start, page.len()).unwrap();
            prop_assert_eq!((head.key_bytes as usize, head.value_bytes as usize), (key.len(), value.len()));
            prop_assert_eq!(head.record_bytes(), record.len());
            let mut room = [0; 255];
            prop_assert_eq!(head.key(page.as_ref(), start, &mut room), &key[..]);
        }

        #[test]
        fn any_bytes_are_a_head_or_an_error(bytes in prop::collection::vec(any::<u8>(), 512), start in 0usize..512) {
            let mut page = Rope::default();
            page.push_literal(&bytes);
            let _ = RecordHead::read(page.as_ref(), start, 512);
        }
    }
}
