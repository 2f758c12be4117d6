//! An image that is removed while it is served: the system keeps the file for as long as it is open, and no longer.

use crate::output::say;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The file of an image that is served.
pub(super) struct Watched<'a> {
    image: &'a Path,
    file: File,
}

impl<'a> Watched<'a> {
    pub(super) fn open(image: &'a Path) -> io::Result<Self> {
        Ok(Watched { image, file: File::open(image)? })
    }

    /// Whether it has no name any more.
    pub(super) fn is_unnamed(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }

    /// Says so once, while what it holds can still be had.
    pub(super) fn attend(&self, url: &str, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if self.is_unnamed() {
                let image = self.image.display();
                say(&format!(
                    "warning: {image} was removed while it is served: what it holds is gone when this service ends; to have it, kvssd dump {url} FILE"
                ));
                return;
            }
            thread::sleep(LOOK);
        }
    }
}
