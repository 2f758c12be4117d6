//! The files of the system, whose staging region is mapped, where that can be ([`Mapping`]).
//!
//! If anything is wrong with the mapping, the system's own write reports it.

use super::files::{Files, RawFile, Syncer, write_zeros};
use kvssd_mapping::Mapping;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};
use std::fs::{File, TryLockError};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

/// The files of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemFiles;

impl Files for SystemFiles {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn RawFile>> {
        Ok(Box::new(SystemFile::new(File::options().read(true).write(true).create_new(true).open(path)?)))
    }

    fn open(&self, path: &Path, is_read_only: bool) -> io::Result<Box<dyn RawFile>> {
        Ok(Box::new(SystemFile::new(File::options().read(true).write(!is_read_only).open(path)?)))
    }
}

/// A file, and its mapped region.
#[derive(Debug)]
pub(super) struct SystemFile {
    file: Arc<File>,
    mapping: Option<Mapping>,
    /// Why nothing is mapped, when it was tried.
    note: Option<String>,
}

impl SystemFile {
    pub(super) fn new(file: File) -> Self {
        SystemFile { file: Arc::new(file), mapping: None, note: None }
    }
}

impl Syncer for File {
    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

impl RawFile for SystemFile {
    fn prepare_staging(&mut self, at: u64, bytes: u64) {
        match Mapping::of(&self.file, at, bytes) {
            Ok(mapping) => self.mapping = Some(mapping),
            Err(why) => self.note = Some(why.to_string()),
        }
    }

    fn stage_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        match self.mapping.as_mut().map(|mapping| mapping.write(&self.file, at, bytes)) {
            Some(Ok(true)) => return Ok(bytes.len()),
            Some(Err(why)) => (self.mapping, self.note) = (None, Some(why.to_string())),
            Some(Ok(false)) | None => {}
        }
        self.write_at(at, bytes)
    }

    fn staging_note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    fn length_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn identity(&self) -> io::Result<(u64, u64)> {
        let metadata = self.file.metadata()?;
        Ok((metadata.dev(), metadata.ino()))
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn take_room(&mut self, from: u64, to: u64) -> io::Result<()> {
        match retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), from, to - from)) {
            // The file system has no such call.
            Err(Errno::OPNOTSUPP) => write_zeros(from, to, |at, zeros| RawFile::write_at(self, at, zeros)),
            taken => Ok(taken?),
        }
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, at)
    }

    fn read_each(&self, at: u64, mut places: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        let mut at = at;
        while !places.is_empty() {
            match rustix::io::preadv(&self.file, places, at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    at += count as u64;
                    IoSliceMut::advance_slices(&mut places, count);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(bytes, at)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::clone(&self.file) as Arc<dyn Syncer>
    }

    fn try_lock(&self, is_shared: bool) -> io::Result<bool> {
        match if is_shared { self.file.try_lock_shared() } else { self.file.try_lock() } {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    fn unlock(&self) {
        let _ = self.file.unlock();
    }
}
