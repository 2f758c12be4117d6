//! Memory that is a part of a file. It is never referred to: others may change it at any time. Bytes are copied to it, and that is all.

#![expect(
    unsafe_code,
    reason = "to map a file, and to write where other processes may, is beyond what the compiler can check"
)]

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mlock, mmap, munlock, munmap};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};

/// Mapped memory, which it owns.
#[derive(Debug)]
pub(crate) struct Memory {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to this value alone within the process, and is written through `&mut self` only.
unsafe impl Send for Memory {}
// SAFETY: nothing can be read or written through `&self`.
unsafe impl Sync for Memory {}

impl Memory {
    /// The bytes of a file from `at` on, which is a multiple of the system's pages.
    pub(crate) fn of(file: &File, at: u64, bytes: usize) -> io::Result<Memory> {
        let how = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the system chooses where, so that nothing that is there is taken away.
        let base = unsafe { mmap(ptr::null_mut(), bytes, how, MapFlags::SHARED, file, at)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Memory { base, bytes })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Has all pages of a part there, writable and locked.
    pub(crate) fn hold(&mut self, part: &Range<usize>) -> io::Result<()> {
        let at = self.place(part);
        // SAFETY: the pages are this value's. They are locked and brought, and what they hold stays.
        unsafe {
            mlock(at.cast(), part.len())?;
            madvise(at.cast(), part.len(), Advice::LinuxPopulateWrite)?;
        }
        Ok(())
    }

    /// The pages of a part need not be there any more.
    pub(crate) fn let_go(&mut self, part: &Range<usize>) {
        let at = self.place(part);
        // SAFETY: the pages are this value's. That they stay locked harms nobody.
        let _ = unsafe { munlock(at.cast(), part.len()) };
    }

    /// Copies bytes to `at`.
    ///
    /// # Panics
    /// When they do not fit.
    pub(crate) fn copy_in(&mut self, at: usize, bytes: &[u8]) {
        let to = self.place(&(at..at.saturating_add(bytes.len())));
        // SAFETY: `place` has seen that they fit. Nobody of this process has a reference to memory that was mapped here, `bytes` least of all.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    fn place(&self, part: &Range<usize>) -> *mut u8 {
        assert!(part.start <= part.end && part.end <= self.bytes, "{part:?} of {} bytes", self.bytes);
        // SAFETY: the assertion: it is within what was mapped.
        unsafe { self.base.as_ptr().add(part.start) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and nobody refers to it. A child that was forked has a mapping of its own there.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::ManuallyDrop;

    /// What the copies of the others come down to, on memory that Miri knows: `cargo miri test -p kvssd-mapping copies`.
    #[test]
    fn copies_go_where_they_should_and_nowhere_else() {
        let mut room = vec![0u8; 64];
        let base = NonNull::new(room.as_mut_ptr()).unwrap();
        let mut memory = ManuallyDrop::new(Memory { base, bytes: 64 });
        for (at, bytes) in [(0, &b"first"[..]), (59, b"last!"), (64, b""), (20, b"middle"), (22, b"DD")] {
            memory.copy_in(at, bytes);
        }
        assert_eq!((&room[..6], &room[58..], &room[19..27]), (&b"first\0"[..], &b"\0last!"[..], &b"\0miDDle\0"[..]));
    }

    #[test]
    fn copies_that_do_not_fit_are_refused() {
        for (at, count) in [(60, 5), (65, 0), (usize::MAX, 2)] {
            let refused = std::panic::catch_unwind(|| {
                let mut room = vec![0u8; 64];
                let base = NonNull::new(room.as_mut_ptr()).unwrap();
                ManuallyDrop::new(Memory { base, bytes: 64 }).copy_in(at, &vec![1; count]);
            });
            assert!(refused.is_err(), "{count} bytes at {at}");
        }
    }
}
