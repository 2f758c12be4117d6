//! Secrets in files, which nobody else may read.

use crate::secret::{Secret, SecretError};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use zeroize::Zeroizing;

/// More than a secret has.
const FILE_BYTES_MAX: u64 = 4096;

/// Reads the secret of a file.
///
/// # Errors
/// [`SecretError::Exposed`] where its group or others may read it; [`SecretError::Unreadable`]; and those of
/// [`Secret::parse`].
pub fn read_secret(path: &Path) -> Result<Secret, SecretError> {
    let unreadable = |why: std::io::Error| SecretError::Unreadable(why.to_string());
    let file = File::open(path).map_err(unreadable)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // Of the file that is open, so that nobody can change it in between.
        if file.metadata().map_err(unreadable)?.mode() & 0o077 != 0 {
            return Err(SecretError::Exposed);
        }
    }
    let mut text = Zeroizing::new(String::with_capacity(FILE_BYTES_MAX as usize));
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(unreadable)?;
    Secret::parse(&text)
}
