//! An open file of a process: each call is counted, and may be struck.

use super::pages::PAGE_BYTES;
use super::{DiskCall, Inner, SimulatedDisk, Strike, dead, full};
use crate::{RawFile, Syncer};
use kvssd_types::Random;
use std::io::{self, ErrorKind, IoSliceMut};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open file of a process.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) disk: SimulatedDisk,
    pub(super) path: PathBuf,
    pub(super) life: u64,
    pub(super) number: u64,
    pub(super) is_read_only: bool,
    pub(super) syncer: Arc<HandleSyncer>,
}

/// What waits for the disk for whoever has opened a file.
#[derive(Debug)]
pub(super) struct HandleSyncer {
    disk: SimulatedDisk,
    path: PathBuf,
    life: u64,
    /// Those of the file's failed syncs that were told.
    failed_syncs: AtomicU64,
}

impl HandleSyncer {
    pub(super) fn new(disk: SimulatedDisk, path: PathBuf, life: u64, failed_syncs: u64) -> Self {
        HandleSyncer { disk, path, life, failed_syncs: AtomicU64::new(failed_syncs) }
    }
}

impl Syncer for HandleSyncer {
    fn sync(&self) -> io::Result<()> {
        let mut inner = self.disk.lock();
        let called = inner.call(self.life, DiskCall::Sync, 0, 0);
        let is_alive = !inner.is_killed && self.life == inner.life;
        let file = inner.file(&self.path)?;
        if called.is_err() && is_alive {
            file.doubt();
        }
        let failed_before = self.failed_syncs.swap(file.failed_syncs, Ordering::Relaxed);
        let strike = called?;
        if strike != Some(Strike::KillWithin) {
            file.sync();
        }
        let is_told = failed_before != file.failed_syncs;
        inner.end(strike, ())?;
        if is_told { Err(io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error())) } else { Ok(()) }
    }
}

impl Handle {
    fn read(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        let mut inner = self.disk.lock();
        let strike = inner.call(self.life, DiskCall::Read, at, out.len() as u64)?;
        let pages = &inner.file(&self.path)?.cached;
        if at + out.len() as u64 > pages.length_bytes() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if strike == Some(Strike::Stale) {
            pages.read_before(at, out);
        } else {
            pages.read(at, out);
        }
        inner.end(strike, ())
    }

    /// Bytes that are copied to mapped memory may be there in any part after a kill; the system writes pages.
    fn write(&mut self, at: u64, bytes: &[u8], is_copied: bool) -> io::Result<usize> {
        if self.is_read_only {
            return Err(ErrorKind::PermissionDenied.into());
        }
        let mut inner = self.disk.lock();
        let strike = inner.call(self.life, DiskCall::Write, at, bytes.len() as u64)?;
        let Inner { random, files, .. } = &mut *inner;
        let file = files.get_mut(&self.path).ok_or(ErrorKind::NotFound)?;
        match strike {
            Some(Strike::KillWithin) if is_copied => {
                let (begin, end) = part_of(bytes.len(), random);
                file.write(at + begin as u64, &bytes[begin..end]);
            }
            Some(Strike::KillWithin) => {
                file.write(at, first_pages(at, bytes, random));
            }
            Some(Strike::Short) if bytes.len() > 1 => {
                let count = 1 + random.below(bytes.len() as u64 - 1) as usize;
                file.write(at, &bytes[..count]);
                return Ok(count);
            }
            Some(Strike::Full) => {
                file.write(at, first_pages(at, bytes, random));
                return Err(full());
            }
            Some(Strike::Stale) => {}
            Some(Strike::Astray) => {
                let pages = file.cached.length_bytes().saturating_sub(bytes.len() as u64) / PAGE_BYTES;
                let elsewhere = random.below(pages.max(1)) * PAGE_BYTES + at % PAGE_BYTES;
                let room = file.cached.length_bytes().saturating_sub(elsewhere).min(bytes.len() as u64) as usize;
                file.write(elsewhere, &bytes[..room]);
            }
            _ => file.write(at, bytes),
        }
        inner.end(strike, bytes.len())
    }
}

impl RawFile for Handle {
    fn length_bytes(&self) -> io::Result<u64> {
        let mut inner = self.disk.lock();
        let strike = inner.call(self.life, DiskCall::Length, 0, 0)?;
        let length_bytes = inner.file(&self.path)?.cached.length_bytes();
        inner.end(strike, length_bytes)
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        let mut inner = self.disk.lock();
        let strike = inner.call(self.life, DiskCall::Length, 0, bytes)?;
        inner.file(&self.path)?.cached.set_length(bytes);
        inner.end(strike, ())
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.read(at, out)
    }

    fn read_each(&self, at: u64, places: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        let mut bytes = vec![0; places.iter().map(|place| place.len()).sum()];
        self.read(at, &mut bytes)?;
        let mut rest = &bytes[..];
        for place in places {
            let (here, after) = rest.split_at(place.len());
            place.copy_from_slice(here);
            rest = after;
        }
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        self.write(at, bytes, false)
    }

    fn stage_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        self.write(at, bytes, true)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::clone(&self.syncer) as Arc<dyn Syncer>
    }

    fn try_lock(&self, is_shared: bool) -> io::Result<bool> {
        let mut inner = self.disk.lock();
        if inner.is_killed || self.life != inner.life {
            return Err(dead());
        }
        let file = inner.file(&self.path)?;
        let is_free = file.locked_by.is_empty() || file.is_shared && is_shared;
        if is_free {
            file.locked_by.push(self.number);
            file.is_shared = is_shared;
        }
        Ok(is_free)
    }

    fn lock(&self) -> io::Result<()> {
        if self.try_lock(false)? { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) }
    }

    fn unlock(&self) {
        let mut inner = self.disk.lock();
        if self.life == inner.life
            && let Ok(file) = inner.file(&self.path)
        {
            file.locked_by.retain(|number| *number != self.number);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.unlock();
    }
}

/// The first of the bytes that are written to `at`, up to the end of a page: the system copies a page at a time, and looks in between
/// for signals and for room.
fn first_pages<'a>(at: u64, bytes: &'a [u8], random: &mut Random) -> &'a [u8] {
    let pages = (at + bytes.len() as u64).div_ceil(PAGE_BYTES) - at / PAGE_BYTES;
    let end = (at / PAGE_BYTES + random.below(pages)) * PAGE_BYTES;
    &bytes[..end.saturating_sub(at) as usize]
}

/// What of so many bytes is copied when a kill comes: from the front or from the back, as the machine likes.
fn part_of(count: usize, random: &mut Random) -> (usize, usize) {
    let cut = random.below(count as u64 + 1) as usize;
    if random.below(2) == 0 { (0, cut) } else { (cut, count) }
}
