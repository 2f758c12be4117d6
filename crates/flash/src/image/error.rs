//! Why an image cannot be created, opened or worked on: one line with the path and what to do.

use super::versions::{FORMAT_VERSION, PARTS_VERSION, reader_of};
use crate::MediaError;
use std::path::PathBuf;
use thiserror::Error;

/// What is wrong, and with which image.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("image {}: {fault}", path.display())]
pub struct ImageError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: ImageFault,
}

/// What is wrong with an image. None of these changes a byte of the file, except for [`ImageFault::Failed`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImageFault {
    /// Nothing is at the path.
    #[error("there is no such file; create the image first")]
    Missing,
    /// Something is at the path where an image should be created.
    #[error("it exists already; remove it or give another path")]
    Exists,
    /// A directory, a pipe or a device.
    #[error("it is not a regular file; give the path of an image")]
    NotAFile,
    /// A file that does not begin as images do.
    #[error("it is not a kvssd image; give the path of one (the file is left as it is)")]
    Foreign,
    /// A file without a byte.
    #[error("it is empty: it is being created, or its creation was stopped; remove it if nobody creates it")]
    Empty,
    /// The process that created it did not come to the end.
    #[error("its creation was not finished; remove it and create it again")]
    Unfinished,
    /// An image of another format.
    #[error(
        "it has format version {found} and this program reads version {FORMAT_VERSION} and version {PARTS_VERSION}; {} reads it (the file is left as it is)",
        reader_of(*found)
    )]
    Version {
        /// The version that it has.
        found: u32,
    },
    /// An image of several parts was opened as an image of one.
    #[error("it has {parts} parts, and this program works on images of one")]
    Parts {
        /// The parts that it has.
        parts: u32,
    },
    /// Bytes that are not what was written.
    #[error("it is damaged: {why}; restore it from a copy (the file is left as it is)")]
    Damaged {
        /// Which bytes, or what they contradict.
        why: String,
    },
    /// The file is shorter than it must be.
    #[error("it is truncated: {bytes_missing} bytes of at least {bytes_needed} are missing; restore it from a copy")]
    Truncated {
        /// The bytes behind the file's end.
        bytes_missing: u64,
        /// The bytes that it must have.
        bytes_needed: u64,
    },
    /// Another process works on it.
    #[error("it is in use by {holder}; wait for it or end it")]
    Locked {
        /// The process, as far as it can be told.
        holder: String,
    },
    /// An image cannot be created with these numbers.
    #[error("it cannot be made like that: {why}")]
    Impossible {
        /// The number that is wrong.
        why: String,
    },
    /// A write to an image that was opened read-only.
    #[error("it was opened to be read only; open it to be written")]
    ReadOnly,
    /// A write by a child that was forked from the process that opened the image.
    #[error("it was opened by process {process}, from which this one was forked; open it again in this process")]
    Forked {
        /// The one that opened it.
        process: u32,
    },
    /// The system failed, or the staging area is full. After that nothing is written any more.
    #[error("cannot {what}: {why}")]
    Failed {
        /// What was tried.
        what: String,
        /// What the system says.
        why: String,
    },
}

impl From<ImageError> for MediaError {
    fn from(error: ImageError) -> Self {
        MediaError::Failed(error.to_string())
    }
}

/// That bytes are damaged.
pub(super) fn damaged(why: impl Into<String>) -> ImageFault {
    ImageFault::Damaged { why: why.into() }
}
