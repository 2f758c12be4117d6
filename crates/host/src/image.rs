//! A drive in a file as a backend: threads that look go side by side, those that change take turns, and share waits for the disk.
//!
//! ```text
//!   threads   glance             share the drive, and look at what is in memory or lies in the file
//!   threads   execute            lock the drive, execute; with `sync`: wait for a shared commit, also after a read of what is not committed
//!   one       bulk               hold commits, execute all, commit once
//! ```

use crate::backend::Backend;
use crate::commits::{Announced, Commits};
use crate::loose::Loose;
use crate::{Batch, Error, Missing, Options, Stats};
use kvssd_cache::CacheAttributes;
use kvssd_device::{CacheInfo, CreateDrive, Drive, image_design, image_profile};
use kvssd_flash::{Files, OpenOptions};
use kvssd_ftl::{NamespaceAttributes, NamespaceInfo};
use kvssd_runtime::sync::{Turn, Turns};
use kvssd_runtime::time::since_1970;
use kvssd_types::{Command, KvError, NamespaceId, Nanos, Reply};
use std::path::Path;
use std::sync::Arc;

/// An open drive in a file.
pub(crate) struct Image {
    state: Turns<State>,
    /// With `sync`: the threads that wait for the disk.
    commits: Option<Commits>,
    is_read_only: bool,
}

/// What one thread at a time changes.
struct State {
    drive: Drive,
    /// The number of changes that were executed.
    executed: u64,
    /// With `sync`: the changes that are not committed.
    loose: Option<Loose>,
    failure: Option<String>,
}

impl Image {
    /// Opens the image at `path`; returns whether it was created.
    pub(crate) fn open(files: &Arc<dyn Files>, path: &Path, options: &Options) -> Result<(Image, bool), Error> {
        let Options { missing, sync, read_only, cache_bytes, .. } = *options;
        let open = || Ok::<_, Error>(Drive::open_in(files, path, OpenOptions { sync, read_only, cache_bytes })?);
        let create = || create(files, path, options);
        let (drive, was_created) = match missing {
            Missing::CreateNew => (create()?, true),
            _ => match open() {
                Err(Error::NotFound(_)) if missing == Missing::Create && !read_only => match create() {
                    // Another process was quicker.
                    Err(Error::Exists(_)) => (open()?, false),
                    created => (created?, true),
                },
                opened => (opened?, false),
            },
        };
        let commits = (sync && !read_only).then(Commits::default);
        drive.hold_commits(commits.is_some());
        let loose = commits.is_some().then(Loose::default);
        let state = Turns::new(State { drive, executed: 0, loose, failure: None });
        Ok((Image { state, commits, is_read_only: read_only }, was_created))
    }

    /// Executes a change under a ticket of its own; returns when it is safe.
    fn change<T>(&self, make: impl FnOnce(&mut State, u64) -> Result<T, Error>) -> Result<T, Error> {
        if self.is_read_only {
            return Err(Error::ReadOnly);
        }
        let announced: Option<Announced<'_>> = self.commits.as_ref().map(Commits::announce);
        let mut state = self.lock()?;
        let ticket = state.executed + 1;
        let made = make(&mut state, ticket);
        state.executed = ticket;
        drop(state);
        drop(announced);
        self.wait(ticket)?;
        made
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
    fn wait(&self, ticket: u64) -> Result<(), Error> {
        let Some(commits) = &self.commits else { return Ok(()) };
        commits.wait(ticket, || {
            let mut state = self.lock()?;
            state.commit()?;
            Ok(state.executed)
        })
    }

    /// The answer to a look at one key, if it is to be had beside other threads; this returns when what it shows is safe.
    fn glance(&self, namespace: NamespaceId, command: &Command<'_>) -> Option<Result<Option<Reply>, Error>> {
        // The command tells what is wrong, if something is.
        let state = self.state.look().ok().filter(|state| state.works().is_ok())?;
        let reply = state.drive.glance(namespace, command)?;
        let seen = state.seen_by(namespace, command);
        drop(state);
        let is_safe = seen.map_or(Ok(()), |ticket| self.wait(ticket));
        Some(is_safe.and_then(|()| match reply {
            Err(KvError::KeyNotFound) => Ok(None),
            reply => Ok(Some(reply?)),
        }))
    }

    fn lock(&self) -> Result<Turn<'_, State>, Error> {
        let state = self.state.take().map_err(|_| panicked())?;
        state.works()?;
        Ok(state)
    }
}

