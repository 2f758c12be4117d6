//! A folder that is made for a run and does not outlive it.

use crate::EmbeddedError;
use rustix::fs::{SeekFrom, seek};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the system counts room on disk in.
const DISK_BLOCK_BYTES: u64 = 512;
/// Of a file so much is read at a time.
const READ_BYTES: usize = 1 << 20;

/// A folder, removed with all that is in it when this is dropped.
pub(crate) struct Folder {
    path: PathBuf,
    is_temporary: bool,
}

impl Folder {
    /// A new folder.
    pub(crate) fn create(path: &Path) -> Result<Folder, EmbeddedError> {
        match fs::create_dir(path) {
            Ok(()) => Ok(Folder { path: path.to_owned(), is_temporary: true }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(EmbeddedError::Exists(path.to_owned())),
            Err(why) => Err(EmbeddedError::Folder { path: path.to_owned(), what: "made", why }),
        }
    }

    /// A new folder within this one.
    pub(crate) fn create_within(&self, name: &str) -> Result<Folder, EmbeddedError> {
        Folder::create(&self.path.join(name))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it where it is.
    pub(crate) fn keep(mut self) {
        self.is_temporary = false;
    }

    /// Removes it, and says when that does not go.
    pub(crate) fn remove(mut self) -> Result<(), EmbeddedError> {
        self.is_temporary = false;
        let removed = fs::remove_dir_all(&self.path);
        removed.map_err(|why| EmbeddedError::Folder { path: self.path.clone(), what: "removed", why })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_temporary {
            // There is another error to be told of.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Has the system write out what it keeps of the files below `path`, and gives the room that they take on disk, in bytes.
pub(crate) fn write_out(path: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    each_file(path, &mut |file| {
        file.sync_data()?;
        bytes += file.metadata()?.blocks() * DISK_BLOCK_BYTES;
        Ok(())
    })?;
    Ok(bytes)
}

/// Has the system keep all of the files below `path`, as far as it has room: it may have let go of what nobody asked for a while ago.
pub(crate) fn read_in(path: &Path) -> io::Result<()> {
    let mut bytes = vec![0; READ_BYTES];
    each_file(path, &mut |mut file| {
        let mut end = 0;
        // Files are larger than what is in them.
        while let Ok(begin) = seek(&file, SeekFrom::Data(end)) {
            let Ok(hole) = seek(&file, SeekFrom::Hole(begin)) else { break };
            end = hole;
            file.seek(io::SeekFrom::Start(begin))?;
            let mut left = end - begin;
            while left > 0 {
                let most = READ_BYTES.min(left as usize);
                match file.read(&mut bytes[..most])? {
                    0 => return Ok(()),
                    read => left -= read as u64,
                }
            }
        }
        Ok(())
    })
}

fn each_file(path: &Path, see: &mut dyn FnMut(File) -> io::Result<()>) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?.path();
        // Stores remove files of theirs at any time.
        let Some(metadata) = there(fs::symlink_metadata(&entry))? else { continue };
        if metadata.is_dir() {
            there(each_file(&entry, see))?;
        } else if let Some(file) = there(File::open(&entry))? {
            see(file)?;
        }
    }
    Ok(())
}

fn there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_all_that_is_in_it_unless_it_is_kept() {
        let desk = tempfile::tempdir().unwrap();
        let path = desk.path().join("made");
        let folder = Folder::create(&path).unwrap();
        assert!(matches!(Folder::create(&path), Err(EmbeddedError::Exists(_))));
        let within = folder.create_within("cell").unwrap();
        fs::write(within.path().join("file"), [1; 5000]).unwrap();
        assert!(write_out(&path).unwrap() >= 5000);
        File::create(within.path().join("sparse")).unwrap().set_len(1 << 40).unwrap();
        read_in(&path).expect("holes are passed over");
        within.keep();
        drop(folder);
        assert!(!path.exists());
        Folder::create(&path).unwrap().keep();
        assert!(path.exists());
    }

    #[test]
    fn where_no_folder_can_be_made_the_path_is_named() {
        let desk = tempfile::tempdir().unwrap();
        let error = Folder::create(&desk.path().join("nowhere/made")).err().unwrap().to_string();
        assert!(error.contains("nowhere/made: cannot be made"), "{error}");
    }
}
