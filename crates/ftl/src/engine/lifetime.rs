//! How an engine begins, what it does between commands, and how it ends.

use super::Engine;
use crate::io::Io;
use crate::journal::batch_sequence::BatchSequence;
use crate::recovery::{self, MountReport};
use kvssd_flash::BegunCommit;
use kvssd_types::{Command, KvError, Nanos};

impl Engine {
    /// Formats an erased drive, so that it can be mounted.
    pub(crate) fn format(&mut self) -> Result<(), KvError> {
        self.checkpoint(false)
    }

    /// Brings the drive back to the state before its power went. Shares of batches over several engines count up to the last that was
    /// `decided`.
    pub(crate) fn mount(&mut self, decided: BatchSequence) -> Result<MountReport, KvError> {
        let report = recovery::mount(&mut self.media, &mut self.namespaces, decided)?;
        self.collector.clock = report.took;
        // The indexes had no DRAM limit while changes were redone.
        self.share_anew();
        Ok(report)
    }

    /// Closes the drive in order: the next mount has nothing to redo.
    ///
    /// # Errors
    /// What the flash operations answer.
    pub fn close(mut self) -> Result<(), KvError> {
        self.check_available()?;
        while self.expire()? {}
        let mut is_at_rest = self.finish_victims()?;
        if !self.media.durable.is_on() {
            return Ok(());
        }
        if self.media.gathered.bytes() > 0 {
            // What is not on flash by then is missing at the next mount.
            self.execute(Command::Flush, self.collector.clock).1?;
            is_at_rest = self.finish_victims()?;
        }
        if is_at_rest {
            return self.checkpoint(true);
        }
        // The next mount redoes the journal, as after a cut.
        Io::new(&mut self.media, self.collector.clock, true).flush().map(|_| ())
    }

    pub(super) fn checkpoint(&mut self, is_last: bool) -> Result<(), KvError> {
        let mut io = Io::new(&mut self.media, self.collector.clock, true);
        io.checkpoint(&mut self.namespaces, is_last)?;
        self.collector.clock = io.settle();
        Ok(())
    }

    /// Has a checkpoint follow every so many commits, however short the journal is; 0 for none. For campaigns that look for what a checkpoint
    /// must not come between.
    pub fn checkpoint_every(&mut self, commits: u64) {
        self.commits_per_checkpoint = commits;
    }

    /// Writes journal and checkpoint behind a command or a step of garbage collection that ended at `at`.
    pub(super) fn commit_journal(&mut self, at: Nanos) -> Result<(), KvError> {
        if !self.media.durable.is_on() {
            return Ok(());
        }
        self.commits += 1;
        let every = self.commits_per_checkpoint;
        let is_asked_for = every > 0 && self.commits.is_multiple_of(every);
        let mut io = Io::new(&mut self.media, at, true);
        io.commit_journal()?;
        if is_asked_for || io.media.durable.journal.is_long() && self.collector.lets_checkpoint(io.media) {
            io.checkpoint(&mut self.namespaces, false)?;
        }
        Ok(())
    }

    /// Ends a command whose work ended at `at`: commits the journal and shares DRAM. In the middle of a batch over several engines it does
    /// nothing, since a checkpoint could not be undone.
    pub(super) fn end_command(&mut self, at: Nanos) -> Result<(), KvError> {
        if self.share.is_some() {
            return Ok(());
        }
        let committed = self.commit_journal(at).and_then(|()| self.bound_held());
        self.share_dram();
        committed
    }

    /// Begins an [`Engine::commit`] whose wait for the disk others need not wait for, as [`Backing::begin_commit`](kvssd_flash::Backing::begin_commit).
    ///
    /// # Errors
    /// What the medium answers.
    pub fn begin_commit(&mut self) -> Result<Option<BegunCommit>, KvError> {
        self.check_available()?;
        let begun = self.media.flash.backing_mut().begin_commit().map_err(KvError::from);
        self.note_failure(&begun);
        begun
    }

    /// Ends a commit whose wait is over.
    ///
    /// # Errors
    /// What the medium answers.
    pub fn end_commit(&mut self, begun: BegunCommit) -> Result<(), KvError> {
        self.check_available()?;
        let ended = self.media.flash.backing_mut().end_commit(begun).map(|_| ()).map_err(KvError::from);
        self.note_failure(&ended);
        ended
    }

    /// Makes safe what was written while the medium held commits back
    /// ([`Backing::commit`](kvssd_flash::Backing::commit)).
    ///
    /// # Errors
    /// What the medium answers.
    pub fn commit(&mut self) -> Result<(), KvError> {
        self.check_available()?;
        let committed = self.commit_journal(self.collector.clock);
        self.note_failure(&committed);
        committed
    }
}
