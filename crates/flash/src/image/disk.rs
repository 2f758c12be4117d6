//! The file under an image: bytes at places, the lock, and errors that name the file.
//!
//! After a write or a sync that failed nobody knows what the file holds, so that nothing is written any more: what
//! lies there is what a mount after a crash at that moment would find.

use super::error::{ImageError, ImageFault};
use super::layout::{HOLDER_AT, HOLDER_BYTES, MAGIC, MAGIC_UNFINISHED};
use crate::Owner;
use rustix::io::Errno;
use std::fs::{self, File, TryLockError};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Zeros are written in pieces of this many bytes.
const PIECE_BYTES: u64 = 1 << 20;
const PID_BYTES: usize = 4;

/// An open and locked file.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) file: File,
    path: PathBuf,
    owner: Owner,
    is_read_only: bool,
    failure: Option<ImageError>,
    /// What was written and when it was made durable, for those who ask what a crash leaves.
    #[cfg(test)]
    pub(super) history: Vec<Event>,
    /// A sync is only noted: nobody is going to pull the plug.
    #[cfg(test)]
    pub(super) is_rehearsal: bool,
}

/// A write to the file, or that everything before has become durable.
#[cfg(test)]
#[derive(Clone, Debug)]
pub(super) enum Event {
    Write(u64, Vec<u8>),
    Sync,
}

impl Disk {
    /// A new file, locked, that says that it is not finished.
    pub(super) fn create(path: &Path) -> Result<Disk, ImageError> {
        let fail = |fault| ImageError { path: path.to_owned(), fault };
        let file = File::options().read(true).write(true).create_new(true).open(path).map_err(|error| {
            fail(match error.kind() {
                io::ErrorKind::AlreadyExists => ImageFault::Exists,
                _ => failed("create it", &error),
            })
        })?;
        let mut disk = Disk::new(file, path, false);
        disk.begin().inspect_err(|_| {
            // It was made just now, and holds nothing. What is wrong with the disk was said already.
            let _ = fs::remove_file(path);
        })?;
        Ok(disk)
    }

    /// Locks a new file and says that it is not finished.
    fn begin(&mut self) -> Result<(), ImageError> {
        // Somebody may have opened it to see that it is no image: this waits until that is seen.
        self.file.lock().map_err(|error| self.error(failed("lock it", &error)))?;
        self.write(0, &MAGIC_UNFINISHED, "the header")?;
        self.note_holder();
        Ok(())
    }

