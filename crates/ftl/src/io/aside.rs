//! What a command does not wait for goes on aside: it goes back in time, to where it was when that began.
//!
//! ```text
//!   clock   ---o------------------ append, note ---> answer
//!              '-- look-up -->'''''''''''''''''--- bind --->    the end is kept by [`Behind`](crate::behind::Behind)
//! ```

use super::Io;
use crate::spent::{Spent, SpentOn};
use kvssd_types::Nanos;

/// Where a command was when it began to look up keys aside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aside {
    clock: Nanos,
    spent: Spent,
}

impl Io<'_> {
    /// Begins to look up the keys of so many stores aside, if the design answers them before: waits until there is room for
    /// them.
    pub(crate) fn begin_aside(&mut self, stores: usize) -> Option<Aside> {
        if !self.media.controller.behind.is_on() {
            return None;
        }
        let now = self.settle();
        self.wait_until(self.media.controller.behind.room_at(stores, now), SpentOn::Buffer);
        self.aside = true;
        Some(Aside { clock: self.clock, spent: self.spent })
    }

    /// The keys were looked up. Unless the command `waits` for that, it goes on from where it was.
    pub(crate) fn end_aside(&mut self, begun: Option<Aside>, waits: bool) {
        self.aside = false;
        if let Some(Aside { clock, spent }) = begun.filter(|_| !waits) {
            self.looked_up = Some(self.settle());
            (self.clock, self.spent) = (clock, spent);
        }
    }

    /// Changes the index: behind the look-up, if that goes on aside.
    pub(crate) fn behind_look_up<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let Some(looked_up) = self.looked_up else { return change(self) };
        let (clock, spent) = (self.settle(), self.spent);
        self.clock = clock.max(looked_up);
        self.aside = true;
        let changed = change(self);
        let end = self.settle();
        let controller = &mut self.media.controller;
        controller.behind.add(end, controller.now);
        (self.clock, self.spent, self.aside) = (clock, spent, false);
        changed
    }
}
