//! Files with a secret or a key in them.

use crate::private_file::read_private;
use crate::secret::{Secret, SecretError};
use crate::tls_key::{TlsKey, TlsKeyError};
use std::path::Path;

/// Reads the secret of a file, which nobody else may read.
///
/// # Errors
/// [`SecretError::File`], and those of [`Secret::parse`].
pub fn read_secret(path: &Path) -> Result<Secret, SecretError> {
    Secret::parse(&read_private(path)?)
}

/// Reads the key for TLS of a file, which nobody else may read.
///
/// # Errors
/// [`TlsKeyError::File`], and those of [`TlsKey::parse`].
pub fn read_tls_key(path: &Path) -> Result<TlsKey, TlsKeyError> {
    TlsKey::parse(&read_private(path)?)
}
