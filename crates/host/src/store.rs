//! The store.

use crate::commits::{Coming, Commits};
use crate::pairs::Keys;
use crate::{Error, Missing, Options, Pairs};
use kvssd_device::{CreateDrive, Drive, image_profile};
use kvssd_flash::OpenOptions;
use kvssd_ftl::Design;
use kvssd_types::{Command, Key, KvError, Reply, StoreCondition, Value};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// A store over an image file. It can be shared: every call takes `&self`, from any thread.
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

/// Stores and deletes that are made safe together, with one commit: much quicker than one by one.
///
/// They are applied one after the other. It is **not atomic**: when the process ends before [`Store::batch`] has returned, or a
/// change in the middle is refused, those before it may be there without those behind it.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    changes: Vec<(Box<[u8]>, Option<Value>)>,
}

/// How full a store is, and what it did since it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The firmware.
    pub design: String,
    /// Pairs that are stored.
    pub pairs: u64,
    /// Bytes of their keys and values.
    pub pair_bytes: u64,
    /// Bytes of flash that live, in whole grains and with the index.
    pub live_bytes: u64,
    /// The most that may live.
    pub capacity_bytes: u64,
    /// Bytes of all flash.
    pub flash_bytes: u64,
    /// The largest value.
    pub value_bytes_max: u64,
    /// Bytes of memory that the firmware's tables take.
    pub dram_bytes: u64,
    /// The most that they may take.
    pub dram_bytes_max: u64,
    /// Pages of flash that were read since it was opened.
    pub pages_read: u64,
    /// Pages of flash that were programmed since it was opened.
    pub pages_programmed: u64,
    /// Pairs that garbage collection moved since it was opened.
    pub pairs_moved: u64,
}

impl Batch {
    /// No changes yet.
    #[must_use]
    pub fn new() -> Self {
        Batch::default()
    }

    /// Adds a store.
    pub fn store(&mut self, key: &[u8], value: &[u8]) -> &mut Self {
        self.changes.push((key.into(), Some(value.into())));
        self
    }

    /// Adds a delete. That the key is not there is no error.
    pub fn delete(&mut self, key: &[u8]) -> &mut Self {
        self.changes.push((key.into(), None));
        self
    }

