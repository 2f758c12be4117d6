//! The store.

use crate::backend::Backend;
use crate::image::{self, Image};
use crate::lives::Lives;
use crate::remote::Remote;
use crate::{Batch, Error, Keys, Missing, Namespace, Options, Pairs, Stats};
use kvssd_device::Drive;
use kvssd_flash::{Files, OpenOptions, Owner, SystemFiles};
use kvssd_ftl::{NamespaceAttributes, NamespaceInfo};
use kvssd_nvme_client::DriveUrl;
use kvssd_types::{Command, NamespaceId, Reply, StoreCondition};
use std::path::Path;
use std::sync::Arc;

/// The store over a drive, wherever that is: in an image file ([`Store::open`]), or on the wire, where `drive` is a URL
/// `nvme+tcp://host:port/nqn?ns=1` ([`DriveUrl`]).
///
/// Of the options, those of an image do not concern a drive on the wire; it must be there already and does its own syncs, so that
/// [`Missing::CreateNew`] and [`Options::sync`] are refused.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("drive.kv");
/// let store = kvssd_host::open(&path, Default::default())?;       // or "nvme+tcp://127.0.0.1:4420/nqn.2024-01.org.example:kv"
/// store.store(b"one", b"1")?;
/// # Ok::<(), kvssd_host::Error>(())
/// ```
///
/// # Errors
/// As [`Store::open`] and [`connect`].
pub fn open(drive: impl AsRef<Path>, options: Options) -> Result<Store, Error> {
    let drive = drive.as_ref();
    match drive.to_str().and_then(DriveUrl::of) {
        Some(url) => connect_with(&url?, &options),
        None => Store::open(drive, options),
    }
}

/// The partitions of the drive in the image at `path`, in their order, for uses other than a store, such as a target.
///
/// # Errors
/// As [`Store::open`].
pub fn open_partitions(path: &Path, options: OpenOptions) -> Result<Vec<Drive>, Error> {
    image::open(&system_files(), path, options)
}

fn system_files() -> Arc<dyn Files> {
    Arc::new(SystemFiles)
}

/// The store over a drive on the wire, at a URL as [`DriveUrl`] describes it.
///
/// # Errors
/// [`Error::InvalidOptions`] when it is no such URL, [`Error::NoNamespace`], [`Error::Unreachable`], [`Error::Refused`].
pub fn connect(url: &str) -> Result<Store, Error> {
    connect_to(&url.parse()?)
}

/// As [`connect`].
///
/// # Errors
/// As [`connect`].
pub fn connect_to(url: &DriveUrl) -> Result<Store, Error> {
    connect_with(url, &Options::default())
}

fn connect_with(url: &DriveUrl, options: &Options) -> Result<Store, Error> {
    let refused = |why: &str| Err(Error::InvalidOptions { why: format!("{url}: {why}") });
    if options.missing == Missing::CreateNew {
        return refused("a drive on the wire cannot be made from here; `kvssd create` makes one where it is served");
    }
    if options.sync {
        return refused("whether a drive on the wire syncs is chosen where it is served, not by who calls it");
    }
    let drive = Box::new(Remote::connect(url, options.read_only)?);
    Ok(Store { owner: Owner::here(), drive, own: url.namespace, was_created: false, lives: Lives::default() })
}

/// A store over a drive. It can be shared: every call takes `&self`, from any thread.
///
/// Calls on keys are those of one namespace: the first, which every image begins with, or the one that a URL names;
/// [`Store::namespace`] gives the others.
///
/// It belongs to the process that opened it. In a child forked from that process every call returns [`Error::Forked`]. Dropping it there changes
/// nothing for the parent: neither the image nor its lock, nor the connection.
///
/// Dropping it leaves the drive as it is, which is safe: the next open redoes what the journal says. [`Store::close`] makes that
/// unnecessary.
pub struct Store {
    owner: Owner,
    drive: Box<dyn Backend>,
    /// The namespace that calls without one are on.
    own: NamespaceId,
    was_created: bool,
    lives: Lives,
}

impl Store {
    /// The store in the image at `path`.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Exists`], [`Error::Locked`], [`Error::Foreign`], [`Error::Damaged`], [`Error::Io`],
    /// [`Error::InvalidOptions`]. The image is left as it was.
    #[expect(clippy::needless_pass_by_value, reason = "who opens a store has no use for its options any more")]
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Store, Error> {
        Store::open_in(&system_files(), path.as_ref(), &options)
    }

