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
mod listener;
mod pipe;
mod streams;

pub use faults::NetworkFaults;
pub use listener::{Interest, Listener, Socket};
pub(crate) use listener::{connect, listen};
pub(crate) use streams::{close, read, shut_down, write};

use crate::turns::Turns;
use crate::world::Process;
use kvssd_runtime::machine::{Key, Wake};
use listener::Listening;
use pipe::Pipe;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// How long somebody who does not wait for bytes lets pass, so that others can send some.
pub(crate) const AWAKE: Duration = Duration::from_micros(10);

/// Who listens, and who is connected.
pub(crate) struct Network {
    pub(crate) faults: NetworkFaults,
    listening: BTreeMap<SocketAddr, Listening>,
    connections: BTreeMap<u64, Connection>,
    made: u64,
}

/// Two ends, and a pipe from each to the other.
struct Connection {
    ends: [End; 2],
    /// By the end that writes.
    pipes: [Pipe; 2],
}

struct End {
    process: Process,
    is_closed: bool,
    reads_no_more: bool,
}

/// An end of a connection: twice its number, and one more for who was connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EndId(u64);

impl EndId {
    fn side(self) -> usize {
        (self.0 & 1) as usize
    }

    fn peer(self) -> EndId {
        EndId(self.0 ^ 1)
    }

    /// What who reads or writes there waits for.
    fn key(self) -> Key {
        Key { id: self.0, kind: "its peer on the network" }
    }
}

impl Network {
    pub(crate) fn new(faults: NetworkFaults) -> Network {
        Network { faults, listening: BTreeMap::new(), connections: BTreeMap::new(), made: 0 }
    }

    fn of(&mut self, end: EndId) -> Option<&mut Connection> {
        self.connections.get_mut(&(end.0 >> 1))
    }
}

/// Breaks all connections.
pub(crate) fn cut_all(turns: &mut Turns) {
    let numbers: Vec<u64> = turns.network.connections.keys().copied().collect();
    numbers.into_iter().for_each(|number| cut(turns, number));
}

/// Breaks a connection: one direction now, and the other one then or a little later.
fn cut(turns: &mut Turns, number: u64) {
    let (now, first) = (turns.now_ns, turns.random.below(2) as usize);
    let later = now + turns.network.faults.delay(&mut turns.random);
    let Some(connection) = turns.network.connections.get_mut(&number) else { return };
    connection.pipes[first].cut(now);
    connection.pipes[1 - first].cut(later);
    wake(turns, number);
}

/// Wakes both ends: something has changed.
fn wake(turns: &mut Turns, number: u64) {
    let end = EndId(number * 2);
    turns.wake(end.key(), Wake::All);
    turns.wake(end.peer().key(), Wake::All);
}

/// What a process has on the network that was killed.
pub(crate) fn kill(turns: &mut Turns, process: Process) {
    let gone: Vec<SocketAddr> =
        turns.network.listening.iter().filter(|(_, l)| l.process == process).map(|(a, _)| *a).collect();
    gone.into_iter().for_each(|address| listener::stop(turns, address));
    let of = |connection: &Connection| connection.ends.iter().any(|end| end.process == process && !end.is_closed);
    let touched: Vec<u64> =
        turns.network.connections.iter().filter(|(_, c)| of(c)).map(|(number, _)| *number).collect();
    let is_cut = turns.random.below(2) == 0;
    for number in touched {
        if is_cut {
            cut(turns, number);
        }
        for side in 0..2 {
            let end = EndId(number * 2 + side);
            if turns.network.of(end).is_some_and(|connection| connection.ends[side as usize].process == process) {
                close(turns, end.0);
            }
        }
    }
}
