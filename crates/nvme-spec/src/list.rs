//! The data of a List command.
//!
//! ```text
//!   u32 keys | u16 bytes, key, zeros | u16 bytes, key, zeros | ...        an entry is padded to a multiple of 4 B
//! ```

use alloc::vec::Vec;

/// Length of the number of keys, which comes first.
pub const LIST_HEADER_BYTES: usize = 4;

/// Writes the data of a List, up to the length of a host's buffer.
#[derive(Debug)]
pub struct ListWriter {
    bytes: Vec<u8>,
    bytes_max: usize,
    keys: u32,
}

impl ListWriter {
    /// An empty list for a buffer of `bytes_max`; below [`LIST_HEADER_BYTES`] it takes no keys.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        let bytes = if bytes_max < LIST_HEADER_BYTES { Vec::new() } else { Vec::from([0; LIST_HEADER_BYTES]) };
        ListWriter { bytes, bytes_max, keys: 0 }
    }

    /// Appends a key; false if there is no room for it, or its length exceeds 16 bits.
    pub fn push(&mut self, key: &[u8]) -> bool {
        let Ok(length) = u16::try_from(key.len()) else { return false };
        let end = self.bytes.len() + entry_bytes(key.len());
        if end > self.bytes_max || self.bytes.is_empty() {
            return false;
        }
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.resize(end, 0);
        self.keys += 1;
        true
    }

    /// The number of keys so far.
    #[must_use]
    pub fn keys(&self) -> u32 {
        self.keys
    }

    /// The data, with the number of keys in front.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        if let Some(header) = self.bytes.first_chunk_mut::<LIST_HEADER_BYTES>() {
            *header = self.keys.to_le_bytes();
        }
        self.bytes
    }
}

/// The data ends before the last key that it announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListTruncated;

/// Iterates over the keys in the data of a List. It ends after an error.
#[derive(Clone, Debug)]
pub struct ListReader<'a> {
    rest: &'a [u8],
    keys: u32,
}

impl<'a> ListReader<'a> {
    /// Bytes behind the last key are ignored.
    ///
    /// # Errors
    /// When `data` is shorter than [`LIST_HEADER_BYTES`].
    pub fn new(data: &'a [u8]) -> Result<Self, ListTruncated> {
        let (header, rest) = data.split_first_chunk::<LIST_HEADER_BYTES>().ok_or(ListTruncated)?;
        Ok(ListReader { rest, keys: u32::from_le_bytes(*header) })
    }

    /// The number of keys that are left.
    #[must_use]
    pub fn keys(&self) -> u32 {
        self.keys
    }

    fn take(&mut self) -> Result<&'a [u8], ListTruncated> {
        let (length, rest) = self.rest.split_first_chunk::<2>().ok_or(ListTruncated)?;
        let length = usize::from(u16::from_le_bytes(*length));
        let key = rest.get(..length).ok_or(ListTruncated)?;
        // The padding of the last key may be missing.
        self.rest = self.rest.get(entry_bytes(length)..).unwrap_or_default();
        Ok(key)
    }
}

impl<'a> Iterator for ListReader<'a> {
    type Item = Result<&'a [u8], ListTruncated>;

    fn next(&mut self) -> Option<Self::Item> {
        self.keys = self.keys.checked_sub(1)?;
        let taken = self.take();
        if taken.is_err() {
            self.keys = 0;
        }
        Some(taken)
    }
}

fn entry_bytes(key_bytes: usize) -> usize {
    (2 + key_bytes).next_multiple_of(4)
}
