//! The files of a machine whose processes are those of a world.
//!
//! ```text
//!   a process: call -> a point: another may have the turn -> SimulatedDisk -> struck? the process is killed, or all of the machine
//! ```
//!
//! A process that was killed does nothing any more, whatever its destructors try; its locks are free, as the system sees to.

use crate::{Process, World, is_unwinding, point};
use kvssd_flash::{Files, RawFile, SimulatedDisk, Syncer};
use kvssd_runtime::thread;
use kvssd_runtime::time::Duration;
use std::io::{self, IoSliceMut};
use std::path::Path;
use std::sync::Arc;

/// What syncs take: one in two no time, one in four up to so long, while others wait awake, and the others so long, while they sleep.
const SYNC_SHORT_NS_MAX: u64 = 8_000;
const SYNC_LONG: Duration = Duration::from_micros(300);
/// Between two looks at a lock that another has.
const LOCK_LOOK: Duration = Duration::from_micros(100);

/// A machine.
#[derive(Clone, Debug)]
pub struct Machine {
    disk: SimulatedDisk,
    processes: Vec<Process>,
}

/// An open file of one of its processes.
#[derive(Debug)]
struct OpenFile {
    machine: Machine,
    file: Box<dyn RawFile>,
}

impl Machine {
    /// One with that disk, and at the most those processes.
    #[must_use]
    pub fn new(disk: SimulatedDisk, processes: Vec<Process>) -> Machine {
        Machine { disk, processes }
    }

    /// Its disk.
    #[must_use]
    pub fn disk(&self) -> &SimulatedDisk {
        &self.disk
    }

    /// Its files, for its processes.
    #[must_use]
    pub fn files(&self) -> Arc<dyn Files> {
        Arc::new(self.clone())
    }

    fn call<T>(&self, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if is_unwinding() {
            return Err(io::Error::other("the process is dead"));
        }
        point();
        let stops = self.disk.stops();
        let result = call();
        if self.disk.is_killed()
            && let Some(world) = World::current()
        {
            self.disk.outlive();
            if self.disk.stops() > stops {
                world.kill_all(&self.processes);
            }
            world.kill(world.process());
        }
        result
    }

    fn opened(&self, file: io::Result<Box<dyn RawFile>>) -> io::Result<Box<dyn RawFile>> {
        Ok(Box::new(OpenFile { machine: self.clone(), file: file? }))
    }
}

impl Files for Machine {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn RawFile>> {
        self.opened(self.call(|| self.disk.create_new(path)))
    }

    fn open(&self, path: &Path, is_read_only: bool) -> io::Result<Box<dyn RawFile>> {
        self.opened(self.call(|| self.disk.open(path, is_read_only)))
    }

    fn is_regular(&self, path: &Path) -> io::Result<bool> {
        self.call(|| self.disk.is_regular(path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(|| self.disk.remove(path))
    }

    fn sync_name(&self, path: &Path) -> io::Result<()> {
        self.call(|| self.disk.sync_name(path))
    }

    fn image_number(&self) -> u64 {
        self.disk.image_number()
    }
}

/// What waits for the disk for an open file.
#[derive(Debug)]
struct OpenSyncer {
    machine: Machine,
    syncer: Arc<dyn Syncer>,
}

impl Syncer for OpenSyncer {
    /// What is written meanwhile is made durable, or not.
    fn sync(&self) -> io::Result<()> {
        let random = World::current().map_or(0, |world| world.random_u64());
        let (dice, is_done_early) = (random >> 8, random & 1 == 0);
        let takes = match random >> 1 & 3 {
            0 | 1 => None,
            2 => Some(Duration::from_nanos(dice % SYNC_SHORT_NS_MAX)),
            _ => Some(SYNC_LONG),
        };
        let wait = || takes.into_iter().for_each(thread::sleep);
        if is_done_early {
            let synced = self.machine.call(|| self.syncer.sync());
            wait();
            return synced;
        }
        wait();
        self.machine.call(|| self.syncer.sync())
    }
}

impl RawFile for OpenFile {
    fn length_bytes(&self) -> io::Result<u64> {
        self.machine.call(|| self.file.length_bytes())
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.machine.call(|| self.file.set_length(bytes))
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.machine.call(|| self.file.read_at(at, out))
    }

    fn read_each(&self, at: u64, places: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        self.machine.call(|| self.file.read_each(at, places))
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        self.machine.call(|| self.file.write_at(at, bytes))
    }

    fn stage_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        self.machine.call(|| self.file.stage_at(at, bytes))
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::new(OpenSyncer { machine: self.machine.clone(), syncer: self.file.syncer() })
    }

    fn try_lock(&self, is_shared: bool) -> io::Result<bool> {
        self.machine.call(|| self.file.try_lock(is_shared))
    }

    fn lock(&self) -> io::Result<()> {
        while !self.try_lock(false)? {
            thread::sleep(LOCK_LOOK);
        }
        Ok(())
    }

    fn unlock(&self) {
        self.file.unlock();
    }
}
