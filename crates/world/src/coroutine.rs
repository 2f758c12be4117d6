//! Stacks that actors run on, used again from world to world.
//!
//! What it does not do: know of turns. It runs a job until that suspends itself or ends.

use generator::{Generator, Gn};
use std::cell::RefCell;

/// A stack, of which only what is used takes memory. As much as threads of Rust have.
const STACK_WORDS: usize = (2 << 20) / size_of::<usize>();
/// Stacks that a thread keeps for the next actors.
const KEPT_MAX: usize = 256;

/// What runs on a stack.
pub(crate) type Job = Box<dyn FnOnce()>;

/// A stack on which a job runs.
pub(crate) struct Coroutine(Generator<'static, Job, ()>);

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept(Vec::new())) };
}

/// Stacks without a job.
struct Kept(Vec<Coroutine>);

impl Drop for Kept {
    fn drop(&mut self) {
        // Without a job the loop on it ends.
        for coroutine in &mut self.0 {
            coroutine.0.resume();
        }
    }
}

impl Coroutine {
    /// Runs a job until it suspends itself, or ends.
    pub(crate) fn start(job: Job) -> Coroutine {
        let kept = KEPT.with_borrow_mut(|kept| kept.0.pop());
        let mut coroutine = kept.unwrap_or_else(|| Coroutine(Gn::<Job>::new_opt(STACK_WORDS, jobs)));
        coroutine.0.raw_send(Some(job));
        coroutine
    }

    /// Goes on where it has suspended itself.
    pub(crate) fn resume(&mut self) {
        self.0.resume();
    }

    /// Keeps the stack of a job that has ended.
    pub(crate) fn keep(self) {
        KEPT.with_borrow_mut(|kept| {
            if kept.0.len() < KEPT_MAX {
                kept.0.push(self);
            } else {
                let Coroutine(mut generator) = self;
                generator.resume();
            }
        });
    }
}

/// Suspends the job that calls.
#[expect(deprecated, reason = "the other way hands a scope down to here through all of the program")]
pub(crate) fn suspend() {
    generator::yield_with(());
}

#[expect(deprecated, reason = "as above")]
fn jobs() {
    while let Some(job) = generator::get_yield::<Job>() {
        job();
        suspend();
    }
}