    /// The file at `path`, locked; whoever reads only shares it with others who do.
    pub(super) fn open(path: &Path, is_read_only: bool) -> Result<Disk, ImageError> {
        let fail = |fault| ImageError { path: path.to_owned(), fault };
        let cannot_open = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => fail(ImageFault::Missing),
            _ => fail(failed("open it", &error)),
        };
        // Asked before, because opening a pipe would wait for its other end.
        if !fs::metadata(path).map_err(cannot_open)?.is_file() {
            return Err(fail(ImageFault::NotAFile));
        }
        let file = File::options().read(true).write(!is_read_only).open(path).map_err(cannot_open)?;
        let disk = Disk::new(file, path, is_read_only);
        match if is_read_only { disk.file.try_lock_shared() } else { disk.file.try_lock() } {
            Ok(()) => Ok(disk),
            Err(TryLockError::WouldBlock) => Err(fail(ImageFault::Locked { holder: disk.holder() })),
            Err(TryLockError::Error(error)) => Err(fail(failed("lock it", &error))),
        }
    }

    fn new(file: File, path: &Path, is_read_only: bool) -> Disk {
        Disk {
            file,
            path: path.to_owned(),
            owner: Owner::here(),
            is_read_only,
            failure: None,
            #[cfg(test)]
            history: Vec::new(),
            #[cfg(test)]
            is_rehearsal: false,
        }
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn error(&self, fault: ImageFault) -> ImageError {
        ImageError { path: self.path.clone(), fault }
    }

    /// The length of the file.
    pub(super) fn length(&self) -> Result<u64, ImageError> {
        let metadata = self.file.metadata().map_err(|error| self.error(failed("ask for its length", &error)))?;
        Ok(metadata.len())
    }

    /// Makes the file longer: with zeros that take room, or without.
    pub(super) fn set_length(&mut self, bytes: u64, preallocate: bool) -> Result<(), ImageError> {
        self.file.set_len(bytes).map_err(|error| self.error(failed(&format!("make it {bytes} bytes long"), &error)))?;
        if preallocate {
            let zeros = vec![0; PIECE_BYTES as usize];
            // The first bytes are written already.
            let mut at = HOLDER_AT + HOLDER_BYTES as u64;
            while at < bytes {
                let count = (bytes - at).min(PIECE_BYTES);
                self.file.write_all_at(&zeros[..count as usize], at).map_err(|error| {
                    self.error(failed(&format!("reserve all of its {bytes} bytes, only {at} of them"), &error))
                })?;
                at += count;
            }
        }
        Ok(())
    }

    pub(super) fn read(&self, at: u64, out: &mut [u8], what: &str) -> Result<(), ImageError> {
        self.file.read_exact_at(out, at).map_err(|error| self.error(failed(&format!("read {what}"), &error)))
    }

    /// Reads to one place behind the other.
    pub(super) fn read_each(&self, at: u64, mut places: &mut [IoSliceMut<'_>], what: &str) -> Result<(), ImageError> {
        let mut at = at;
        while !places.is_empty() {
            match rustix::io::preadv(&self.file, places, at) {
                Ok(0) => return Err(self.error(failed(&format!("read {what}"), &io::ErrorKind::UnexpectedEof.into()))),
                Ok(count) => {
                    at += count as u64;
                    IoSliceMut::advance_slices(&mut places, count);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.error(failed(&format!("read {what}"), &error.into()))),
            }
        }
        Ok(())
    }

    /// Whether something may be written.
    pub(super) fn check(&self) -> Result<(), ImageError> {
        if !self.owner.is_here() {
            return Err(self.error(ImageFault::Forked { process: self.owner.process() }));
        }
        if self.is_read_only {
            return Err(self.error(ImageFault::ReadOnly));
        }
        self.failure.clone().map_or(Ok(()), Err)
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8], what: &str) -> Result<(), ImageError> {
        self.check()?;
        #[cfg(test)]
        self.history.push(Event::Write(at, bytes.to_owned()));
        self.file.write_all_at(bytes, at).map_err(|error| self.fail(failed(&format!("write {what}"), &error)))
    }

    /// Waits until everything that was written would outlive the machine.
    pub(super) fn sync(&mut self) -> Result<(), ImageError> {
        self.check()?;
        #[cfg(test)]
        {
            self.history.push(Event::Sync);
            if self.is_rehearsal {
                return Ok(());
            }
        }
        self.file.sync_data().map_err(|error| self.fail(failed("make what was written durable", &error)))
    }

    /// Makes the file's name durable, which is its directory's business.
    pub(super) fn sync_name(&self) -> Result<(), ImageError> {
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| self.error(failed("make its name durable", &error)))
    }

    /// From now on nothing is written any more, for this reason.
    pub(super) fn fail(&mut self, fault: ImageFault) -> ImageError {
        let error = self.error(fault);
        self.failure = Some(error.clone());
        error
    }

    /// Writes who has the lock, for those who do not get it. That this fails harms nobody.
    pub(super) fn note_holder(&self) {
        let mut note = [0; HOLDER_BYTES];
        note[..PID_BYTES].copy_from_slice(&std::process::id().to_le_bytes());
        let name = fs::read_to_string("/proc/self/comm").ok();
        let name = name.or_else(|| std::env::args().next()).unwrap_or_default();
        let name =
            Path::new(name.trim()).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let count = name.len().min(HOLDER_BYTES - PID_BYTES);
        note[PID_BYTES..PID_BYTES + count].copy_from_slice(&name.as_bytes()[..count]);
        let _ = self.file.write_all_at(&note, HOLDER_AT);
    }

    /// Takes the note away, so that nobody is blamed who has gone.
    pub(super) fn clear_holder(&self) {
        if !self.owner.is_surely_here() {
            return;
        }
        let _ = self.file.write_all_at(&[0; HOLDER_BYTES], HOLDER_AT);
    }

    /// Who has the lock, if the note speaks of a process that is alive.
    fn holder(&self) -> String {
        let unknown = "another process".to_owned();
        let (mut magic, mut note) = ([0; MAGIC.len()], [0; HOLDER_BYTES]);
        let is_read =
            self.file.read_exact_at(&mut magic, 0).and_then(|()| self.file.read_exact_at(&mut note, HOLDER_AT));
        if is_read.is_err() || (magic != MAGIC && magic != MAGIC_UNFINISHED) {
            return unknown;
        }
        let (pid, name) = note.split_at(PID_BYTES);
        let pid = u32::from_le_bytes([pid[0], pid[1], pid[2], pid[3]]);
        let is_gone = Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{pid}")).exists();
        if pid == 0 || is_gone {
            return unknown;
        }
        let name: String = String::from_utf8_lossy(name)
            .chars()
            .filter(|letter| !letter.is_control() && *letter != '\u{fffd}')
            .collect();
        if name.is_empty() { format!("process {pid}") } else { format!("process {pid} ({name})") }
    }
}

/// Gives the lock back at once: a child that is being started may have the file open for a moment longer. A child that was forked shares the
/// lock with its parent, and leaves it.
impl Drop for Disk {
    fn drop(&mut self) {
        if !self.owner.is_surely_here() {
            return;
        }
        let _ = self.file.unlock();
    }
}

/// That the system could not do `what`.
pub(super) fn failed(what: &str, error: &io::Error) -> ImageFault {
    ImageFault::Failed { what: what.to_owned(), why: error.to_string() }
}
