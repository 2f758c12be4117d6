//! An image that is removed while it is open: the system keeps the file for as long, and no longer.

use crate::Outcome;
use crate::fail::Failure;
use crate::output::say;
use kvssd_host::Error;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The file of an image that is open.
pub struct Watched<'a> {
    image: &'a Path,
    file: File,
}

impl<'a> Watched<'a> {
    /// The file of an image that was opened just now.
    pub fn open(image: &'a Path) -> Result<Self, Failure> {
        match File::open(image) {
            Ok(file) => Ok(Watched { image, file }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(removed(image)),
            Err(error) => Err(failed(image, error.to_string())),
        }
    }

    /// Fails if it has no name any more.
    pub fn check(&self) -> Outcome {
        if self.is_unnamed() { Err(removed(self.image)) } else { Ok(()) }
    }

    fn is_unnamed(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }

    /// Watches until `stop`, and warns once if the file has lost its name: what it holds can be copied out while this process lives.
    pub fn attend(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if self.is_unnamed() {
                let (image, process, file) = (self.image.display(), std::process::id(), self.file.as_raw_fd());
                say(&format!(
                    "warning: {image} was removed while it is served, and is gone when this service ends; to have it: \
                     kill -STOP {process}; cp --sparse=always /proc/{process}/fd/{file} NEW; kill -9 {process}"
                ));
                return;
            }
            thread::sleep(LOOK);
        }
    }
}

fn removed(image: &Path) -> Failure {
    failed(image, "it was removed meanwhile, and what it held is gone".to_owned())
}

fn failed(image: &Path, why: String) -> Failure {
    Failure::Store { path: image.to_owned(), error: Error::Io { why } }
}
