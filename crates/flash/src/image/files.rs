//! Where images lie: the file system, or what stands in its place ([`SimulatedDisk`](crate::SimulatedDisk)).
//!
//! ```text
//!   ImageBacking -> Disk (errors that name the file) -> RawFile: bytes at places, a lock, a Syncer
//!                                                          ^
//!   create, open, remove, names that are durable -- Files -+
//! ```
//!
//! Every call may fail, and a write may take fewer bytes than it was given: that is what the system does.

use std::collections::hash_map::RandomState;
use std::fmt::Debug;
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io::{self, IoSliceMut};
use std::path::Path;
use std::sync::Arc;

/// Zeros are written in pieces of this many bytes.
const ZEROS_BYTES: u64 = 1 << 20;

/// A place for files. By default, its calls go to the system's file system.
pub trait Files: Debug + Send + Sync {
    /// A new file, open to be read and written.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when there is one, and what else the system says.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn RawFile>>;

    /// The file at `path`.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when there is none, and what else the system says.
    fn open(&self, path: &Path, is_read_only: bool) -> io::Result<Box<dyn RawFile>>;

    /// Whether a regular file is at `path`; opening anything else might wait for its other end.
    ///
    /// # Errors
    /// As [`Files::open`].
    fn is_regular(&self, path: &Path) -> io::Result<bool> {
        Ok(fs::metadata(path)?.is_file())
    }

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    /// Makes the name of the file at `path` outlive the machine, by a sync of its directory.
    ///
    /// # Errors
    /// What the system says.
    fn sync_name(&self, path: &Path) -> io::Result<()> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(directory)?.sync_all()
    }

    /// A number that tells a new image from all others.
    fn image_number(&self) -> u64 {
        // Keyed by what the system has drawn for this process.
        RandomState::new().hash_one(std::process::id())
    }
}

/// An open file.
pub trait RawFile: Debug + Send + Sync {
    /// Its length.
    ///
    /// # Errors
    /// What the system says, as with all that follow.
    fn length_bytes(&self) -> io::Result<u64>;

    /// Identifies the file, whatever its name. If no name can come to mean another file, a constant is enough.
    ///
    /// # Errors
    /// What the system says.
    fn identity(&self) -> io::Result<(u64, u64)> {
        Ok((0, 0))
    }

    /// Makes it so long; what is new reads as zeros.
    ///
    /// # Errors
    /// What the system says.
    fn set_length(&mut self, bytes: u64) -> io::Result<()>;

    /// Takes room on the disk for the bytes from `from` to `to`, which are there as zeros.
    ///
    /// # Errors
    /// What the system says, for example that the disk has not so much room.
    fn take_room(&mut self, from: u64, to: u64) -> io::Result<()> {
        write_zeros(from, to, |at, zeros| self.write_at(at, zeros))
    }

    /// Fills `out` with the bytes from `at` on.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] when there are not so many, and what else the system says.
    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()>;

    /// Fills one place behind the other with the bytes from `at` on.
    ///
    /// # Errors
    /// As [`RawFile::read_at`].
    fn read_each(&self, at: u64, places: &mut [IoSliceMut<'_>]) -> io::Result<()>;

    /// Writes `bytes` from `at` on, or the first of them; returns how many.
    ///
    /// # Errors
    /// What the system says.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Prepares for [`RawFile::stage_at`] in that region of the file. By default, it does nothing.
    fn prepare_staging(&mut self, _at: u64, _bytes: u64) {}

    /// Like [`RawFile::write_at`], for small and frequent writes that need only outlive the process. If the process is killed meanwhile, any part of
    /// the bytes may be there, down to single bytes.
    fn stage_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        self.write_at(at, bytes)
    }

    /// Why staging takes system calls and not mapped memory, if so.
    fn staging_note(&self) -> Option<&str> {
        None
    }

    /// What waits for the disk, also while the file is written.
    fn syncer(&self) -> Arc<dyn Syncer>;

    /// Takes the lock; readers share it. Returns whether it was free.
    ///
    /// # Errors
    /// What the system says.
    fn try_lock(&self, is_shared: bool) -> io::Result<bool>;

    /// Waits until the lock is free, and takes it exclusively.
    ///
    /// # Errors
    /// What the system says.
    fn lock(&self) -> io::Result<()>;

    /// Releases the lock.
    fn unlock(&self);
}

/// Waits for the disk under a file.
pub trait Syncer: Debug + Send + Sync {
    /// Returns when what was written before would outlive the machine.
    ///
    /// # Errors
    /// What the system says. What was written before is in doubt from then on.
    fn sync(&self) -> io::Result<()>;
}

/// Repeats partial writes until all bytes are written.
pub(super) fn in_parts(
    at: u64,
    bytes: &[u8],
    mut write: impl FnMut(u64, &[u8]) -> io::Result<usize>,
) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        match write(at + written as u64, &bytes[written..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes zeros from `from` to `to`.
pub(super) fn write_zeros(
    from: u64,
    to: u64,
    mut write: impl FnMut(u64, &[u8]) -> io::Result<usize>,
) -> io::Result<()> {
    let zeros = vec![0; ZEROS_BYTES as usize];
    let mut at = from;
    while at < to {
        let count = (to - at).min(ZEROS_BYTES);
        in_parts(at, &zeros[..count as usize], &mut write)?;
        at += count;
    }
    Ok(())
}
