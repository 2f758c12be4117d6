//! A disk in memory that fails as disks do, at the call that is chosen: what lies under an image in a simulated world.
//!
//! ```text
//!   RawFile::write_at --- call 17 ---> Strike? ---> the system's cache ---- sync ----> durable
//!                                      |             what the process sees             what the machine leaves:
//!                                      +- fails, is short, is lost, goes astray         durable, and of each sector written
//!                                      +- the process is killed before, within, after   since any of the writes to it
//! ```
//!
//! The fault model:
//!
//! - **The process is killed** ([`Strike::Kill`] and its kin, [`SimulatedDisk::kill`]): what was written stays; of the write under way
//!   a prefix that ends at a page. The dead process can do nothing any more, and its locks are free.
//! - **The machine stops** ([`SimulatedDisk::lose_power`]): besides, each sector that was written since the last sync holds what it had after any
//!   one of the writes to it, or none; sectors are of 512 B or of 4 KiB. A file whose name was not synced may be gone.
//! - **A sync fails**: what was to be synced is on the medium or not, and no later sync changes that; who else has the file open is told by
//!   the next sync (as Linux does).
//! - **A write fails** with nothing, or a part, of it done; or it takes a part and says so; the disk may be full.
//! - **A write is lost or goes astray**, and the drive says that it was done; **a read gives what was there before**.
//!
//! What it does not do: flip bits ([`FaultyMedium`](crate::FaultyMedium) does), or take time.

mod file;
mod handle;
mod pages;

use crate::{Files, RawFile};
use file::FileState;
use handle::{Handle, HandleSyncer};
use kvssd_types::Random;
use pages::{PAGE_BYTES, Pages};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that a disk writes whole or not at all, at the least.
pub const SECTOR_BYTES: u64 = 512;

/// What a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskCall {
    /// A file is made.
    Create,
    /// A file is opened.
    Open,
    /// A file is removed.
    Remove,
    /// Its length is asked for, or set.
    Length,
    /// Bytes are read.
    Read,
    /// Bytes are written.
    Write,
    /// What was written is made durable.
    Sync,
    /// A file's name is made durable.
    SyncName,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// The process is killed before it.
    KillBefore,
    /// The process is killed within it: of a write the first pages are done.
    KillWithin,
    /// The process is killed after it, before it returns.
    KillAfter,
    /// The machine stops before it, and the process with it.
    PowerBefore,
    /// It fails, and nothing of it is done (`EIO`).
    Fail,
    /// It fails for want of room, and a part of it is done (`ENOSPC`).
    Full,
    /// A write takes a part of its bytes and says so.
    Short,
    /// A write is lost, and a read gives what was there before the last write.
    Stale,
    /// A write goes to another place of the file.
    Astray,
}

/// A disk, shared by all who have it.
#[derive(Clone, Debug)]
pub struct SimulatedDisk(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    files: BTreeMap<PathBuf, FileState>,
    random: Random,
    /// Which process the open files must be of to do anything.
    life: u64,
    is_killed: bool,
    /// How often the machine has stopped.
    stops: u64,
    /// Calls that failed, were short, or did something else than they said.
    failures: u64,
    /// Calls that answered with an error.
    errors: u64,
    calls: u64,
    strikes: BTreeMap<u64, Strike>,
    /// From that call on, what happens to the first one that is such.
    aimed: Option<(u64, DiskCall, Strike)>,
    /// The calls, if they are written down.
    trace: Option<Vec<(DiskCall, u64, u64)>>,
    handles: u64,
}

