//! With `sync`, whoever has nothing to wait for does not wait for the disk because somebody else does.

use kvssd_flash::{Files, RawFile, Syncer, SystemFiles};
use kvssd_host::{Batch, Missing, Options, Store};
use std::io::{self, IoSliceMut};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, Scope};
use std::time::Duration;

/// A disk whose syncs wait as long as it is held.
#[derive(Clone, Debug, Default)]
struct SlowDisk(Arc<(Mutex<Held>, Condvar)>);

#[derive(Debug, Default)]
struct Held {
    is_held: bool,
    waiting: u32,
    /// Syncs that may end all the same.
    passes: u32,
}

impl SlowDisk {
    /// Lets syncs wait until this is dropped.
    fn hold(&self) -> Hold<'_> {
        self.set_held(true);
        Hold(self)
    }

    fn set_held(&self, is_held: bool) {
        self.0.0.lock().unwrap().is_held = is_held;
        self.0.1.notify_all();
    }

    /// Returns when a sync waits.
    fn await_sync(&self) {
        let held = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(held, |held| held.waiting == 0).unwrap());
    }

    fn opened(&self, file: Box<dyn RawFile>) -> Box<dyn RawFile> {
        Box::new(SlowFile { disk: self.clone(), file })
    }
}

struct Hold<'a>(&'a SlowDisk);

impl Hold<'_> {
    fn let_one_pass(&self) {
        self.0.0.0.lock().unwrap().passes += 1;
        self.0.0.1.notify_all();
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.set_held(false);
    }
}

impl Files for SlowDisk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn RawFile>> {
        Ok(self.opened(SystemFiles.create_new(path)?))
    }

    fn open(&self, path: &Path, is_read_only: bool) -> io::Result<Box<dyn RawFile>> {
        Ok(self.opened(SystemFiles.open(path, is_read_only)?))
    }
}

#[derive(Debug)]
struct SlowFile {
    disk: SlowDisk,
    file: Box<dyn RawFile>,
}

#[derive(Debug)]
struct SlowSyncer {
    disk: SlowDisk,
    syncer: Arc<dyn Syncer>,
}

impl Syncer for SlowSyncer {
    fn sync(&self) -> io::Result<()> {
        let (held, changed) = &*self.disk.0;
        let mut held = held.lock().unwrap();
        held.waiting += 1;
        changed.notify_all();
        held = changed.wait_while(held, |held| held.is_held && held.passes == 0).unwrap();
        held.passes = held.passes.saturating_sub(1);
        held.waiting -= 1;
        drop(held);
        self.syncer.sync()
    }
}

impl RawFile for SlowFile {
    fn length_bytes(&self) -> io::Result<u64> {
        self.file.length_bytes()
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_length(bytes)
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_at(at, out)
    }

    fn read_each(&self, at: u64, places: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        self.file.read_each(at, places)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(at, bytes)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::new(SlowSyncer { disk: self.disk.clone(), syncer: self.file.syncer() })
    }

    fn try_lock(&self, is_shared: bool) -> io::Result<bool> {
        self.file.try_lock(is_shared)
    }

    fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    fn unlock(&self) {
        self.file.unlock();
    }
}

/// Does something beside others. What tells that it ended.
fn begin<'scope>(scope: &'scope Scope<'scope, '_>, act: impl FnOnce() + Send + 'scope) -> Receiver<()> {
    let (end, result) = channel();
    scope.spawn(move || {
        act();
        end.send(()).unwrap();
    });
    result
}

/// Whether something ends while the disk is held.
fn ends(result: &Receiver<()>) -> bool {
    match result.recv_timeout(Duration::from_millis(200)) {
        Ok(()) => true,
        Err(RecvTimeoutError::Timeout) => false,
        Err(RecvTimeoutError::Disconnected) => panic!("it failed"),
    }
}

#[test]
fn only_who_needs_what_is_not_safe_waits_for_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SlowDisk::default();
    let options = Options {
        missing: Missing::CreateNew,
        create_bytes: 128 << 20,
        sync: true,
        partitions: 1,
        ..Options::default()
    };
    let files: Arc<dyn Files> = Arc::new(disk.clone());
    let store = Store::open_in(&files, &folder.path().join("drive.kv"), &options).unwrap();
    store.store(b"there", b"1").unwrap();
    store.store(b"large", &[1; 100_000]).unwrap();
    // More than are told apart: they are forgotten when they are safe.
    let mut many = Batch::new();
    for number in 0..5000u32 {
        many.store(&number.to_le_bytes(), b"");
    }
    store.bulk(&many).unwrap();
    thread::scope(|scope| {
        let hold = disk.hold();
        let store = &store;
        let changed = begin(scope, || store.store(b"new", b"2").unwrap());
        disk.await_sync();
        let read = begin(scope, || assert_eq!(store.retrieve(b"there").unwrap(), Some(b"1".to_vec())));
        assert!(ends(&read), "a pair that is safe can be read");
        let read = begin(scope, || assert_eq!(store.retrieve(b"large").unwrap(), Some(vec![1; 100_000])));
        assert!(ends(&read), "a large one, too");
        let read = begin(scope, || assert!(store.stats().is_ok()));
        assert!(ends(&read), "who asks for figures does not wait");
        let seen = begin(scope, || assert_eq!(store.retrieve(b"new").unwrap(), Some(b"2".to_vec())));
        let also_changed = begin(scope, || store.store(b"there", b"3").unwrap());
        for (waiting, who) in [(&changed, "a change"), (&seen, "who sees it"), (&also_changed, "a change behind it")] {
            assert!(!ends(waiting), "{who} is not safe yet");
        }
        hold.let_one_pass();
        let end = |waiting: Receiver<()>| waiting.recv_timeout(Duration::from_secs(30)).unwrap();
        [changed, seen].into_iter().for_each(end);
        disk.await_sync();
        let also_seen = begin(scope, || assert_eq!(store.retrieve(b"there").unwrap(), Some(b"3".to_vec())));
        for (waiting, who) in [(&also_changed, "a change"), (&also_seen, "who sees it")] {
            assert!(!ends(waiting), "{who} came behind the commit that is safe");
        }
        drop(hold);
        [also_changed, also_seen].into_iter().for_each(end);
    });
    store.close().unwrap();
}
