//! A world, as who makes one sees it.

use crate::actor::ActorId;
use crate::links;
use crate::network::NetworkFaults;
use crate::options::Options;
use crate::process::Process;
use crate::report::{Failure, Run};
use crate::shared::{Shared, end_key};
use crate::sockets::{self, Listener};
use kvssd_runtime::machine::enter;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

/// A world, for those in it.
#[derive(Clone)]
pub struct World(Rc<Shared>);

thread_local! {
    static CURRENT: RefCell<Option<World>> = const { RefCell::new(None) };
}

impl World {
    /// Runs `main` as the first actor of a new world, to its end; all others are killed then.
    ///
    /// # Panics
    /// When this thread is in a world.
    pub fn run<T: 'static>(options: Options, main: impl FnOnce(&World) -> T + 'static) -> Run<T> {
        let shared = Shared::new(options);
        let entered = enter(shared.clone());
        let (world, result) = (World(shared.clone()), Rc::new(RefCell::new(None)));
        CURRENT.set(Some(world.clone()));
        let given = result.clone();
        let body = move || {
            let value = main(&world);
            *given.borrow_mut() = Some(value);
        };
        shared.start(Process::MAIN, "main", Box::new(body));
        shared.go();
        CURRENT.take();
        drop(entered);
        let mut turns = shared.turns.borrow_mut();
        let result = match turns.failure.take() {
            Some(failure) => Err(failure),
            None => result.take().ok_or(Failure::Killed),
        };
        let (trace, time) = (turns.traced(), Duration::from_nanos(turns.now_ns));
        Run { result, trace, time, turns: turns.turns, hand_overs: turns.hand_overs }
    }

    /// The world that this thread is in.
    #[must_use]
    pub fn current() -> Option<World> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Starts an actor of that process.
    pub fn spawn<T: 'static>(&self, process: Process, name: &str, body: impl FnOnce() -> T + 'static) -> Handle<T> {
        let result = Rc::new(RefCell::new(None));
        let given = result.clone();
        let actor = self.0.start(
            process,
            name,
            Box::new(move || {
                let value = body();
                *given.borrow_mut() = Some(value);
            }),
        );
        Handle { world: self.clone(), actor, result }
    }

    /// Kills a process: all its actors unwind, and its connections break, before this returns. In one of its own actors it does not return.
    /// Numbers of processes can be used again.
    pub fn kill(&self, process: Process) {
        self.0.kill(&[process]);
    }

    /// Kills processes at the same moment, as when their machine stops.
    pub fn kill_all(&self, processes: &[Process]) {
        self.0.kill(processes);
    }

    /// Whether an actor of that process has not ended.
    #[must_use]
    pub fn is_alive(&self, process: Process) -> bool {
        self.0.turns.borrow().is_alive(process)
    }

    /// The process of the actor that runs.
    #[must_use]
    pub fn process(&self) -> Process {
        self.0.turns.borrow_mut().current().process
    }

    /// Listens on that address, for the process of who calls.
    ///
    /// # Errors
    /// When somebody does already.
    pub fn listen(&self, address: SocketAddr) -> io::Result<Listener> {
        sockets::listen(&self.0, address)
    }

    /// Says what the network does from now on.
    pub fn set_network(&self, faults: NetworkFaults) {
        self.0.turns.borrow_mut().network.faults = faults;
    }

    /// Breaks all connections now. What was sent and did not arrive is lost.
    pub fn cut_connections(&self) {
        links::cut_all(&mut self.0.turns.borrow_mut());
    }

    /// A random number of the world's own.
    #[must_use]
    pub fn random_u64(&self) -> u64 {
        self.0.turns.borrow_mut().random.bits()
    }

    /// The time since the world's begin.
    #[must_use]
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.0.turns.borrow().now_ns)
    }

    /// Adds to the trace what somebody has seen.
    pub fn trace(&self, bytes: &[u8]) {
        self.0.turns.borrow_mut().trace_bytes(bytes);
    }
}

/// A place at which another actor may have a turn, such as an I/O of a virtual disk. An actor that was killed unwinds from it. Outside of
/// worlds it does nothing.
pub fn point() {
    if let Some(world) = World::current() {
        world.0.point();
    }
}

/// Whether the actor that runs was killed or has panicked, and is running destructors.
#[must_use]
pub fn is_unwinding() -> bool {
    World::current().is_some_and(|world| world.0.is_unwinding())
}

/// An actor that can be waited for.
pub struct Handle<T> {
    world: World,
    actor: ActorId,
    result: Rc<RefCell<Option<T>>>,
}

impl<T> Handle<T> {
    /// Waits for its end, and gives its result; none when it was killed.
    #[must_use]
    pub fn join(self) -> Option<T> {
        while !self.has_ended() && !self.world.0.is_unwinding() {
            self.world.0.wait_ns(end_key(self.actor), None);
        }
        self.result.borrow_mut().take()
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.world.0.turns.borrow().actors[self.actor.index()].status == crate::actor::Status::Ended
    }
}
