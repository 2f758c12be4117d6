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
//!   submit_in(namespace, command, arrival) -> (done, reply)      arrives when it is said to, beside others: somebody may wait
//!                         |
//!                         v
//!   close: a checkpoint, so that the next mount has nothing to do      drop: what kill -9 does
//! ```
//!
//! The drive is protected: what was executed is staged in the image before the answer, and outlives the process; with `sync` it
//! outlives the machine.
//!
//! What it does not do: let several threads in, or wait in real time for as long as the modelled flash would take.

use crate::description::{describe, read};
use crate::medium::{Medium, Standing};
use crate::sizing::{IMAGE_BYTES_MAX, IMAGE_BYTES_MIN};
use crate::{Completion, Device};
use kvssd_flash::{
    Backing, BlockAddress, BlockState, ImageBacking, ImageError, MediaError, OpenOptions, PageAddress, PageView,
    PowerLoss, Profile, ProfileError, Span, UnitAddress, UnitImage,
};
use kvssd_ftl::{CheckReport, Design, DesignError, Engine, MountReport, NamespaceAttributes, NamespaceInfo};
use kvssd_types::{Command, KvError, NamespaceId, Nanos, Reply, VALUE_BYTES_MAX};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use thiserror::Error;

/// Room for what is staged beside records: changes, and heads.
const STAGING_SLACK_BYTES: u64 = 8 << 20;

/// Virtual time, which nobody waits for, between two looks at what is left of deleted namespaces.
const REMOVAL_TIME: Nanos = Nanos(1_000_000_000);

