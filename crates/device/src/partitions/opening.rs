//! How a drive in partitions is made, opened and checked.
//!
//! ```text
//!   image -> first partition: mount -> which batches over several it has decided
//!              others: each mount with that, side by side if the caller has threads -> namespaces are settled
//! ```

use super::Partitions;
use crate::description::{Description, in_a_file};
use crate::drive::{CreateDrive, Drive, Unmounted, open_images, system_files};
use crate::error::{DriveError, mount_error};
use crate::large::LARGE_VALUE_BYTES_MAX;
use crate::sizing::PARTITIONS_MAX;
use kvssd_flash::{
    Backing, BlockAddress, BlockState, Files, ImageBacking, MediaError, OpenOptions, PageAddress, PageView, PowerLoss,
    Profile, Span, UnitAddress, UnitImage,
};
use kvssd_ftl::{BatchSequence, CheckReport, Design, DesignError, Harm};
use kvssd_types::VALUE_BYTES_MAX;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Room for staged data beside records: changes, and heads of items.
const STAGING_SLACK_BYTES: u64 = 8 << 20;

/// A partition before its mount.
pub struct Mount {
    unmounted: Unmounted,
    number: usize,
    decided: BatchSequence,
}

impl Mount {
    /// Mounts the partition. The partitions of one drive may be mounted side by side.
    ///
    /// # Errors
    /// As [`Drive::open`].
    pub fn run(self) -> Result<Drive, DriveError> {
        self.unmounted.mount(None, self.decided).map_err(|error| error.in_partition(self.number))
    }
}

/// A drive that is being opened: its first partition, and mounts of the others.
pub struct Mounts {
    first: Drive,
    /// The others, in their order.
    pub others: Vec<Mount>,
    path: PathBuf,
    is_read_only: bool,
}

impl Mounts {
    /// Opens the image at `path`, and mounts its first partition.
    ///
    /// # Errors
    /// As [`Drive::open`].
    pub fn begin(files: &Arc<dyn Files>, path: &Path, options: OpenOptions) -> Result<Mounts, DriveError> {
        let (images, description) = open_images(files, path, options)?;
        let (is_read_only, has_others) = (options.read_only, images.len() > 1);
        let unmounted = |image| {
            let (description, path) = (description.clone(), path.to_owned());
            Unmounted { image, description, path, is_read_only, has_others }
        };
        let mut unmounted = images.into_iter().map(unmounted).enumerate();
        let (number, first) = unmounted.next().expect("an image has a partition");
        let first = first.mount(None, BatchSequence::default());
        let first = first.map_err(|error| if has_others { error.in_partition(number) } else { error })?;
        let decided = first.engine().decided();
        let others = unmounted.map(|(number, unmounted)| Mount { unmounted, number, decided }).collect();
        Ok(Mounts { first, others, path: path.to_owned(), is_read_only })
    }

    /// Completes the drive with the other partitions, mounted, in their order.
    ///
    /// # Errors
    /// As [`Drive::open`].
    pub fn end(self, others: Vec<Drive>) -> Result<Vec<Drive>, DriveError> {
        let Mounts { first, path, is_read_only, .. } = self;
        let mut all = vec![first];
        all.extend(others);
        if all.len() > 1 && !is_read_only {
            let settled = Partitions::new(&mut all).settle_namespaces();
            settled.map_err(|error| mount_error(&path, error.into()))?;
        }
        Ok(all)
    }
}

