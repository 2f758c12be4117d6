//! What a command does not wait for goes on aside: its clock goes back to where that began.
//!
//! ```text
//!   clock   ---o------------------ append, note ---> answer
//!              '-- look-up -->'''''''''''''''''--- bind --->    the end is kept by [`Behind`](crate::controller::behind::Behind)
//! ```

use super::Io;
use crate::io::spent::{Spent, SpentOn};
use kvssd_types::Nanos;

/// Where a command was when it began to look up the keys of so many stores aside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aside {
    stores: usize,
    clock: Nanos,
    spent: Spent,
}

/// Stores that go on behind their answer, until then.
#[derive(Clone, Copy, Debug)]
pub(super) struct GoesOn {
    stores: usize,
    until: Nanos,
}

impl Io<'_> {
    /// Begins to look up the keys of so many stores aside, if the design answers stores before that and has room for as many.
    pub(crate) fn begin_aside(&mut self, stores: usize) -> Option<Aside> {
        if !self.media.controller.behind.is_on() {
            return None;
        }
        let clock = self.settle();
        self.aside = self.media.controller.behind.has_room(stores, clock);
        self.aside.then_some(Aside { stores, clock, spent: self.spent })
    }

    /// The keys were looked up. Unless the command `waits` for that, it goes on from where it was.
    pub(crate) fn end_aside(&mut self, begun: Option<Aside>, waits: bool) {
        let Some(Aside { stores, clock, spent }) = begun else { return };
        let until = self.settle();
        self.aside = false;
        if waits {
            self.record_since(clock, &spent);
        } else {
            self.goes_on = Some(GoesOn { stores, until });
            (self.clock, self.spent) = (clock, spent);
        }
    }

    /// Does what nobody waits for; gives what comes of it, and when it ends. The clock is then where it was.
    pub(crate) fn unwaited<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, Nanos) {
        let (clock, spent, aside) = (self.settle(), self.spent, self.aside);
        self.aside = true;
        let done = work(self);
        let until = self.settle();
        (self.clock, self.spent, self.aside) = (clock, spent, aside);
        (done, until)
    }

    /// Changes the index: behind the look-up, if that goes on aside.
    pub(crate) fn behind_look_up<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let Some(GoesOn { stores, until }) = self.goes_on else { return change(self) };
        let (clock, spent) = (self.settle(), self.spent);
        self.clock = clock.max(until);
        self.aside = true;
        let changed = change(self);
        self.goes_on = Some(GoesOn { stores, until: self.settle() });
        (self.clock, self.spent, self.aside) = (clock, spent, false);
        changed
    }

    /// The command is answered: what goes on takes its room until it ends.
    pub(super) fn leave_behind(&mut self) {
        if let Some(GoesOn { stores, until }) = self.goes_on.take() {
            let controller = &mut self.media.controller;
            controller.behind.add(stores, until, controller.now);
        }
    }

    /// Records what was not, since it might have been aside: one part after the other.
    fn record_since(&mut self, clock: Nanos, spent: &Spent) {
        let (end, since) = (self.clock, self.spent.since(spent));
        self.clock = clock;
        for part in SpentOn::ALL.into_iter().filter(|&part| since.of(part) > Nanos::ZERO) {
            let until = self.clock + since.of(part);
            if self.media.flash.recording().is_on() {
                self.record(part, until);
            }
            self.clock = until;
        }
        assert_eq!(self.clock, end, "what a command takes is the sum of its parts");
    }
}
