//! What is sent again when an answer was lost: the one place where that is said.
//!
//! | | a drive that knows this host's changes by their numbers | any other drive |
//! |---|---|---|
//! | retrieve, exist, list, flush | again | again |
//! | store, delete, under a condition or not | again, with its number: made once | in doubt |
//! | the same, when it is known that it was never sent | sent | sent |
//! | the same, when the drive has forgotten the number, or is not reached in time | in doubt | in doubt |
//!
//! To make a change again that was made, behind a newer one of another host, would undo that; and an old copy may lie unread in the lost connection. A
//! drive that knows the numbers makes a change once, and none on a connection of a controller that this host has left
//! ([`kvssd_spec::numbered`]).

use super::memory::Memory;
use super::serials::{Serial, Serials};
use super::url::DriveUrl;
use crate::Error;
use kvssd_spec::{SubmissionEntry, numbered};
use kvssd_types::Command;
use std::sync::Arc;

/// What of a command may have reached the drive, and be executed now or later.
#[derive(Debug)]
pub(super) struct Copies {
    /// The name of a change.
    change: Option<&'static str>,
    sent: Sent,
    serial: Option<Serial>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Never,
    /// To a drive that does not know changes again.
    Unnumbered,
    /// To one that does.
    Numbered(Memory),
}

/// Whether a command can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Now,
    /// When an older change is answered.
    Later,
    /// It might be made twice.
    Never,
}

impl Copies {
    /// Those of a command that was not sent yet.
    pub(super) fn of(command: &Command<'_>) -> Copies {
        let change = match command {
            Command::Store { .. } => Some("store"),
            Command::Delete { .. } => Some("delete"),
            _ => None,
        };
        Copies { change, sent: Sent::Never, serial: None }
    }

    /// Makes `entry` one that can be sent to a drive that has that memory of this host's changes.
    pub(super) fn prepare(
        &mut self,
        memory: Option<Memory>,
        serials: &Arc<Serials>,
        entry: &mut SubmissionEntry,
    ) -> Turn {
        if self.change.is_none() {
            return Turn::Now;
        }
        let Some(memory) = memory else {
            return if self.sent == Sent::Never { Turn::Now } else { Turn::Never };
        };
        if !matches!(self.sent, Sent::Never) && self.sent != Sent::Numbered(memory) {
            return Turn::Never;
        }
        if self.serial.is_none() {
            self.serial = serials.take(memory.window.into());
        }
        let Some(serial) = &self.serial else { return Turn::Later };
        numbered::set_serial(entry, serial.number());
        Turn::Now
    }

    /// One was sent to a drive with that memory, and no answer came.
    pub(super) fn lost(&mut self, memory: Option<Memory>) {
        if self.change.is_some() {
            self.sent = memory.map_or(Sent::Unnumbered, Sent::Numbered);
        }
    }

    /// Whether it may be sent again, to the drive that it was sent to.
    pub(super) fn may_go_again(&self) -> bool {
        self.sent != Sent::Unnumbered
    }

    /// Whether one may be executed.
    pub(super) fn are_out(&self) -> bool {
        self.sent != Sent::Never
    }

    /// What the caller is told when no answer comes any more, for the reason `error`.
    pub(super) fn doubt(&self, url: &DriveUrl, error: Error) -> Error {
        let Some(what) = self.change.filter(|_| self.are_out()) else { return error };
        match error {
            Error::InDoubt { .. } => error,
            error => Error::InDoubt {
                why: format!("{url}: the answer to a {what} was lost ({error}); it is not known whether it was done"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_types::{Key, StoreCondition, Value};

    const ONE: Option<Memory> = Some(Memory { since: 1, window: 2 });
    const OTHER: Option<Memory> = Some(Memory { since: 2, window: 2 });

    fn change() -> Copies {
        let (key, value) = (Key::new(b"a").unwrap(), Value::from(&b"1"[..]));
        Copies::of(&Command::Store { key, value, condition: StoreCondition::Always })
    }

    #[test]
    fn what_changes_nothing_is_sent_again_to_whomever() {
        let (mut copies, serials, mut entry) =
            (Copies::of(&Command::Flush), Arc::default(), SubmissionEntry::new(0, 1));
        for memory in [None, ONE, OTHER, None] {
            assert_eq!(copies.prepare(memory, &serials, &mut entry), Turn::Now);
            copies.lost(memory);
            assert!(copies.may_go_again() && numbered::serial(&entry).is_none());
        }
    }

    #[test]
    fn a_change_is_sent_again_to_whom_knows_its_number_and_to_nobody_else() {
        for (first, then, turn) in [
            (ONE, ONE, Turn::Now),
            (ONE, OTHER, Turn::Never),
            (ONE, None, Turn::Never),
            (None, None, Turn::Never),
            (None, ONE, Turn::Never),
        ] {
            let (mut copies, serials, mut entry) = (change(), Arc::default(), SubmissionEntry::new(1, 1));
            assert_eq!(copies.prepare(first, &serials, &mut entry), Turn::Now);
            // Nothing was sent of it.
            assert_eq!(copies.prepare(then, &serials, &mut entry), Turn::Now);
            assert_eq!(copies.prepare(first, &serials, &mut entry), Turn::Now);
            copies.lost(first);
            assert_eq!((copies.prepare(then, &serials, &mut entry), copies.may_go_again()), (turn, first.is_some()));
            assert_eq!(numbered::serial(&entry).is_some(), first.is_some() || then.is_some());
        }
    }

    #[test]
    fn a_change_waits_for_the_oldest_that_is_under_way() {
        let (serials, mut entry) = (Arc::default(), SubmissionEntry::new(1, 1));
        let (mut first, mut second, mut third) = (change(), change(), change());
        assert_eq!(first.prepare(ONE, &serials, &mut entry), Turn::Now);
        assert_eq!(second.prepare(ONE, &serials, &mut entry), Turn::Now);
        assert_eq!(third.prepare(ONE, &serials, &mut entry), Turn::Later);
        drop(first);
        assert_eq!(third.prepare(ONE, &serials, &mut entry), Turn::Now);
        assert_eq!(numbered::serial(&entry), Some(3));
    }
}
