//! A target in a world: accepts connections, and gives them bytes and time, as `kvssd_nvme_target`'s server does with sockets.
//!
//! ```text
//!   serve    accept -> an actor: read what there is -> take_in -> give_out -> write -> poll for more, for room, or for the next moment
//!   stop     no more is accepted or taken; what was executed is answered; actors end; then `Subsystem::close` is up to who called
//!   kill     `World::kill`: nothing is answered any more
//! ```
//!
//! What it does not do: open or close the drive.

use crate::network::{Interest, Listener, Socket};
use crate::world::{Handle, World};
use kvssd_nvme_target::limits::TRANSFER_BYTE_NS;
use kvssd_nvme_target::{Connection, Subsystem};
use kvssd_runtime::time::{Duration, Instant};
use kvssd_types::Nanos;
use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// How often it is looked whether the service is to stop.
const STOP_LOOK: Duration = Duration::from_millis(200);
/// How long a peer has to take what it is told at the end.
const LINGER: Duration = Duration::from_secs(1);

/// Serves `subsystem` to who connects to `listener` until `stop` is set. The actors of its connections are of the same process.
pub fn serve(world: &World, subsystem: &Arc<Subsystem>, listener: Listener, stop: &Rc<Cell<bool>>) {
    let began = Instant::now();
    let mut connections: Vec<Handle<()>> = Vec::new();
    while !stop.get() {
        let accepted = listener.accept(STOP_LOOK);
        connections.retain(|connection| !connection.has_ended());
        let Ok(socket) = accepted else { continue };
        if connections.len() >= subsystem.limits().connections_max {
            continue;
        }
        let (subsystem, stop, address) = (subsystem.clone(), stop.clone(), listener.address());
        let body = move || {
            // A connection that breaks ends.
            let _ = attend(&socket, subsystem, address, began, &stop);
        };
        connections.push(world.spawn(world.process(), "a connection", body));
    }
    drop(listener);
    for connection in connections {
        // One that panicked has ended the world.
        let _ = connection.join();
    }
}

/// Serves one connection to its end.
fn attend(
    socket: &Socket,
    subsystem: Arc<Subsystem>,
    address: SocketAddr,
    began: Instant,
    stop: &Cell<bool>,
) -> io::Result<()> {
    let now = || Nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let limits = subsystem.limits();
    let mut connection = Connection::new(subsystem, address, now());
    let (mut is_readable, mut stopped, mut taken) = (true, None, (now(), 0));
    loop {
        if is_readable && connection.wants_input() {
            match socket.read(connection.spare()) {
                Ok(0) => connection.stop(),
                Ok(count) => connection.received(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        connection.take_in(now());
        connection.give_out(now());
        while !connection.output().is_empty() {
            match socket.write(connection.output()) {
                Ok(count) => {
                    connection.sent(count);
                    taken.1 += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let at = now();
        if stop.get() && stopped.is_none() {
            connection.stop();
            stopped = Some(at);
        }
        let is_late = stopped.is_some_and(|stopped| at > stopped + limits.stop_ns);
        if connection.has_ended() && (connection.is_drained() || is_late) {
            return linger(socket);
        }
        let has_output = !connection.output().is_empty();
        if !has_output {
            taken = (at, 0);
        }
        let (since, bytes) = taken;
        if at > since + limits.send_ns + Nanos(TRANSFER_BYTE_NS * bytes) {
            return Err(ErrorKind::TimedOut.into());
        }
        is_readable = connection.has_work() || {
            let interest = Interest { read: connection.wants_input(), write: has_output };
            socket.poll(interest, Duration::from_nanos((connection.wakes(at) - at).0))
        };
    }
}

/// Closes a connection so that the peer gets what was sent.
fn linger(socket: &Socket) -> io::Result<()> {
    let until = Instant::now() + LINGER;
    socket.end()?;
    let mut scrap = vec![0; 64 << 10];
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        match socket.read(&mut scrap) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                socket.poll(Interest { read: true, write: false }, left);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
