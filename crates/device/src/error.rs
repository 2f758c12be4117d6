//! Why there is no drive in a file.

use crate::large::LARGE_VALUE_BYTES_MAX;
use crate::sizing::{IMAGE_BYTES_MAX, IMAGE_BYTES_MIN, PARTITIONS_MAX};
use kvssd_flash::{ImageError, ProfileError};
use kvssd_ftl::DesignError;
use kvssd_types::KvError;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why there is no drive.
#[derive(Debug, Error)]
pub enum DriveError {
    /// The image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The design does not fit the profile.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// The design has no room for its tables, or for what it keeps free, in a partition of that size.
    #[error(
        "{design} has no partition of {flash_bytes} bytes: {why}; another number of partitions, size or design may do"
    )]
    PartitionFit {
        /// The design.
        design: &'static str,
        /// The flash of a partition.
        flash_bytes: u64,
        /// Why it does not fit.
        why: String,
    },
    /// The profile cannot be.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// No image has that size.
    #[error("an image has {} MiB to {} TiB of flash, not {flash_bytes} B", IMAGE_BYTES_MIN >> 20, IMAGE_BYTES_MAX >> 40)]
    Size {
        /// The size that was asked for.
        flash_bytes: u64,
    },
    /// No drive takes such values.
    #[error("a drive can be made for values of up to {LARGE_VALUE_BYTES_MAX} bytes, not {value_bytes}")]
    ValueSize {
        /// The size that was asked for.
        value_bytes: u32,
    },
    /// No partition is so small.
    #[error("each partition has {} MiB of flash at least, which is more than {flash_bytes} bytes in {partitions}", IMAGE_BYTES_MIN >> 20)]
    PartitionSize {
        /// The size of all that was asked for.
        flash_bytes: u64,
        /// The partitions that were asked for.
        partitions: u32,
    },
    /// No drive has so many partitions.
    #[error("a drive has 1 to {PARTITIONS_MAX} partitions, not {partitions}")]
    Partitions {
        /// Those that were asked for.
        partitions: u32,
    },
    /// What works on one partition was given several.
    #[error("image {}: it has {partitions} partitions, and a drive with the times of a profile, or opened by itself, has one", path.display())]
    Partitioned {
        /// The image.
        path: PathBuf,
        /// Those that it has.
        partitions: usize,
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

impl DriveError {
    /// The same error, in one of several partitions.
    pub(crate) fn in_partition(mut self, number: usize) -> DriveError {
        if let DriveError::Failed { why, .. } | DriveError::Mount { why, .. } = &mut self {
            *why = format!("partition {number}: {why}");
        }
        self
    }
}

/// Why a design gives no drive in the image at `path`.
pub(crate) fn mount_error(path: &Path, error: DesignError) -> DriveError {
    let path = path.to_owned();
    // The image's own error names it already.
    let without_name =
        |why: String| why.strip_prefix(&format!("image {}: ", path.display())).unwrap_or(&why).to_owned();
    match error {
        DesignError::Drive(KvError::Failed(why)) => DriveError::Failed { why: without_name(why), path },
        DesignError::Drive(KvError::Unrecovered(why)) => DriveError::Mount { why: without_name(why), path },
        DesignError::Drive(other) => DriveError::Mount { why: other.to_string(), path },
        other => other.into(),
    }
}
