//! A batch over several engines: each makes its share, and all shares count or none.
//!
//! ```text
//!   prepare_batch     each engine: may refuse        -> abandon_batch on those that did not, and nothing has changed
//!   finish_batch      each but the coordinator       -> what it notes is committed when this returns
//!   decide_batch      the coordinator                -> the batch counts
//!   end_batch         each but the coordinator       -> it goes on
//! ```
//!
//! The caller has exclusive access to all these engines, including the coordinator's, from the first call to the last. So a mount needs to
//! know only one number: that of the last batch that was decided. In between, an engine refuses everything else and writes no checkpoint. If
//! a call fails other than by a refusal of `prepare_batch`, nobody knows whether the batch will count: drop all engines and mount them again.
//!
//! Not supported: requests that a host may send again, and drives with a volatile write buffer, since each mount of such a drive goes back to
//! a time of its own.

use super::Engine;
use crate::commands::batch::{self, Prepared};
use crate::io::Io;
use crate::journal::batch_sequence::BatchSequence;
use crate::journal::{BatchNote, Change};
use kvssd_flash::PowerLoss;
use kvssd_types::{BatchChange, Command, KvError, NamespaceId, Nanos};

/// Which phase of a batch to execute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// All of it.
    All,
    /// Only the part that can be refused.
    First,
}

/// How far a share has come.
#[derive(Clone)]
pub(super) enum Share {
    /// The part that can be refused is made.
    Prepared(Prepared),
    /// All of it is made, and counts if the coordinator decides so.
    Finished,
}

impl Engine {
    /// The last batch that this engine has decided as a coordinator. The next batch must have a larger number.
    #[must_use]
    pub fn decided(&self) -> BatchSequence {
        self.media.durable.decided
    }

    /// Makes the part of a share that can be refused. Returns when that is done. After a refusal everything is as it was, and no batch is in
    /// progress.
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

    /// Undoes what [`Engine::prepare_batch`] has made of these changes, since another engine has refused its share. Returns when that is done.
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

    /// Makes the rest of a prepared share and commits it: it counts if the coordinator decides `sequence`. Returns when that is done. The
    /// backing must not hold commits back: these notes must be as safe as they will ever be before the coordinator decides.
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

    /// For the coordinator, after all others have finished: makes the rest of its own share (`changes` are empty if it has none), and notes
    /// that the batch counts. Commits as [`Engine::finish_batch`] does. Returns when that is done.
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

    /// Ends a finished share after the coordinator has decided its batch: the engine takes commands again.
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

    /// Makes the rest of a share and adds `note`, by which it counts. Returns when that is answered, when the work is done, and the result.
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
        // Nothing may build on a share that is half made, so every error is fatal.
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
