//! A drive in a file, which lives as long as the file does.
//!
//! ```text
//!   create(path, profile, design)       open(path)
//!        | description, TOML                | profile, design: from the description
//!        v                                  v
//!   Design::format                      Design::mount                mount: what kill -9 left
//!        +----------------+-----------------+
//!                         v
//!   execute_in(namespace, command) -> reply     arrives when the one before it is done: virtual time, which nobody waits for
//!   submit_as(request, namespace, command, arrival) -> (done, reply)   arrives when it is said to, beside others: somebody may wait
//!                         |
//!                         v
//!   close: a checkpoint, so that the next mount has nothing to do      drop: what kill -9 does
//! ```
//!
//! The drive is protected: what was executed is staged in the image before the answer, and outlives the process; with `sync` it
//! outlives the machine.
//!
//! Several threads may glance at it at a time ([`Drive::glance`]).
//!
//! Not supported: changes by several threads, and waiting in real time as long as the modelled flash takes.

mod caches;
mod shares;

use crate::cached::{Caches, Whole};
use crate::clocked::Clocked;
use crate::description::{Description, read};
use crate::error::{DriveError, mount_error};
use crate::large::LargeValues;
use crate::medium::{Medium, MediumState};
use crate::merges::Merges;
use crate::{Completion, Device};
use kvssd_flash::{BegunCommit, Files, ImageBacking, OpenOptions, Profile, SystemFiles};
use kvssd_ftl::{
    BatchSequence, Design, DesignError, Engine, MountReport, NamespaceAttributes, NamespaceInfo, Utilization,
};
use kvssd_types::{ClientId, Command, KEY_BYTES_MAX, KvError, NamespaceId, Nanos, OwnedKey, Reply, RequestId};
use shares::PreparedChange;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How an image is made for a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateDrive {
    /// Whether all room is taken at once, so that no later write finds the disk full.
    pub preallocate: bool,
    /// Whether changes outlive the machine, not only the process.
    pub sync: bool,
    /// As in [`OpenOptions`].
    pub cache_bytes: u64,
    /// The largest value, up to [`LARGE_VALUE_BYTES_MAX`](crate::LARGE_VALUE_BYTES_MAX). `None` for what fits into a record: 2 MiB, or a superblock
    /// if that is less.
    pub value_bytes_max: Option<u32>,
    /// The number that tells the drive from all others, also on the wire; `None` if nobody needs to recognize it.
    pub identity: Option<u64>,
    /// Partitions, up to [`PARTITIONS_MAX`](crate::PARTITIONS_MAX): as many threads change the drive side by side. 0 is 1.
    pub partitions: u32,
}

/// A drive over an image file.
pub struct Drive {
    pub(crate) clocked: Clocked,
    design: Design,
    identity: Option<u64>,
    /// The large values, if the drive was made for them.
    pub(crate) large: Option<LargeValues>,
    caches: Caches,
    mounted: Option<MountReport>,
    medium_state: Arc<MediumState>,
    is_read_only: bool,
    /// In the first partition: the iterators over all partitions.
    pub(crate) merges: Merges,
    /// The share of a batch over several partitions, while that is in progress.
    share: Vec<PreparedChange>,
}

/// A drive in an image, before its mount.
pub(crate) struct Unmounted {
    pub(crate) image: ImageBacking,
    pub(crate) description: Description,
    pub(crate) path: PathBuf,
    pub(crate) is_read_only: bool,
    /// Whether it is one of several partitions.
    pub(crate) has_others: bool,
}

impl Drive {
    /// Creates a drive in a new file, protected whatever the profile says. It counts its pairs exactly: every store compares its key at once.
    ///
    /// # Errors
    /// When there is such a file, the design does not fit, or the disk is full. No file is left behind then.
    pub fn create(
        path: impl AsRef<Path>,
        profile: &Profile,
        design: &Design,
        options: CreateDrive,
    ) -> Result<Drive, DriveError> {
        Drive::create_in(&system_files(), path.as_ref(), profile, design, options)
    }

    /// Like [`Drive::create`], with the given files.
    pub fn create_in(
        files: &Arc<dyn Files>,
        path: &Path,
        profile: &Profile,
        design: &Design,
        options: CreateDrive,
    ) -> Result<Drive, DriveError> {
        if options.partitions > 1 {
            return Err(DriveError::Partitioned { path: path.to_owned(), partitions: options.partitions as usize });
        }
        let drives = Drive::create_all_in(files, path, profile, design, options)?;
        Ok(drives.into_iter().next().expect("it has one partition"))
    }