impl SimulatedDisk {
    /// An empty disk, whose accidents are decided by `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        SimulatedDisk(Arc::new(Mutex::new(Inner {
            files: BTreeMap::new(),
            random: Random::new(seed),
            life: 0,
            is_killed: false,
            stops: 0,
            failures: 0,
            errors: 0,
            calls: 0,
            strikes: BTreeMap::new(),
            aimed: None,
            trace: None,
            handles: 0,
        })))
    }

    /// Another disk with the same files as they are now, and no process.
    #[must_use]
    pub fn copy(&self, seed: u64) -> Self {
        let mut files = self.lock().files.clone();
        files.values_mut().for_each(|file| file.locked_by.clear());
        let copy = SimulatedDisk::new(seed);
        copy.lock().files = files;
        copy
    }

    /// This disk as a place for files.
    #[must_use]
    pub fn files(&self) -> Arc<dyn Files> {
        Arc::new(self.clone())
    }

    /// The calls so far, of all processes.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Has something happen to the call that comes when so many came before it.
    pub fn strike(&self, call: u64, strike: Strike) {
        self.lock().strikes.insert(call, strike);
    }

    /// Has something happen to the first call of a kind, from that call on: when most is at stake, before a sync say.
    pub fn strike_next(&self, call: u64, what: DiskCall, strike: Strike) {
        self.lock().aimed = Some((call, what, strike));
    }

    /// Forgets what was to happen to calls that have not come.
    pub fn spare(&self) {
        let mut inner = self.lock();
        inner.strikes.clear();
        inner.aimed = None;
    }

    /// Writes down the calls from here on: what, at which byte, how many.
    pub fn begin_trace(&self) {
        self.lock().trace = Some(Vec::new());
    }

    /// The calls since [`SimulatedDisk::begin_trace`].
    #[must_use]
    pub fn trace(&self) -> Vec<(DiskCall, u64, u64)> {
        self.lock().trace.clone().unwrap_or_default()
    }

    /// Whether the process is dead: what its calls answered since means nothing.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.lock().is_killed
    }

    /// The process ends at once, if it has not, and another begins: what was opened before is dead.
    pub fn kill(&self) {
        self.lock().end_process();
    }

    /// A process that was killed is gone, and others of the machine go on: who has several of them sees to it that the dead one calls nothing.
    pub fn outlive(&self) {
        self.lock().is_killed = false;
    }

    /// How often the machine has stopped.
    #[must_use]
    pub fn stops(&self) -> u64 {
        self.lock().stops
    }

    /// The machine stops and starts again, with another process.
    pub fn lose_power(&self) {
        self.lock().lose_power();
    }

    /// How many calls failed, took a part, were lost or misplaced.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.lock().failures
    }

    /// How many calls answered with an error: those of the failures that were told.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.lock().errors
    }

    /// The bytes of a file, if it is there.
    #[must_use]
    pub fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let inner = self.lock();
        let pages = &inner.files.get(path)?.cached;
        let mut bytes = vec![0; pages.length_bytes() as usize];
        pages.read(0, &mut bytes);
        Some(bytes)
    }

    /// Puts a file of so many bytes there, durably: these pieces at their places, zeros elsewhere.
    pub fn put<'b>(&self, path: &Path, length_bytes: u64, pieces: impl IntoIterator<Item = (u64, &'b [u8])>) {
        let mut cached = Pages::default();
        cached.set_length(length_bytes);
        pieces.into_iter().for_each(|(at, bytes)| cached.write_within(at, bytes));
        self.lock().files.insert(path.to_owned(), FileState::durable(cached));
    }

    /// The bytes that the files take.
    #[must_use]
    pub fn taken_bytes(&self) -> u64 {
        self.lock().files.values().map(|file| file.cached.taken_bytes()).sum()
    }

    fn handle(
        &self,
        inner: &mut Inner,
        path: &Path,
        strike: Option<Strike>,
        is_read_only: bool,
    ) -> io::Result<Box<dyn RawFile>> {
        let failed_syncs = inner.file(path)?.failed_syncs;
        inner.handles += 1;
        let (number, life) = (inner.handles, inner.life);
        inner.end(strike, ())?;
        let (disk, path) = (self.clone(), path.to_owned());
        let syncer = Arc::new(HandleSyncer::new(disk.clone(), path.clone(), life, failed_syncs));
        Ok(Box::new(Handle { disk, path, life, number, is_read_only, syncer }))
    }

    /// What is in it is never left half changed.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn dead() -> io::Error {
    io::Error::other("the process is dead")
}