impl Drive {
    /// A new drive in partitions, in a new file, as [`Drive::create`]. `profile` is the hardware of each partition.
    ///
    /// # Errors
    /// As [`Drive::create`]; [`DriveError::Partitions`] if there are too many.
    pub fn create_all_in(
        files: &Arc<dyn Files>,
        path: &Path,
        profile: &Profile,
        design: &Design,
        options: CreateDrive,
    ) -> Result<Vec<Drive>, DriveError> {
        if !design.takes_keys() {
            let why = format!("{} takes blocks, and a drive in a file takes keys", design.name);
            return Err(DesignError::Parameter { key: "name".to_owned(), why }.into());
        }
        let CreateDrive { preallocate, sync, value_bytes_max, cache_bytes, identity, partitions } = options;
        if let Some(value_bytes) = value_bytes_max.filter(|bytes| *bytes > LARGE_VALUE_BYTES_MAX) {
            return Err(DriveError::ValueSize { value_bytes });
        }
        if partitions > PARTITIONS_MAX {
            return Err(DriveError::Partitions { partitions });
        }
        // Make sure that it fits before there is a file.
        let built = design.build(&with(profile, PowerLoss::Ignored), Box::new(Nowhere));
        let engine = built.map_err(|error| match error {
            DesignError::DoesNotFit { design, why, .. } => {
                DriveError::PartitionFit { design, flash_bytes: profile.geometry.raw_bytes(), why }
            }
            other => other.into(),
        })?;
        let value_bytes_max = value_bytes_max.filter(|bytes| u64::from(*bytes) > engine.value_bytes_max());
        let profile = with(profile, PowerLoss::Protected);
        let staging_bytes = staging_bytes(&profile);
        let options = kvssd_flash::CreateOptions { preallocate, staging_bytes, sync, cache_bytes };
        let design =
            in_a_file(Design { compares_later: false, ..design.clone() }, design.oob_format(&profile.geometry));
        let description = Description { profile, design, identity, value_bytes_max };
        let (geometry, text) = (description.profile.geometry, description.text());
        let images = ImageBacking::create_parts_in(files, path, geometry, &text, partitions.max(1), options)?;
        let begun = images.into_iter().map(|image| Drive::begin(image, description.clone()));
        begun.collect::<Result<_, _>>().map_err(|error| {
            // The file was made just now, and the error says what is wrong.
            let _ = files.remove(path);
            mount_error(path, error)
        })
    }

    /// The partitions of the drive in the file at `path`, as [`Drive::open_in`].
    ///
    /// # Errors
    /// As [`Drive::open`].
    pub fn open_all_in(files: &Arc<dyn Files>, path: &Path, options: OpenOptions) -> Result<Vec<Drive>, DriveError> {
        let mut mounts = Mounts::begin(files, path, options)?;
        let others = std::mem::take(&mut mounts.others).into_iter().map(Mount::run).collect::<Result<_, _>>()?;
        mounts.end(others)
    }

    /// Checks everything in the image at `path`, and reports what is wrong. Changes nothing.
    ///
    /// # Errors
    /// When the file is not there, is no image of a drive, is damaged where every drive begins, or in use.
    pub fn check(path: impl AsRef<Path>) -> Result<CheckReport, DriveError> {
        Drive::check_in(&system_files(), path.as_ref())
    }

    /// As [`Drive::check`], among those files.
    pub fn check_in(files: &Arc<dyn Files>, path: &Path) -> Result<CheckReport, DriveError> {
        let options = OpenOptions { sync: false, read_only: true, cache_bytes: 0 };
        let (images, Description { profile, design, value_bytes_max, .. }) = open_images(files, path, options)?;
        let mut decided = BatchSequence::default();
        let mut reports = Vec::new();
        for (number, image) in images.into_iter().enumerate() {
            let report = design.check_part(&profile, Box::new(image), decided);
            if number == 0 {
                // If the first partition cannot say what it decided, shares in the others count as decided.
                decided = report.mount.map_or(BatchSequence(u64::MAX), |mount| mount.decided);
            }
            reports.push(report);
        }
        let is_mounted = reports.iter().all(|report| report.mount.is_some());
        let is_plain = reports.len() == 1 && value_bytes_max.is_none();
        let mut report = CheckReport::of_partitions(reports);
        if is_mounted && !is_plain {
            match Drive::open_all_in(files, path, options) {
                Ok(mut drives) => {
                    Partitions::new(&mut drives).check_namespaces(&mut report);
                    drives.into_iter().for_each(|drive| drive.check_large(&mut report));
                }
                Err(error) => report.find(Harm::NotMounted, "the whole of it", error.to_string()),
            }
            report.sort();
        }
        Ok(report)
    }
}

fn with(profile: &Profile, power_loss: PowerLoss) -> Profile {
    let mut profile = profile.clone();
    profile.memory.power_loss = power_loss;
    profile
}

/// The most bytes that may be staged. The firmware flushes when more than two write buffers are, at the end of a command or of a step of
/// garbage collection. Such a step moves and evicts three superblocks of pages at the most.
fn staging_bytes(profile: &Profile) -> u64 {
    let step_bytes = 3 * profile.geometry.superblock_bytes();
    2 * profile.memory.write_buffer_bytes + step_bytes.max(2 * VALUE_BYTES_MAX as u64) + STAGING_SLACK_BYTES
}

/// A backing for a trial build: the drive is never used.
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
