//! A network: streams of bytes that take their time, come in pieces, and break.
//!
//! ```text
//!   end 0   write -> Pipe: pieces, each with the moment at which it arrives -> read   end 1
//!           read  <- Pipe                                                   <- write
//!
//!   cut     a moment in each direction, not the same: what arrives before it is read, what does not is lost, then the reader is told
//!   close   as TCP: the peer reads to the end; it is told of a break when this end had bytes unread, or when it goes on writing
//!   kill    closed, or cut, as the dice fall: a process that is killed, or its machine
//! ```
//!
//! What it does not do: lose, repeat or reorder bytes within a stream. TCP does not, either.

mod faults;
mod pipe;

pub use faults::NetworkFaults;
pub(crate) use pipe::{Found, Pipe};

use crate::process::Process;
use kvssd_runtime::machine::Key;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Who listens, and who is connected.
pub(crate) struct Network {
    pub(crate) faults: NetworkFaults,
    pub(crate) listening: BTreeMap<SocketAddr, Listening>,
    pub(crate) connections: BTreeMap<u64, Connection>,
    pub(crate) made: u64,
}

/// An address that is listened on.
pub(crate) struct Listening {
    pub(crate) process: Process,
    pub(crate) number: u64,
    pub(crate) waiting: VecDeque<u64>,
}

impl Listening {
    pub(crate) fn key(&self) -> Key {
        Key { id: self.number, kind: "a connection" }
    }
}

/// Two ends, and a pipe from each to the other.
pub(crate) struct Connection {
    pub(crate) ends: [End; 2],
    /// By the end that writes.
    pub(crate) pipes: [Pipe; 2],
}

pub(crate) struct End {
    pub(crate) process: Process,
    pub(crate) is_closed: bool,
    pub(crate) reads_no_more: bool,
}

/// An end of a connection: twice its number, and one more for who was connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndId(pub(crate) u64);

impl EndId {
    pub(crate) fn side(self) -> usize {
        (self.0 & 1) as usize
    }

    pub(crate) fn peer(self) -> EndId {
        EndId(self.0 ^ 1)
    }

    /// What who reads or writes there waits for.
    pub(crate) fn key(self) -> Key {
        Key { id: self.0, kind: "its peer on the network" }
    }
}

impl Network {
    pub(crate) fn new(faults: NetworkFaults) -> Network {
        Network { faults, listening: BTreeMap::new(), connections: BTreeMap::new(), made: 0 }
    }

    pub(crate) fn of(&mut self, end: EndId) -> Option<&mut Connection> {
        self.connections.get_mut(&(end.0 >> 1))
    }
}

impl Connection {
    /// What that end finds to read.
    pub(crate) fn look(&self, side: usize, now_ns: u64) -> Found {
        if self.ends[side].reads_no_more { Found::End } else { self.pipes[1 - side].look(now_ns) }
    }

    /// Whether that end can write, or is told at once that it cannot.
    pub(crate) fn takes(&self, side: usize, now_ns: u64) -> bool {
        self.is_broken(now_ns) || self.pipes[side].has_end() || self.pipes[side].room() > 0
    }

    pub(crate) fn is_broken(&self, now_ns: u64) -> bool {
        self.pipes.iter().any(|pipe| pipe.is_cut(now_ns))
    }
}