    /// Like [`Store::open`], with the given files: a simulated disk, for example.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_in(files: &Arc<dyn Files>, path: &Path, options: &Options) -> Result<Store, Error> {
        let (image, was_created) = Image::open(files, path, options)?;
        let (drive, lives) = (Box::new(image), Lives::default());
        Ok(Store { owner: Owner::here(), drive, own: NamespaceId::FIRST, was_created, lives })
    }

    /// Whether the open created the image.
    #[must_use]
    pub fn was_created(&self) -> bool {
        self.was_created
    }

    /// Binds `value` to `key`, whether or not the key is there.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::InvalidKey`], [`Error::InvalidValue`], [`Error::ReadOnly`], [`Error::Io`], [`Error::Failed`].
    pub fn store(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.own_namespace().store(key, value)
    }

    /// Binds `value` to `key` if the key is there, or if it is not.
    ///
    /// # Errors
    /// [`Error::KeyNotFound`], [`Error::KeyExists`], and as [`Store::store`].
    pub fn store_if(&self, key: &[u8], value: &[u8], condition: StoreCondition) -> Result<(), Error> {
        self.own_namespace().store_if(key, value, condition)
    }

    /// The value of `key`, if there is one.
    ///
    /// # Errors
    /// [`Error::InvalidKey`], [`Error::Damaged`], [`Error::Io`], [`Error::Failed`].
    pub fn retrieve(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.own_namespace().retrieve(key)
    }

    /// At most `length_bytes` bytes of the value of `key`, from `offset_bytes` on, if there is one. Behind its end there are none.
    ///
    /// # Errors
    /// As [`Store::retrieve`].
    pub fn retrieve_part(&self, key: &[u8], offset_bytes: u32, length_bytes: u32) -> Result<Option<Vec<u8>>, Error> {
        self.own_namespace().retrieve_part(key, offset_bytes, length_bytes)
    }

    /// The values of several keys, with as many commands in flight as the drive takes ([`Namespace::retrieve_each`]).
    ///
    /// # Errors
    /// As [`Store::retrieve`].
    pub fn retrieve_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut values = vec![None; keys.len()];
        self.own_namespace().retrieve_each(keys.iter().copied(), |number, value| values[number] = value)?;
        Ok(values)
    }

    /// Removes `key` and its value; returns whether it was there.
    ///
    /// # Errors
    /// As [`Store::store`].
    pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.own_namespace().delete(key)
    }

    /// Whether `key` is there.
    ///
    /// # Errors
    /// As [`Store::retrieve`].
    pub fn exist(&self, key: &[u8]) -> Result<bool, Error> {
        self.own_namespace().exist(key)
    }

    /// At most `count` keys in the index's own order, from `from` on, or the next one when that is not there. The order stays as
    /// it is while no key comes or goes. A drive on the wire gives 4096 at the most, and fewer than `count` need not be all then:
    /// [`Store::keys`] goes to the end.
    ///
    /// # Errors
    /// As [`Store::retrieve`].
    pub fn list(&self, from: Option<&[u8]>, count: usize) -> Result<Vec<Box<[u8]>>, Error> {
        self.own_namespace().list(from, count)
    }

    /// All keys from `from` on, in the order of [`Store::list`]. A key that is there all the time is met once; one that comes or
    /// goes meanwhile may be met or not.
    #[must_use]
    pub fn keys(&self, from: Option<&[u8]>) -> Keys<'_> {
        self.own_namespace().keys(from)
    }

    /// All pairs, as [`Store::keys`] goes.
    #[must_use]
    pub fn pairs(&self) -> Pairs<'_> {
        self.own_namespace().pairs()
    }

    /// Makes all changes of a batch or none, in any number of namespaces: nobody sees a part of them, and no end of the process or of the
    /// machine leaves a part.
    ///
    /// A batch has [`Stats::batch_changes_max`] changes at the most, and keys and values of [`Stats::batch_bytes_max`] bytes together.
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
        let changes = batch.last_changes(self.own)?;
        self.execute_in(self.own, Command::Batch { changes: &changes }).map(|_| ())
    }

    /// Makes the changes of a batch of any size, each by itself, with one commit: much quicker than one by one.
    ///
    /// It is **not atomic**, and changes of different keys have **no order**: partitions follow each other, with a commit each, and commands on the
    /// wire go side by side. When the process ends before this has returned, or a change is refused, any of the others may be made, also
    /// those behind it. What must not come without another change is to be made when that has returned.
    ///
    /// # Errors
    /// [`Error::NoNamespace`], and as [`Store::store`]. Nothing is changed when a key is invalid.
    pub fn bulk(&self, batch: &Batch) -> Result<(), Error> {
        self.drive()?.bulk(batch, self.own)
    }

    /// The namespace that calls without one are on.
    #[must_use]
    pub fn own_namespace(&self) -> Namespace<'_> {
        Namespace::new(self, self.own)
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
        Ok(Namespace::new(self, self.find(name)?.id))
    }

    fn find(&self, name: &str) -> Result<NamespaceInfo, Error> {
        let is_it = |info: &NamespaceInfo| info.attributes.name.as_deref() == Some(name) || info.id.to_string() == name;
        if let Some(found) = self.namespaces()?.into_iter().find(is_it) {
            return Ok(found);
        }
        if let Ok(number) = name.parse() {
            self.drive()?.check_meant(NamespaceId(number))?;
        }
        Err(Error::NoNamespace { name: name.to_owned() })
    }

    /// The namespace of that number. Calls on it show whether it exists.
    #[must_use]
    pub fn namespace_at(&self, id: NamespaceId) -> Namespace<'_> {
        Namespace::new(self, id)
    }

    /// The namespaces, in the order of their numbers on the drive. One that another host put in the place of one that this store saw has another
    /// number here, from 1001 on: a number never comes to mean another namespace behind this store's back.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn namespaces(&self) -> Result<Vec<NamespaceInfo>, Error> {
        self.drive()?.namespaces()
    }

    /// Makes an empty namespace.
    ///
    /// # Errors
    /// [`Error::InvalidOptions`] with what cannot be, [`Error::TooManyNamespaces`], [`Error::Refused`] of a drive on the wire that makes none, and as
    /// [`Store::flush`].
    pub fn create_namespace(&self, attributes: NamespaceAttributes) -> Result<Namespace<'_>, Error> {
        let drive = self.drive()?;
        Ok(Namespace::new(self, self.lives.make(|| drive.create_namespace(attributes))?))
    }

    /// Which namespace each number means.
    pub(crate) fn lives(&self) -> &Lives {
        &self.lives
    }

    /// Deletes the namespace of that name, or number. What it had is removed while other calls come, when another one needs the room,
    /// and at the latest by [`Store::close`].
    ///
    /// # Errors
    /// [`Error::NoNamespace`], [`Error::InvalidOptions`] of the first, and as [`Store::flush`].
    pub fn delete_namespace(&self, name: &str) -> Result<(), Error> {
        let found = self.find(name)?;
        if found.id == NamespaceId::FIRST {
            return Err(Error::InvalidOptions {
                why: "namespace 1 stays: what names no namespace is in it".to_owned(),
            });
        }
        let drive = self.drive()?;
        match self.lives.end(|| drive.delete_namespace(&found)) {
            Err(Error::NoNamespace { name: number }) if number == found.id.to_string() => {
                Err(Error::NoNamespace { name: name.to_owned() })
            }
            deleted => deleted,
        }
    }

    /// Writes out what the write buffer holds. Nothing becomes safer by it: what has returned is safe already.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Io`], [`Error::Failed`].
    pub fn flush(&self) -> Result<(), Error> {
        self.execute_in(self.own, Command::Flush).map(|_| ())
    }

    /// Bytes of the longest key: 255, but 16 of a drive on the wire that has only the commands of NVMe.
    ///
    /// # Errors
    /// As [`Store::stats`].
    pub fn key_bytes_max(&self) -> Result<usize, Error> {
        self.drive()?.key_bytes_max()
    }

    /// How full it is, and what it did.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn stats(&self) -> Result<Stats, Error> {
        self.drive()?.stats()
    }

    /// Closes the store in order: deleted namespaces are gone, and the next open has nothing to redo.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Failed`]. What had returned is safe all the same.
    pub fn close(self) -> Result<(), Error> {
        self.check_owner()?;
        self.drive.close()
    }

    /// The drive's answer, to a change once that is safe; `None` if the key does not exist, unless the command is a conditional store.
    pub(crate) fn execute_in(&self, namespace: NamespaceId, command: Command<'_>) -> Result<Option<Reply>, Error> {
        self.drive()?.execute(namespace, command)
    }

    /// The drive, if this process may use it.
    pub(crate) fn drive(&self) -> Result<&dyn Backend, Error> {
        self.check_owner()?;
        Ok(self.drive.as_ref())
    }

    /// A child inherits a copy, with locks that are held and buffers still to be written: it must not touch any of it.
    pub(crate) fn check_owner(&self) -> Result<(), Error> {
        if self.owner.is_here() { Ok(()) } else { Err(Error::Forked { process: self.owner.process() }) }
    }
}
