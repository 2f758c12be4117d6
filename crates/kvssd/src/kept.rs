//! Documents in a folder that several processes fill together: each is made by one of them, and is there whole or not at all.
//!
//! ```text
//!   name -> found: name.json is there -> the document
//!             | no
//!           claim: name.part, locked -> found by now? -> make -> keep: write, sync, name.part becomes name.json
//!                     | another process has the lock: busy; who waits for it finds the document, or makes it if that one died
//! ```
//!
//! Who ends in order takes its parts away. A process that is killed leaves an empty or broken `name.part` and no lock; the next one that
//! makes the document takes it over.

use crate::Outcome;
use crate::fail::Failure;
use kvssd_measure::Observer;
use kvssd_sim::SimError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// How often who waits for another process looks whether it is done.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// The folder.
pub struct Kept {
    folder: PathBuf,
}

/// Refuses to write over a file, if there is one, that has nothing of ours; says what helps then.
///
/// # Errors
/// When it has not, or cannot be read.
pub fn refuse_foreign(path: &Path, remedy: &str, is_ours: impl Fn(&[u8]) -> bool) -> Outcome {
    let refused = match fs::read(path) {
        Ok(bytes) if is_ours(&bytes) => return Ok(()),
        Ok(_) => io::Error::other(format!("it is there, and is something else: {remedy} (it is left as it is)")),
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => why,
    };
    Err(Failure::of_output(path)(refused))
}

/// The right to make a document, while other processes wait. It ends when this is dropped, and the part goes with it.
pub struct Claim {
    part: Part,
    path: PathBuf,
}

/// The file that who makes a document has locked.
struct Part {
    file: File,
    path: PathBuf,
}

impl Kept {
    /// The folder, which is made.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(folder).map_err(Failure::of_output(folder))?;
        Ok(Kept { folder: folder.to_owned() })
    }

    /// Where the document of that name is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// The document of that name, if it is there and whole.
    pub fn found<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&fs::read(self.path(name)).ok()?).ok()
    }

    /// The right to make a document; none while another process has it.
    pub fn claim(&self, name: &str) -> Result<Option<Claim>, Failure> {
        loop {
            let part = self.part(name)?;
            match part.file.try_lock() {
                Ok(()) if part.is_of_its_name() => return Ok(Some(Claim { part, path: self.path(name) })),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(why)) => return Err(Failure::of_output(&part.path)(why)),
            }
        }
    }

    /// The right to make a document, as soon as no other process has it.
    ///
    /// # Errors
    /// When the folder cannot be written, or the observer interrupts.
    pub fn wait(&self, name: &str, observer: &dyn Observer) -> Result<Claim, Failure> {
        loop {
            if let Some(claim) = self.claim(name)? {
                return Ok(claim);
            }
            // A lock that is waited for would not end with Ctrl-C.
            if observer.is_interrupted() {
                return Err(SimError::Interrupted.into());
            }
            thread::sleep(LOOK_AGAIN_AFTER);
        }
    }

    fn part(&self, name: &str) -> Result<Part, Failure> {
        let path = self.folder.join(format!("{name}.part"));
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(Failure::of_output(&path))?;
        Ok(Part { file, path })
    }
}

impl Part {
    /// Whether the file is the one of that name. Who had it before may have made the document of it, or taken it away.
    fn is_of_its_name(&self) -> bool {
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let [locked, named] = [self.file.metadata(), fs::metadata(&self.path)].map(|known| known.map(identity).ok());
        locked.is_some() && locked == named
    }
}

impl Claim {
    /// Keeps what was made.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(mut self, document: &impl Serialize) -> Outcome {
        let text = serde_json::to_string_pretty(document).expect("documents can be written") + "\n";
        self.write(text.as_bytes()).map_err(Failure::of_output(&self.path))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.part.file.set_len(0)?;
        self.part.file.write_all(bytes)?;
        self.part.file.sync_all()?;
        fs::rename(&self.part.path, &self.path)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Behind a rename, the part of that name is another one's. If this one stays, nobody is misled.
        if self.part.is_of_its_name() {
            let _ = fs::remove_file(&self.part.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_measure::Quiet;

    fn kept() -> (tempfile::TempDir, Kept) {
        let folder = tempfile::TempDir::new().unwrap();
        let kept = Kept::open(&folder.path().join("kept")).unwrap();
        (folder, kept)
    }

    /// Somebody who wants everything to end.
    struct Interrupts;

    impl Observer for Interrupts {
        fn begin(&mut self, _phase: &str, _total: u64) {}

        fn progress(&mut self, _done: u64) {}

        fn is_interrupted(&self) -> bool {
            true
        }
    }

    fn files(kept: &Kept) -> Vec<std::ffi::OsString> {
        fs::read_dir(&kept.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_document_is_made_by_one_at_a_time_and_is_whole_or_not_there() {
        let (_folder, kept) = kept();
        let claim = kept.claim("a").unwrap().expect("nobody has it");
        assert!(kept.claim("a").unwrap().is_none() && kept.claim("b").unwrap().is_some());
        assert_eq!(kept.found::<u32>("a"), None);
        claim.keep(&7).unwrap();
        assert_eq!(kept.found::<u32>("a"), Some(7));
        fs::write(kept.path("a"), "[7").unwrap();
        assert_eq!(kept.found::<u32>("a"), None, "it is broken");
    }

    /// Each lets the others in at another moment: behind the rename, and behind the removal.
    #[test]
    fn who_waited_for_a_file_that_is_a_document_now_makes_one_of_its_own() {
        let (_folder, kept) = kept();
        let make = |number: u32| {
            for round in 0..100 {
                let claim = kept.wait("a", &Quiet).unwrap();
                match (number + round).is_multiple_of(3) {
                    true => drop(claim),
                    false => claim.keep(&vec![number; 1000]).unwrap(),
                }
                let found: Option<Vec<u32>> = kept.found("a");
                assert!(found.is_none_or(|document| document.len() == 1000), "it is whole or not there");
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|number| _ = scope.spawn(move || make(number))));
        let found: Vec<u32> = kept.found("a").expect("it is whole");
        assert_eq!(found, vec![found[0]; 1000]);
    }

    #[test]
    fn what_a_dead_process_left_is_taken_over() {
        let (_folder, kept) = kept();
        fs::write(kept.folder.join("a.part"), "{ \"a long beginning of somebody\": ").unwrap();
        kept.claim("a").unwrap().expect("the dead hold no lock").keep(&7).unwrap();
        assert_eq!(fs::read_to_string(kept.path("a")).unwrap(), "7\n");
        drop(kept.wait("a", &Quiet).unwrap());
        assert_eq!(files(&kept), ["a.json"]);
    }

    #[test]
    fn who_ends_without_a_document_leaves_nothing_and_takes_nothing_from_others() {
        let (_folder, kept) = kept();
        drop(kept.claim("a").unwrap());
        assert_eq!(files(&kept), [""; 0]);
        let claim = kept.claim("a").unwrap().expect("nobody has it");
        assert!(kept.claim("a").unwrap().is_none(), "somebody has it");
        assert!(matches!(kept.wait("a", &Interrupts), Err(Failure::Sim(SimError::Interrupted))));
        assert_eq!(files(&kept), ["a.part"]);
        drop(claim);
    }
}