/// Why there is no drive.
#[derive(Debug, Error)]
pub enum DriveError {
    /// The image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The design does not fit the profile.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// The profile cannot be.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// No image has that size.
    #[error("an image has {} MiB to {} TiB of flash, not {flash_bytes} bytes", IMAGE_BYTES_MIN >> 20, IMAGE_BYTES_MAX >> 40)]
    Size {
        /// The size that was asked for.
        flash_bytes: u64,
    },
    /// The image does not say what drive it is.
    #[error("image {}: its description is not that of a drive: {why}", path.display())]
    Description {
        /// The image.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The system failed to read or to write the image.
    #[error("image {}: {why}", path.display())]
    Failed {
        /// The image.
        path: PathBuf,
        /// What was tried, and what the system said.
        why: String,
    },
    /// The image is whole, and what lies in it cannot be brought back.
    #[error("image {}: {why}", path.display())]
    Mount {
        /// The image.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// How an image is made for a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateDrive {
    /// All room is taken at once, so that no later write finds the disk full.
    pub preallocate: bool,
    /// What was executed outlives the machine, not only the process.
    pub sync: bool,
}

/// A drive over an image file.
pub struct Drive {
    device: Device,
    design: Design,
    clock: Nanos,
    mounted: Option<MountReport>,
    standing: Arc<Standing>,
    is_read_only: bool,
}

impl Drive {
    /// A new drive in a new file, protected whatever the profile says.
    ///
    /// # Errors
    /// When there is such a file, the design does not fit, or the disk is full. No file is left behind then.
    pub fn create(
        path: impl AsRef<Path>,
        profile: &Profile,
        design: &Design,
        options: CreateDrive,
    ) -> Result<Drive, DriveError> {
        let path = path.as_ref();
        if !design.takes_keys() {
            let why = format!("{} takes blocks, and a drive in a file takes keys", design.name);
            return Err(DesignError::Parameter { key: "name".to_owned(), why }.into());
        }
        // That it fits is found out before there is a file.
        design.build(&with(profile, PowerLoss::Ignored), Box::new(Nowhere))?;
        let profile = with(profile, PowerLoss::Protected);
        let CreateDrive { preallocate, sync } = options;
        let options = kvssd_flash::CreateOptions { preallocate, staging_bytes: staging_bytes(&profile), sync };
        let image = ImageBacking::create(path, profile.geometry, &describe(&profile, design), options)?;
        let medium = Medium::new(image);
        let standing = medium.standing();
        let engine = design.build(&profile, Box::new(medium)).inspect_err(|_| {
            // It was made just now; what is wrong is said already.
            let _ = std::fs::remove_file(path);
        });
        let mut drive = Drive {
            device: Device::over(engine.map_err(|error| mount_error(path, error))?, &profile),
            design: design.clone(),
            clock: Nanos::ZERO,
            mounted: None,
            standing,
            is_read_only: false,
        };
        drive.commit().map_err(|error| mount_error(path, error.into()))?;
        Ok(drive)
    }

    /// The drive in the file at `path`, as it was when it was last used.
    ///
    /// # Errors
    /// When the file is not there, is no image of a drive, is damaged or in use. It is left as it was then.
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<Drive, DriveError> {
        Drive::open_as(path.as_ref(), options, None)
    }

    /// As [`Drive::open`] with the times of the hardware `times` (of flash, link, pipeline and cores) in place of the image's own, for
    /// [`Drive::submit_in`]. How the flash is divided and what memory there is stays as it is.
    ///
    /// # Errors
    /// As [`Drive::open`].
    pub fn open_timed(path: impl AsRef<Path>, options: OpenOptions, times: &Profile) -> Result<Drive, DriveError> {
        Drive::open_as(path.as_ref(), options, Some(times))
    }

    fn open_as(path: &Path, options: OpenOptions, times: Option<&Profile>) -> Result<Drive, DriveError> {
        let (image, profile, design) = open_image(path, options)?;
        let profile = times.map_or_else(|| profile.clone(), |times| profile.with_times_of(times));
        let medium = if options.read_only { Medium::read_only(image, profile.geometry) } else { Medium::new(image) };
        let standing = medium.standing();
        let (engine, report) = design.mount(&profile, Box::new(medium)).map_err(|error| mount_error(path, error))?;
        let is_read_only = options.read_only;
        let device = Device::over(engine, &profile);
        Ok(Drive { device, design, clock: report.took, mounted: Some(report), standing, is_read_only })
    }

    /// Looks at everything in the image at `path` and says what is wrong with it. Changes nothing.
    ///
    /// # Errors
    /// When the file is not there, is no image of a drive, is damaged where every drive begins, or in use.
    pub fn check(path: impl AsRef<Path>) -> Result<CheckReport, DriveError> {
        let (image, profile, design) = open_image(path.as_ref(), OpenOptions { sync: false, read_only: true })?;
        Ok(design.check(&profile, Box::new(image)))
    }

    /// Executes a command of the first namespace, as [`Drive::execute_in`].
    ///
    /// # Errors
    /// As [`Drive::execute_in`].
    pub fn execute(&mut self, command: Command<'_>) -> Result<Reply, KvError> {
        self.execute_in(NamespaceId::FIRST, command)
    }

    /// Executes a command of a namespace when the one before it is done.
    ///
    /// # Errors
    /// What the firmware answers. When [`Drive::failure`] says something then, the drive takes nothing any more.
    pub fn execute_in(&mut self, namespace: NamespaceId, command: Command<'_>) -> Result<Reply, KvError> {
        self.in_turn(|engine, at| engine.execute_in(namespace, command, at))
    }

    /// Executes a command of a namespace that arrives at `arrival`, while others may be under way: link, pipeline, cores and flash are
    /// shared with those, as in [`Device::submit_in`]. Gives when it is done on the same clock, which no command may turn back.
    pub fn submit_in(&mut self, namespace: NamespaceId, command: Command<'_>, arrival: Nanos) -> Completion {
        let began = self.mounted.as_ref().map_or(Nanos::ZERO, |report| report.took);
        self.clock = self.clock.max(began + arrival);
        let Completion { done, reply } = self.device.submit_in(namespace, command, self.clock);
        Completion { done: done - began, reply }
    }

    /// Makes a namespace.
    ///
    /// # Errors
    /// As [`Engine::create_namespace`].
    pub fn create_namespace(&mut self, attributes: NamespaceAttributes) -> Result<NamespaceId, KvError> {
        self.in_turn(|engine, at| engine.create_namespace(attributes, at))
    }

    /// Deletes a namespace. What it had is removed little by little while commands come, when another one needs the room, and at
    /// the latest by [`Drive::close`].
    ///
    /// # Errors
    /// As [`Engine::delete_namespace`].
    pub fn delete_namespace(&mut self, id: NamespaceId) -> Result<(), KvError> {
        self.in_turn(|engine, at| engine.delete_namespace(id, at))
    }

    /// The namespaces, in the order of their numbers.
    #[must_use]
    pub fn namespaces(&self) -> Vec<NamespaceInfo> {
        self.device.engine.namespaces()
    }

    /// Has the engine do something when all before it is done.
    fn in_turn<T>(
        &mut self,
        act: impl FnOnce(&mut Engine, Nanos) -> (Nanos, Result<T, KvError>),
    ) -> Result<T, KvError> {
        let engine = &mut self.device.engine;
        engine.advance(self.clock)?;
        let (done, result) = act(engine, self.clock);
        self.clock = self.clock.max(done);
        result
    }

    /// Gives the background the time to remove what was deleted. What cannot be read stays.
    fn finish_removal(&mut self) -> Result<(), KvError> {
        let mut pairs = u64::MAX;
        let engine = &mut self.device.engine;
        while engine.is_removing() && engine.utilization().pairs < pairs {
            pairs = engine.utilization().pairs;
            self.clock += REMOVAL_TIME;
            engine.advance(self.clock)?;
        }
        Ok(())
    }

    /// Whether commands are committed each (false, as in the beginning) or all together by [`Drive::commit`] (true): what was
    /// executed in between is then lost together when the process ends.
    pub fn hold_commits(&self, hold: bool) {
        self.standing.holds_commits.store(hold, Ordering::Relaxed);
    }

    /// Commits what was executed while commits were held.
    ///
    /// # Errors
    /// When the image failed.
    pub fn commit(&mut self) -> Result<(), KvError> {
        let held = self.standing.holds_commits.swap(false, Ordering::Relaxed);
        let committed = self.device.engine.commit();
        self.standing.holds_commits.store(held, Ordering::Relaxed);
        committed
    }

    /// Ends the drive's life in order: namespaces that were deleted are gone, and the next mount finds everything at once.
    ///
    /// # Errors
    /// When the image failed.
    pub fn close(mut self) -> Result<(), KvError> {
        self.standing.holds_commits.store(false, Ordering::Relaxed);
        if self.is_read_only {
            return Ok(());
        }
        self.finish_removal()?;
        self.device.engine.close()
    }

    /// Why the image takes nothing any more, if so. What was committed before is in it, for the next who opens it.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.standing.failure.get().map(String::as_str)
    }

    /// The firmware, to look at.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.device.engine
    }

