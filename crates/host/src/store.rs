//! The store.

use crate::commits::{Coming, Commits};
use crate::{Batch, Error, Keys, Missing, Namespace, Options, Pairs, Stats};
use kvssd_device::{CreateDrive, Drive, image_design, image_profile};
use kvssd_flash::OpenOptions;
use kvssd_ftl::{NamespaceAttributes, NamespaceInfo};
use kvssd_types::{Command, KvError, NamespaceId, Reply, StoreCondition};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// A store over an image file. It can be shared: every call takes `&self`, from any thread.
///
/// Calls on keys are those of the first namespace, which every image begins with; [`Store::namespace`] gives the others.
///
/// Dropping it leaves the image as it is, which is safe: the next open does again what the journal says. [`Store::close`] spares
/// it that.
pub struct Store {
    state: Mutex<State>,
    /// With `sync`: who waits for the disk.
    commits: Option<Commits>,
    is_read_only: bool,
    was_created: bool,
}

/// What threads take turns with.
struct State {
    drive: Drive,
    /// Changes that were executed.
    executed: u64,
    failure: Option<String>,
}

impl Store {
    /// The store in the image at `path`.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Exists`], [`Error::Locked`], [`Error::Foreign`], [`Error::Damaged`], [`Error::Io`],
    /// [`Error::InvalidOptions`]. The image is left as it was.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Store, Error> {
        let Options { missing, sync, read_only, .. } = options;
        let path = path.as_ref();
        let open = || Ok::<_, Error>(Drive::open(path, OpenOptions { sync, read_only })?);
        let create = move || create(path, &options);
        let (drive, was_created) = match missing {
            Missing::CreateNew => (create()?, true),
            _ => match open() {
                Err(Error::NotFound(_)) if missing == Missing::Create && !read_only => match create() {
                    // Somebody else was quicker.
                    Err(Error::Exists(_)) => (open()?, false),
                    created => (created?, true),
                },
                opened => (opened?, false),
            },
        };
        let commits = (sync && !read_only).then(Commits::default);
        drive.hold_commits(commits.is_some());
        let state = Mutex::new(State { drive, executed: 0, failure: None });
        Ok(Store { state, commits, is_read_only: read_only, was_created })
    }

    /// Whether opening it made the image.
    #[must_use]
    pub fn was_created(&self) -> bool {
        self.was_created
    }

    /// Binds `value` to `key`, whether or not the key is there.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::InvalidKey`], [`Error::InvalidValue`], [`Error::ReadOnly`], [`Error::Io`], [`Error::Failed`].
    pub fn store(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.first().store(key, value)
    }

    /// Binds `value` to `key` if the key is there, or if it is not.
    ///
    /// # Errors
    /// [`Error::KeyNotFound`], [`Error::KeyExists`], and as [`Store::store`].
    pub fn store_if(&self, key: &[u8], value: &[u8], condition: StoreCondition) -> Result<(), Error> {
        self.first().store_if(key, value, condition)
    }

    /// The value of `key`, if there is one.
    ///
    /// # Errors
    /// [`Error::InvalidKey`], [`Error::Damaged`], [`Error::Io`], [`Error::Failed`].
    pub fn retrieve(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.first().retrieve(key)
    }

    /// At most `length_bytes` bytes of the value of `key`, from `offset_bytes` on, if there is one. Behind its end there are none.
    ///
    /// # Errors
    /// As [`Store::retrieve`].
    pub fn retrieve_part(&self, key: &[u8], offset_bytes: u32, length_bytes: u32) -> Result<Option<Vec<u8>>, Error> {
        self.first().retrieve_part(key, offset_bytes, length_bytes)
    }

    /// Removes `key` and its value; gives whether it was there.
    ///
    /// # Errors
    /// As [`Store::store`].
    pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.first().delete(key)
    }

    /// Whether `key` is there.
    ///
    /// # Errors
    /// As [`Store::retrieve`].
    pub fn exist(&self, key: &[u8]) -> Result<bool, Error> {
        self.first().exist(key)
    }

    /// At most `count` keys in the index's own order, from `from` on, or the next one when that is not there. The order stays as
    /// it is while no key comes or goes.
    ///
    /// # Errors
    /// As [`Store::retrieve`].
    pub fn list(&self, from: Option<&[u8]>, count: usize) -> Result<Vec<Box<[u8]>>, Error> {
        self.first().list(from, count)
    }

    /// All keys from `from` on, in the order of [`Store::list`]. A key that is there all the time is met once; one that comes or
    /// goes meanwhile may be met or not.
    #[must_use]
    pub fn keys(&self, from: Option<&[u8]>) -> Keys<'_> {
        self.first().keys(from)
    }

    /// All pairs, as [`Store::keys`] goes.
    #[must_use]
    pub fn pairs(&self) -> Pairs<'_> {
        self.first().pairs()
    }

    /// Makes all changes of a batch or none, in however many namespaces: nobody sees some of them without the others, and neither a
    /// process nor a machine that ends leaves some without the others.
    ///
    /// A batch has [`Stats::batch_changes_max`] changes at the most, and keys and values of [`Stats::value_bytes_max`] bytes together.
    /// What is larger is refused, and can be made by [`Store::bulk`].
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = kvssd_host::Store::open(folder.path().join("drive.kv"), Default::default())?;
    /// let mut batch = kvssd_host::Batch::new();
    /// batch.store(b"one", b"1").store(b"two", b"2").delete(b"three");
    /// store.batch(&batch)?;
    /// # Ok::<(), kvssd_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`], [`Error::NoNamespace`], and as [`Store::store`]: nothing is changed. After [`Error::Io`] and
    /// [`Error::Failed`] all changes are there or none when the store is opened again.
    pub fn batch(&self, batch: &Batch) -> Result<(), Error> {
        let changes = batch.last_changes()?;
        self.make_in(NamespaceId::FIRST, Command::Batch { changes: &changes }).map(|_| ())
    }

    /// Makes the changes of a batch of any size one after the other, with one commit: much quicker than one by one.
    ///
    /// It is **not atomic**: when the process ends before this has returned, or a change in the middle is refused, those before it
    /// may be there without those behind it.
    ///
    /// # Errors
    /// [`Error::NoNamespace`], and as [`Store::store`]. Nothing is changed when a key is invalid; else the changes before the one that
    /// is refused are made.
    pub fn bulk(&self, batch: &Batch) -> Result<(), Error> {
        let commands = batch.commands()?;
        self.change(|state| {
            state.drive.hold_commits(true);
            let mut commands = commands.into_iter();
            let made = commands.try_for_each(|(namespace, command)| state.change(namespace, command).map(|_| ()));
            if self.commits.is_none() {
                state.drive.hold_commits(false);
                // What was made before a refusal is to be as safe as the rest.
                state.commit()?;
            }
            made
        })
    }

    /// The namespace of that name, or number.
    ///
    /// ```
    /// use kvssd_host::NamespaceAttributes;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = kvssd_host::Store::open(folder.path().join("drive.kv"), Default::default())?;
    /// store.create_namespace(NamespaceAttributes {
    ///     name: Some("accounts".to_owned()),
    ///     is_ordered: true,
    ///     ..NamespaceAttributes::PLAIN
    /// })?;
    /// let accounts = store.namespace("accounts")?;
    /// accounts.store(b"alice", b"70")?;
    /// assert_eq!(store.retrieve(b"alice")?, None);            // the first namespace is another one
    /// # Ok::<(), kvssd_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoNamespace`], [`Error::Failed`].
    pub fn namespace(&self, name: &str) -> Result<Namespace<'_>, Error> {
        let is_it = |info: &NamespaceInfo| info.attributes.name.as_deref() == Some(name) || info.id.to_string() == name;
        let found = self.namespaces()?.into_iter().find(is_it);
        let found = found.ok_or_else(|| Error::NoNamespace { name: name.to_owned() })?;
        Ok(Namespace::new(self, found.id))
    }

    /// The namespaces, in the order of their numbers.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn namespaces(&self) -> Result<Vec<NamespaceInfo>, Error> {
        Ok(self.lock()?.drive.namespaces())
    }

    /// Makes an empty namespace.
    ///
    /// # Errors
    /// [`Error::InvalidOptions`] with what cannot be, [`Error::Refused`] when the drive takes no more namespaces, and as
    /// [`Store::flush`].
    pub fn create_namespace(&self, attributes: NamespaceAttributes) -> Result<Namespace<'_>, Error> {
        let created = |state: &mut State| {
            let created = state.drive.create_namespace(attributes);
            created.map_err(|error| state.failed(error))
        };
        Ok(Namespace::new(self, self.change(created)?))
    }

    /// Deletes the namespace of that name, or number. What it had is removed while other calls come, when another one needs the room,
    /// and at the latest by [`Store::close`].
    ///
    /// # Errors
    /// [`Error::NoNamespace`], [`Error::InvalidOptions`] of the first, and as [`Store::flush`].
    pub fn delete_namespace(&self, name: &str) -> Result<(), Error> {
        let id = self.namespace(name)?.id();
        if id == NamespaceId::FIRST {
            return Err(Error::InvalidOptions {
                why: "namespace 1 stays: what names no namespace is in it".to_owned(),
            });
        }
        self.change(|state| state.drive.delete_namespace(id).map_err(|error| state.failed(error)))
    }

    /// Writes out what the write buffer holds. Nothing becomes safer by it: what has returned is safe already.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Io`], [`Error::Failed`].
    pub fn flush(&self) -> Result<(), Error> {
        self.make_in(NamespaceId::FIRST, Command::Flush).map(|_| ())
    }

    /// How full it is, and what it did.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn stats(&self) -> Result<Stats, Error> {
        Ok(Stats::of(&self.lock()?.drive))
    }

    /// Ends in order: namespaces that were deleted are gone, and the next open finds everything at once, and has nothing to do again.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Failed`]. What had returned is safe all the same.
    pub fn close(self) -> Result<(), Error> {
        drop(self.lock()?);
        let state = self.state.into_inner().map_err(|_| panicked())?;
        state.drive.close().map_err(|error| Error::Io { why: error.to_string() })
    }

    /// The namespace that calls without one are on.
    fn first(&self) -> Namespace<'_> {
        Namespace::new(self, NamespaceId::FIRST)
    }

    /// What the drive answers to a question; none when the key is not there.
    pub(crate) fn ask_in(&self, namespace: NamespaceId, command: Command<'_>) -> Result<Option<Reply>, Error> {
        self.lock()?.ask(namespace, command)
    }

    /// What the drive answers to a change, when that is safe; none when a key that is to be deleted is not there.
    pub(crate) fn make_in(&self, namespace: NamespaceId, command: Command<'_>) -> Result<Option<Reply>, Error> {
        self.change(|state| state.change(namespace, command))
    }

    /// Makes a change; returns when it is safe.
    fn change<T>(&self, make: impl FnOnce(&mut State) -> Result<T, Error>) -> Result<T, Error> {
        if self.is_read_only {
            return Err(Error::ReadOnly);
        }
        let coming: Option<Coming<'_>> = self.commits.as_ref().map(Commits::come);
        let mut state = self.lock()?;
        let made = make(&mut state);
        state.executed += 1;
        let ticket = state.executed;
        drop(state);
        drop(coming);
        if let Some(commits) = &self.commits {
            let commit = || {
                let mut state = self.lock()?;
                state.commit()?;
                Ok(state.executed)
            };
            commits.wait(ticket, commit)?;
        }
        made
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>, Error> {
        let state = self.state.lock().map_err(|_| panicked())?;
        match &state.failure {
            Some(why) => Err(Error::Failed { why: why.clone() }),
            None => Ok(state),
        }
    }
}