impl Inner {
    /// Counts a call of a process and gives what is to happen to it.
    fn call(&mut self, life: u64, call: DiskCall, at: u64, bytes: u64) -> io::Result<Option<Strike>> {
        if self.is_killed || life != self.life {
            return Err(dead());
        }
        let aimed = self.aimed.take_if(|(from, what, _)| *from <= self.calls && *what == call);
        let strike = self.strikes.remove(&self.calls).or(aimed.map(|(_, _, strike)| strike));
        self.calls += 1;
        let is_failure =
            matches!(strike, Some(Strike::Fail | Strike::Full | Strike::Short | Strike::Stale | Strike::Astray));
        self.failures += u64::from(is_failure);
        self.errors += u64::from(matches!(strike, Some(Strike::Fail | Strike::Full)));
        if let Some(trace) = &mut self.trace {
            trace.push((call, at, bytes));
        }
        match strike {
            Some(Strike::KillBefore) => {
                self.is_killed = true;
                Err(dead())
            }
            Some(Strike::PowerBefore) => {
                self.lose_power();
                self.is_killed = true;
                Err(dead())
            }
            Some(Strike::Fail) => Err(io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error())),
            Some(Strike::Full) if call != DiskCall::Write => Err(full()),
            other => Ok(other),
        }
    }

    /// What is left of a call that was done.
    fn end<T>(&mut self, strike: Option<Strike>, result: T) -> io::Result<T> {
        if matches!(strike, Some(Strike::KillAfter | Strike::KillWithin)) {
            self.is_killed = true;
            return Err(dead());
        }
        Ok(result)
    }

    fn end_process(&mut self) {
        self.life += 1;
        self.is_killed = false;
        self.strikes.clear();
        self.aimed = None;
        self.files.values_mut().for_each(|file| file.locked_by.clear());
    }

    fn lose_power(&mut self) {
        self.end_process();
        self.stops += 1;
        let random = &mut self.random;
        self.files.retain(|_, file| {
            if !file.has_durable_name && random.below(2) == 0 {
                return false;
            }
            let sector_bytes = if random.below(2) == 0 { SECTOR_BYTES } else { PAGE_BYTES };
            file.lose_power(sector_bytes, random);
            true
        });
    }

    fn file(&mut self, path: &Path) -> io::Result<&mut FileState> {
        self.files.get_mut(path).ok_or_else(|| ErrorKind::NotFound.into())
    }
}

fn full() -> io::Error {
    io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error())
}

impl Files for SimulatedDisk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn RawFile>> {
        let mut inner = self.lock();
        let life = inner.life;
        let strike = inner.call(life, DiskCall::Create, 0, 0)?;
        if inner.files.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        inner.files.insert(path.to_owned(), FileState::default());
        self.handle(&mut inner, path, strike, false)
    }

    fn open(&self, path: &Path, is_read_only: bool) -> io::Result<Box<dyn RawFile>> {
        let mut inner = self.lock();
        let life = inner.life;
        let strike = inner.call(life, DiskCall::Open, 0, 0)?;
        self.handle(&mut inner, path, strike, is_read_only)
    }

    fn is_regular(&self, path: &Path) -> io::Result<bool> {
        self.lock().file(path).map(|_| true)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        let life = inner.life;
        let strike = inner.call(life, DiskCall::Remove, 0, 0)?;
        inner.files.remove(path).ok_or(ErrorKind::NotFound)?;
        inner.end(strike, ())
    }

    fn sync_name(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        let life = inner.life;
        let strike = inner.call(life, DiskCall::SyncName, 0, 0)?;
        inner.file(path)?.has_durable_name = true;
        inner.end(strike, ())
    }

    fn image_number(&self) -> u64 {
        self.lock().random.bits()
    }
}

#[cfg(test)]
mod tests;
