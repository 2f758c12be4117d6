//! A part of a file, used as if it were a file. The whole file has the lock.

use super::files::{RawFile, Syncer};
use std::io::{self, IoSliceMut};
use std::sync::Arc;

/// So many bytes of a file, from a place on.
#[derive(Debug)]
pub(super) struct Window {
    file: Box<dyn RawFile>,
    begin: u64,
    bytes: u64,
}

impl Window {
    pub(super) fn new(file: Box<dyn RawFile>, begin: u64, bytes: u64) -> Self {
        Window { file, begin, bytes }
    }

    /// The place in the file of so many bytes from `at` on, if they are all in the window.
    fn place(&self, at: u64, count: usize) -> Option<u64> {
        let end = at.checked_add(count as u64)?;
        (end <= self.bytes).then_some(self.begin + at)
    }

    /// As [`Window::place`], of bytes to read.
    fn source(&self, at: u64, count: usize) -> io::Result<u64> {
        self.place(at, count).ok_or(io::ErrorKind::UnexpectedEof.into())
    }

    /// As [`Window::place`], of bytes to write.
    fn target(&self, at: u64, count: usize) -> io::Result<u64> {
        self.place(at, count).ok_or_else(|| io::Error::other("it lies behind the end of the part"))
    }
}

impl RawFile for Window {
    fn length_bytes(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn identity(&self) -> io::Result<(u64, u64)> {
        self.file.identity()
    }

    fn set_length(&mut self, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_at(self.source(at, out.len())?, out)
    }

    fn read_each(&self, at: u64, places: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        let bytes = places.iter().map(|place| place.len()).sum();
        self.file.read_each(self.source(at, bytes)?, places)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        let place = self.target(at, bytes.len())?;
        self.file.write_at(place, bytes)
    }

    fn prepare_staging(&mut self, at: u64, bytes: u64) {
        self.file.prepare_staging(self.begin + at, bytes);
    }

    fn stage_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        let place = self.target(at, bytes.len())?;
        self.file.stage_at(place, bytes)
    }

    fn staging_note(&self) -> Option<&str> {
        self.file.staging_note()
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        self.file.syncer()
    }

    fn try_lock(&self, _is_shared: bool) -> io::Result<bool> {
        Ok(true)
    }

    fn lock(&self) -> io::Result<()> {
        Ok(())
    }

    fn unlock(&self) {}
}
