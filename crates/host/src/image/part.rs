//! One partition of a drive in a file: threads that read go side by side; threads that change take turns, and share waits for the disk.

use crate::Error;
use crate::commits::{Commits, Counted};
use crate::loose::Loose;
use kvssd_device::Drive;
use kvssd_flash::{BegunCommit, DISK_WAITS_MAX};
use kvssd_runtime::sync::{Turn, Turns};
use kvssd_runtime::time::since_1970;
use kvssd_types::{Command, KvError, NamespaceId, Nanos, Reply};

/// A partition.
pub(super) struct Part {
    state: Turns<State>,
    /// With `sync`: the threads that wait for the disk.
    pub(super) commits: Option<Commits>,
}

/// What only one thread at a time changes.
pub(super) struct State {
    pub(super) drive: Drive,
    /// The number of changes that were executed.
    pub(super) executed: u64,
    /// With `sync`: the changes that are not committed.
    loose: Option<Loose>,
    failure: Option<String>,
}

impl Part {
    /// `shares_commits`: changes are committed together, for all threads that wait.
    pub(super) fn new(drive: Drive, shares_commits: bool) -> Self {
        drive.hold_commits(shares_commits);
        let loose = shares_commits.then(Loose::default);
        let state = Turns::new(State { drive, executed: 0, loose, failure: None });
        Part { state, commits: shares_commits.then(|| Commits::new(DISK_WAITS_MAX)) }
    }

    /// Executes a command that concerns this partition alone.
    pub(super) fn execute(&self, namespace: NamespaceId, command: Command<'_>) -> Result<Option<Reply>, Error> {
        if command.is_change() {
            self.change(|state, ticket| {
                state.note(|loose| loose.note(ticket, namespace, &command));
                state.execute(namespace, command)
            })
        } else if let Some(found) = self.glance(namespace, &command) {
            found
        } else {
            self.look(|state| {
                let (seen, left) = (state.seen_by(namespace, &command), state.drive.pairs_left());
                let is_of_key = matches!(command, Command::Retrieve { .. } | Command::Exist { .. });
                let found = state.execute(namespace, command);
                let left = state.note_left(left);
                let gone = match &found {
                    Ok(None) => state.left_by(namespace),
                    // Whoever else has left is not shown.
                    _ if is_of_key => None,
                    _ => left,
                };
                (seen.max(gone), found)
            })
        }
    }

    /// Makes changes under a ticket of their own; returns when they are safe.
    pub(super) fn change<T>(&self, make: impl FnOnce(&mut State, u64) -> Result<T, Error>) -> Result<T, Error> {
        let announced: Option<Counted<'_>> = self.commits.as_ref().map(Commits::announce);
        let mut state = self.lock()?;
        let ticket = state.executed + 1;
        let made = make(&mut state, ticket);
        state.executed = ticket;
        drop(state);
        drop(announced);
        self.wait(ticket)?;
        made
    }

    /// Makes changes one after the other, with one commit.
    pub(super) fn bulk(&self, commands: Vec<(NamespaceId, Command<'_>)>) -> Result<(), Error> {
        self.change(|state, ticket| {
            state.note(|loose| {
                commands.iter().for_each(|(namespace, command)| loose.note(ticket, *namespace, command));
            });
            state.drive.hold_commits(true);
            let mut commands = commands.into_iter();
            let made = commands.try_for_each(|(namespace, command)| state.execute(namespace, command).map(|_| ()));
            if self.commits.is_none() {
                state.drive.hold_commits(false);
                // Changes before an error are to be as safe as the others.
                state.commit()?;
            }
            made
        })
    }

    /// Reads. `look` returns the ticket of the last change that it may have seen; this returns when that is safe.
    fn look<T>(&self, look: impl FnOnce(&mut State) -> (Option<u64>, Result<T, Error>)) -> Result<T, Error> {
        let mut state = self.lock()?;
        let (seen, found) = look(&mut state);
        drop(state);
        seen.map_or(Ok(()), |ticket| self.wait(ticket))?;
        found
    }

    /// With `sync`: waits until that change is committed.
    pub(super) fn wait(&self, ticket: u64) -> Result<(), Error> {
        let Some(commits) = &self.commits else { return Ok(()) };
        commits.wait(ticket, || self.commit())
    }

    /// Makes safe what was executed. Other threads go on while this one waits for the disk. Returns the last change that is safe.
    fn commit(&self) -> Result<u64, Error> {
        let mut state = self.lock()?;
        let executed = state.executed;
        match state.begin_commit()? {
            None => state.commit()?,
            Some(begun) => {
                drop(state);
                let waited = begun.wait();
                state = self.lock()?;
                // Behind a wait that failed the commit tells why.
                if waited.is_ok() { state.end_commit(begun, executed)? } else { state.commit()? }
            }
        }
        Ok(executed)
    }

    /// Answers a command that changes no pair, if it can be answered beside other threads. Returns when what it shows is safe.
    fn glance(&self, namespace: NamespaceId, command: &Command<'_>) -> Option<Result<Option<Reply>, Error>> {
        // The command tells what is wrong, if something is.
        let state = self.state.look().ok().filter(|state| state.works().is_ok())?;
        let reply = state.drive.glance(namespace, command)?;
        let is_absent = matches!(reply, Err(KvError::KeyNotFound));
        let seen = state.seen_by(namespace, command).max(state.left_by(namespace).filter(|_| is_absent));
        drop(state);
        let is_safe = seen.map_or(Ok(()), |ticket| self.wait(ticket));
        Some(is_safe.and_then(|()| match reply {
            Err(KvError::KeyNotFound) => Ok(None),
            reply => Ok(Some(reply?)),
        }))
    }

    pub(super) fn lock(&self) -> Result<Turn<'_, State>, Error> {
        let state = self.state.take().map_err(|_| panicked())?;
        state.works()?;
        Ok(state)
    }

