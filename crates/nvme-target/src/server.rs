//! Threads and sockets of the machine: a thread for each connection, which [`attend`]s it.
//!
//! A connection's thread makes three system calls for a command that comes alone (wait, read, write), and no more for a
//! hundred that come together.

use crate::subsystem::Subsystem;
use crate::transport::{Interest, Transport, attend};
use kvssd_runtime::Patience;
use kvssd_types::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use thiserror::Error;

/// How often a waiting thread checks whether the service is to stop.
pub(crate) const STOP_LOOK: Duration = Duration::from_millis(200);

/// Open files of a service beside its connections: the image, streams, a listener, metrics.
const FILES_BESIDE: u64 = 64;

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
    /// The machine has no more threads.
    #[error("no thread can be started: {why}")]
    Thread {
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
        allow_open_files(subsystem.options.limits.connections_max);
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
            // An interrupted wait counts as one that is over.
            let _ = poll(&mut waited, Some(&timespec(STOP_LOOK)));
            threads.retain(|thread| !thread.is_finished());
            if waited[0].revents().is_empty() {
                continue;
            }
            match self.listener.accept() {
                Ok((stream, peer)) => threads.extend(self.spawn_connection(stream, peer, began, threads.len(), stop)),
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

    fn spawn_connection(
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
            // Each line of the log about this connection says where it comes from.
            let _peer = tracing::error_span!("connection", %peer).entered();
            if let Err(error) = serve_connection(stream, subsystem, began, &stop) {
                tracing::debug!(%peer, %error, "a connection broke");
            }
        };
        let spawned = thread::Builder::new().name(format!("nvme {peer}")).spawn(body);
        spawned.inspect_err(|error| tracing::error!(%error, "there is no thread for a connection")).ok()
    }
}

/// Has the system let this process have that many connections open, as far as it may.
fn allow_open_files(connections: usize) {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let wanted = connections as u64 + FILES_BESIDE;
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let allowed = maximum.map_or(wanted, |maximum| maximum.min(wanted));
        if current.is_some_and(|current| current < allowed) {
            // Where it refuses, connections are refused as they come.
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum });
        }
        if allowed < wanted {
            tracing::warn!(connections, allowed, "the system allows fewer open files than there may be connections");
        }
    }
    #[cfg(not(unix))]
    let _ = connections;
}

fn serve_connection(stream: TcpStream, subsystem: Arc<Subsystem>, began: Instant, stop: &AtomicBool) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    // A host without a keep-alive timer whose machine has gone is found out in time.
    sockopt::set_socket_keepalive(&stream, true)?;
    sharpen_timers(&subsystem);
    let now = || Nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let (local, socket) = (stream.local_addr()?, Socket { stream, was_read: false, patience: Patience::default() });
    #[cfg(feature = "tls")]
    let mut socket = crate::door::Door::new(socket, Arc::clone(&subsystem));
    #[cfg(not(feature = "tls"))]
    let mut socket = socket;
    attend(subsystem, local, &mut socket, now, || stop.load(Ordering::Relaxed))
}

/// A connection's socket, which reads and writes without waiting.
struct Socket {
    stream: TcpStream,
    /// It was read since the last wait.
    was_read: bool,
    patience: Patience,
}

impl Socket {
    /// Waits for one of these; none that is ready is an empty set.
    fn poll(&self, wanted: PollFlags, timeout: Nanos) -> PollFlags {
        let mut polled = [PollFd::new(&self.stream, wanted)];
        let _ = poll(&mut polled, Some(&timespec(Duration::from_nanos(timeout.0))));
        polled[0].revents()
    }

    /// Waits awake for something to read, while that pays.
    fn wait_awake(&mut self) -> bool {
        let mut patience = std::mem::take(&mut self.patience);
        let found = patience.wait(|| (!self.poll(PollFlags::IN, Nanos::ZERO).is_empty()).then_some(()));
        self.patience = patience;
        found.is_some()
    }
}

impl Transport for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.was_read = true;
        self.stream.read(buffer)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn write_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.stream.write_vectored(parts)
    }

    fn wait(&mut self, interest: Interest, timeout: Nanos) -> bool {
        // Nothing is to be sent, nor due before it would have waited awake.
        let is_due_soon = u128::from(timeout.0) <= Patience::AWAKE.as_nanos();
        let is_idle = std::mem::take(&mut self.was_read) && interest.read && !interest.write && !is_due_soon;
        if is_idle && self.wait_awake() {
            return true;
        }
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, interest.read);
        wanted.set(PollFlags::OUT, interest.write);
        let began = Instant::now();
        let found = self.poll(wanted, timeout);
        if is_idle {
            self.patience.slept(began.elapsed());
        }
        found.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
    }

    fn end_output(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }
}

pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().min(3600) as i64, tv_nsec: time.subsec_nanos().into() }
}

/// Has waits end when a completion is due. By default the system rounds them up by 50 us.
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
