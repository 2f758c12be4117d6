//! A target in a world: accepts connections, and attends each in an actor of its own.
//!
//! ```text
//!   serve    accept -> an actor: `kvssd_nvme_target::attend`
//!   stop     no more is accepted or processed; what was executed is answered; actors end; then `Subsystem::close` is up to the caller
//!   kill     `World::kill`: nothing is answered any more
//! ```
//!
//! What it does not do: open or close the drive.

use crate::sockets::{self, Listener, Socket};
use crate::world::{Handle, World};
use kvssd_nvme_target::{Interest, Subsystem, Transport, attend};
use kvssd_runtime::time::{Duration, Instant};
use kvssd_types::Nanos;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// How often the service checks whether it is to stop.
const STOP_LOOK: Duration = Duration::from_millis(200);

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
        let (subsystem, address, stop) = (subsystem.clone(), listener.address(), stop.clone());
        let body = move || {
            let now = || Nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
            // A connection that breaks ends.
            let _ = attend(subsystem, address, &mut Served(socket), now, || stop.get());
        };
        connections.push(world.spawn(world.process(), "a connection", body));
    }
    drop(listener);
    for connection in connections {
        // One that panicked has ended the world.
        let _ = connection.join();
    }
}

/// An accepted connection of a world.
struct Served(Socket);

impl Transport for Served {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn wait(&mut self, Interest { read, write }: Interest, timeout: Nanos) -> bool {
        self.0.poll(sockets::Interest { read, write }, Duration::from_nanos(timeout.0))
    }

    fn end_output(&mut self) -> io::Result<()> {
        self.0.end()
    }
}
