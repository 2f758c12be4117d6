//! A simulated drive to ask. `include/kvssd_device.h` says what each function does.

#![expect(unsafe_code, reason = "a name that C can link is an unsafe attribute; there is no other unsafe code here")]
#![expect(missing_docs, reason = "the header says what each does")]

use crate::abi::{KvssdCompletion, KvssdDeviceStats};
use crate::exports::call;
use crate::handle::Handle;
use crate::handles;
use crate::pointers::Place;
use crate::refusal::{KvsResult, Refusal};
use kvssd_device::{Answer, AskError, AskedDevice};
use kvssd_types::Nanos;
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of the longest name of a design or profile, and of the longest override.
const TEXT_BYTES_MAX: usize = 4096;
/// The most overrides.
const OVERRIDES_MAX: usize = 1024;
/// Bytes of the longest key that is looked at: longer ones are refused by the drive.
const KEY_BYTES_MAX: u32 = 256;

impl From<AskError> for Refusal {
    fn from(error: AskError) -> Self {
        let result = match error {
            AskError::Design(_) | AskError::Profile(_) => KvsResult::OptionInvalid,
            AskError::Past { .. } | AskError::Refused(_) => KvsResult::ParamInvalid,
        };
        Refusal::new(result, error.to_string())
    }
}

fn lock(device: &Mutex<AskedDevice>) -> MutexGuard<'_, AskedDevice> {
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks a device about a key, and tells C what it said.
fn ask(
    device: Handle,
    (key, key_bytes): (Place<u8>, u32),
    completion: Place<KvssdCompletion>,
    question: impl FnOnce(&mut AskedDevice, &[u8]) -> Result<Answer, AskError>,
) -> KvsResult {
    call(|| {
        completion.check()?;
        let device = handles::asked(device)?;
        let length = key_bytes.min(KEY_BYTES_MAX) as usize;
        let Answer { done, is_done, value_bytes } = key.read(length, |key| question(&mut lock(&device), key))??;
        completion.set(KvssdCompletion { done_ns: done.0, value_bytes, is_done: is_done.into() })
    })
}

/// The texts up to a null, as keys and values.
fn overrides(set: Place<Place<c_char>>) -> Result<Vec<(String, String)>, Refusal> {
    let mut overrides = Vec::new();
    for number in 0..OVERRIDES_MAX {
        let text = if set.is_null() { Place::NULL } else { set.at(number).get()? };
        if text.is_null() {
            return Ok(overrides);
        }
        let text = text.text(TEXT_BYTES_MAX)?;
        let (key, value) = text.split_once('=').ok_or_else(|| {
            Refusal::new(
                KvsResult::OptionInvalid,
                format!("{text}: write it as key=value, such as nand.erase_ns=3500000"),
            )
        })?;
        overrides.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    Err(Refusal::new(KvsResult::ParamInvalid, format!("there is no null behind {OVERRIDES_MAX} texts")))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvssd_device_create(
    design: Place<c_char>,
    profile: Place<c_char>,
    scale: f64,
    set: Place<Place<c_char>>,
    device: Place<Handle>,
) -> KvsResult {
    call(|| {
        device.check()?;
        let (design, profile) = (design.text(TEXT_BYTES_MAX)?, profile.text(TEXT_BYTES_MAX)?);
        let made = AskedDevice::new(&design, &profile, scale, &overrides(set)?)?;
        device.set(handles::add_asked(made))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kvssd_device_destroy(device: Handle) -> KvsResult {
    call(|| handles::remove_asked(device))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvssd_device_store(
    device: Handle,
    at_ns: u64,
    key: Place<c_void>,
    key_bytes: u32,
    value_bytes: u32,
    completion: Place<KvssdCompletion>,
) -> KvsResult {
    ask(device, (key.cast(), key_bytes), completion, |device, key| device.store(Nanos(at_ns), key, value_bytes))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvssd_device_retrieve(
    device: Handle,
    at_ns: u64,
    key: Place<c_void>,
    key_bytes: u32,
    offset_bytes: u32,
    length_bytes: u32,
    completion: Place<KvssdCompletion>,
) -> KvsResult {
    let part = (offset_bytes, length_bytes);
    ask(device, (key.cast(), key_bytes), completion, |device, key| device.retrieve(Nanos(at_ns), key, part))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvssd_device_delete(
    device: Handle,
    at_ns: u64,
    key: Place<c_void>,
    key_bytes: u32,
    completion: Place<KvssdCompletion>,
) -> KvsResult {
    ask(device, (key.cast(), key_bytes), completion, |device, key| device.delete(Nanos(at_ns), key))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvssd_device_exist(
    device: Handle,
    at_ns: u64,
    key: Place<c_void>,
    key_bytes: u32,
    completion: Place<KvssdCompletion>,
) -> KvsResult {
    ask(device, (key.cast(), key_bytes), completion, |device, key| device.exist(Nanos(at_ns), key))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvssd_device_fork(device: Handle, copy: Place<Handle>) -> KvsResult {
    call(|| {
        copy.check()?;
        let forked = lock(&*handles::asked(device)?).fork();
        copy.set(handles::add_asked(forked))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kvssd_device_get_stats(device: Handle, stats: Place<KvssdDeviceStats>) -> KvsResult {
    call(|| {
        let said = lock(&*handles::asked(device)?).stats();
        stats.set(KvssdDeviceStats {
            now_ns: said.now_ns,
            flash_bytes: said.flash_bytes,
            page_bytes: said.page_bytes,
            value_bytes_max: said.value_bytes_max,
            stored_bytes: said.stored_bytes,
            pages_read: said.pages_read,
            pages_programmed: said.pages_programmed,
            erases: said.erases,
        })
    })
}
