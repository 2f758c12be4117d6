//! Work that a command does not wait for runs aside: afterwards the command's clock goes back to where the work began.
//!
//! ```text
//!   clock   ---o------------------ append, note ---> answer
//!              '-- look-up -->'''''''''''''''''--- bind --->    the end is kept by [`Behind`](crate::controller::behind::Behind)
//! ```

use super::Io;
use crate::io::spent::{Spent, SpentOn};
use kvssd_types::Nanos;

/// The state of a command when it began to look up the keys of `stores` stores aside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aside {
    stores: usize,
    clock: Nanos,
    spent: Spent,
}

/// Stores that go on after their answer, `until` then.
#[derive(Clone, Copy, Debug)]
pub(super) struct GoesOn {
    stores: usize,
    until: Nanos,
}

impl Io<'_> {
    /// Begins to look up the keys of `stores` stores aside, if the design answers stores before the look-up and has room for as many.
    pub(crate) fn begin_aside(&mut self, stores: usize) -> Option<Aside> {
        if !self.media.controller.behind.is_on() {
            return None;
        }
        let clock = self.settle();
        self.aside = self.media.controller.behind.has_room(stores, clock);
        self.aside.then_some(Aside { stores, clock, spent: self.spent })
    }

    /// Ends the look-ups. Unless the command `waits` for them, its clock goes back to where they began.
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

    /// Does work that nobody waits for. Returns its result and when it ends. The clock is then where it was.
    pub(crate) fn unwaited<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, Nanos) {
        let (clock, spent, aside) = (self.settle(), self.spent, self.aside);
        self.aside = true;
        let done = work(self);
        let until = self.settle();
        (self.clock, self.spent, self.aside) = (clock, spent, aside);
        (done, until)
    }

    /// Changes the index: after the look-up, if that runs aside.
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

    /// Ends an answered command: work that goes on keeps its room until it ends.
    pub(super) fn leave_behind(&mut self) {
        if let Some(GoesOn { stores, until }) = self.goes_on.take() {
            let controller = &mut self.media.controller;
            controller.behind.add(stores, until, controller.now);
        }
    }

    /// Records the time that was not recorded because the work might have been aside, one part after the other.
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