    /// Starts a new drive.
    pub(crate) fn begin(image: ImageBacking, description: Description) -> Result<Drive, DesignError> {
        let Description { profile, design, identity, value_bytes_max } = description;
        let medium = Medium::new(image);
        let medium_state = medium.state();
        let mut clocked = Clocked::new(Device::over(design.build(&profile, Box::new(medium))?, &profile), Nanos::ZERO);
        let large = value_bytes_max.map(|bytes| LargeValues::open(bytes, &mut clocked, false)).transpose()?;
        let caches = caches::of(&clocked, large.as_ref(), false);
        let (mounted, is_read_only, merges, share) = (None, false, Merges::default(), Vec::new());
        let mut drive =
            Drive { clocked, design, identity, large, caches, mounted, medium_state, is_read_only, merges, share };
        drive.commit()?;
        Ok(drive)
    }

    /// Opens the drive in the file at `path`, in the state of its last use.
    ///
    /// # Errors
    /// If the file does not exist, is no image of a drive, is damaged, or is in use. The file is then left unchanged.
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<Drive, DriveError> {
        Drive::open_in(&system_files(), path.as_ref(), options)
    }

    /// Like [`Drive::open`], with the given files.
    pub fn open_in(files: &Arc<dyn Files>, path: &Path, options: OpenOptions) -> Result<Drive, DriveError> {
        Drive::open_as(files, path, options, None)
    }

    /// Like [`Drive::open`], for [`Drive::submit_as`], with the times of the hardware `times` (of flash, link, pipeline and cores) instead of the
    /// image's own. Geometry and memory stay as they are.
    pub fn open_timed(path: impl AsRef<Path>, options: OpenOptions, times: &Profile) -> Result<Drive, DriveError> {
        Drive::open_as(&system_files(), path.as_ref(), options, Some(times))
    }

    fn open_as(
        files: &Arc<dyn Files>,
        path: &Path,
        options: OpenOptions,
        times: Option<&Profile>,
    ) -> Result<Drive, DriveError> {
        let (mut images, description) = open_images(files, path, options)?;
        if images.len() > 1 {
            return Err(DriveError::Partitioned { path: path.to_owned(), partitions: images.len() });
        }
        let image = images.pop().expect("an image has a partition");
        Unmounted { image, description, path: path.to_owned(), is_read_only: options.read_only, has_others: false }
            .mount(times, BatchSequence::default())
    }

    /// Executes a command of the first namespace, as [`Drive::execute_in`].
    pub fn execute(&mut self, command: Command<'_>) -> Result<Reply, KvError> {
        self.execute_in(NamespaceId::FIRST, command)
    }

    /// Executes a command of a namespace when the one before it is done.
    ///
    /// # Errors
    /// The firmware's error. If [`Drive::failure`] then returns a reason, the drive takes no commands any more.
    pub fn execute_in(&mut self, namespace: NamespaceId, command: Command<'_>) -> Result<Reply, KvError> {
        self.execute_as(None, namespace, command)
    }

    /// Like [`Drive::execute_in`]. A store, delete or batch with a `request` is made once, however often it is sent, also after the drive was opened
    /// again ([`Engine::execute_request`]). A refused one may be tried again.
    ///
    /// # Errors
    /// As [`Drive::execute_in`]; [`KvError::RequestForgotten`] if [`Drive::open_client`] does not know the client, or the change is too old.
    pub fn execute_as(
        &mut self,
        request: Option<RequestId>,
        namespace: NamespaceId,
        command: Command<'_>,
    ) -> Result<Reply, KvError> {
        if let Some(answer) = self.recognize(request, &command) {
            return answer;
        }
        let at = self.clocked.clock();
        let (caches, mut whole) = self.parts();
        caches.execute_as(&mut whole, (request, namespace), command, at)
    }

    /// The caches, and what they are caches of.
    fn parts(&mut self) -> (&mut Caches, Whole<'_>) {
        (&mut self.caches, Whole { large: self.large.as_mut(), records: &mut self.clocked })
    }

    /// Answers a retrieve, an exist or a command on an iterator, if that changes nothing but iterators: several threads may do so at a time, and no
    /// virtual time passes. `None` otherwise, and for every other command: then [`Drive::execute_in`] answers it.
    #[must_use]
    pub fn glance(&self, namespace: NamespaceId, command: &Command<'_>) -> Option<Result<Reply, KvError>> {
        self.caches.glance(namespace, command, || match &self.large {
            Some(large) => large.glance(self.engine(), namespace, command),
            None => self.engine().glance(namespace, command),
        })
    }

