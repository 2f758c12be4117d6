//! A drive in a file as a backend: each of its partitions has a lock.
//!
//! ```text
//!   threads   glance             share a partition, and look at what is in memory or lies in the file
//!   threads   execute            lock the partition of the key, execute; with `sync`: wait for a shared commit, also after a read of what
//!                                is not committed; the partition is free while the disk is waited for
//!   threads   batch, list ...    lock all partitions in their order, execute
//!   one       bulk               for each partition: hold commits, execute all, commit once
//! ```

mod part;

use crate::backend::Backend;
use crate::commits::{Commits, Counted};
use crate::{Batch, Error, Missing, Options, Stats};
use kvssd_cache::CacheAttributes;
use kvssd_device::{CacheInfo, CreateDrive, Drive, Mount, Mounts, Partitions, Scope, image_design, partition_profile};
use kvssd_flash::{Files, OpenOptions};
use kvssd_ftl::{NamespaceAttributes, NamespaceInfo};
use kvssd_runtime::sync::Turn;
use kvssd_runtime::thread;
use kvssd_types::{Command, IteratorId, KvError, NamespaceId, OwnedKey, Reply};
use part::{Part, State, now, panicked};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// An open drive in a file.
pub(crate) struct Image {
    parts: Vec<Part>,
    is_read_only: bool,
}

impl Image {
    /// Opens the image at `path`; returns whether it was created.
    pub(crate) fn open(files: &Arc<dyn Files>, path: &Path, options: &Options) -> Result<(Image, bool), Error> {
        let Options { missing, sync, read_only, cache_bytes, .. } = *options;
        let open = || open(files, path, OpenOptions { sync, read_only, cache_bytes });
        let create = || create(files, path, options);
        let (drives, was_created) = match missing {
            Missing::CreateNew if read_only => {
                let why = format!("image {}: one that is to be made cannot be opened read-only", path.display());
                return Err(Error::InvalidOptions { why });
            }
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
        let parts = drives.into_iter().map(|drive| Part::new(drive, sync && !read_only)).collect();
        Ok((Image { parts, is_read_only: read_only }, was_created))
    }

    /// All partitions, locked in their order.
    fn lock(&self) -> Result<Vec<Turn<'_, State>>, Error> {
        self.parts.iter().map(Part::lock).collect()
    }

