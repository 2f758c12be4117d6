//! A thread of a world.

use crate::coroutine::{Coroutine, Job};
use crate::process::Process;
use kvssd_runtime::machine::Key;

/// The number of an actor: the place in the table of all that ever were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ActorId(pub(crate) u32);

impl ActorId {
    pub(crate) const MAIN: ActorId = ActorId(0);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What an actor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// It runs, or waits for its turn.
    Runnable,
    Waiting {
        key: Key,
        until_ns: Option<u64>,
    },
    Ended,
}

/// How far the end of an actor that was killed is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Alive,
    /// It unwinds when it has its turn.
    Killed,
    Unwinding,
}

pub(crate) struct Actor {
    pub(crate) name: String,
    pub(crate) process: Process,
    pub(crate) status: Status,
    pub(crate) life: Life,
    /// It was woken, and its time was not over.
    pub(crate) was_woken: bool,
    /// It was unparked before it parked.
    pub(crate) may_pass: bool,
    /// Before it runs for the first time.
    pub(crate) job: Option<Job>,
    /// While it does not run.
    pub(crate) coroutine: Option<Coroutine>,
}

impl Actor {
    pub(crate) fn new(process: Process, name: &str, job: Job) -> Actor {
        Actor {
            name: name.to_owned(),
            process,
            status: Status::Runnable,
            life: Life::Alive,
            was_woken: false,
            may_pass: false,
            job: Some(job),
            coroutine: None,
        }
    }
}
