//! Handles: numbers that look like pointers to C and are nobody's address.
//!
//! ```text
//!   Handle 0x10 -> device      a number is not given twice in the life of the process, and devices and key spaces
//!   Handle 0x20 -> key space   share them: a stale or foreign handle is not found. So do simulated drives
//!
//!   process 100   table, from 0x10 on                        a child that was forked begins a table of its own: in its parent's it would find
//!   process 101   table, from 0x30 on: 0x10 is the parent's  what is the parent's, and locks that nobody gives back any more
//! ```

use crate::device::Device;
use crate::handle::Handle;
use crate::key_space::KeySpace;
use crate::refusal::{KvsResult, Refusal};
use kvssd_device::AskedDevice;
use kvssd_host::Owner;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// How far numbers are apart: pointers to structures are multiples of this, too.
const STEP: usize = 16;

/// What is open in this process.
#[derive(Default)]
struct Table {
    devices: BTreeMap<usize, Arc<Device>>,
    key_spaces: BTreeMap<usize, Arc<KeySpace>>,
    asked: BTreeMap<usize, Arc<Mutex<AskedDevice>>>,
}

/// The table of a process, and behind it those of the children that it was copied to.
struct Tables {
    owner: Owner,
    /// Handles before this one are of processes before this one.
    begin: usize,
    table: RwLock<Table>,
    of_child: OnceLock<Box<Tables>>,
}

static TABLES: OnceLock<Box<Tables>> = OnceLock::new();

/// The next handle.
static NEXT: AtomicUsize = AtomicUsize::new(STEP);

/// Gives a device that was opened a handle.
pub(crate) fn add_device(device: Device) -> Handle {
    let mut table = write();
    let number = number();
    table.devices.insert(number, Arc::new(device));
    Handle::of(number)
}

/// Gives a key space that was opened a handle, unless it is open already.
pub(crate) fn add_key_space(key_space: KeySpace) -> Result<Handle, Refusal> {
    let mut table = write();
    if table.key_spaces.values().any(|open| open.is(&key_space.device, key_space.id)) {
        let why = format!("key space {} is open already", key_space.name);
        return Err(Refusal::new(KvsResult::KeySpaceOpen, why));
    }
    let number = number();
    table.key_spaces.insert(number, Arc::new(key_space));
    Ok(Handle::of(number))
}

pub(crate) fn device(handle: Handle) -> Result<Arc<Device>, Refusal> {
    check(handle)?;
    read().devices.get(&handle.number()).cloned().ok_or_else(no_device)
}

pub(crate) fn key_space(handle: Handle) -> Result<Arc<KeySpace>, Refusal> {
    check(handle)?;
    read().key_spaces.get(&handle.number()).cloned().ok_or_else(no_key_space)
}

/// Takes a device out, and its key spaces.
pub(crate) fn remove_device(handle: Handle) -> Result<Arc<Device>, Refusal> {
    check(handle)?;
    let mut table = write();
    let device = table.devices.remove(&handle.number()).ok_or_else(no_device)?;
    table.key_spaces.retain(|_, open| !Arc::ptr_eq(&open.device, &device));
    Ok(device)
}

/// Takes a key space out.
pub(crate) fn remove_key_space(handle: Handle) -> Result<Arc<KeySpace>, Refusal> {
    check(handle)?;
    write().key_spaces.remove(&handle.number()).ok_or_else(no_key_space)
}

/// Gives a simulated drive a handle.
pub(crate) fn add_asked(device: AskedDevice) -> Handle {
    let mut table = write();
    let number = number();
    table.asked.insert(number, Arc::new(Mutex::new(device)));
    Handle::of(number)
}

/// The simulated drive of a handle.
pub(crate) fn asked(handle: Handle) -> Result<Arc<Mutex<AskedDevice>>, Refusal> {
    check(handle)?;
    read().asked.get(&handle.number()).cloned().ok_or_else(no_device)
}

/// Takes a simulated drive out.
pub(crate) fn remove_asked(handle: Handle) -> Result<(), Refusal> {
    check(handle)?;
    let removed = write().asked.remove(&handle.number());
    removed.map(drop).ok_or_else(no_device)
}

/// Does something to the open key spaces of a device.
pub(crate) fn for_each_key_space_of(device: &Arc<Device>, mut work: impl FnMut(&KeySpace)) {
    read().key_spaces.values().filter(|open| Arc::ptr_eq(&open.device, device)).for_each(|open| work(open));
}

impl Tables {
    fn new() -> Box<Tables> {
        let begin = NEXT.load(Ordering::Relaxed);
        Box::new(Tables { owner: Owner::here(), begin, table: RwLock::default(), of_child: OnceLock::new() })
    }

    /// The one of this process.
    fn here() -> &'static Tables {
        let mut tables = TABLES.get_or_init(Tables::new);
        while !tables.owner.is_here() {
            tables = tables.of_child.get_or_init(Tables::new);
        }
        tables
    }
}

fn number() -> usize {
    NEXT.fetch_add(STEP, Ordering::Relaxed)
}

fn check(handle: Handle) -> Result<(), Refusal> {
    if handle.number() == 0 {
        return Err(Refusal::new(KvsResult::ParamInvalid, "a handle is null"));
    }
    if handle.number() < Tables::here().begin && handle.number().is_multiple_of(STEP) {
        let why = "the device was opened by the process that this one was forked from: open it again in this process";
        return Err(Refusal::new(KvsResult::DeviceNotOpened, why));
    }
    Ok(())
}

fn no_device() -> Refusal {
    Refusal::new(KvsResult::DeviceNotExist, "no open device has that handle")
}

fn no_key_space() -> Refusal {
    Refusal::new(KvsResult::KeySpaceNotOpen, "no open key space has that handle")
}

fn read() -> RwLockReadGuard<'static, Table> {
    Tables::here().table.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Table> {
    Tables::here().table.write().unwrap_or_else(PoisonError::into_inner)
}
