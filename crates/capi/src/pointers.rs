//! Memory of C's.
//!
//! A [`Place`] comes from C as an argument or in a field, and cannot be made here but as null. So whoever has one was given it by
//! a C program, and the header tells that program what it must be: null, or the address of as much memory as the call reads or
//! writes, which stays until the call, or its callback, is done. What can be checked is: null, and alignment.

#![expect(unsafe_code, reason = "C hands over addresses; this file turns them into values and slices, and back")]

use crate::refusal::{KvsResult, Refusal};
use std::ffi::c_char;
use std::fmt;
use std::ptr::{null_mut, without_provenance_mut};
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::atomic::{AtomicI64, Ordering};

/// The address of a `T` in memory of C's, or null.
#[repr(transparent)]
pub struct Place<T>(*mut T);

/// Types of which all bytes are a value.
///
/// # Safety
/// That it is so.
pub(crate) unsafe trait Plain: Copy {}

/// Says so of types.
macro_rules! plain {
    ($($type:ty),* $(,)?) => { $(
        // SAFETY: integers, addresses, and structures of them.
        unsafe impl $crate::pointers::Plain for $type {}
    )* };
}

pub(crate) use plain;

plain!(u8, u32, u64, c_char);
// SAFETY: an address is a number.
unsafe impl<T> Plain for Place<T> {}

// SAFETY: an address is a number; what it may be used for is said above, and binds no thread.
unsafe impl<T> Send for Place<T> {}

impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Place<T> {}

impl<T> fmt::Debug for Place<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl<T> Place<T> {
    /// No memory.
    pub const NULL: Place<T> = Place(null_mut());

    /// A number in place of an address, where nothing is.
    pub(crate) fn nowhere(number: usize) -> Place<T> {
        Place(without_provenance_mut(number))
    }

    /// The address as a number.
    pub(crate) fn number(self) -> usize {
        self.0.addr()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The same address, of something else.
    pub(crate) fn cast<U>(self) -> Place<U> {
        Place(self.0.cast())
    }

    /// The place so many further on.
    pub(crate) fn at(self, index: usize) -> Place<T> {
        Place(self.0.wrapping_add(index))
    }

    /// The address, if there can be a `T`.
    pub(crate) fn check(self) -> Result<*mut T, Refusal> {
        if self.0.is_null() {
            return Err(Refusal::new(KvsResult::ParamInvalid, "a pointer is null"));
        }
        if !self.0.is_aligned() {
            return Err(Refusal::new(KvsResult::ParamInvalid, "a pointer is not aligned as its type must be"));
        }
        Ok(self.0)
    }
}

#[expect(private_bounds, reason = "nobody else is to say which types these are")]
impl<T: Plain> Place<T> {
    /// What is there.
    pub(crate) fn get(self) -> Result<T, Refusal> {
        let address = self.check()?;
        // SAFETY: it is aligned and not null, C says that there is a `T`, and any bytes are one.
        Ok(unsafe { address.read() })
    }

    /// What is there; nothing where there is no memory.
    pub(crate) fn get_unless_null(self) -> Result<Option<T>, Refusal> {
        if self.is_null() { Ok(None) } else { self.get().map(Some) }
    }

    /// Puts something there.
    pub(crate) fn set(self, value: T) -> Result<(), Refusal> {
        let address = self.check()?;
        // SAFETY: it is aligned and not null, and C says that there is room for a `T`, which nobody else uses meanwhile.
        unsafe { address.write(value) };
        Ok(())
    }
}

impl Place<u8> {
    /// Shows the bytes that are there. No bytes may be nowhere.
    pub(crate) fn read<R>(self, length: usize, look: impl FnOnce(&[u8]) -> R) -> Result<R, Refusal> {
        if length == 0 {
            return Ok(look(&[]));
        }
        let address = self.check()?;
        // SAFETY: it is not null, and C says that so many bytes are there, which nobody changes meanwhile.
        Ok(look(unsafe { from_raw_parts(address, length) }))
    }

    /// Lets the bytes that are there be changed. No bytes may be nowhere.
    pub(crate) fn change<R>(self, length: usize, change: impl FnOnce(&mut [u8]) -> R) -> Result<R, Refusal> {
        if length == 0 {
            return Ok(change(&mut []));
        }
        let address = self.check()?;
        // SAFETY: it is not null, and C says that so many bytes are there, whatever they hold, which nobody else uses meanwhile.
        Ok(change(unsafe { from_raw_parts_mut(address, length) }))
    }
}

impl Place<c_char> {
    /// The text that is there up to a null, of `bytes_max` bytes at the most.
    pub(crate) fn text(self, bytes_max: usize) -> Result<String, Refusal> {
        let mut bytes = Vec::new();
        while bytes.len() <= bytes_max {
            // Bytes behind the null are not touched.
            match self.at(bytes.len()).get()?.cast_unsigned() {
                0 => {
                    let refused = |_| Refusal::new(KvsResult::ParamInvalid, "a text is not UTF-8");
                    return String::from_utf8(bytes).map_err(refused);
                }
                byte => bytes.push(byte),
            }
        }
        Err(Refusal::new(KvsResult::ParamInvalid, format!("a text is longer than {bytes_max} bytes")))
    }
}

/// How often memory was given and not given back.
static ALLOCATED: AtomicI64 = AtomicI64::new(0);

/// How many pieces of memory C has of [`allocate`]. What it gave back to C's own `free` counts on.
pub(crate) fn allocated() -> i64 {
    ALLOCATED.load(Ordering::Relaxed)
}

/// Memory that C's `free` takes back; null when there is none, or the alignment is no power of two.
pub(crate) fn allocate(bytes: usize, alignment: usize) -> Place<std::ffi::c_void> {
    let mut address = null_mut();
    let alignment = alignment.max(size_of::<usize>());
    // SAFETY: `address` can be written; what else there is to check the function checks itself.
    match unsafe { libc::posix_memalign(&raw mut address, alignment, bytes.max(1)) } {
        0 => {
            ALLOCATED.fetch_add(1, Ordering::Relaxed);
            Place(address)
        }
        _ => Place::NULL,
    }
}

/// Gives memory of [`allocate`] back.
pub(crate) fn free(memory: Place<std::ffi::c_void>) {
    if !memory.is_null() {
        ALLOCATED.fetch_sub(1, Ordering::Relaxed);
    }
    // SAFETY: C says that it was given it by `allocate`, or it is null, which is allowed.
    unsafe { libc::free(memory.0) };
}
