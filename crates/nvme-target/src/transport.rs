//! A connection from its accept to its close, over any socket and any clock.
//!
//! ```text
//!   attend    read what there is -> process_input -> produce_output -> write -> wait for input, for room, or for the next timer
//!   stopping  no more commands are processed; those that were executed are completed
//!   closing   the peer has a second to take its last completions
//! ```
//!
//! What it does not do: accept connections, or know where time comes from.

use crate::connection::Connection;
use crate::limits::TRANSFER_BYTE_NS;
use crate::secured::Secured;
use crate::subsystem::Subsystem;
use kvssd_types::Nanos;
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;

/// How long a peer has to take its last completions.
const LINGER_NS: Nanos = Nanos(1_000_000_000);
/// The most bytes that are read and dropped meanwhile.
const LINGER_BYTES_MAX: usize = 64 << 20;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Bytes to read, or the end of the stream.
    pub read: bool,
    /// Room to write.
    pub write: bool,
}

/// A connected socket. Nothing blocks but [`Transport::wait`].
pub trait Transport {
    /// Reads what there is, up to the length of `buffer`; 0 at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` where there is nothing, `Interrupted`; any other error breaks the connection.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes as many bytes as there is room for.
    ///
    /// # Errors
    /// As [`Transport::read`].
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Writes as many bytes of these parts, one behind the other, as there is room for.
    ///
    /// # Errors
    /// As [`Transport::read`].
    fn write_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write(parts.first().map_or(&[], |part| part))
    }

    /// Waits until `interest` is met, or `timeout` is over. Returns whether there may be something to read.
    fn wait(&mut self, interest: Interest, timeout: Nanos) -> bool;

    /// Ends the outgoing stream; the incoming one stays.
    ///
    /// # Errors
    /// When the connection is broken.
    fn end_output(&mut self) -> io::Result<()>;

    /// Sends what [`Transport::write`] took and kept, as far as there is room. Returns whether all of it is sent.
    ///
    /// # Errors
    /// When the connection is broken.
    fn flush(&mut self) -> io::Result<bool> {
        Ok(true)
    }

    /// What TLS has shown, once, before anything that comes by it is read.
    fn take_secured(&mut self) -> Option<Secured> {
        None
    }
}

/// Serves one connection, which reached the target at `local`, to its end. `now` is the time since the service began.
///
/// # Errors
/// When the connection broke, or the peer did not take its completions in time.
pub fn attend(
    subsystem: Arc<Subsystem>,
    local: SocketAddr,
    transport: &mut impl Transport,
    now: impl Fn() -> Nanos,
    is_stopping: impl Fn() -> bool,
) -> io::Result<()> {
    let limits = subsystem.limits();
    let mut connection = Connection::new(subsystem, local, now());
    let (mut is_readable, mut stopped, mut unsent_since, mut sent_bytes) = (true, None, now(), 0);
    loop {
        if is_readable && connection.wants_input() {
            match transport.read(connection.input_buffer()) {
                Ok(0) => connection.stop(),
                Ok(count) => connection.received(count),
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(secured) = transport.take_secured() {
            connection.secure(secured);
        }
        connection.process_input(now());
        connection.produce_output(now());
        sent_bytes += write_out(&mut connection, transport)?;
        let is_flushed = transport.flush()?;
        let at = now();
        if is_stopping() && stopped.is_none() {
            connection.stop();
            stopped = Some(at);
        }
        let is_late = stopped.is_some_and(|stopped| at > stopped + limits.stop_ns);
        if connection.has_ended() && ((connection.is_drained() && is_flushed) || is_late) {
            return if connection.has_made_room() { Ok(()) } else { linger(transport, now) };
        }
        let has_output = !connection.output().is_empty() || !is_flushed;
        if !has_output {
            (unsent_since, sent_bytes) = (at, 0);
        }
        if at > unsent_since + limits.send_ns + Nanos(TRANSFER_BYTE_NS * sent_bytes) {
            return Err(ErrorKind::TimedOut.into());
        }
        is_readable = connection.has_work() || {
            let interest = Interest { read: connection.wants_input(), write: has_output };
            transport.wait(interest, connection.next_timer(at) - at)
        };
    }
}

/// Writes as much output as there is room for; returns how many bytes.
fn write_out(connection: &mut Connection, transport: &mut impl Transport) -> io::Result<u64> {
    let mut sent_bytes = 0;
    while !connection.output().is_empty() {
        match transport.write_parts(&connection.output_parts()) {
            Ok(count) => {
                connection.sent(count);
                sent_bytes += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent_bytes)
}

/// Closes a connection so that the peer gets what was sent: to close with bytes unread would reset it.
fn linger(transport: &mut impl Transport, now: impl Fn() -> Nanos) -> io::Result<()> {
    let until = now() + LINGER_NS;
    transport.end_output()?;
    let (mut scrap, mut dropped_bytes) = (vec![0; 64 << 10], 0);
    loop {
        let at = now();
        if at > until || dropped_bytes >= LINGER_BYTES_MAX {
            break;
        }
        match transport.read(&mut scrap) {
            Ok(0) => break,
            Ok(count) => dropped_bytes += count,
            Err(error) if is_transient(&error) => {
                transport.wait(Interest { read: true, write: false }, until - at);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
