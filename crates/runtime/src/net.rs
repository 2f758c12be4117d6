//! Connections.

use crate::machine::{Machine, machine, machine_of};
use rustix::net::{RecvFlags, recv};
use std::io::{self, ErrorKind, Read, Write};
pub use std::net::{IpAddr, Shutdown, SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A connection, as [`std::net::TcpStream`].
#[derive(Debug)]
pub struct TcpStream(Stream);

#[derive(Debug)]
enum Stream {
    Machine(std::net::TcpStream),
    World(Simulated),
}

/// A connection of a world.
#[derive(Debug)]
struct Simulated {
    world: u64,
    stream: u64,
    /// Zero for none.
    read_timeout_ns: AtomicU64,
    write_timeout_ns: AtomicU64,
}

impl Simulated {
    fn machine(&self) -> io::Result<Rc<dyn Machine>> {
        machine_of(self.world).ok_or_else(|| ErrorKind::NotConnected.into())
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        if let Ok(machine) = self.machine() {
            machine.close(self.stream);
        }
    }
}

impl TcpStream {
    /// Connects.
    ///
    /// # Errors
    /// When nobody listens there, or does not answer in time.
    pub fn connect_timeout(address: &SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        let Some(machine) = machine() else {
            return Ok(TcpStream(Stream::Machine(std::net::TcpStream::connect_timeout(address, timeout)?)));
        };
        let stream = machine.connect(*address, timeout)?;
        let (world, none) = (machine.number(), || AtomicU64::new(0));
        Ok(TcpStream(Stream::World(Simulated { world, stream, read_timeout_ns: none(), write_timeout_ns: none() })))
    }

    /// How long a read waits; none for ever.
    ///
    /// # Errors
    /// When that is no time at all.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.0 {
            Stream::Machine(socket) => socket.set_read_timeout(timeout),
            Stream::World(simulated) => set(&simulated.read_timeout_ns, timeout),
        }
    }

    /// How long a write waits; none for ever.
    ///
    /// # Errors
    /// When that is no time at all.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.0 {
            Stream::Machine(socket) => socket.set_write_timeout(timeout),
            Stream::World(simulated) => set(&simulated.write_timeout_ns, timeout),
        }
    }

    /// Whether small writes are sent at once. In a world all are.
    ///
    /// # Errors
    /// Of the machine.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        match &self.0 {
            Stream::Machine(socket) => socket.set_nodelay(nodelay),
            Stream::World(_) => Ok(()),
        }
    }

    /// Reads what is there, and does not wait.
    ///
    /// # Errors
    /// `WouldBlock` when there is nothing; when the connection is broken.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Stream::Machine(socket) => Ok(recv(socket, buffer, RecvFlags::DONTWAIT)?.1),
            Stream::World(simulated) => simulated.machine()?.try_read(simulated.stream, buffer),
        }
    }

    /// Ends one direction, or both.
    ///
    /// # Errors
    /// When it has no peer any more.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match &self.0 {
            Stream::Machine(socket) => socket.shutdown(how),
            Stream::World(simulated) => simulated.machine()?.shut_down(simulated.stream, how),
        }
    }
}

fn set(timeout_ns: &AtomicU64, timeout: Option<Duration>) -> io::Result<()> {
    if timeout == Some(Duration::ZERO) {
        return Err(ErrorKind::InvalidInput.into());
    }
    let ns = timeout.map_or(0, |timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
    timeout_ns.store(ns, Ordering::Relaxed);
    Ok(())
}

fn get(timeout_ns: &AtomicU64) -> Option<Duration> {
    Some(timeout_ns.load(Ordering::Relaxed)).filter(|ns| *ns > 0).map(Duration::from_nanos)
}

impl Read for &TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Stream::Machine(socket) => (&*socket).read(buffer),
            Stream::World(simulated) => {
                simulated.machine()?.read(simulated.stream, buffer, get(&simulated.read_timeout_ns))
            }
        }
    }
}

impl Write for &TcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Stream::Machine(socket) => (&*socket).write(bytes),
            Stream::World(simulated) => {
                simulated.machine()?.write(simulated.stream, bytes, get(&simulated.write_timeout_ns))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for TcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
