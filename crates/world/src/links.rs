//! What befalls connections within a turn: they break, close, and go with their processes.

use crate::network::{Connection, EndId, Found};
use crate::process::Process;
use crate::turns::Turns;
use kvssd_runtime::machine::Wake;
use std::net::SocketAddr;

/// Breaks all connections.
pub(crate) fn cut_all(turns: &mut Turns) {
    let numbers: Vec<u64> = turns.network.connections.keys().copied().collect();
    numbers.into_iter().for_each(|number| cut(turns, number));
}

/// Breaks a connection: one direction now, and the other one then or a little later.
pub(crate) fn cut(turns: &mut Turns, number: u64) {
    let (now, first) = (turns.now_ns, turns.random.below(2) as usize);
    let later = now + turns.network.faults.delay(&mut turns.random);
    let Some(connection) = turns.network.connections.get_mut(&number) else { return };
    connection.pipes[first].cut(now);
    connection.pipes[1 - first].cut(later);
    wake(turns, number);
}

/// Wakes both ends: something has changed.
pub(crate) fn wake(turns: &mut Turns, number: u64) {
    let end = EndId(number * 2);
    turns.wake(end.key(), Wake::All);
    turns.wake(end.peer().key(), Wake::All);
}

/// What a process has on the network that was killed.
pub(crate) fn kill(turns: &mut Turns, process: Process) {
    let gone: Vec<SocketAddr> =
        turns.network.listening.iter().filter(|(_, l)| l.process == process).map(|(a, _)| *a).collect();
    gone.into_iter().for_each(|address| stop(turns, address));
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

/// Nobody listens there any more: who waits there is told.
pub(crate) fn stop(turns: &mut Turns, address: SocketAddr) {
    let Some(listening) = turns.network.listening.remove(&address) else { return };
    for number in listening.waiting.iter().copied() {
        cut(turns, number);
        close(turns, number * 2 + 1);
    }
    turns.wake(listening.key(), Wake::All);
}

/// Nobody has that end any more.
pub(crate) fn close(turns: &mut Turns, stream: u64) {
    let (end, now_ns) = (EndId(stream), turns.now_ns);
    let (at_ns, side) = (end_ns(turns), end.side());
    let Some(connection) = turns.network.of(end) else { return };
    if connection.ends[side].is_closed {
        return;
    }
    connection.ends[side].is_closed = true;
    // Where it is broken, no word of an end comes through.
    if !connection.is_broken(now_ns) {
        connection.pipes[side].end(at_ns);
    }
    let has_unread = matches!(connection.look(side, now_ns), Found::Bytes(_));
    if connection.ends[1 - side].is_closed {
        turns.network.connections.remove(&(end.0 >> 1));
    } else if has_unread {
        cut(turns, end.0 >> 1);
    } else {
        wake(turns, end.0 >> 1);
    }
}

/// When the peer hears of an end.
pub(crate) fn end_ns(turns: &mut Turns) -> u64 {
    turns.now_ns + turns.network.faults.delay(&mut turns.random)
}
