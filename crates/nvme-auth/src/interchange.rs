//! How secrets and keys are written: a name, two digits for a hash, and base64 of the bytes with their checksum.
//!
//! ```text
//!   NAME:hh:base64(bytes, CRC-32 of them, low byte first):
//! ```

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

const CRC_BYTES: usize = 4;

/// What such a text says.
pub(crate) struct Written<'a> {
    /// The two digits, or what stands in their place.
    pub(crate) hash: &'a str,
    /// The bytes and their checksum, which is looked at last: bytes of the wrong length are a clearer fault.
    bytes: Zeroizing<Vec<u8>>,
}

impl<'a> Written<'a> {
    /// Takes a text apart; `None` where it does not look like one.
    pub(crate) fn parse(text: &'a str, name: &str) -> Option<Written<'a>> {
        let (hash, rest) = text.trim().strip_prefix(name)?.strip_prefix(':')?.split_once(':')?;
        let bytes = STANDARD.decode(rest.strip_suffix(':')?).ok()?;
        Some(Written { hash, bytes: Zeroizing::new(bytes) })
    }

    /// How many bytes there are beside the checksum.
    pub(crate) fn length(&self) -> usize {
        self.bytes.len().saturating_sub(CRC_BYTES)
    }

    /// The bytes, if their checksum is right.
    pub(crate) fn checked(mut self) -> Option<Zeroizing<Vec<u8>>> {
        let length = self.length();
        let (bytes, checksum) = self.bytes.split_at(length);
        if checksum != crc32fast::hash(bytes).to_le_bytes() {
            return None;
        }
        self.bytes.truncate(length);
        Some(self.bytes)
    }
}

/// A hash that is not known, cut to what fits a message.
pub(crate) fn shown(hash: &str) -> String {
    hash.chars().take(8).collect()
}
