//! Threads and sockets: the only part that waits.
//!
//! ```text
//!   listener   accept -> a thread: read what there is -> take_in -> give_out -> write -> wait for more, for room, or for the next moment
//!   stop       no more is accepted or taken; what was executed is answered; threads end
//! ```
//!
//! A connection's thread makes three system calls for a command that comes alone (wait, read, write), and no more for a hundred that
//! come together.

use crate::connection::Connection;
use crate::limits::TRANSFER_BYTE_NS;
use crate::subsystem::Subsystem;
use kvssd_types::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use thiserror::Error;

/// How often it is looked whether the service is to stop.
pub(crate) const STOP_LOOK: Duration = Duration::from_millis(200);
/// How long a connection stays awake for what follows. An estimate: on a machine with idle cores, to sleep and to be woken costs a
/// command several times what it costs itself; who keeps silent costs this once.
const AWAKE: Nanos = Nanos(50_000);
/// How long a peer has to take what it is told at the end.
const LINGER: Duration = Duration::from_secs(1);
/// What is thrown away at the end of a connection, at the most.
const LINGER_BYTES_MAX: usize = 64 << 20;

/// Why nothing is served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {why}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        why: String,
    },
}

/// A target that listens.
pub struct Server {
    subsystem: Arc<Subsystem>,
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Listens on `address`. Hosts that connect wait until [`Server::serve`].
    ///
    /// # Errors
    /// When the address is in use, or not of this machine.
    pub fn bind(subsystem: Arc<Subsystem>, address: SocketAddr) -> Result<Server, ServeError> {
        let fail = |why: io::Error| ServeError::Listen { address, why: why.to_string() };
        let listener = TcpListener::bind(address).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        Ok(Server { subsystem, listener, address })
    }

    /// Where it listens, with the port that the system chose where none was.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is set; then commands in flight are finished. The drive is still to be closed.
    pub fn serve(&self, stop: &Arc<AtomicBool>) {
        let began = Instant::now();
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let mut waited = [PollFd::new(&self.listener, PollFlags::IN)];
            // An interrupted wait is as good as one that is over.
            let _ = poll(&mut waited, Some(&timespec(STOP_LOOK)));
            threads.retain(|thread| !thread.is_finished());
            match self.listener.accept() {
                Ok((stream, peer)) => threads.extend(self.welcome(stream, peer, began, threads.len(), stop)),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => {
                    // As a rule there are too many open files: others may end.
                    tracing::error!(%error, "a connection cannot be accepted");
                    thread::sleep(STOP_LOOK);
                }
            }
        }
        for thread in threads {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }

    fn welcome(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        began: Instant,
        connections: usize,
        stop: &Arc<AtomicBool>,
    ) -> Option<JoinHandle<()>> {
        if connections >= self.subsystem.options.limits.connections_max {
            tracing::warn!(%peer, connections, "a connection too many was closed");
            return None;
        }
        let (subsystem, stop) = (Arc::clone(&self.subsystem), Arc::clone(stop));
        let body = move || {
            if let Err(error) = attend(stream, subsystem, began, &stop) {
                tracing::debug!(%peer, %error, "a connection broke");
            }
        };
        let spawned = thread::Builder::new().name(format!("nvme {peer}")).spawn(body);
        spawned.inspect_err(|error| tracing::error!(%error, "there is no thread for a connection")).ok()
    }
}

/// Serves one connection to its end.
fn attend(mut stream: TcpStream, subsystem: Arc<Subsystem>, began: Instant, stop: &AtomicBool) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    // A host that has no keep-alive of its own, and whose machine has gone, is found out in time.
    sockopt::set_socket_keepalive(&stream, true)?;
    let now = || Nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let limits = subsystem.options.limits;
    sharpen_timers(&subsystem);
    let mut connection = Connection::new(subsystem, stream.local_addr()?, now());
    let (mut is_readable, mut stopped, mut taken) = (true, None, (now(), 0));
    loop {
        if is_readable && connection.wants_input() {
            match stream.read(connection.spare()) {
                Ok(0) => connection.stop(),
                Ok(count) => connection.received(count),
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
        }
        connection.take_in(now());
        connection.give_out(now());
        while !connection.output().is_empty() {
            match stream.write(connection.output()) {
                Ok(count) => {
                    connection.sent(count);
                    taken.1 += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let at = now();
        if stop.load(Ordering::Relaxed) && stopped.is_none() {
            connection.stop();
            stopped = Some(at);
        }
        let is_late = stopped.is_some_and(|stopped| at > stopped + limits.stop_ns);
        if connection.has_ended() && (connection.is_drained() || is_late) {
            return linger(stream);
        }
        let has_output = !connection.output().is_empty();
        if !has_output {
            taken = (at, 0);
        }
        // Since answers wait, the peer has taken so many bytes.
        let (since, bytes) = taken;
        if at > since + limits.send_ns + Nanos(TRANSFER_BYTE_NS * bytes) {
            return Err(ErrorKind::TimedOut.into());
        }
        // No answer waits for its moment meanwhile.
        let stays_awake = is_readable && connection.wants_input() && !has_output && connection.wakes(at) > at + AWAKE;
        is_readable =
            connection.has_work() || stays_awake && comes_soon(&stream) || wait(&stream, &connection, at, has_output);
    }
}

/// Looks for a moment, awake, whether there is something to read.
fn comes_soon(stream: &TcpStream) -> bool {
    let until = Instant::now() + Duration::from_nanos(AWAKE.0);
    loop {
        let mut looked = [PollFd::new(stream, PollFlags::IN)];
        if poll(&mut looked, Some(&timespec(Duration::ZERO))).is_ok_and(|ready| ready > 0) {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::hint::spin_loop();
    }
}

/// Waits until there is something to do. Gives whether there may be something to read.
fn wait(stream: &TcpStream, connection: &Connection, now: Nanos, has_output: bool) -> bool {
    let mut wanted = PollFlags::empty();
    if connection.wants_input() {
        wanted |= PollFlags::IN;
    }
    if has_output {
        wanted |= PollFlags::OUT;
    }
    let time = Duration::from_nanos((connection.wakes(now) - now).0);
    let mut waited = [PollFd::new(stream, wanted)];
    let _ = poll(&mut waited, Some(&timespec(time)));
    waited[0].revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
}

/// Closes a connection so that the peer gets what was sent: a close with bytes unread would take it away.
fn linger(mut stream: TcpStream) -> io::Result<()> {
    let until = Instant::now() + LINGER;
    stream.shutdown(Shutdown::Write)?;
    stream.set_nonblocking(false)?;
    let (mut scrap, mut thrown) = (vec![0; 64 << 10], 0);
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut scrap) {
            Ok(0) => break,
            Ok(count) if thrown < LINGER_BYTES_MAX => thrown += count,
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    Ok(())
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().min(3600) as i64, tv_nsec: time.subsec_nanos().into() }
}

/// Answers that wait for a moment are to go out then, not within the 50 us that the system rounds waits up by.
fn sharpen_timers(subsystem: &Subsystem) {
    #[cfg(target_os = "linux")]
    if subsystem.options.is_timed
        && let Err(error) = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))
    {
        tracing::debug!(%error, "waits are rounded up by the system");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = subsystem;
}