impl State {
    /// What the drive answers to a question; none when the key is not there.
    fn ask(&mut self, namespace: NamespaceId, command: Command<'_>) -> Result<Option<Reply>, Error> {
        match self.drive.execute_in(namespace, command) {
            Ok(reply) => Ok(Some(reply)),
            Err(KvError::KeyNotFound) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// What the drive answers to a change; none when a key that is to be deleted is not there.
    fn change(&mut self, namespace: NamespaceId, command: Command<'_>) -> Result<Option<Reply>, Error> {
        let is_delete = matches!(command, Command::Delete { .. });
        match self.drive.execute_in(namespace, command) {
            Ok(reply) => Ok(Some(reply)),
            Err(KvError::KeyNotFound) if is_delete => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.drive.commit().map_err(|error| self.failed(error))
    }

    /// Nobody works on with a drive whose image failed, or that was left in the middle of a change.
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

fn create(path: &Path, options: &Options) -> Result<Drive, Error> {
    let invalid = |why: String| Error::InvalidOptions { why };
    let design = image_design(&options.design).map_err(|error| invalid(error.to_string()))?;
    let profile = image_profile(options.create_bytes).map_err(|error| invalid(error.to_string()))?;
    let create = CreateDrive { preallocate: options.preallocate, sync: options.sync };
    Ok(Drive::create(path, &profile, &design, create)?)
}

fn panicked() -> Error {
    Error::Failed { why: "a call has panicked".to_owned() }
}
