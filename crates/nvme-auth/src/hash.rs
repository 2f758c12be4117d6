//! The hash functions, and their HMAC.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha384, Sha512};
use zeroize::Zeroizing;

/// A hash function, by its identifier in messages and secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Hash {
    /// SHA-256, 32 bytes.
    Sha256 = 1,
    /// SHA-384, 48 bytes.
    Sha384 = 2,
    /// SHA-512, 64 bytes.
    Sha512 = 3,
}

impl Hash {
    /// All, the longest first.
    pub const ALL: [Hash; 3] = [Hash::Sha512, Hash::Sha384, Hash::Sha256];

    /// The hash of that identifier.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Hash> {
        Hash::ALL.into_iter().find(|hash| *hash as u8 == id)
    }

    /// Length of a digest, in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Hash::Sha256 => 32,
            Hash::Sha384 => 48,
            Hash::Sha512 => 64,
        }
    }

    pub(crate) fn digest(self, data: &[u8]) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(match self {
            Hash::Sha256 => Sha256::digest(data).to_vec(),
            Hash::Sha384 => Sha384::digest(data).to_vec(),
            Hash::Sha512 => Sha512::digest(data).to_vec(),
        })
    }

    /// The HMAC of the concatenation of `parts`.
    pub(crate) fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
        fn of<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
            let mut mac = <M as KeyInit>::new_from_slice(key).expect("an HMAC takes keys of any length");
            parts.iter().for_each(|part| mac.update(part));
            Zeroizing::new(mac.finalize().into_bytes().to_vec())
        }
        match self {
            Hash::Sha256 => of::<Hmac<Sha256>>(key, parts),
            Hash::Sha384 => of::<Hmac<Sha384>>(key, parts),
            Hash::Sha512 => of::<Hmac<Sha512>>(key, parts),
        }
    }
}
