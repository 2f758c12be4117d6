//! The file under an image: bytes at places, the lock, and errors that name the file.
//!
//! After a write or a sync has failed, nobody knows what the file holds. So nothing is written any more: the file is then what
//! a mount after a crash would find. This holds for all parts of an image, since they are one file.

use super::error::{ImageError, ImageFault};
use super::files::{Files, RawFile, Syncer, in_parts};
use super::layout::{HOLDER_AT, HOLDER_BYTES, MAGIC, MAGIC_UNFINISHED, is_image};
use super::window::Window;
use crate::Owner;
use crate::backing::{DiskWait, MediaError};
use std::fs;
use std::io::{self, IoSliceMut};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

const PID_BYTES: usize = 4;

/// Threads that wait for the disk at the same time, while others use the file. Each has an open file. An estimate: where others want the cores it
/// takes milliseconds until a thread is told that the disk is done.
pub const DISK_WAITS_MAX: usize = 4;

/// An open and locked file, or a part of it.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) file: Box<dyn RawFile>,
    files: Arc<dyn Files>,
    path: PathBuf,
    owner: Owner,
    is_read_only: bool,
    /// Writes so far, and those of them that outlive the machine.
    writes: u64,
    writes_synced: u64,
    /// What waits beside others, once it was asked for. Each opens the file again: the system reports a failed sync once to each open file, so
    /// that of two syncs at a time both see it, if both were open before.
    waits: Vec<Arc<ImageWait>>,
    /// The first failure, of any part.
    failure: Arc<OnceLock<ImageError>>,
    /// The file that this is a part of.
    whole: Option<Arc<Whole>>,
}

/// Waits for the disk under a file, while the file is used.
#[derive(Debug)]
struct ImageWait {
    syncer: Arc<dyn Syncer>,
    path: PathBuf,
    failure: Arc<OnceLock<ImageError>>,
}

impl DiskWait for ImageWait {
    fn wait(&self) -> Result<(), MediaError> {
        self.syncer.sync().map_err(|error| {
            let error = ImageError { path: self.path.clone(), fault: not_durable(&error) };
            let _ = self.failure.set(error.clone());
            error.into()
        })
    }
}

/// A file whose parts are worked on separately. It holds the lock until the last part is dropped.
#[derive(Debug)]
struct Whole {
    disk: Disk,
    /// Whether the file says who has the lock.
    is_noted: AtomicBool,
}

/// What a file is that lies where a new image was to be made.
fn in_the_way(files: &Arc<dyn Files>, path: &Path) -> ImageFault {
    let mut begin = [0; MAGIC_UNFINISHED.len()];
    // One that is being made is locked.
    let read = Disk::open(files, path, true).and_then(|disk| disk.read(0, &mut begin, "the header"));
    if read.is_ok() && begin == MAGIC_UNFINISHED { ImageFault::Unfinished } else { ImageFault::Exists }
}

impl Disk {
    /// A new file, locked, that says that it is not finished.
    pub(super) fn create(files: &Arc<dyn Files>, path: &Path) -> Result<Disk, ImageError> {
        let fail = |fault| ImageError { path: path.to_owned(), fault };
        let file = files.create_new(path).map_err(|error| {
            fail(match error.kind() {
                io::ErrorKind::AlreadyExists => in_the_way(files, path),
                _ => failed("create it", &error),
            })
        })?;
        let mut disk = Disk::new(files, file, path, false);
        disk.begin().inspect_err(|_| {
            // The file was made just now and holds nothing. The disk's error was reported already.
            let _ = files.remove(path);
        })?;
        Ok(disk)
    }

    /// Locks a new file and says that it is not finished.
    fn begin(&mut self) -> Result<(), ImageError> {
        // Another process may have opened the file to see whether it is an image: wait until it has.
        self.file.lock().map_err(|error| self.error(failed("lock it", &error)))?;
        self.write(0, &MAGIC_UNFINISHED, "the header")?;
        self.note_holder();
        Ok(())
    }

