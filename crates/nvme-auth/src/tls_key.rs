//! A key for TLS, as nvme-cli writes it (`nvme gen-tls-key`), and what becomes of it on the way to a handshake.
//!
//! ```text
//!   NVMeTLSkey-1:01:base64 of 32 or 48 bytes and their CRC-32:      the configured key
//!     |          00 as it is, 01 of 32 bytes by SHA-256, 02 of 48 by SHA-384, with the host's NQN
//!   retained key
//!     |          with the identity: the NQNs of host and subsystem, and, in version 1, a digest of the key
//!   key of TLS   of 32 bytes TLS_AES_128_GCM_SHA256 follows, of 48 TLS_AES_256_GCM_SHA384
//! ```
//!
//! HKDF-Expand-Label is that of RFC 8446. libnvme up to 1.14 (and later, by `--compat`) leaves two of its lengths out and turns
//! the third around: what such a host derives is another key, in version 0 under the same identity ([`Derivation::Libnvme`]).

use crate::hash::Hash;
use crate::interchange::{Written, shown};
use crate::parties::Parties;
use crate::private_file::FileError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use subtle::ConstantTimeEq;
use thiserror::Error;
use zeroize::Zeroizing;

/// The most bytes of a context of HKDF-Expand-Label.
const CONTEXT_BYTES_MAX: usize = 255;

/// Why a text is no key for TLS, or a file has none. The text itself is never part of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TlsKeyError {
    /// It does not look like one.
    #[error("it has no key for TLS: write one as nvme gen-tls-key does, NVMeTLSkey-1:hh:base64:")]
    Form,
    /// The hash is not known.
    #[error("its key has the hash {0}: it is 00, 01 or 02")]
    Hash(String),
    /// The bytes are of another length.
    #[error("its key has {0} bytes: 32 are wanted with hash 01, 48 with 02, and 32 or 48 with 00")]
    Length(usize),
    /// It was mistyped, or cut off.
    #[error("the checksum of its key is wrong: it was changed or cut off")]
    Checksum,
    /// Its file is of no use.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A configured key.
#[derive(Clone)]
pub struct TlsKey {
    bytes: Zeroizing<Vec<u8>>,
    /// By which it becomes the retained key.
    retained_by: Option<Hash>,
    /// That of its length, which is that of the cipher suite.
    hash: Hash,
}

/// How a key is derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derivation {
    /// As the specification has it.
    Standard,
    /// As libnvme up to 1.14 has it.
    Libnvme,
}

/// What two sides of a TLS handshake share.
#[derive(Clone, PartialEq, Eq)]
pub struct PresharedKey {
    /// The name that it goes by on the wire, where anybody can read it.
    pub identity: String,
    /// Its bytes.
    pub secret: Zeroizing<Vec<u8>>,
    /// That of the cipher suite: SHA-256 or SHA-384.
    pub hash: Hash,
}

impl TlsKey {
    /// Reads a key.
    ///
    /// # Errors
    /// As [`TlsKeyError`] says.
    pub fn parse(text: &str) -> Result<TlsKey, TlsKeyError> {
        let written = Written::parse(text, "NVMeTLSkey-1").ok_or(TlsKeyError::Form)?;
        let retained_by = match written.hash {
            "00" => None,
            "01" => Some(Hash::Sha256),
            "02" => Some(Hash::Sha384),
            other => return Err(TlsKeyError::Hash(shown(other))),
        };
        let of_length = [Hash::Sha256, Hash::Sha384].into_iter().find(|hash| hash.bytes() == written.length());
        let hash = of_length.filter(|hash| retained_by.is_none_or(|wanted| wanted == *hash));
        let hash = hash.ok_or(TlsKeyError::Length(written.length()))?;
        Ok(TlsKey { bytes: written.checked().ok_or(TlsKeyError::Checksum)?, retained_by, hash })
    }

    /// What a handshake between these parties may use, the one to prefer first. Long names leave version 1 alone.
    #[must_use]
    pub fn preshared_keys(&self, parties: &Parties, derivation: Derivation) -> Vec<PresharedKey> {
        let Parties { host, subsystem } = parties;
        let Some(retained) = self.retained(host, derivation) else { return Vec::new() };
        let digits = self.hash as u8;
        let digest = self.hash.hmac(&retained, &[format!("{host} {subsystem} NVMe-over-Fabrics").as_bytes()]);
        let digest = STANDARD.encode(&digest);
        let versions = [
            (format!("NVMe1R{digits:02} {host} {subsystem} {digest}"), Some(format!("{digits:02} {digest}"))),
            (format!("NVMe0R{digits:02} {host} {subsystem}"), None),
        ];
        let derive = |(identity, context): (String, Option<String>)| {
            let context = context.as_deref().unwrap_or(&identity).as_bytes();
            let secret = expand(self.hash, &retained, "nvme-tls-psk", context, derivation)?;
            Some(PresharedKey { identity, secret, hash: self.hash })
        };
        versions.into_iter().filter_map(derive).collect()
    }

    fn retained(&self, host: &str, derivation: Derivation) -> Option<Zeroizing<Vec<u8>>> {
        match self.retained_by {
            None => Some(self.bytes.clone()),
            Some(hash) => expand(hash, &self.bytes, "HostNQN", host.as_bytes(), derivation),
        }
    }
}

/// HKDF-Extract without salt, then HKDF-Expand-Label of as many bytes as the hash has, which is one block. `None` where the
/// context is too long for it.
fn expand(hash: Hash, key: &[u8], label: &str, context: &[u8], derivation: Derivation) -> Option<Zeroizing<Vec<u8>>> {
    const BLOCK: u8 = 1;
    let label = format!("tls13 {label}");
    let pseudorandom = hash.hmac(&vec![0; hash.bytes()], &[key]);
    let length = hash.bytes() as u16;
    Some(match derivation {
        Derivation::Standard => {
            let context_length = u8::try_from(context.len()).ok().filter(|_| context.len() <= CONTEXT_BYTES_MAX)?;
            let lengths = (length.to_be_bytes(), [label.len() as u8], [context_length]);
            let info = [&lengths.0, &lengths.1[..], label.as_bytes(), &lengths.2, context, &[BLOCK]];
            hash.hmac(&pseudorandom, &info)
        }
        Derivation::Libnvme => hash.hmac(&pseudorandom, &[&length.to_le_bytes(), label.as_bytes(), context, &[BLOCK]]),
    })
}

/// The host and the subsystem that an identity names, and nothing of what proves it.
#[must_use]
pub fn parties_of(identity: &str) -> Option<Parties> {
    let rest = identity.strip_prefix("NVMe")?;
    let (version, rest) = rest.split_once('R')?;
    let mut words = rest.split(' ');
    let (_hash, host, subsystem) = (words.next()?, words.next()?, words.next()?);
    let has_digest = words.next().is_some();
    let is_known = matches!((version, has_digest), ("0", false) | ("1", true)) && words.next().is_none();
    is_known.then(|| Parties { host: host.to_owned(), subsystem: subsystem.to_owned() })
}

impl PartialEq for TlsKey {
    fn eq(&self, other: &Self) -> bool {
        self.retained_by == other.retained_by && self.bytes.ct_eq(&other.bytes).into()
    }
}

impl Eq for TlsKey {}

impl fmt::Debug for TlsKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TlsKey")
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PresharedKey({})", self.identity)
    }
}
