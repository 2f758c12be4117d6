//! A secret, as nvme-cli writes it (`nvme gen-dhchap-key`).
//!
//! ```text
//!   DHHC-1:01:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:
//!          |  |
//!          |  base64 of 32, 48 or 64 bytes and their CRC-32, low byte first
//!          the hash that it goes through with the name of its owner: 00 none, 01 to 03
//! ```

use crate::hash::Hash;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use subtle::ConstantTimeEq;
use thiserror::Error;
use zeroize::Zeroizing;

const CRC_BYTES: usize = 4;
const LABEL: &[u8] = b"NVMe-over-Fabrics";

/// Why a text is no secret, or a file has none. The text itself is never part of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SecretError {
    /// It does not look like one.
    #[error("it has no secret: write one as nvme gen-dhchap-key does, DHHC-1:hh:base64:")]
    Form,
    /// The hash is not known.
    #[error("its secret has the hash {0}: it is 00, 01, 02 or 03")]
    Hash(String),
    /// The bytes are of another length.
    #[error("its secret has {0} bytes: 32, 48 or 64 are wanted")]
    Length(usize),
    /// It was mistyped, or cut off.
    #[error("the checksum of its secret is wrong: it was changed or cut off")]
    Checksum,
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// Others could read it.
    #[error("others than its owner can read it: chmod 600")]
    Exposed,
}

/// A secret that a host or a controller has.
#[derive(Clone)]
pub struct Secret {
    bytes: Zeroizing<Vec<u8>>,
    hash: Option<Hash>,
}

impl Secret {
    /// Reads a secret.
    ///
    /// # Errors
    /// As [`SecretError`] says.
    pub fn parse(text: &str) -> Result<Secret, SecretError> {
        let rest = text.trim().strip_prefix("DHHC-1:").ok_or(SecretError::Form)?;
        let (hash, rest) = rest.split_once(':').ok_or(SecretError::Form)?;
        let hash = match hash {
            "00" => None,
            "01" | "02" | "03" => hash.parse().ok().and_then(Hash::from_id),
            other => return Err(SecretError::Hash(other.chars().take(8).collect())),
        };
        let text = rest.strip_suffix(':').ok_or(SecretError::Form)?;
        let mut bytes = Zeroizing::new(STANDARD.decode(text).map_err(|_| SecretError::Form)?);
        let length = bytes.len().saturating_sub(CRC_BYTES);
        if !matches!(length, 32 | 48 | 64) {
            return Err(SecretError::Length(length));
        }
        if crc32fast::hash(&bytes[..length]).to_le_bytes() != bytes[length..] {
            return Err(SecretError::Checksum);
        }
        bytes.truncate(length);
        Ok(Secret { bytes, hash })
    }

    /// The key of a response: the secret as it is, or hashed with the name of its owner.
    pub(crate) fn key(&self, owner_nqn: &str) -> Zeroizing<Vec<u8>> {
        match self.hash {
            None => self.bytes.clone(),
            Some(hash) => hash.hmac(&self.bytes, &[owner_nqn.as_bytes(), LABEL]),
        }
    }

    /// Whether both have the same bytes.
    #[must_use]
    pub fn has_bytes_of(&self, other: &Secret) -> bool {
        self.bytes.ct_eq(&other.bytes).into()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.has_bytes_of(other)
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}
