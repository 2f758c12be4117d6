//! Keys.

use crate::KvError;
use std::fmt;

/// The longest key in bytes (Samsung KV API `KVS_MAX_KEY_LENGTH`; NVMe commands carry at most 16 of them inline).
pub const KEY_BYTES_MAX: usize = 255;

/// The bytes of a key, kept.
pub type OwnedKey = Box<[u8]>;

/// A key of 1 to [`KEY_BYTES_MAX`] bytes, borrowed. Having one is the proof that its length was checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'a>(&'a [u8]);

impl<'a> Key<'a> {
    /// Checks the length of `bytes`.
    ///
    /// # Errors
    /// [`KvError::InvalidKeySize`] for an empty key and for one of more than [`KEY_BYTES_MAX`] bytes.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, KvError> {
        if (1..=KEY_BYTES_MAX).contains(&bytes.len()) {
            Ok(Key(bytes))
        } else {
            Err(KvError::InvalidKeySize { key_bytes: bytes.len() })
        }
    }

    /// The bytes of the key, 1 to [`KEY_BYTES_MAX`] of them.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_from_1_to_255_are_keys() {
        assert!(Key::new(&[]).is_err());
        assert!(Key::new(&[0]).is_ok());
        assert!(Key::new(&[0; 255]).is_ok());
        assert_eq!(Key::new(&[0; 256]), Err(KvError::InvalidKeySize { key_bytes: 256 }));
    }
}