    /// Executes a command of a namespace that arrives at `arrival` while others may be in flight: they share link, pipeline, cores and
    /// flash, as in [`Device::submit_in`]. Returns when it is done on the same clock, which no command may turn back. With a request, it may be sent
    /// again, as in [`Drive::execute_as`].
    pub fn submit_as(
        &mut self,
        request: Option<RequestId>,
        namespace: NamespaceId,
        command: Command<'_>,
        arrival: Nanos,
    ) -> Completion {
        if let Some(reply) = self.recognize(request, &command) {
            return Completion { done: arrival, reply };
        }
        let began = self.mounted.as_ref().map_or(Nanos::ZERO, |report| report.took);
        let Drive { clocked, large, caches, .. } = self;
        let mut arrival = clocked.arrive(began + arrival);
        let at = arrival.at();
        let mut whole = Whole { large: large.as_mut(), records: &mut arrival };
        let reply = caches.execute_as(&mut whole, (request, namespace), command, at);
        Completion { done: arrival.done() - began, reply }
    }

    /// Remembers from here on which changes of a client are made, also when the drive is opened again. Returns a number, which differs from the last
    /// time if the client was forgotten in between.
    ///
    /// # Errors
    /// As [`Engine::open_client`].
    pub fn open_client(&mut self, client: ClientId) -> Result<u64, KvError> {
        self.clocked.open_client(client)
    }

    /// The answer to a request that was made before, so that no part of it is made again.
    fn recognize(&self, request: Option<RequestId>, command: &Command<'_>) -> Option<Result<Reply, KvError>> {
        request.and_then(|request| self.engine().recognize(request, command))
    }

    /// Makes a namespace.
    ///
    /// # Errors
    /// As [`Engine::create_namespace`].
    pub fn create_namespace(&mut self, attributes: NamespaceAttributes) -> Result<NamespaceId, KvError> {
        self.create_namespace_at(None, attributes)
    }

    /// Like [`Drive::create_namespace`], under the first of these numbers, with its shadow under the second; `None` for the first free ones.
    pub(crate) fn create_namespace_at(
        &mut self,
        numbers: Option<[NamespaceId; 2]>,
        attributes: NamespaceAttributes,
    ) -> Result<NamespaceId, KvError> {
        let cache = attributes.cache.clone();
        let id = match &mut self.large {
            Some(large) => large.create_namespace(&mut self.clocked, numbers, &attributes),
            None => self.clocked.create_namespace(numbers.map(|[id, _]| id), attributes),
        }?;
        self.set_held(id, cache)?;
        Ok(id)
    }

    /// Deletes a namespace. Its pairs are removed little by little while commands come, when another namespace needs the room, and at
    /// the latest by [`Drive::close`].
    ///
    /// # Errors
    /// As [`Engine::delete_namespace`].
    pub fn delete_namespace(&mut self, id: NamespaceId) -> Result<(), KvError> {
        match &mut self.large {
            Some(large) => large.delete_namespace(&mut self.clocked, id),
            None => self.clocked.delete_namespace(id),
        }?;
        self.set_held(id, None)
    }

    /// The namespaces, in the order of their numbers.
    #[must_use]
    pub fn namespaces(&self) -> Vec<NamespaceInfo> {
        let all = self.engine().namespaces();
        let all = match &self.large {
            Some(large) => large.namespaces(all),
            None => all,
        };
        self.caches.without_stamps(all)
    }

    /// As [`Engine::salvage_keys`].
    pub fn salvage_keys(&mut self, namespace: NamespaceId) -> Result<BTreeSet<OwnedKey>, KvError> {
        match &self.large {
            Some(large) if large.is_shadow(namespace) => Err(KvError::NoSuchNamespace(namespace)),
            _ => self.clocked.device.engine.salvage_keys(namespace),
        }
    }

    /// How full it is.
    #[must_use]
    pub fn utilization(&self) -> Utilization {
        let all = self.engine().utilization();
        match &self.large {
            Some(_) => Utilization { pairs: self.namespaces().iter().map(|info| info.utilization.pairs).sum(), ..all },
            None => all,
        }
    }

    /// The largest value, in bytes.
    #[must_use]
    pub fn value_bytes_max(&self) -> u64 {
        self.large.as_ref().map_or(self.engine().value_bytes_max(), |large| large.value_bytes_max.into())
    }

    /// The most namespaces that hosts can have: on a drive of large values each has another one for segments beside it.
    #[must_use]
    pub fn namespaces_max(&self) -> u32 {
        self.design().namespaces_max / if self.large.is_some() { 2 } else { 1 }
    }

    /// The most bytes that keys and values of a batch have together. On a drive of large values each pair takes one more byte, and a key
    /// whose value was large a few more.
    #[must_use]
    pub fn batch_bytes_max(&self) -> u64 {
        self.engine().value_bytes_max()
    }

    /// The largest value of a batch, in bytes, whatever its key: on a drive of large values about half of [`Drive::batch_bytes_max`].
    #[must_use]
    pub fn batch_value_bytes_max(&self) -> u64 {
        let beside_key = self.batch_bytes_max() - KEY_BYTES_MAX as u64;
        self.large.as_ref().map_or(beside_key, |large| large.inline_bytes_max().into())
    }