    /// Makes a change of several partitions, under a ticket in each; returns when it is safe.
    fn change<T>(
        &self,
        note: impl Fn(&mut State, u64),
        make: impl FnOnce(&mut Partitions<'_>) -> Result<T, KvError>,
    ) -> Result<T, Error> {
        self.check_changes()?;
        let commits = self.parts.iter().filter_map(|part| part.commits.as_ref());
        let announced: Vec<Counted<'_>> = commits.map(Commits::announce).collect();
        let mut states = self.lock()?;
        let tickets: Vec<u64> = states.iter().map(|state| state.executed + 1).collect();
        states.iter_mut().zip(&tickets).for_each(|(state, ticket)| note(state, *ticket));
        let made = in_all(&mut states, make);
        states.iter_mut().zip(&tickets).for_each(|(state, ticket)| state.executed = *ticket);
        drop((states, announced));
        self.parts.iter().zip(tickets).try_for_each(|(part, ticket)| part.wait(ticket))?;
        made
    }

    /// Looks at several partitions; returns when what was seen is safe.
    fn look<T>(
        &self,
        seen: impl Fn(&State) -> Option<u64>,
        look: impl FnOnce(&mut Partitions<'_>) -> Result<T, KvError>,
    ) -> Result<T, Error> {
        let mut states = self.lock()?;
        let before: Vec<(Option<u64>, u64)> =
            states.iter().map(|state| (seen(state), state.drive.pairs_left())).collect();
        let found = in_all(&mut states, look);
        let after = states.iter_mut().zip(before).map(|(state, (seen, left))| seen.max(state.note_left(left)));
        let tickets: Vec<Option<u64>> = after.collect();
        drop(states);
        let seen = self.parts.iter().zip(tickets).filter_map(|(part, ticket)| Some((part, ticket?)));
        seen.into_iter().try_for_each(|(part, ticket)| part.wait(ticket))?;
        found
    }

    fn check_changes(&self) -> Result<(), Error> {
        if self.is_read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }
}

/// Does something with all partitions. If one fails, all count as failed: nobody may see a part of what they did together.
fn in_all<T>(
    states: &mut [Turn<'_, State>],
    act: impl FnOnce(&mut Partitions<'_>) -> Result<T, KvError>,
) -> Result<T, Error> {
    let mut partitions = Partitions::new(states.iter_mut().map(|state| &mut state.drive));
    if partitions.wants_time() {
        partitions.tell_time(now());
    }
    act(&mut partitions).map_err(|error| {
        let failure = states.iter().find_map(|state| state.drive.failure().map(str::to_owned));
        let told: Vec<Error> = states.iter_mut().map(|state| state.failed(error.clone(), failure.as_deref())).collect();
        told.into_iter().next().expect("a drive has a partition")
    })
}

/// Checks that a namespace is there that was found before the partitions were locked: another thread may have given its number to another one.
fn check_living(partitions: &Partitions<'_>, namespace: &NamespaceInfo) -> Result<(), KvError> {
    let is_it = |info: &NamespaceInfo| {
        let (name, other) = (&namespace.attributes.name, &info.attributes.name);
        (info.id, info.birth, other) == (namespace.id, namespace.birth, name)
    };
    match partitions.namespaces().iter().any(is_it) {
        true => Ok(()),
        false => Err(KvError::NoSuchNamespace(namespace.id)),
    }
}

impl Backend for Image {
    fn execute(&self, namespace: NamespaceId, command: Command<'_>) -> Result<Option<Reply>, Error> {
        if command.is_change() {
            self.check_changes()?;
        }
        let found = match Scope::of(namespace, &command, self.parts.len()) {
            Scope::One(number) => return self.parts[number].execute(namespace, command),
            Scope::All if command.is_change() => self.change(
                |state, ticket| state.note(|loose| loose.note(ticket, namespace, &command)),
                |partitions| partitions.execute_in(namespace, command.clone()),
            ),
            Scope::All => self.look(
                |state| state.seen_by(namespace, &command),
                |partitions| partitions.execute_in(namespace, command.clone()),
            ),
        };
        found.map(Some)
    }

    fn bulk(&self, batch: &Batch, own: NamespaceId) -> Result<(), Error> {
        self.check_changes()?;
        let mut shares: Vec<Vec<(NamespaceId, Command<'_>)>> = self.parts.iter().map(|_| Vec::new()).collect();
        for (namespace, command) in batch.commands(own)? {
            match Scope::of(namespace, &command, shares.len()) {
                Scope::One(number) => shares[number].push((namespace, command)),
                Scope::All => unreachable!("a store and a delete are of one key"),
            }
        }
        let shares = self.parts.iter().zip(shares).filter(|(_, share)| !share.is_empty());
        shares.into_iter().try_for_each(|(part, share)| part.bulk(share))
    }

    fn salvage_keys(&self, namespace: NamespaceId) -> Result<BTreeSet<OwnedKey>, Error> {
        self.look(State::last, |partitions| partitions.salvage_keys(namespace))
    }

    fn create_iterators(&self) -> Result<BTreeMap<NamespaceId, IteratorId>, Error> {
        self.look(State::last, |partitions| partitions.create_iterators())
    }

    fn namespaces(&self) -> Result<Vec<NamespaceInfo>, Error> {
        self.look(State::last, |partitions| Ok(partitions.namespaces()))
    }

    fn create_namespace(&self, attributes: NamespaceAttributes) -> Result<NamespaceId, Error> {
        self.change(State::note_other, |partitions| partitions.create_namespace(attributes))
    }

    fn delete_namespace(&self, namespace: &NamespaceInfo) -> Result<(), Error> {
        self.change(State::note_other, |partitions| {
            check_living(partitions, namespace)?;
            partitions.delete_namespace(namespace.id)
        })
    }

    fn set_cache(&self, namespace: &NamespaceInfo, cache: Option<CacheAttributes>) -> Result<(), Error> {
        self.change(State::note_other, |partitions| {
            check_living(partitions, namespace)?;
            partitions.set_cache(namespace.id, cache)
        })
    }

    fn caches(&self) -> Result<Vec<(NamespaceId, CacheInfo)>, Error> {
        self.look(
            |_| None,
            |partitions| {
                let ids = partitions.namespaces().into_iter().map(|info| info.id);
                Ok(ids.filter_map(|id| Some((id, partitions.cache(id)?))).collect())
            },
        )
    }

    fn key_bytes_max(&self) -> Result<usize, Error> {
        Ok(kvssd_types::KEY_BYTES_MAX)
    }

    fn stats(&self) -> Result<Stats, Error> {
        self.look(|_| None, |partitions| Ok(Stats::of(partitions)))
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        drop(self.lock()?);
        let drives = self.parts.into_iter().map(Part::into_drive).collect::<Result<Vec<Drive>, Error>>()?;
        // Close each, whether or not one before it could be closed.
        let closed: Vec<Result<(), KvError>> = drives.into_iter().map(Drive::close).collect();
        closed.into_iter().collect::<Result<(), _>>().map_err(|error| Error::Io { why: error.to_string() })
    }
}

/// The partitions of the image at `path`, in their order; they are mounted side by side.
pub(crate) fn open(files: &Arc<dyn Files>, path: &Path, options: OpenOptions) -> Result<Vec<Drive>, Error> {
    let mut mounts = Mounts::begin(files, path, options)?;
    let others = std::mem::take(&mut mounts.others);
    let spawn = |mount: Mount| thread::Builder::new().spawn(|| mount.run());
    let mounting: Vec<_> = others.into_iter().map(spawn).collect();
    let no_thread = |error: io::Error| Error::Io { why: format!("no thread can be started: {error}") };
    let mounted: Vec<_> =
        mounting.into_iter().map(|mounting| mounting.map_err(no_thread)?.join().map_err(|_| panicked())).collect();
    let drives = mounted.into_iter().map(|mounted| Ok(mounted??)).collect::<Result<Vec<Drive>, Error>>()?;
    Ok(mounts.end(drives)?)
}

fn create(files: &Arc<dyn Files>, path: &Path, options: &Options) -> Result<Vec<Drive>, Error> {
    let invalid = |why: String| Error::InvalidOptions { why };
    let mut design = image_design(&options.design).map_err(|error| invalid(error.to_string()))?;
    let set = options.parameters.iter().try_for_each(|(name, value)| design.set(name, value));
    set.map_err(|error| invalid(error.to_string()))?;
    let Options { create_bytes, preallocate, sync, value_bytes_max, cache_bytes, partitions, .. } = *options;
    let profile = partition_profile(create_bytes, partitions).map_err(|error| invalid(error.to_string()))?;
    let identity = Some(files.image_number());
    let create = CreateDrive { preallocate, sync, value_bytes_max, cache_bytes, identity, partitions };
    Ok(Drive::create_all_in(files, path, &profile, &design, create)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_flash::SystemFiles;

    #[test]
    fn no_other_namespace_is_deleted_that_has_got_the_number_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { create_bytes: 128 << 20, partitions: 2, ..Options::default() };
        let files: Arc<dyn Files> = Arc::new(SystemFiles);
        let (image, _) = Image::open(&files, &folder.path().join("drive.kv"), &options).unwrap();
        let make = |name: &str| {
            let attributes = NamespaceAttributes { name: Some(name.to_owned()), ..NamespaceAttributes::PLAIN };
            image.create_namespace(attributes).unwrap()
        };
        let info = |id| image.namespaces().unwrap().into_iter().find(|info| info.id == id).unwrap();
        let first = info(make("a"));
        image.delete_namespace(&first).unwrap();
        let (mut made, mut number) = (make("a"), 0);
        while made != first.id {
            number += 1;
            made = make(&format!("another {number}"));
        }
        let gone = Err(Error::NoNamespace { name: first.id.to_string() });
        assert_eq!(image.delete_namespace(&first), gone);
        assert_eq!(image.set_cache(&first, Some("lru budget=1000000".parse().unwrap())), gone);
        let there = info(made);
        assert_eq!(there.attributes.cache, None);
        assert_eq!(image.delete_namespace(&there), Ok(()));
    }
}
