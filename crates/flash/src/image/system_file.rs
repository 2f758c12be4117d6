//! A file of the system whose staging region is mapped, where that can be ([`Mapping`]).
//!
//! If anything is wrong with the mapping, the system's own write reports it.

use super::files::RawFile;
use kvssd_mapping::Mapping;
use std::fs::File;
use std::io::{self, IoSliceMut};

/// A file, and its mapped region.
#[derive(Debug)]
pub(super) struct SystemFile {
    file: File,
    mapping: Option<Mapping>,
    /// Why nothing is mapped, when it was tried.
    note: Option<String>,
}

impl SystemFile {
    pub(super) fn new(file: File) -> Self {
        SystemFile { file, mapping: None, note: None }
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
        RawFile::write_at(&mut self.file, at, bytes)
    }

    fn staging_note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    fn length_bytes(&self) -> io::Result<u64> {
        self.file.length_bytes()
    }

    fn identity(&self) -> io::Result<(u64, u64)> {
        self.file.identity()
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_length(bytes)
    }

    fn take_room(&mut self, from: u64, to: u64) -> io::Result<()> {
        self.file.take_room(from, to)
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_at(at, out)
    }

    fn read_each(&self, at: u64, places: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        self.file.read_each(at, places)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        RawFile::write_at(&mut self.file, at, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn try_lock(&self, is_shared: bool) -> io::Result<bool> {
        RawFile::try_lock(&self.file, is_shared)
    }

    fn lock(&self) -> io::Result<()> {
        RawFile::lock(&self.file)
    }

    fn unlock(&self) {
        RawFile::unlock(&self.file);
    }
}