impl Backend for Image {
    fn execute(&self, namespace: NamespaceId, command: Command<'_>) -> Result<Option<Reply>, Error> {
        if command.is_change() {
            self.change(|state, ticket| {
                state.note(|loose| loose.note(ticket, namespace, &command));
                state.execute(namespace, command)
            })
        } else if matches!(command, Command::Retrieve { .. } | Command::Exist { .. })
            && let Some(found) = self.glance(namespace, &command)
        {
            found
        } else {
            self.look(|state| (state.seen_by(namespace, &command), state.execute(namespace, command)))
        }
    }

    fn bulk(&self, batch: &Batch, own: NamespaceId) -> Result<(), Error> {
        let commands = batch.commands(own)?;
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

    fn namespaces(&self) -> Result<Vec<NamespaceInfo>, Error> {
        self.look(|state| (state.loose.as_ref().and_then(Loose::last), Ok(state.drive.namespaces())))
    }

    fn create_namespace(&self, attributes: NamespaceAttributes) -> Result<NamespaceId, Error> {
        self.change(|state, ticket| {
            state.note(|loose| loose.note_other(ticket));
            let created = state.drive.create_namespace(attributes);
            created.map_err(|error| state.failed(error))
        })
    }

    fn delete_namespace(&self, namespace: &NamespaceInfo) -> Result<(), Error> {
        self.change(|state, ticket| {
            state.note(|loose| loose.note_other(ticket));
            state.drive.delete_namespace(namespace.id).map_err(|error| state.failed(error))
        })
    }

    fn set_cache(&self, namespace: &NamespaceInfo, cache: Option<CacheAttributes>) -> Result<(), Error> {
        self.change(|state, ticket| {
            state.note(|loose| loose.note_other(ticket));
            state.drive.set_cache(namespace.id, cache).map_err(|error| state.failed(error))
        })
    }

    fn caches(&self) -> Result<Vec<(NamespaceId, CacheInfo)>, Error> {
        let state = self.lock()?;
        let ids = state.drive.namespaces().into_iter().map(|info| info.id);
        Ok(ids.filter_map(|id| Some((id, state.drive.cache(id)?))).collect())
    }

    fn key_bytes_max(&self) -> Result<usize, Error> {
        Ok(kvssd_types::KEY_BYTES_MAX)
    }

    fn stats(&self) -> Result<Stats, Error> {
        Ok(Stats::of(&self.lock()?.drive))
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        drop(self.lock()?);
        let state = self.state.into_inner().map_err(|_| panicked())?;
        state.drive.close().map_err(|error| Error::Io { why: error.to_string() })
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
    fn seen_by(&self, namespace: NamespaceId, command: &Command<'_>) -> Option<u64> {
        self.loose.as_ref().and_then(|loose| loose.seen_by(namespace, command))
    }

    /// Executes a command; `None` means that the key is not there, but for a conditional store, which fails.
    fn execute(&mut self, namespace: NamespaceId, command: Command<'_>) -> Result<Option<Reply>, Error> {
        let is_store = matches!(command, Command::Store { .. });
        if self.drive.wants_time() {
            self.drive.tell_time(Nanos(u64::try_from(since_1970().as_nanos()).unwrap_or(u64::MAX)));
        }
        match self.drive.execute_in(namespace, command) {
            Ok(reply) => Ok(Some(reply)),
            Err(KvError::KeyNotFound) if !is_store => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.drive.commit().map_err(|error| self.failed(error))?;
        self.note(Loose::clear);
        Ok(())
    }

    /// With `sync`: notes a command that is not committed.
    fn note(&mut self, note: impl FnOnce(&mut Loose)) {
        if let Some(loose) = &mut self.loose {
            note(loose);
        }
    }

    /// What a call says of an error of the drive. If its image failed, that is remembered.
    fn failed(&mut self, error: KvError) -> Error {
        if let Some(why) = self.drive.failure() {
            self.failure = Some(why.to_owned());
            return Error::Io { why: why.to_owned() };
        }
        if error.is_fatal() {
            self.failure = Some(error.to_string());
        }
        error.into()
    }
}

fn create(files: &Arc<dyn Files>, path: &Path, options: &Options) -> Result<Drive, Error> {
    let invalid = |why: String| Error::InvalidOptions { why };
    let design = image_design(&options.design).map_err(|error| invalid(error.to_string()))?;
    let profile = image_profile(options.create_bytes).map_err(|error| invalid(error.to_string()))?;
    let Options { preallocate, sync, value_bytes_max, cache_bytes, .. } = *options;
    let create = CreateDrive { preallocate, sync, value_bytes_max, cache_bytes };
    Ok(Drive::create_in(files, path, &profile, &design, create)?)
}

fn panicked() -> Error {
    Error::Failed { why: "a call has panicked".to_owned() }
}
