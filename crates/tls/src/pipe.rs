//! What the library reads from and writes to: two buffers in memory. All unsafe code of this crate is here.
//!
//! The library calls [`receive`] and [`send`] with a pointer to the [`Pipes`] of a session, and only while a method of that
//! session's `Connection` runs. [`Wired`] keeps the pipes for longer than the connection.

#![expect(unsafe_code, reason = "the library calls back with pointers")]

use crate::error::TlsError;
use errno::{Errno, set_errno};
use s2n_tls::connection::Connection;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// EAGAIN, as the library wants it where there is nothing to read.
const WOULD_BLOCK: Errno = Errno(errno_again());

const fn errno_again() -> i32 {
    if cfg!(any(target_os = "macos", target_os = "ios", target_os = "freebsd")) { 35 } else { 11 }
}

/// Bytes on their way between the library and the peer.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    incoming: Vec<u8>,
    /// How many of `incoming` the library has read.
    read: usize,
    /// Nothing comes behind `incoming`.
    is_closed: bool,
    pub(crate) outgoing: Vec<u8>,
}

impl Pipes {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.incoming.drain(..self.read);
        self.read = 0;
        self.incoming.extend_from_slice(bytes);
    }

    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }
}

/// A connection of the library and its pipes. Fields are dropped in this order.
pub(crate) struct Wired {
    connection: Connection,
    pipes: Arc<Mutex<Pipes>>,
}

impl Wired {
    /// Has the library read from and write to pipes in memory.
    pub(crate) fn new(mut connection: Connection) -> Result<Wired, TlsError> {
        let pipes = Arc::new(Mutex::new(Pipes::default()));
        let context = Arc::as_ptr(&pipes).cast_mut().cast::<c_void>();
        let set = |error: s2n_tls::error::Error| TlsError::of(&error, None);
        connection.set_receive_callback(Some(receive)).map_err(set)?;
        connection.set_send_callback(Some(send)).map_err(set)?;
        // SAFETY: `Wired` has the connection alone, gives out no more than a reference to it, and drops `pipes` after it.
        unsafe {
            connection.set_receive_context(context).map_err(set)?;
            connection.set_send_context(context).map_err(set)?;
        }
        Ok(Wired { connection, pipes })
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// It must stay where it is: to swap it with another would part it from its pipes.
    pub(crate) fn with<T>(&mut self, call: impl FnOnce(&mut Connection) -> T) -> T {
        call(&mut self.connection)
    }

    pub(crate) fn pipes(&self) -> MutexGuard<'_, Pipes> {
        lock(&self.pipes)
    }
}

/// A panic leaves the pipes whole, so poison is ignored.
fn lock(pipes: &Mutex<Pipes>) -> MutexGuard<'_, Pipes> {
    pipes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the library bytes of the peer.
///
/// # Safety
/// `context` is that of [`Wired::new`], whose pipes live, and `buffer` has room for `length` bytes.
unsafe extern "C" fn receive(context: *mut c_void, buffer: *mut u8, length: u32) -> c_int {
    // SAFETY: the pipes live as long as the connection that calls; they are shared, never borrowed for change.
    let pipes = unsafe { &*context.cast_const().cast::<Mutex<Pipes>>() };
    let mut pipes = lock(pipes);
    let waiting = &pipes.incoming[pipes.read..];
    let count = waiting.len().min(length as usize).min(c_int::MAX as usize);
    if count == 0 && !pipes.is_closed {
        set_errno(WOULD_BLOCK);
        return -1;
    }
    // SAFETY: `count` bytes are there to read and, as the library says, to write; a buffer of its own is none of ours.
    unsafe { std::ptr::copy_nonoverlapping(waiting.as_ptr(), buffer, count) };
    pipes.read += count;
    count as c_int
}

/// Takes bytes for the peer from the library. There is always room.
///
/// # Safety
/// `context` is that of [`Wired::new`], whose pipes live, and `bytes` has `length` bytes.
unsafe extern "C" fn send(context: *mut c_void, bytes: *const u8, length: u32) -> c_int {
    // SAFETY: as in `receive`.
    let pipes = unsafe { &*context.cast_const().cast::<Mutex<Pipes>>() };
    let count = (length as usize).min(c_int::MAX as usize);
    // SAFETY: the library has written `length` bytes there, and changes none of them until this returns.
    let bytes = unsafe { std::slice::from_raw_parts(bytes, count) };
    lock(pipes).outgoing.extend_from_slice(bytes);
    count as c_int
}
