//! A secret, as nvme-cli writes it (`nvme gen-dhchap-key`).
//!
//! ```text
//!   DHHC-1:01:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:
//!          |  |
//!          |  base64 of 32, 48 or 64 bytes and their CRC-32, low byte first
//!          the hash that it goes through with the name of its owner: 00 none, 01 to 03
//! ```

use crate::hash::Hash;
use crate::interchange::{Written, shown};
use crate::private_file::FileError;
use std::fmt;
use subtle::ConstantTimeEq;
use thiserror::Error;
use zeroize::Zeroizing;

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
    /// Its file is of no use.
    #[error(transparent)]
    File(#[from] FileError),
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
        let written = Written::parse(text, "DHHC-1").ok_or(SecretError::Form)?;
        let hash = match written.hash {
            "00" => None,
            "01" | "02" | "03" => written.hash.parse().ok().and_then(Hash::from_id),
            other => return Err(SecretError::Hash(shown(other))),
        };
        if !matches!(written.length(), 32 | 48 | 64) {
            return Err(SecretError::Length(written.length()));
        }
        let bytes = written.checked().ok_or(SecretError::Checksum)?;
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
