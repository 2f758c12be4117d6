//! Secrets and keys in files, which nobody else may read.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use thiserror::Error;
use zeroize::Zeroizing;

/// More than a secret or a key has.
const FILE_BYTES_MAX: u64 = 4096;

/// Why the text of a file is of no use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// Others could read it.
    #[error("others than its owner can read it: chmod 600")]
    Exposed,
}

/// Reads a file.
///
/// # Errors
/// [`FileError::Exposed`] where its group or others may read it; [`FileError::Unreadable`].
pub(crate) fn read_private(path: &Path) -> Result<Zeroizing<String>, FileError> {
    let unreadable = |why: std::io::Error| FileError::Unreadable(why.to_string());
    // Who opens a pipe waits for somebody that writes to it.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(FileError::Unreadable("it is no regular file".to_owned()));
    }
    let file = File::open(path).map_err(unreadable)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // Of the file that is open, so that nobody can change it in between.
        if file.metadata().map_err(unreadable)?.mode() & 0o077 != 0 {
            return Err(FileError::Exposed);
        }
    }
    let mut text = Zeroizing::new(String::with_capacity(FILE_BYTES_MAX as usize));
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}