    /// The number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Takes all changes out.
    pub fn clear(&mut self) {
        self.changes.clear();
    }
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
        self.store_if(key, value, StoreCondition::Always)
    }

    /// Binds `value` to `key` if the key is there, or if it is not.
    ///
    /// # Errors
    /// [`Error::KeyNotFound`], [`Error::KeyExists`], and as [`Store::store`].
    pub fn store_if(&self, key: &[u8], value: &[u8], condition: StoreCondition) -> Result<(), Error> {
        let key = Key::new(key)?;
        // The copy is made before others have to wait.
        let value = Value::from(value);
        self.change(|state| state.change(Command::Store { key, value, condition }).map(|_| ()))
    }

    /// The value of `key`, if there is one.
    ///
    /// # Errors
    /// [`Error::InvalidKey`], [`Error::Damaged`], [`Error::Io`], [`Error::Failed`].
    pub fn retrieve(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.retrieve_part(key, 0, u32::MAX)
    }

    /// At most `length_bytes` bytes of the value of `key`, from `offset_bytes` on, if there is one. Behind its end there are none.
    ///
    /// # Errors
    /// As [`Store::retrieve`].
    pub fn retrieve_part(&self, key: &[u8], offset_bytes: u32, length_bytes: u32) -> Result<Option<Vec<u8>>, Error> {
        let command = Command::Retrieve { key: Key::new(key)?, offset_bytes, length_bytes };
        Ok(self.lock()?.ask(command)?.map(|reply| match reply {
            Reply::Retrieved { value, .. } => value.to_vec(),
            other => unreachable!("{other:?} does not answer a retrieve"),
        }))
    }

    /// Removes `key` and its value; gives whether it was there.
    ///
    /// # Errors
    /// As [`Store::store`].
    pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        let key = Key::new(key)?;
        self.change(|state| state.change(Command::Delete { key }).map(|reply| reply.is_some()))
    }

    /// Whether `key` is there.
    ///
    /// # Errors
    /// As [`Store::retrieve`].
    pub fn exist(&self, key: &[u8]) -> Result<bool, Error> {
        let key = Key::new(key)?;
        Ok(self.lock()?.ask(Command::Exist { key })?.is_some())
    }

    /// At most `count` keys in the index's own order, from `from` on, or the next one when that is not there. The order stays as
    /// it is while no key comes or goes.
    ///
    /// # Errors
    /// As [`Store::retrieve`].
    pub fn list(&self, from: Option<&[u8]>, count: usize) -> Result<Vec<Box<[u8]>>, Error> {
        let from = from.map(Key::new).transpose()?;
        match self.lock()?.ask(Command::List { from, keys_max: count })? {
            Some(Reply::Listed(keys)) => Ok(keys),
            other => unreachable!("{other:?} does not answer a list"),
        }
    }

    /// All keys from `from` on, in the order of [`Store::list`]. A key that is there all the time is met once; one that comes or
    /// goes meanwhile may be met or not.
    #[must_use]
    pub fn keys(&self, from: Option<&[u8]>) -> Keys<'_> {
        Keys::new(self, from)
    }

    /// All pairs, as [`Store::keys`] goes.
    #[must_use]
    pub fn pairs(&self) -> Pairs<'_> {
        Pairs::new(self)
    }

    /// Applies the changes of a batch, with one commit.
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
    /// As [`Store::store`]. Nothing is applied when a key is invalid; else the changes before the one that is refused are.
    pub fn batch(&self, batch: &Batch) -> Result<(), Error> {
        let keys = batch.changes.iter().map(|(key, _)| Key::new(key)).collect::<Result<Vec<_>, _>>()?;
        self.change(|state| {
            state.drive.hold_commits(true);
            let applied = keys.iter().zip(&batch.changes).try_for_each(|(&key, (_, value))| {
                let condition = StoreCondition::Always;
                let command = match value {
                    Some(value) => Command::Store { key, value: value.clone(), condition },
                    None => Command::Delete { key },
                };
                state.change(command).map(|_| ())
            });
            if self.commits.is_none() {
                state.drive.hold_commits(false);
                // What was applied before a refusal is to be as safe as the rest.
                state.commit()?;
            }
            applied
        })
    }

    /// Writes out what the write buffer holds. Nothing becomes safer by it: what has returned is safe already.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Io`], [`Error::Failed`].
    pub fn flush(&self) -> Result<(), Error> {
        self.change(|state| state.change(Command::Flush).map(|_| ()))
    }

    /// How full it is, and what it did.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn stats(&self) -> Result<Stats, Error> {
        let state = self.lock()?;
        let engine = state.drive.engine();
        let (utilization, flash) = (engine.utilization(), engine.flash_counters());
        Ok(Stats {
            design: state.drive.design().name.to_owned(),
            pairs: utilization.pairs,
            pair_bytes: utilization.pair_bytes,
            live_bytes: utilization.live_bytes,
            capacity_bytes: utilization.capacity_bytes,
            flash_bytes: engine.geometry().raw_bytes(),
            value_bytes_max: engine.value_bytes_max(),
            dram_bytes: engine.dram().total_bytes(),
            dram_bytes_max: engine.dram_budget_bytes(),
            pages_read: flash.reads.total(),
            pages_programmed: flash.programs.total(),
            pairs_moved: engine.gc_counters().pairs_moved,
        })
    }

    /// Ends in order: the next open finds everything at once, and has nothing to do again.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Failed`]. What had returned is safe all the same.
    pub fn close(self) -> Result<(), Error> {
        drop(self.lock()?);
        let state = self.state.into_inner().map_err(|_| panicked())?;
        state.drive.close().map_err(|error| Error::Io { why: error.to_string() })
    }

    /// What the drive answers to a question; none when the key is not there.
    pub(crate) fn ask(&self, command: Command<'_>) -> Result<Option<Reply>, Error> {
        self.lock()?.ask(command)
    }

    /// What the drive answers to a change, when that is safe.
    pub(crate) fn make(&self, command: Command<'_>) -> Result<Option<Reply>, Error> {
        self.change(|state| state.change(command))
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
    fn ask(&mut self, command: Command<'_>) -> Result<Option<Reply>, Error> {
        match self.drive.execute(command) {
            Ok(reply) => Ok(Some(reply)),
            Err(KvError::KeyNotFound) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// What the drive answers to a change; none when a key that is to be deleted is not there.
    fn change(&mut self, command: Command<'_>) -> Result<Option<Reply>, Error> {
        let is_delete = matches!(command, Command::Delete { .. });
        match self.drive.execute(command) {
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
    let design = Design::named(&options.design).map_err(|error| invalid(error.to_string()))?;
    let profile = image_profile(options.create_bytes).map_err(|error| invalid(error.to_string()))?;
    let create = CreateDrive { preallocate: options.preallocate, sync: options.sync };
    Ok(Drive::create(path, &profile, &design, create)?)
}

fn panicked() -> Error {
    Error::Failed { why: "a call has panicked".to_owned() }
}
