//! What is done with an end of a connection.

use crate::links::{end_ns, wake};
use crate::network::{EndId, Found};
use crate::shared::{Shared, ns};
use crate::turns::Turns;
use kvssd_runtime::machine::Wake;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::time::Duration;

/// How many reads come to one that gives less than there is, and writes to one that takes less than there is room for.
const SHORT_ONE_IN: u32 = 4;
/// How many pieces a write is sent in at most.
const PIECES_MAX: u64 = 3;

/// Waits until something changes at that end, or until one of those moments. Whether there is time left.
pub(super) fn wait(shared: &Shared, end: EndId, deadline_ns: Option<u64>, change_ns: Option<u64>) -> bool {
    let now_ns = shared.turns.borrow().now_ns;
    if deadline_ns.is_some_and(|deadline_ns| deadline_ns <= now_ns) || shared.is_unwinding() {
        return false;
    }
    shared.wait_ns(end.key(), deadline_ns.into_iter().chain(change_ns).min());
    true
}

/// When that time is over.
pub(super) fn deadline(shared: &Shared, timeout: Option<Duration>) -> Option<u64> {
    timeout.map(|timeout| shared.turns.borrow().now_ns.saturating_add(ns(timeout)))
}

pub(crate) fn read(shared: &Shared, stream: u64, buffer: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
    let (end, deadline_ns) = (EndId(stream), deadline(shared, timeout));
    shared.point();
    loop {
        let found = read_now(&mut shared.turns.borrow_mut(), end, buffer)?;
        match found {
            Ok(bytes) => return Ok(bytes),
            Err(change_ns) => {
                if !wait(shared, end, deadline_ns, change_ns) {
                    return Err(ErrorKind::WouldBlock.into());
                }
            }
        }
    }
}

/// The bytes read, or the moment at which there may be some.
pub(super) fn read_now(turns: &mut Turns, end: EndId, buffer: &mut [u8]) -> io::Result<Result<usize, Option<u64>>> {
    let now_ns = turns.now_ns;
    let connection = turns.network.of(end).ok_or(ErrorKind::NotConnected)?;
    let found = connection.look(end.side(), now_ns);
    let arrived = match found {
        Found::Bytes(arrived) => arrived.min(buffer.len()),
        Found::End => return Ok(Ok(0)),
        Found::Broken => return Err(ErrorKind::ConnectionReset.into()),
        Found::Nothing(change_ns) => return Ok(Err(change_ns)),
    };
    let bytes = shortened(turns, arrived);
    let connection = turns.network.of(end).ok_or(ErrorKind::NotConnected)?;
    connection.pipes[1 - end.side()].read(&mut buffer[..bytes]);
    turns.trace_bytes(&buffer[..bytes]);
    turns.wake(end.peer().key(), Wake::All);
    Ok(Ok(bytes))
}

pub(crate) fn write(shared: &Shared, stream: u64, bytes: &[u8], timeout: Option<Duration>) -> io::Result<usize> {
    let (end, deadline_ns) = (EndId(stream), deadline(shared, timeout));
    shared.point();
    loop {
        if let Some(written) = write_now(&mut shared.turns.borrow_mut(), end, bytes)? {
            return Ok(written);
        }
        if !wait(shared, end, deadline_ns, None) {
            return Err(ErrorKind::WouldBlock.into());
        }
    }
}

/// How many bytes were taken; none when there is no room.
pub(super) fn write_now(turns: &mut Turns, end: EndId, bytes: &[u8]) -> io::Result<Option<usize>> {
    let (now_ns, faults, side) = (turns.now_ns, turns.network.faults, end.side());
    let connection = turns.network.of(end).ok_or(ErrorKind::NotConnected)?;
    if connection.is_broken(now_ns) {
        return Err(ErrorKind::ConnectionReset.into());
    }
    if connection.pipes[side].has_end() {
        return Err(ErrorKind::BrokenPipe.into());
    }
    if connection.ends[1 - side].is_closed {
        // The peer's machine answers that nobody is there.
        let told_ns = now_ns + faults.delay(&mut turns.random);
        if let Some(connection) = turns.network.of(end) {
            connection.pipes[1 - side].cut(told_ns);
        }
        return Ok(Some(bytes.len()));
    }
    let room = connection.pipes[side].room().min(bytes.len());
    if room == 0 && !bytes.is_empty() {
        return Ok(None);
    }
    let written = shortened(turns, room);
    let mut left = &bytes[..written];
    for _ in 0..turns.random.below(PIECES_MAX) {
        let split = turns.random.below(left.len() as u64 + 1) as usize;
        left = send(turns, end, left, split);
    }
    send(turns, end, left, left.len());
    turns.wake(end.peer().key(), Wake::All);
    if turns.is_one_in(faults.cut_one_in) {
        let within_ns = faults.delay_ns.1 * 2 + 1;
        let cuts_ns = [0, 1].map(|_| now_ns + turns.random.below(within_ns));
        if let Some(connection) = turns.network.of(end) {
            connection.pipes.iter_mut().zip(cuts_ns).for_each(|(pipe, cut_ns)| pipe.cut(cut_ns));
        }
        wake(turns, end.0 >> 1);
    }
    Ok(Some(written))
}

/// Sends the first bytes as a piece; gives the others.
fn send<'a>(turns: &mut Turns, end: EndId, bytes: &'a [u8], count: usize) -> &'a [u8] {
    let (piece, rest) = bytes.split_at(count);
    if !piece.is_empty() {
        let at_ns = turns.now_ns + turns.network.faults.delay(&mut turns.random);
        if let Some(connection) = turns.network.of(end) {
            connection.pipes[end.side()].send(piece, at_ns);
        }
    }
    rest
}

/// Most often all, and now and then less, but something.
fn shortened(turns: &mut Turns, bytes: usize) -> usize {
    if bytes > 1 && turns.is_one_in(SHORT_ONE_IN) { 1 + turns.random.below(bytes as u64) as usize } else { bytes }
}

pub(crate) fn shut_down(shared: &Shared, stream: u64, how: Shutdown) -> io::Result<()> {
    let (mut turns, end) = (shared.turns.borrow_mut(), EndId(stream));
    let at_ns = end_ns(&mut turns);
    let connection = turns.network.of(end).ok_or(ErrorKind::NotConnected)?;
    if how != Shutdown::Write {
        connection.ends[end.side()].reads_no_more = true;
    }
    if how != Shutdown::Read {
        connection.pipes[end.side()].end(at_ns);
    }
    wake(&mut turns, end.0 >> 1);
    Ok(())
}