    /// The locked file at `path`; readers share the lock.
    pub(super) fn open(files: &Arc<dyn Files>, path: &Path, is_read_only: bool) -> Result<Disk, ImageError> {
        let fail = |fault| ImageError { path: path.to_owned(), fault };
        let cannot_open = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => fail(ImageFault::Missing),
            _ => fail(failed("open it", &error)),
        };
        // Asked before, because opening a pipe would wait for its other end.
        if !files.is_regular(path).map_err(cannot_open)? {
            return Err(fail(ImageFault::NotAFile));
        }
        let file = files.open(path, is_read_only).map_err(cannot_open)?;
        let disk = Disk::new(files, file, path, is_read_only);
        match disk.file.try_lock(is_read_only) {
            Ok(true) => Ok(disk),
            Ok(false) => Err(fail(ImageFault::Locked { holder: disk.holder() })),
            Err(error) => Err(fail(failed("lock it", &error))),
        }
    }

    fn new(files: &Arc<dyn Files>, file: Box<dyn RawFile>, path: &Path, is_read_only: bool) -> Disk {
        Disk {
            files: Arc::clone(files),
            file,
            path: path.to_owned(),
            owner: Owner::here(),
            is_read_only,
            writes: 0,
            writes_synced: 0,
            waits: Vec::new(),
            failure: Arc::default(),
            whole: None,
        }
    }

    /// The parts of the file, of `part_bytes` each. Each part opens the file again, because the system reports a failed sync once to each open
    /// file, and every part must see it.
    pub(super) fn split(self, parts: u32, part_bytes: u64) -> Result<Vec<Disk>, ImageError> {
        let whole = Arc::new(Whole { disk: self, is_noted: AtomicBool::new(false) });
        (0..parts).map(|number| Whole::part(&whole, u64::from(number) * part_bytes, part_bytes)).collect()
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
        self.file.length_bytes().map_err(|error| self.error(failed("ask for its length", &error)))
    }

    /// Makes the file longer: with zeros that take room, or without.
    pub(super) fn set_length(&mut self, bytes: u64, preallocate: bool) -> Result<(), ImageError> {
        self.writes += 1;
        let set = self.file.set_length(bytes);
        set.map_err(|error| self.error(failed(&format!("make it {bytes} bytes long"), &error)))?;
        if preallocate {
            // The first bytes are written already.
            let taken = self.file.take_room(HOLDER_AT + HOLDER_BYTES as u64, bytes);
            taken.map_err(|error| self.error(failed(&format!("reserve all of its {bytes} bytes"), &error)))?;
        }
        Ok(())
    }

    pub(super) fn read(&self, at: u64, out: &mut [u8], what: &str) -> Result<(), ImageError> {
        self.file.read_at(at, out).map_err(|error| self.error(failed(&format!("read {what}"), &error)))
    }

    /// Reads to one place behind the other.
    pub(super) fn read_each(&self, at: u64, places: &mut [IoSliceMut<'_>], what: &str) -> Result<(), ImageError> {
        self.file.read_each(at, places).map_err(|error| self.error(failed(&format!("read {what}"), &error)))
    }

    /// Whether something may be written.
    pub(super) fn check(&self) -> Result<(), ImageError> {
        if !self.owner.is_here() {
            return Err(self.error(ImageFault::Forked { process: self.owner.process() }));
        }
        if self.is_read_only {
            return Err(self.error(ImageFault::ReadOnly));
        }
        self.failure.get().cloned().map_or(Ok(()), Err)
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8], what: &str) -> Result<(), ImageError> {
        self.check()?;
        self.writes += 1;
        self.write_all(at, bytes).map_err(|error| self.fail(failed(&format!("write {what}"), &error)))
    }

    /// Like [`Disk::write`], for small and frequent writes.
    pub(super) fn stage(&mut self, at: u64, bytes: &[u8], what: &str) -> Result<(), ImageError> {
        self.check()?;
        self.writes += 1;
        in_parts(at, bytes, |at, part| self.file.stage_at(at, part))
            .map_err(|error| self.fail(failed(&format!("write {what}"), &error)))
    }

    fn write_all(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        in_parts(at, bytes, |at, part| self.file.write_at(at, part))
    }

    /// Waits until everything that was written would outlive the machine.
    pub(super) fn sync(&mut self) -> Result<(), ImageError> {
        self.check()?;
        if !self.is_synced() {
            self.file.syncer().sync().map_err(|error| self.fail(not_durable(&error)))?;
            self.writes_synced = self.writes;
        }
        Ok(())
    }

    /// Whether all that was written outlives the machine.
    pub(super) fn is_synced(&self) -> bool {
        self.writes == self.writes_synced
    }

    /// What waits until everything that was written so far would outlive the machine, and how much that is. None where all wait already, or the
    /// file cannot be opened again, because it has lost its name for example; and the first time, since they do not see what failed before they
    /// were opened.
    pub(super) fn begin_sync(&mut self) -> Option<(Arc<dyn DiskWait>, u64)> {
        if self.waits.is_empty() {
            let again = (0..DISK_WAITS_MAX).map_while(|_| self.again().ok());
            let wait = |file: Box<dyn RawFile>| ImageWait {
                syncer: file.syncer(),
                path: self.path.clone(),
                failure: Arc::clone(&self.failure),
            };
            self.waits = again.map(|file| Arc::new(wait(file))).collect();
            return None;
        }
        self.waits.iter().find(|wait| is_free(wait)).map(|wait| (Arc::clone(wait) as Arc<dyn DiskWait>, self.writes))
    }

    /// The file, opened once more.
    fn again(&self) -> io::Result<Box<dyn RawFile>> {
        let file = self.files.open(&self.path, self.is_read_only)?;
        if file.identity()? != self.file.identity()? {
            return Err(io::Error::other("another file has taken its place"));
        }
        Ok(file)
    }

    /// Notes that so many writes outlive the machine.
    pub(super) fn end_sync(&mut self, writes: u64) {
        self.writes_synced = self.writes_synced.max(writes);
    }

    /// Makes durable what was found in the file, even if the file is only read, and also the file's name: the process that made it may have been
    /// killed before that was durable.
    pub(super) fn sync_found(&mut self) -> Result<(), ImageError> {
        self.file.syncer().sync().map_err(|error| self.fail(failed("make what was found durable", &error)))?;
        self.sync_name()
    }

    /// Makes the file's name durable.
    pub(super) fn sync_name(&self) -> Result<(), ImageError> {
        self.files.sync_name(&self.path).map_err(|error| self.error(failed("make its name durable", &error)))
    }

    /// Stops all writes from now on, for this reason.
    pub(super) fn fail(&mut self, fault: ImageFault) -> ImageError {
        let error = self.error(fault);
        let _ = self.failure.set(error.clone());
        error
    }

    /// Notes who has the lock, for processes that do not get it. A failure does no harm.
    pub(super) fn note_holder(&mut self) {
        let mut note = [0; HOLDER_BYTES];
        note[..PID_BYTES].copy_from_slice(&std::process::id().to_le_bytes());
        let name = fs::read_to_string("/proc/self/comm").ok();
        let name = name.or_else(|| std::env::args().next()).unwrap_or_default();
        let name =
            Path::new(name.trim()).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let count = name.len().min(HOLDER_BYTES - PID_BYTES);
        note[PID_BYTES..PID_BYTES + count].copy_from_slice(&name.as_bytes()[..count]);
        let _ = self.write_all(HOLDER_AT, &note);
        if let Some(whole) = &self.whole {
            whole.is_noted.store(true, Ordering::Relaxed);
        }
    }

    /// Removes the note, so that it does not name a process that has ended. With several parts, the last one does this.
    pub(super) fn clear_holder(&mut self) {
        if self.whole.is_some() || !self.owner.is_surely_here() {
            return;
        }
        let _ = self.write_all(HOLDER_AT, &[0; HOLDER_BYTES]);
    }

    /// Who has the lock, if the note names a process that is alive.
    fn holder(&self) -> String {
        let unknown = "another process".to_owned();
        let (mut magic, mut note) = ([0; MAGIC.len()], [0; HOLDER_BYTES]);
        let is_read = self.file.read_at(0, &mut magic).and_then(|()| self.file.read_at(HOLDER_AT, &mut note));
        if is_read.is_err() || !is_image(&magic) {
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

impl Whole {
    fn part(whole: &Arc<Whole>, begin: u64, bytes: u64) -> Result<Disk, ImageError> {
        let Disk { files, path, is_read_only, .. } = &whole.disk;
        let file = whole.disk.again().map_err(|error| whole.disk.error(failed("open it once more", &error)))?;
        let mut part = Disk::new(files, Box::new(Window::new(file, begin, bytes)), path, *is_read_only);
        part.failure = Arc::clone(&whole.disk.failure);
        part.whole = Some(Arc::clone(whole));
        Ok(part)
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if *self.is_noted.get_mut() {
            self.disk.clear_holder();
        }
    }
}

/// Releases the lock at once, since a child that is being started may have the file open for a moment longer. A forked child shares the lock
/// with its parent, and leaves it alone.
impl Drop for Disk {
    fn drop(&mut self) {
        if !self.owner.is_surely_here() {
            return;
        }
        self.file.unlock();
    }
}

/// Whether nobody waits.
fn is_free(wait: &Arc<ImageWait>) -> bool {
    Arc::strong_count(wait) == 1
}

/// The fault that a sync failed.
fn not_durable(error: &io::Error) -> ImageFault {
    failed("make what was written durable", error)
}

/// The fault that the system could not do `what`.
pub(super) fn failed(what: &str, error: &io::Error) -> ImageFault {
    let advice = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make room on its file system, then start again",
        _ => "",
    };
    ImageFault::Failed { what: what.to_owned(), why: format!("{error}{advice}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_with_what_to_do() {
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            assert!(
                failed("write pages", &kind.into())
                    .to_string()
                    .ends_with("; make room on its file system, then start again")
            );
        }
        assert!(!failed("write pages", &io::ErrorKind::BrokenPipe.into()).to_string().contains("room"));
    }
}
