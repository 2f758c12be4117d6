//! A batch over several engines: each makes its share, and all count or none.
//!
//! ```text
//!   prepare_batch     each engine: may refuse        -> abandon_batch on those that did not, and nothing has changed
//!   finish_batch      each but the coordinator       -> what it notes is committed when this returns
//!   decide_batch      the coordinator                -> the batch counts
//!   end_batch         each but the coordinator       -> it goes on
//! ```
//!
//! Whoever calls has all these engines, and that of the coordinator, for itself from the first call to the last; so one number, of the last batch
//! that was decided, is all that a mount must know. In between an engine refuses everything else, and writes no checkpoint. When a call fails other
//! than by a refusal of `prepare_batch`, nobody knows whether the batch will count: all engines are to be dropped, and mounted anew.
//!
//! What it does not do: requests that may come again, and drives whose write buffer is volatile: of those each mount goes to a moment of its
//! own.

use super::Engine;
use crate::commands::batch::{self, Prepared};
use crate::io::Io;
use crate::journal::batch_sequence::BatchSequence;
use crate::journal::{BatchNote, Change};
use kvssd_flash::PowerLoss;
use kvssd_types::{BatchChange, Command, KvError, NamespaceId, Nanos};

/// How much of a batch is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// All of it.
    All,
    /// What can be refused.
    First,
}

/// How far a share has come.
#[derive(Clone)]
pub(super) enum Share {
    /// What can be refused is made.
    Prepared(Prepared),
    /// All of it is made, and counts if the coordinator decides so.
    Finished,
}

impl Engine {
    /// The last batch that this engine has decided as a coordinator. A batch that comes gets a larger number.
    #[must_use]
    pub fn decided(&self) -> BatchSequence {
        self.media.durable.decided
    }

    /// Makes the part of a share that can be refused; gives when that is done. When it is refused everything is as it was, and nothing is under
    /// way.
    ///
    /// # Errors
    /// As a batch.
    pub fn prepare_batch(&mut self, changes: &[BatchChange<'_>], at: Nanos) -> (Nanos, Result<(), KvError>) {
        if self.media.durable.power_loss == PowerLoss::Volatile {
            return (at, Err(KvError::InvalidCommand("a batch over several drives, of which one is volatile")));
        }
        let command = Command::Batch { changes };
        let (done, reply) = self.run(None, Phase::First, NamespaceId::FIRST, &command, at);
        (done, reply.map(|_| ()))
    }

    /// Takes back what [`Engine::prepare_batch`] has made of these changes: another engine has refused its share. Gives when that is done.
    ///
    /// # Errors
    /// [`KvError::InvalidCommand`] when none of them was prepared, and what the flash operations answer.
    pub fn abandon_batch(&mut self, changes: &[BatchChange<'_>], at: Nanos) -> (Nanos, Result<(), KvError>) {
        let prepared = match self.take_prepared(changes) {
            Ok(prepared) => prepared,
            Err(error) => return (at, Err(error)),
        };
        let mut io = Io::new(&mut self.media, at, false);
        let abandoned = batch::abandon(&mut io, &mut self.namespaces, changes, &prepared);
        let (done, settled) = (io.answered().0, io.settle());
        let abandoned = abandoned.and_then(|()| self.end_command(settled));
        self.note_failure(&abandoned);
        (done, abandoned)
    }

    /// Makes the rest of a share that was prepared, and commits it: it counts if the coordinator decides `sequence`. Gives when that is done.
    /// What keeps the pages must not hold commits back: what this has noted is to be as safe as anything will be before the decision is.
    ///
    /// # Errors
    /// As [`Engine::abandon_batch`].
    pub fn finish_batch(
        &mut self,
        changes: &[BatchChange<'_>],
        sequence: BatchSequence,
        at: Nanos,
    ) -> (Nanos, Result<(), KvError>) {
        if sequence == BatchSequence::default() {
            return (at, Err(KvError::InvalidCommand("a batch over several drives without a number")));
        }
        let (done, settled, made) = self.make_share(changes, BatchNote::CommittedIf(sequence), at);
        let committed = made.and_then(|()| {
            self.share = Some(Share::Finished);
            Ok(self.media.flash.backing_mut().commit()?)
        });
        self.note_failure(&committed);
        (done.max(settled), committed)
    }

    /// The coordinator, when all others have finished: makes the rest of its own share, if it has one (`changes` are empty if not), and notes
    /// that the batch counts. Commits as [`Engine::finish_batch`] does. Gives when that is done.
    ///
    /// # Errors
    /// As [`Engine::abandon_batch`], and [`KvError::InvalidCommand`] when `sequence` is not behind the last that was decided.
    pub fn decide_batch(
        &mut self,
        changes: &[BatchChange<'_>],
        sequence: BatchSequence,
        at: Nanos,
    ) -> (Nanos, Result<(), KvError>) {
        if sequence <= self.media.durable.decided {
            return (at, Err(KvError::InvalidCommand("a batch that comes before one that was decided")));
        }
        let (done, settled, made) = self.make_share(changes, BatchNote::Decided(sequence), at);
        let decided = made.and_then(|()| {
            self.media.durable.decided = sequence;
            self.end_command(settled)
        });
        self.note_failure(&decided);
        (done.max(settled), decided)
    }

    /// The coordinator has decided the batch whose share this engine has finished: it goes on.
    ///
    /// # Errors
    /// As [`Engine::abandon_batch`].
    pub fn end_batch(&mut self, at: Nanos) -> Result<(), KvError> {
        self.check_failure()?;
        if !matches!(self.share, Some(Share::Finished)) {
            return Err(NO_SHARE);
        }
        self.share = None;
        let ended = self.end_command(at);
        self.note_failure(&ended);
        ended
    }

    /// Makes the rest of a share and notes what it counts by; gives when that is answered, when the work is done, and whether it could be.
    fn make_share(
        &mut self,
        changes: &[BatchChange<'_>],
        note: BatchNote,
        at: Nanos,
    ) -> (Nanos, Nanos, Result<(), KvError>) {
        let is_none = matches!(note, BatchNote::Decided(_)) && changes.is_empty() && self.share.is_none();
        let prepared =
            if is_none { self.check_available().map(|()| None) } else { self.take_prepared(changes).map(Some) };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return (at, at, Err(error)),
        };
        let Engine { media, namespaces, locks, .. } = self;
        let mut io = Io::new(media, at, false);
        let made = prepared.map_or(Ok(()), |prepared| batch::finish(&mut io, namespaces, changes, &prepared));
        // What is half made must not be built upon.
        let made = made.map_err(|error| if error.is_fatal() { error } else { KvError::Failed(error.to_string()) });
        if made.is_ok() {
            io.note(Change::Batch(note));
        }
        let (done, settled) = (io.answered().0, io.settle());
        locks.lock(changes, settled);
        (done, settled, made)
    }

    fn take_prepared(&mut self, changes: &[BatchChange<'_>]) -> Result<Prepared, KvError> {
        self.check_failure()?;
        match self.share.take() {
            Some(Share::Prepared(prepared)) if prepared.is_of(changes) => Ok(prepared),
            other => {
                self.share = other;
                Err(NO_SHARE)
            }
        }
    }

    fn check_failure(&self) -> Result<(), KvError> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}

const NO_SHARE: KvError = KvError::InvalidCommand("a batch over several drives that was not prepared or finished here");
