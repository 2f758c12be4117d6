//! The queue of asynchronous calls.
//!
//! ```text
//!   submit -> waiting, 1024 at the most -> workers, 8 at the most -> the operation, then the caller's function
//!      ^ waits while it is full; within such a function it is refused instead, since the function would wait for itself
//! ```
//!
//! Workers are started when there is work for them, and end when the device is closed.

use crate::refusal::{KvsResult, Refusal};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Calls that wait, at the most.
const WAITING_MAX: usize = 1024;

/// Threads of a device. On a drive behind a network so many calls are under way at once; on an image they share waits for the disk.
const WORKERS_MAX: usize = 8;

/// What a worker does: the operation, and the call back.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// The queue of a device.
#[derive(Default)]
pub(crate) struct Queue {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// A job has come, or none will come any more.
    work: Condvar,
    /// A job was taken out, or a worker has ended.
    room: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    workers: usize,
    idle: usize,
    is_closing: bool,
}

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is a function that a worker calls back.
pub(crate) fn is_in_callback() -> bool {
    IS_WORKER.get()
}

impl Queue {
    /// Takes a job, when there is room.
    pub(crate) fn submit(&self, job: Job) -> Result<(), Refusal> {
        let shared = &self.shared;
        let mut state = shared.lock();
        while state.waiting.len() >= WAITING_MAX && !state.is_closing {
            if is_in_callback() {
                let why = format!("{WAITING_MAX} calls are waiting, and a callback cannot wait for them");
                return Err(Refusal::new(KvsResult::SysIo, why));
            }
            state = shared.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_closing {
            return Err(Refusal::new(KvsResult::DeviceNotOpened, "the device is being closed"));
        }
        if state.waiting.len() >= state.idle && state.workers < WORKERS_MAX {
            let shared = Arc::clone(shared);
            let started = thread::Builder::new().name("kvssd-call".to_owned()).spawn(move || shared.work());
            match started {
                Ok(_) => state.workers += 1,
                Err(error) if state.workers == 0 => {
                    return Err(Refusal::new(KvsResult::SysIo, format!("no thread can be started: {error}")));
                }
                // The others will do.
                Err(_) => {}
            }
        }
        state.waiting.push_back(job);
        drop(state);
        shared.work.notify_one();
        Ok(())
    }

    /// Takes no more jobs, and waits until all are done.
    pub(crate) fn drain(&self) {
        let mut state = self.shared.lock();
        state.is_closing = true;
        self.shared.work.notify_all();
        self.shared.room.notify_all();
        while state.workers > 0 {
            state = self.shared.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Shared {
    fn work(&self) {
        IS_WORKER.set(true);
        let mut state = self.lock();
        loop {
            match state.waiting.pop_front() {
                Some(job) => {
                    drop(state);
                    self.room.notify_one();
                    job();
                    state = self.lock();
                }
                None if state.is_closing => break,
                None => {
                    state.idle += 1;
                    state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                    state.idle -= 1;
                }
            }
        }
        state.workers -= 1;
        drop(state);
        self.room.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
