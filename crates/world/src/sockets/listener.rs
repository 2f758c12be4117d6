//! Who listens, and who connects.

use super::streams;
use crate::links::{close, stop};
use crate::network::{Connection, End, EndId, Found, Listening, Pipe};
use crate::shared::{Shared, ns};
use kvssd_runtime::machine::{Key, Machine, Wake};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

/// Connections that wait until they are accepted.
const WAITING_MAX: usize = 128;

/// Accepts the connections of an address.
pub struct Listener {
    shared: Rc<Shared>,
    address: SocketAddr,
    number: u64,
}

/// An end of a connection that was accepted. Nothing waits but [`Socket::poll`].
pub struct Socket {
    shared: Rc<Shared>,
    end: EndId,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// That there is something to read: bytes, the end, or that it is broken.
    pub read: bool,
    /// That there is room to write, or that it is broken.
    pub write: bool,
}

pub(crate) fn listen(shared: &Rc<Shared>, address: SocketAddr) -> io::Result<Listener> {
    let mut turns = shared.turns.borrow_mut();
    let process = turns.current().process;
    if turns.network.listening.contains_key(&address) {
        return Err(ErrorKind::AddrInUse.into());
    }
    turns.network.made += 1;
    let number = turns.network.made;
    turns.network.listening.insert(address, Listening { process, number, waiting: VecDeque::new() });
    Ok(Listener { shared: shared.clone(), address, number })
}

pub(crate) fn connect(shared: &Shared, address: SocketAddr, timeout: Duration) -> io::Result<u64> {
    if shared.is_unwinding() {
        return Err(ErrorKind::ConnectionRefused.into());
    }
    let delay_ns = {
        let mut turns = shared.turns.borrow_mut();
        let faults = turns.network.faults;
        faults.delay(&mut turns.random) + faults.delay(&mut turns.random)
    };
    let way = Duration::from_nanos(delay_ns);
    let until_ns = shared.turns.borrow().now_ns + ns(way.min(timeout));
    let key = Key { id: shared.actor(), kind: "a connection to be made" };
    while shared.turns.borrow().now_ns < until_ns && !shared.is_unwinding() {
        shared.wait_ns(key, Some(until_ns));
    }
    if way > timeout {
        return Err(ErrorKind::TimedOut.into());
    }
    let mut turns = shared.turns.borrow_mut();
    let (faults, process) = (turns.network.faults, turns.current().process);
    if turns.is_one_in(faults.refuse_one_in) {
        return Err(ErrorKind::ConnectionRefused.into());
    }
    let rooms = [0, 1].map(|_| faults.room(&mut turns.random));
    let network = &mut turns.network;
    let listening = network.listening.get_mut(&address).ok_or(ErrorKind::ConnectionRefused)?;
    if listening.waiting.len() >= WAITING_MAX {
        return Err(ErrorKind::TimedOut.into());
    }
    let number = network.made + 1;
    network.made = number;
    listening.waiting.push_back(number);
    let key = listening.key();
    let ends = [process, listening.process].map(|process| End { process, is_closed: false, reads_no_more: false });
    network.connections.insert(number, Connection { ends, pipes: rooms.map(Pipe::new) });
    turns.wake(key, Wake::All);
    Ok(number * 2)
}

impl Listener {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection; waits so long for one.
    ///
    /// # Errors
    /// `WouldBlock` when there is none in that time; when it listens no more.
    pub fn accept(&self, timeout: Duration) -> io::Result<Socket> {
        let deadline_ns = self.shared.turns.borrow().now_ns.saturating_add(ns(timeout));
        self.shared.point();
        loop {
            let mut turns = self.shared.turns.borrow_mut();
            let now_ns = turns.now_ns;
            let listening = turns.network.listening.get_mut(&self.address).ok_or(ErrorKind::NotConnected)?;
            let key = listening.key();
            if let Some(number) = listening.waiting.pop_front() {
                return Ok(Socket { shared: self.shared.clone(), end: EndId(number * 2 + 1) });
            }
            drop(turns);
            if now_ns >= deadline_ns || self.shared.is_unwinding() {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.shared.wait_ns(key, Some(deadline_ns));
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut turns = self.shared.turns.borrow_mut();
        // It may have been killed, and another one may be in its place.
        if turns.network.listening.get(&self.address).is_some_and(|listening| listening.number == self.number) {
            stop(&mut turns, self.address);
        }
    }
}

impl Socket {
    /// Reads what is there.
    ///
    /// # Errors
    /// `WouldBlock` when there is nothing; when the connection is broken.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.shared.point();
        let read = streams::read_now(&mut self.shared.turns.borrow_mut(), self.end, buffer)?;
        read.map_err(|_| ErrorKind::WouldBlock.into())
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// `WouldBlock` when there is none; when the connection is broken.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.shared.point();
        let written = streams::write_now(&mut self.shared.turns.borrow_mut(), self.end, bytes)?;
        written.ok_or_else(|| ErrorKind::WouldBlock.into())
    }

    /// Waits for one of these, but only so long. Gives whether there is something to read.
    pub fn poll(&self, interest: Interest, timeout: Duration) -> bool {
        let deadline_ns = streams::deadline(&self.shared, Some(timeout));
        loop {
            let change_ns = {
                let mut turns = self.shared.turns.borrow_mut();
                let (now_ns, side) = (turns.now_ns, self.end.side());
                let Some(connection) = turns.network.of(self.end) else { return true };
                let (found, takes) = (connection.look(side, now_ns), connection.takes(side, now_ns));
                match found {
                    Found::Nothing(_) if interest.write && takes => return false,
                    Found::Nothing(change_ns) => change_ns,
                    Found::Bytes(_) | Found::End if interest.write && takes => return true,
                    Found::Bytes(_) | Found::End if interest.read => return true,
                    Found::Bytes(_) | Found::End => None,
                    Found::Broken => return true,
                }
            };
            if !streams::wait(&self.shared, self.end, deadline_ns, change_ns) {
                return false;
            }
        }
    }

    /// Tells the peer that no more comes.
    ///
    /// # Errors
    /// When there is no connection any more.
    pub fn end(&self) -> io::Result<()> {
        self.shared.shut_down(self.end.0, std::net::Shutdown::Write)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        close(&mut self.shared.turns.borrow_mut(), self.end.0);
    }
}
