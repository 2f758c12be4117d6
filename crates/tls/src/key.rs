//! What two sides share.

/// The hash of a key, which decides on the cipher suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHash {
    /// TLS_AES_128_GCM_SHA256.
    Sha256,
    /// TLS_AES_256_GCM_SHA384.
    Sha384,
}

/// A key that both sides have, known by its identity.
#[derive(Clone, Copy)]
pub struct Key<'a> {
    /// What it is called on the wire, where anybody can read it; at most 65 535 bytes.
    pub identity: &'a [u8],
    /// 16 bytes or more.
    pub secret: &'a [u8],
    /// Its hash.
    pub hash: KeyHash,
}
