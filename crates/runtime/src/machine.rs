//! The seam: what a simulated world gives to the threads in it.
//!
//! ```text
//!   Mutex, RwLock   try, else wait(key) .............. unlock: wake(key)
//!   Condvar         unlock, wait(key), lock .......... notify: wake(key)
//!   join            wait(key) ........................ end: wake(key)
//!   sleep           wait until
//! ```
//!
//! A world needs one way to wait, and one to wake: everything that waits is made of these two.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Which of those.
    pub id: u64,
    /// Its kind, as a report names it.
    pub kind: &'static str,
}

impl Key {
    /// A lock that is held.
    pub const LOCK: &'static str = "a lock";

    /// What is at an address.
    pub(crate) fn at<T: ?Sized>(kind: &'static str, place: &T) -> Key {
        Key { id: std::ptr::from_ref(place).cast::<()>().addr() as u64, kind }
    }
}

/// How many of those that wait are woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// One, whichever.
    One,
    /// All.
    All,
}

/// A simulated world, as the threads in it see it. One of them runs at a time, and only calls of this trait give the turn to another.
///
/// A thread that has been killed unwinds from within the next call that waits. While it does, no call waits except for a lock, whose holder is
/// unwinding, too; and what fails, fails at once.
pub trait Machine {
    /// The world's number: no other in this process has it.
    fn number(&self) -> u64;

    /// The time since the world's begin. It goes on with each look, so that who waits by looking does not wait for ever.
    fn now(&self) -> Duration;

    /// A random number.
    fn random_u64(&self) -> u64;

    /// The thread that runs.
    fn actor(&self) -> u64;

    /// Another thread of the same process.
    ///
    /// # Errors
    /// When the process has been killed.
    fn spawn(&self, name: &str, body: Box<dyn FnOnce()>) -> io::Result<()>;

    /// Whether the thread that runs is unwinding.
    fn is_unwinding(&self) -> bool;

    /// A place at which a thread may lose its turn.
    fn may_lose_turn(&self);

    /// Gives the turn to another thread, or lets a little time pass where there is none.
    fn yield_now(&self);

    /// Waits until it is woken, or until that time. Gives whether it was woken. It may come back too soon.
    fn wait(&self, key: Key, until: Option<Duration>) -> bool;

    /// Wakes those that wait for `key`.
    fn wake(&self, key: Key, wake: Wake);

    /// Waits until somebody unparks this thread, or has done so already.
    fn park(&self, until: Option<Duration>);

    /// Lets a thread go on that is parked, or that parks next.
    fn unpark(&self, actor: u64);

    /// Connects to who listens at that address. Gives the number of the stream.
    ///
    /// # Errors
    /// When nobody listens there, or not in time.
    fn connect(&self, address: SocketAddr, timeout: Duration) -> io::Result<u64>;

    /// Reads at least a byte, but at the end.
    ///
    /// # Errors
    /// `WouldBlock` when the time is over; when the connection is broken.
    fn read(&self, stream: u64, buffer: &mut [u8], timeout: Option<Duration>) -> io::Result<usize>;

    /// Reads what is there. Where nothing is, a moment passes.
    ///
    /// # Errors
    /// `WouldBlock` when there is nothing; when the connection is broken.
    fn try_read(&self, stream: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes at least a byte.
    ///
    /// # Errors
    /// `WouldBlock` when the time is over; when the connection is broken.
    fn write(&self, stream: u64, bytes: &[u8], timeout: Option<Duration>) -> io::Result<usize>;

    /// Ends one direction of a stream, or both.
    ///
    /// # Errors
    /// When it has no peer any more.
    fn shut_down(&self, stream: u64, how: Shutdown) -> io::Result<()>;

    /// Nobody has this end of the stream any more.
    fn close(&self, stream: u64);
}

thread_local! {
    static IS_SIMULATED: Cell<bool> = const { Cell::new(false) };
    static MACHINE: RefCell<Option<Rc<dyn Machine>>> = const { RefCell::new(None) };
}

/// The world that this thread is in.
#[inline]
pub fn machine() -> Option<Rc<dyn Machine>> {
    if IS_SIMULATED.get() { entered() } else { None }
}

#[cold]
fn entered() -> Option<Rc<dyn Machine>> {
    MACHINE.with_borrow(Clone::clone)
}

/// The world of that number, if this thread is in it.
pub(crate) fn machine_of(number: u64) -> Option<Rc<dyn Machine>> {
    machine().filter(|machine| machine.number() == number)
}

/// A thread of the machine that is in a world until this is dropped.
#[must_use]
pub struct Entered(());

/// Takes this thread of the machine into a world, of which it runs all threads.
///
/// # Panics
/// When it is in one.
pub fn enter(machine: Rc<dyn Machine>) -> Entered {
    let before = MACHINE.replace(Some(machine));
    assert!(before.is_none(), "a world cannot be in another one");
    IS_SIMULATED.set(true);
    Entered(())
}

impl Drop for Entered {
    fn drop(&mut self) {
        IS_SIMULATED.set(false);
        MACHINE.take();
    }
}
