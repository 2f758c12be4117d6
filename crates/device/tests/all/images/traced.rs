//! Files that note which of their bytes were read: what a drive looks at while it is mounted and all its keys are read is what it needs.

use kvssd_flash::{Files, RawFile, Syncer, SystemFiles};
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The files of the system, and what was read of them.
#[derive(Clone, Debug, Default)]
pub struct Traced {
    reads: Arc<Mutex<Vec<Range<u64>>>>,
}

#[derive(Debug)]
struct TracedFile {
    file: Box<dyn RawFile>,
    all: Traced,
}

impl Traced {
    /// The bytes that were read since they were taken last.
    pub fn take(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.reads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, at: u64, bytes: usize) {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).push(at..at + bytes as u64);
    }
}

impl Files for Traced {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn RawFile>> {
        SystemFiles.create_new(path)
    }

    fn open(&self, path: &Path, is_read_only: bool) -> io::Result<Box<dyn RawFile>> {
        Ok(Box::new(TracedFile { file: SystemFiles.open(path, is_read_only)?, all: self.clone() }))
    }
}

impl RawFile for TracedFile {
    fn length_bytes(&self) -> io::Result<u64> {
        self.file.length_bytes()
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_length(bytes)
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.all.note(at, out.len());
        self.file.read_at(at, out)
    }

    fn read_each(&self, at: u64, places: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        self.all.note(at, places.iter().map(|place| place.len()).sum());
        self.file.read_each(at, places)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(at, bytes)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        self.file.syncer()
    }

    fn try_lock(&self, is_shared: bool) -> io::Result<bool> {
        self.file.try_lock(is_shared)
    }

    fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    fn unlock(&self) {
        self.file.unlock();
    }
}