    /// Sets whether each command is committed by itself (false, the default) or all together by [`Drive::commit`] (true). If the process
    /// ends before that, all commands since are lost together.
    pub fn hold_commits(&self, hold: bool) {
        self.medium_state.holds_commits.store(hold, Ordering::Relaxed);
    }

    /// Begins to commit what was executed while commits were held: gives what waits for the disk, while the drive goes on; [`Drive::end_commit`]
    /// is to be called behind it. None when the caller is to [commit](Drive::commit).
    ///
    /// # Errors
    /// When the image failed.
    pub fn begin_commit(&mut self) -> Result<Option<BegunCommit>, KvError> {
        self.clocked.device.engine.begin_commit()
    }

    /// Ends the commit whose wait is over. What was executed meanwhile is left to the next one.
    ///
    /// # Errors
    /// When the image failed.
    pub fn end_commit(&mut self, begun: BegunCommit) -> Result<(), KvError> {
        self.clocked.device.engine.end_commit(begun)
    }

    /// Commits what was executed while commits were held.
    ///
    /// # Errors
    /// When the image failed.
    pub fn commit(&mut self) -> Result<(), KvError> {
        let held = self.medium_state.holds_commits.swap(false, Ordering::Relaxed);
        let committed = self.clocked.device.engine.commit();
        self.medium_state.holds_commits.store(held, Ordering::Relaxed);
        committed
    }

    /// Closes the drive in order: deleted namespaces are gone, and the next mount has nothing to redo.
    ///
    /// # Errors
    /// When the image failed.
    pub fn close(mut self) -> Result<(), KvError> {
        self.medium_state.holds_commits.store(false, Ordering::Relaxed);
        if self.is_read_only {
            return Ok(());
        }
        self.clocked.finish_removal()?;
        self.clocked.device.engine.close()
    }

    /// Why the image takes no writes any more, if so. What was committed before is in it when it is opened again.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.medium_state.failure.get().map(String::as_str)
    }

    /// The firmware, to look at.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        self.clocked.device.engine()
    }

    /// The firmware's name and parameters.
    #[must_use]
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// The number that tells the drive from all others; `None` if it was made without one.
    #[must_use]
    pub fn identity(&self) -> Option<u64> {
        self.identity
    }

    /// The hardware.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        self.clocked.device.profile()
    }

    /// What the mount did; nothing for a new drive.
    #[must_use]
    pub fn mounted(&self) -> Option<&MountReport> {
        self.mounted.as_ref()
    }
}

impl Unmounted {
    /// Mounts the drive in the state of its last use, with the times of the hardware `times` if given. A partition other than the first also
    /// needs the last batch that the first has `decided`.
    pub(crate) fn mount(self, times: Option<&Profile>, decided: BatchSequence) -> Result<Drive, DriveError> {
        let Unmounted { image, description, path, is_read_only, has_others } = self;
        let Description { mut profile, design, identity, value_bytes_max } = description;
        if let Some(times) = times {
            profile = profile.with_times_of(times);
        }
        let medium = if is_read_only { Medium::read_only(image, profile.geometry) } else { Medium::new(image) };
        let medium_state = medium.state();
        let mounted = design.mount_part(&profile, Box::new(medium), decided);
        let (mut engine, report) = mounted.map_err(|error| mount_error(&path, error))?;
        engine.keep_deleted(has_others);
        let mut clocked = Clocked::new(Device::over(engine, &profile), report.took);
        let large = value_bytes_max.map(|bytes| LargeValues::open(bytes, &mut clocked, is_read_only)).transpose();
        let large = large.map_err(|error| mount_error(&path, error.into()))?;
        let caches = caches::of(&clocked, large.as_ref(), is_read_only);
        let (mounted, merges, share) = (Some(report), Merges::default(), Vec::new());
        let mut drive =
            Drive { clocked, design, identity, large, caches, mounted, medium_state, is_read_only, merges, share };
        if !is_read_only {
            // This process reads what an earlier, killed process wrote but had not made safe: so that must become as safe as the rest.
            drive.commit().map_err(|error| mount_error(&path, error.into()))?;
        }
        Ok(drive)
    }
}

pub(crate) fn system_files() -> Arc<dyn Files> {
    Arc::new(SystemFiles)
}

/// The partitions of an image, and the description of the drive that they hold.
pub(crate) fn open_images(
    files: &Arc<dyn Files>,
    path: &Path,
    options: OpenOptions,
) -> Result<(Vec<ImageBacking>, Description), DriveError> {
    let (images, text) = ImageBacking::open_parts_in(files, path, options)?;
    let fail = |why: String| DriveError::Description { path: path.to_owned(), why };
    let description = read(&text).map_err(fail)?;
    if images.iter().any(|image| *image.geometry() != description.profile.geometry) {
        return Err(fail("it has another geometry than the image".to_owned()));
    }
    Ok((images, description))
}
