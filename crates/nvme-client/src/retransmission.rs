//! Which command may be sent again when its completion was lost. This is the one place that decides it.
//!
//! | | a drive that recognizes this host's changes by their serials | any other drive |
//! |---|---|---|
//! | retrieve, exist, list, flush | again | again |
//! | store, delete, under a condition or not | again, with its serial: made once | in doubt |
//! | the same, when it is known that it was never sent | sent | sent |
//! | the same, when the drive has forgotten the serial, or is not reached in time | in doubt | in doubt |
//!
//! Making a change a second time, after a newer change by another host, would undo that one; and the first copy may lie
//! unread in the lost connection. A drive that recognizes serials makes a change once, and none that comes on a connection
//! of a controller that this host has left ([`kvssd_nvme_spec::numbered`]).

use crate::Error;
use crate::recognition::Recognition;
use crate::serials::{Serial, Serials};
use crate::url::DriveUrl;
use kvssd_nvme_spec::{SubmissionEntry, numbered};
use kvssd_types::Command;
use std::sync::Arc;

/// What was sent of a command, and may still be executed.
#[derive(Debug)]
pub(crate) struct Retransmission {
    /// The name of the command, if it is a change.
    change: Option<&'static str>,
    sent: Sent,
    serial: Option<Serial>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Never,
    /// Without a serial.
    Unnumbered,
    /// With its serial, to a drive that recognizes it.
    Numbered(Recognition),
}

/// Whether a command may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clearance {
    Send,
    /// Not before an older change is completed: there is no serial left.
    Wait,
    /// Not at all: it might be made twice.
    Never,
}

impl Retransmission {
    /// The state of a command that was not sent yet.
    pub(crate) fn new(command: &Command<'_>) -> Retransmission {
        let change = match command {
            Command::Store { .. } => Some("store"),
            Command::Delete { .. } => Some("delete"),
            _ => None,
        };
        Retransmission { change, sent: Sent::Never, serial: None }
    }

    /// Decides whether the command may be sent to a drive with that recognition, and sets the serial of `entry`.
    pub(crate) fn prepare(
        &mut self,
        recognition: Option<Recognition>,
        serials: &Arc<Serials>,
        entry: &mut SubmissionEntry,
    ) -> Clearance {
        if self.change.is_none() {
            return Clearance::Send;
        }
        let Some(recognition) = recognition else {
            return if self.sent == Sent::Never { Clearance::Send } else { Clearance::Never };
        };
        if !matches!(self.sent, Sent::Never) && self.sent != Sent::Numbered(recognition) {
            return Clearance::Never;
        }
        if self.serial.is_none() {
            self.serial = serials.allocate(recognition.window.into());
        }
        let Some(serial) = &self.serial else { return Clearance::Wait };
        numbered::set_serial(entry, serial.number());
        Clearance::Send
    }

    /// Notes that the command was sent to a drive with that recognition, and that no completion came.
    pub(crate) fn completion_lost(&mut self, recognition: Option<Recognition>) {
        if self.change.is_some() {
            self.sent = recognition.map_or(Sent::Unnumbered, Sent::Numbered);
        }
    }

    /// Whether it may be sent again, to the same drive.
    pub(crate) fn is_allowed(&self) -> bool {
        self.sent != Sent::Unnumbered
    }

    /// Whether the drive may have executed it, or may yet.
    pub(crate) fn may_be_executed(&self) -> bool {
        self.sent != Sent::Never
    }

    /// The error of a command that is given up because of `error`: [`Error::InDoubt`] for a change that may be
    /// executed.
    pub(crate) fn doubt(&self, url: &DriveUrl, error: Error) -> Error {
        let Some(what) = self.change.filter(|_| self.may_be_executed()) else { return error };
        match error {
            Error::InDoubt(_) => error,
            error => {
                let why = error.to_string();
                let why = why.strip_prefix(&format!("{url}: ")).unwrap_or(&why);
                Error::InDoubt(format!(
                    "{url}: the answer to a {what} was lost ({why}); it is not known whether it was done"
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_types::{Key, StoreCondition, Value};

    const ONE: Option<Recognition> = Some(Recognition { since: 1, window: 2 });
    const OTHER: Option<Recognition> = Some(Recognition { since: 2, window: 2 });

    fn change() -> Retransmission {
        let (key, value) = (Key::new(b"a").unwrap(), Value::from(&b"1"[..]));
        Retransmission::new(&Command::Store { key, value, condition: StoreCondition::Always })
    }

    #[test]
    fn a_command_that_changes_nothing_is_sent_again_to_any_drive() {
        let (mut command, serials, mut entry) =
            (Retransmission::new(&Command::Flush), Arc::default(), SubmissionEntry::new(0, 1));
        for recognition in [None, ONE, OTHER, None] {
            assert_eq!(command.prepare(recognition, &serials, &mut entry), Clearance::Send);
            command.completion_lost(recognition);
            assert!(command.is_allowed() && numbered::serial(&entry).is_none());
        }
    }

    #[test]
    fn a_change_is_sent_again_to_the_drive_that_recognizes_it_and_to_no_other() {
        for (first, then, clearance) in [
            (ONE, ONE, Clearance::Send),
            (ONE, OTHER, Clearance::Never),
            (ONE, None, Clearance::Never),
            (None, None, Clearance::Never),
            (None, ONE, Clearance::Never),
        ] {
            let (mut command, serials, mut entry) = (change(), Arc::default(), SubmissionEntry::new(1, 1));
            assert_eq!(command.prepare(first, &serials, &mut entry), Clearance::Send);
            // It was not sent.
            assert_eq!(command.prepare(then, &serials, &mut entry), Clearance::Send);
            assert_eq!(command.prepare(first, &serials, &mut entry), Clearance::Send);
            command.completion_lost(first);
            assert_eq!(
                (command.prepare(then, &serials, &mut entry), command.is_allowed()),
                (clearance, first.is_some())
            );
            assert_eq!(numbered::serial(&entry).is_some(), first.is_some() || then.is_some());
        }
    }

    #[test]
    fn a_change_waits_for_the_oldest_outstanding_one() {
        let (serials, mut entry) = (Arc::default(), SubmissionEntry::new(1, 1));
        let (mut first, mut second, mut third) = (change(), change(), change());
        assert_eq!(first.prepare(ONE, &serials, &mut entry), Clearance::Send);
        assert_eq!(second.prepare(ONE, &serials, &mut entry), Clearance::Send);
        assert_eq!(third.prepare(ONE, &serials, &mut entry), Clearance::Wait);
        drop(first);
        assert_eq!(third.prepare(ONE, &serials, &mut entry), Clearance::Send);
        assert_eq!(numbered::serial(&entry), Some(3));
    }
}