    /// The drive, when no thread uses it any more.
    pub(super) fn into_drive(self) -> Result<Drive, Error> {
        Ok(self.state.into_inner().map_err(|_| panicked())?.drive)
    }
}

impl State {
    /// Refuses when the image failed.
    fn works(&self) -> Result<(), Error> {
        match &self.failure {
            Some(why) => Err(Error::Failed { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// With `sync`: the last change that is not committed and that a command may see.
    pub(super) fn seen_by(&self, namespace: NamespaceId, command: &Command<'_>) -> Option<u64> {
        self.loose.as_ref().and_then(|loose| loose.seen_by(namespace, command))
    }

    /// With `sync`: the last change that is not committed and with which a key may have left a cache, of a namespace that is one.
    fn left_by(&self, namespace: NamespaceId) -> Option<u64> {
        self.last().filter(|_| self.drive.cache(namespace).is_some())
    }

    /// With `sync`: notes the pairs that left caches by a read, of which so many had left before, as a change. Its ticket, if there are any.
    pub(super) fn note_left(&mut self, before: u64) -> Option<u64> {
        if self.loose.is_none() || self.drive.pairs_left() == before {
            return None;
        }
        self.executed += 1;
        let ticket = self.executed;
        self.note(|loose| loose.note_left(ticket));
        Some(ticket)
    }

    /// Executes a command. `None` means that the key is absent; a conditional store fails instead.
    pub(super) fn execute(&mut self, namespace: NamespaceId, command: Command<'_>) -> Result<Option<Reply>, Error> {
        let is_store = matches!(command, Command::Store { .. });
        if self.drive.wants_time() {
            self.drive.tell_time(now());
        }
        match self.drive.execute_in(namespace, command) {
            Ok(reply) => Ok(Some(reply)),
            Err(KvError::KeyNotFound) if !is_store => Ok(None),
            Err(error) => Err(self.failed(error, None)),
        }
    }

    /// With `sync`: the last change of anything that is not committed.
    pub(super) fn last(&self) -> Option<u64> {
        self.loose.as_ref().and_then(Loose::last)
    }

    /// With `sync`: notes that namespaces change under that ticket.
    pub(super) fn note_other(&mut self, ticket: u64) {
        self.note(|loose| loose.note_other(ticket));
    }

    /// As [`Drive::begin_commit`].
    fn begin_commit(&mut self) -> Result<Option<BegunCommit>, Error> {
        let begun = self.drive.begin_commit().map_err(|error| self.failed(error, None))?;
        if begun.is_some() {
            let executed = self.executed;
            self.note(|loose| loose.begin(executed));
        }
        Ok(begun)
    }

    /// Ends a commit whose wait is over, of the changes up to that one.
    fn end_commit(&mut self, begun: BegunCommit, executed: u64) -> Result<(), Error> {
        self.drive.end_commit(begun).map_err(|error| self.failed(error, None))?;
        self.note(|loose| loose.end(executed));
        Ok(())
    }

    pub(super) fn commit(&mut self) -> Result<(), Error> {
        self.drive.commit().map_err(|error| self.failed(error, None))?;
        self.note(Loose::clear);
        Ok(())
    }

    /// With `sync`: notes a command that is not committed.
    pub(super) fn note(&mut self, note: impl FnOnce(&mut Loose)) {
        if let Some(loose) = &mut self.loose {
            note(loose);
        }
    }

    /// The error that a call returns for a drive's error. If this image failed, or another partition in the same call, that is remembered.
    pub(super) fn failed(&mut self, error: KvError, of_other: Option<&str>) -> Error {
        if let Some(why) = self.drive.failure().or(of_other) {
            self.failure = Some(why.to_owned());
            return Error::Io { why: why.to_owned() };
        }
        if error.is_fatal() {
            self.failure = Some(error.to_string());
        }
        error.into()
    }
}

/// Nanoseconds since 1970.
pub(super) fn now() -> Nanos {
    Nanos(u64::try_from(since_1970().as_nanos()).unwrap_or(u64::MAX))
}

pub(super) fn panicked() -> Error {
    Error::Failed { why: "a call has panicked".to_owned() }
}
