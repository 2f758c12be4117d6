//! The machine of a world: what it is asked for, and the switching of stacks.

use crate::actor::{ActorId, Life, Status};
use crate::coroutine::{Coroutine, Job, suspend};
use crate::links;
use crate::options::Options;
use crate::process::Process;
use crate::report::Failure;
use crate::turns::Turns;
use kvssd_runtime::machine::{Key, Wake};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::panicking;
use std::time::Duration;

static WORLDS: AtomicU64 = AtomicU64::new(1);

/// With what an actor unwinds that was killed.
struct Killed;

/// A world.
pub(crate) struct Shared {
    pub(crate) number: u64,
    pub(crate) turns: RefCell<Turns>,
    myself: Weak<Shared>,
}

impl Shared {
    pub(crate) fn new(options: Options) -> Rc<Shared> {
        let (number, turns) = (WORLDS.fetch_add(1, Ordering::Relaxed), RefCell::new(Turns::new(options)));
        Rc::new_cyclic(|myself| Shared { number, turns, myself: myself.clone() })
    }

    /// Gives turns until nobody takes one.
    pub(crate) fn go(&self) {
        loop {
            let mut turns = self.turns.borrow_mut();
            let next = turns.next.take();
            let Some(id) = next.or_else(|| turns.pick()) else { break };
            turns.current = id;
            turns.hand_overs += 1;
            let (job, coroutine) = (turns.current().job.take(), turns.current().coroutine.take());
            drop(turns);
            let coroutine = match (job, coroutine) {
                (Some(job), _) => Coroutine::start(job),
                (None, Some(mut coroutine)) => {
                    coroutine.resume();
                    coroutine
                }
                (None, None) => unreachable!("an actor has a job or a stack"),
            };
            let mut turns = self.turns.borrow_mut();
            match turns.current().status {
                Status::Ended => coroutine.keep(),
                _ => turns.current().coroutine = Some(coroutine),
            }
        }
        // Destructors that wait for each other: their stacks cannot be unwound.
        self.turns.borrow_mut().actors.iter_mut().filter_map(|actor| actor.coroutine.take()).for_each(std::mem::forget);
    }

    /// Has `body` run as an actor.
    pub(crate) fn start(&self, process: Process, name: &str, body: Job) -> ActorId {
        let shared = self.myself.upgrade().expect("who calls holds it");
        let mut turns = self.turns.borrow_mut();
        let id = ActorId(turns.actors.len() as u32);
        let job = move || {
            let is_alive = shared.turns.borrow_mut().current().life == Life::Alive;
            let ended = catch_unwind(AssertUnwindSafe(|| if is_alive { body() } else { drop(body) }));
            shared.end(id, ended.err());
        };
        turns.spawn(process, name, Box::new(job))
    }

    fn end(&self, id: ActorId, panic: Option<Box<dyn Any + Send>>) {
        let mut turns = self.turns.borrow_mut();
        turns.current().status = Status::Ended;
        turns.wake(end_key(id), Wake::All);
        match panic {
            Some(panic) if !panic.is::<Killed>() => {
                let message = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
                    (Some(text), _) => (*text).to_owned(),
                    (None, Some(text)) => text.clone(),
                    (None, None) => "it does not say why".to_owned(),
                };
                let actor = turns.current().name.clone();
                turns.fail(Failure::Panic { actor, message });
            }
            _ if id == ActorId::MAIN => turns.kill(|_| true),
            _ => {}
        }
    }

    /// Gives the turn to who is next. The one that calls has said what it waits for.
    pub(crate) fn switch(&self) {
        let mut turns = self.turns.borrow_mut();
        let id = turns.current;
        // A deadlock may be found here, and end the waiting of the one that calls.
        let next = turns.pick();
        if next != Some(id) {
            turns.next = next;
            let is_unwinding = panicking();
            turns.suspended_unwinding += u32::from(is_unwinding);
            drop(turns);
            suspend();
            turns = self.turns.borrow_mut();
            turns.suspended_unwinding -= u32::from(is_unwinding);
        }
        drop(turns);
        self.unwind_if_killed();
    }

    /// Whether the actor that has the turn is unwinding.
    pub(crate) fn is_unwinding(&self) -> bool {
        panicking_here(&self.turns.borrow())
    }

    /// Does not come back in an actor that was killed.
    pub(crate) fn unwind_if_killed(&self) {
        let mut turns = self.turns.borrow_mut();
        if turns.current().life == Life::Killed && !panicking_here(&turns) {
            turns.current().life = Life::Unwinding;
            drop(turns);
            resume_unwind(Box::new(Killed));
        }
    }

    /// Lets others have a turn.
    pub(crate) fn point(&self) {
        if self.is_unwinding() {
            return;
        }
        self.turns.borrow_mut().step_aside();
        self.switch();
    }

    pub(crate) fn wait_ns(&self, key: Key, until_ns: Option<u64>) -> bool {
        if self.is_unwinding() {
            if key.kind == Key::LOCK {
                self.wait_unwinding(key);
            }
            return false;
        }
        self.unwind_if_killed();
        self.turns.borrow_mut().wait(key, until_ns);
        self.switch();
        self.turns.borrow_mut().current().was_woken
    }

    /// A destructor wants a lock: who holds it is unwinding, too, or is to be.
    fn wait_unwinding(&self, key: Key) {
        let mut turns = self.turns.borrow_mut();
        if turns.current().life == Life::Alive {
            let actor = turns.current().name.clone();
            turns.fail(Failure::Panic { actor, message: "it has panicked, and its destructors wait".to_owned() });
        }
        turns.current().life = Life::Unwinding;
        turns.wait(key, None);
        drop(turns);
        self.switch();
    }

    /// Ends processes, all at once: their actors unwind before this returns, which it does not in one of them.
    pub(crate) fn kill(&self, processes: &[Process]) {
        if self.is_unwinding() {
            return;
        }
        let mut turns = self.turns.borrow_mut();
        turns.kill(|other| processes.contains(&other));
        processes.iter().for_each(|process| links::kill(&mut turns, *process));
        if turns.current().life == Life::Alive {
            turns.step_aside();
            drop(turns);
            self.switch();
        } else {
            drop(turns);
            self.unwind_if_killed();
        }
    }
}

/// Whether the actor that has the turn is unwinding.
fn panicking_here(turns: &Turns) -> bool {
    turns.actors[turns.current.index()].life == Life::Unwinding || panicking() && turns.suspended_unwinding == 0
}

pub(crate) fn end_key(id: ActorId) -> Key {
    Key { id: id.0.into(), kind: "the end of an actor" }
}

pub(crate) fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
