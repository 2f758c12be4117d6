//! What can go wrong, as the number that C gets and a line for people.

use kvssd_host::Error;
use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CString, c_char};

/// `kvs_result`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[expect(missing_docs, reason = "include/kvs_result.h says what each means")]
pub enum KvsResult {
    Success = 0x000,
    BufferSmall = 0x001,
    DeviceCapacity = 0x002,
    DeviceNotExist = 0x003,
    KeySpaceCapacity = 0x004,
    KeySpaceExist = 0x005,
    KeySpaceIndex = 0x006,
    KeySpaceName = 0x007,
    KeySpaceNotExist = 0x008,
    KeySpaceNotOpen = 0x009,
    KeySpaceOpen = 0x00A,
    IteratorFilterInvalid = 0x00B,
    IteratorMax = 0x00C,
    IteratorNotExist = 0x00D,
    IteratorOpen = 0x00E,
    KeyLengthInvalid = 0x00F,
    KeyNotExist = 0x010,
    OptionInvalid = 0x011,
    ParamInvalid = 0x012,
    SysIo = 0x013,
    ValueLengthInvalid = 0x014,
    ValueOffsetInvalid = 0x015,
    ValueOffsetMisaligned = 0x016,
    ValueUpdateNotAllowed = 0x017,
    DeviceNotOpened = 0x018,
}

/// Why a call did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) result: KvsResult,
    pub(crate) why: Cow<'static, str>,
}

impl Refusal {
    pub(crate) fn new(result: KvsResult, why: impl Into<Cow<'static, str>>) -> Self {
        Refusal { result, why: why.into() }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let result = match &error {
            Error::NotFound(_) => KvsResult::DeviceNotExist,
            Error::Forked { .. } => KvsResult::DeviceNotOpened,
            Error::Full | Error::QuotaFull => KvsResult::KeySpaceCapacity,
            Error::InvalidKey { .. } => KvsResult::KeyLengthInvalid,
            Error::InvalidValue { .. } => KvsResult::ValueLengthInvalid,
            Error::NoNamespace { .. } => KvsResult::KeySpaceNotExist,
            Error::TooManyNamespaces { .. } => KvsResult::DeviceCapacity,
            Error::KeyNotFound => KvsResult::KeyNotExist,
            Error::KeyExists => KvsResult::ValueUpdateNotAllowed,
            Error::InvalidOptions { .. } | Error::Refused { .. } => KvsResult::OptionInvalid,
            _ => KvsResult::SysIo,
        };
        Refusal::new(result, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// What C is given, and the line about it kept for this thread.
pub(crate) fn given(outcome: Result<(), Refusal>) -> KvsResult {
    let Err(Refusal { result, why }) = outcome else { return KvsResult::Success };
    // A path of the caller's may hold anything but a null.
    let line = CString::new(why.replace('\0', "")).unwrap_or_default();
    // A thread that is ending has no use for it any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = line);
    result
}

/// The line about the last refusal of this thread.
pub(crate) fn last_line() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