    /// The firmware's name and parameters.
    #[must_use]
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// The hardware.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.device.profile
    }

    /// What the mount did; nothing for a new drive.
    #[must_use]
    pub fn mounted(&self) -> Option<&MountReport> {
        self.mounted.as_ref()
    }
}

/// The image, and the drive that it says it holds.
fn open_image(path: &Path, options: OpenOptions) -> Result<(ImageBacking, Profile, Design), DriveError> {
    let (image, text) = ImageBacking::open(path, options)?;
    let fail = |why: String| DriveError::Description { path: path.to_owned(), why };
    let (profile, design) = read(&text).map_err(fail)?;
    if *image.geometry() != profile.geometry {
        return Err(fail("it has another geometry than the image".to_owned()));
    }
    Ok((image, profile, design))
}

fn with(profile: &Profile, power_loss: PowerLoss) -> Profile {
    let mut profile = profile.clone();
    profile.memory.power_loss = power_loss;
    profile
}

/// Bytes that may be staged. The firmware flushes when more than two write buffers are, at the end of a command or of a step of
/// garbage collection, which moves and evicts three superblocks of pages at the most.
fn staging_bytes(profile: &Profile) -> u64 {
    let step_bytes = 3 * profile.geometry.superblock_bytes();
    2 * profile.memory.write_buffer_bytes + step_bytes.max(2 * VALUE_BYTES_MAX as u64) + STAGING_SLACK_BYTES
}

fn mount_error(path: &Path, error: DesignError) -> DriveError {
    let path = path.to_owned();
    // What the image says names it already.
    let without_name =
        |why: String| why.strip_prefix(&format!("image {}: ", path.display())).unwrap_or(&why).to_owned();
    match error {
        DesignError::Drive(KvError::Failed(why)) => DriveError::Failed { why: without_name(why), path },
        DesignError::Drive(KvError::Unrecovered(why)) => DriveError::Mount { why: without_name(why), path },
        DesignError::Drive(other) => DriveError::Mount { why: other.to_string(), path },
        other => other.into(),
    }
}

/// Where a drive is built that is never used.
struct Nowhere;

impl Backing for Nowhere {
    fn program(&mut self, _unit: UnitAddress, _content: UnitImage, _span: Span) -> Result<(), MediaError> {
        Err(MediaError::PowerLost)
    }

    fn page(&mut self, _page: PageAddress) -> Result<PageView<'_>, MediaError> {
        Err(MediaError::PowerLost)
    }

    fn erase(&mut self, _block: BlockAddress, _span: Span) -> Result<(), MediaError> {
        Err(MediaError::PowerLost)
    }

    fn block(&self, _block: BlockAddress) -> BlockState {
        BlockState::default()
    }
}
