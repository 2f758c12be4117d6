//! Threads.

use crate::machine::{Key, Machine, Wake, machine, machine_of};
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A thread, as [`std::thread::Thread`].
#[derive(Clone, Debug)]
pub struct Thread(Place);

#[derive(Clone, Debug)]
enum Place {
    Machine(std::thread::Thread),
    World { number: u64, actor: u64 },
}

/// The number of a thread, as [`std::thread::ThreadId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(Id);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Id {
    Machine(std::thread::ThreadId),
    World { number: u64, actor: u64 },
}

impl Thread {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        ThreadId(match self.0 {
            Place::Machine(ref thread) => Id::Machine(thread.id()),
            Place::World { number, actor } => Id::World { number, actor },
        })
    }

    /// Lets it go on when it is parked, or when it parks next.
    pub fn unpark(&self) {
        match self.0 {
            Place::Machine(ref thread) => thread.unpark(),
            Place::World { number, actor } => {
                if let Some(machine) = machine_of(number) {
                    machine.unpark(actor);
                }
            }
        }
    }
}

/// The thread that calls.
#[must_use]
pub fn current() -> Thread {
    Thread(match machine() {
        None => Place::Machine(std::thread::current()),
        Some(machine) => Place::World { number: machine.number(), actor: machine.actor() },
    })
}

/// Waits until somebody unparks this thread.
pub fn park() {
    match machine() {
        None => std::thread::park(),
        Some(machine) => machine.park(None),
    }
}

/// The same, but only so long.
pub fn park_timeout(timeout: Duration) {
    match machine() {
        None => std::thread::park_timeout(timeout),
        Some(machine) => machine.park(Some(machine.now() + timeout)),
    }
}

/// Lets others go on.
pub fn yield_now() {
    match machine() {
        None => std::thread::yield_now(),
        Some(machine) => machine.yield_now(),
    }
}

/// Waits so long.
pub fn sleep(duration: Duration) {
    match machine() {
        None => std::thread::sleep(duration),
        Some(machine) => {
            let until = machine.now() + duration;
            while !machine.is_unwinding() && machine.now() < until {
                machine.wait(Key { id: machine.actor(), kind: "a moment" }, Some(until));
            }
        }
    }
}

/// What a thread is to be, as [`std::thread::Builder`].
#[derive(Debug, Default)]
pub struct Builder {
    name: Option<String>,
}

impl Builder {
    /// A thread without a name.
    #[must_use]
    pub fn new() -> Self {
        Builder::default()
    }

    /// With that name.
    #[must_use]
    pub fn name(self, name: String) -> Self {
        Builder { name: Some(name) }
    }

    /// Starts it.
    ///
    /// # Errors
    /// When the machine has no more threads; in a world, when the process is killed.
    pub fn spawn<T: Send + 'static>(self, body: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
        if let Some(machine) = machine() {
            return spawn_in_world(&machine, self.name.as_deref().unwrap_or("thread"), body);
        }
        let builder = std::thread::Builder::new();
        let builder = match self.name {
            Some(name) => builder.name(name),
            None => builder,
        };
        Ok(JoinHandle(Handle::Machine(builder.spawn(body)?)))
    }
}

fn spawn_in_world<T: 'static>(
    machine: &Rc<dyn Machine>,
    name: &str,
    body: impl FnOnce() -> T + 'static,
) -> io::Result<JoinHandle<T>> {
    let result = Arc::new(Mutex::new(None));
    let (given, of) = (result.clone(), Rc::downgrade(machine));
    machine.spawn(
        name,
        Box::new(move || {
            let value = body();
            *given.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            if let Some(machine) = of.upgrade() {
                machine.wake(join_key(&given), Wake::All);
            }
        }),
    )?;
    Ok(JoinHandle(Handle::World(result)))
}

/// Starts a thread.
///
/// # Panics
/// When the machine has no more threads.
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().spawn(body).expect("a thread can be started")
}

/// A thread that can be waited for, as [`std::thread::JoinHandle`].
#[derive(Debug)]
pub struct JoinHandle<T>(Handle<T>);

#[derive(Debug)]
enum Handle<T> {
    Machine(std::thread::JoinHandle<T>),
    World(Arc<Mutex<Option<T>>>),
}

impl<T> JoinHandle<T> {
    /// Waits for its end. In a world a thread that panics ends the world, and nobody waits.
    ///
    /// # Errors
    /// When it has panicked; in a world, when this thread is killed.
    pub fn join(self) -> std::thread::Result<T> {
        let result = match self.0 {
            Handle::Machine(handle) => return handle.join(),
            Handle::World(result) => result,
        };
        loop {
            if let Some(value) = result.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return Ok(value);
            }
            let Some(machine) = machine().filter(|machine| !machine.is_unwinding()) else {
                return Err(Box::new("a thread of a world is joined by one of that world that lives"));
            };
            machine.wait(join_key(&result), None);
        }
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Handle::Machine(handle) => handle.is_finished(),
            Handle::World(result) => result.lock().unwrap_or_else(PoisonError::into_inner).is_some(),
        }
    }
}

fn join_key<T>(result: &Arc<Mutex<Option<T>>>) -> Key {
    Key::at("the end of a thread", &**result)
}
