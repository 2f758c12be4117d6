//! A program: it opens a store on a simulated disk, works with it, and knows what it was promised.
//!
//! ```text
//!   open -> look: every key of every namespace, against the model -> act, act, ... -> close | drop | killed
//!     ^                                                                                     |
//!     +---------------------------- the next process, or the next start of the machine -----+
//! ```
//!
//! Whatever was answered must be there; of what was not, all or nothing.

mod window;

use self::window::Window;
use super::act::{key, number_of};
use super::hardware::Hardware;
use super::image::PATH;
use super::model::{Content, Model, Pairs, Spaces};
use kvssd_device::{CreateDrive, Drive};
use kvssd_flash::SimulatedDisk;
use kvssd_host::{Error, Missing, NamespaceId, NamespaceInfo, Options, Store};
use std::collections::BTreeMap;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// What the names of the program's namespaces begin with.
const NAME_PREFIX: &str = "s";

/// Why a process ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It was killed, or its machine stopped.
    Killed,
    /// The disk failed and the store said so. It takes nothing any more.
    Failed(String),
    /// Something was lost, invented, mixed up, or not told.
    Wrong(String),
}

/// A program and what it knows.
#[derive(Debug)]
pub struct Program<'a> {
    pub(super) hardware: &'a Hardware,
    pub(super) disk: SimulatedDisk,
    pub(super) store: Option<Running>,
    pub(super) model: Model,
    /// Whether making the drive was answered.
    is_made: bool,
    /// A call of this process was struck so that it fails.
    may_fail: bool,
    /// Pairs were moved in this process.
    has_collected: bool,
    /// What somebody else has stored in the image: nobody changes it. None before it was looked at.
    pub(super) foreign: Option<Foreign>,
    /// Ranges that are open, by the world's numbers of their namespaces.
    pub(super) windows: BTreeMap<usize, Window>,
}

/// Pairs that are not the program's: the namespace, the key, a hash of the value.
pub(super) type Foreign = BTreeMap<(NamespaceId, Box<[u8]>), u64>;

/// Everything that is in an image.
pub(super) struct Found {
    /// The namespaces of the program.
    ids: BTreeMap<usize, NamespaceId>,
    pub(super) spaces: Spaces,
    foreign: Foreign,
}

/// A store that is open.
pub(super) struct Running {
    pub(super) store: Store,
    /// The namespaces by the world's numbers.
    pub(super) spaces: BTreeMap<usize, NamespaceId>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.spaces.fmt(f)
    }
}

impl<'a> Program<'a> {
    /// A program over a drive that is still to be made.
    #[must_use]
    pub fn new(hardware: &'a Hardware, disk: SimulatedDisk) -> Self {
        let foreign = Some(Foreign::new());
        Program {
            hardware,
            disk,
            store: None,
            model: Model::default(),
            is_made: false,
            may_fail: false,
            has_collected: false,
            foreign,
            windows: BTreeMap::new(),
        }
    }

    /// A program over the image that lies on the disk, whoever has made it.
    #[must_use]
    pub fn over(hardware: &'a Hardware, disk: SimulatedDisk) -> Self {
        Program { is_made: true, foreign: None, ..Program::new(hardware, disk) }
    }

    /// The disk.
    #[must_use]
    pub fn disk(&self) -> &SimulatedDisk {
        &self.disk
    }

    /// What must be there.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Whether there is a drive to look at.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.is_made
    }

    /// From now on in this process a call of the disk fails.
    pub fn expect_failure(&mut self) {
        self.may_fail = true;
    }

    /// Another process: nothing of the one before is left but the disk.
    pub fn begin_process(&mut self) {
        self.store = None;
        (self.may_fail, self.has_collected) = (false, false);
    }

    /// Whether garbage collection has moved pairs in this process.
    #[must_use]
    pub fn has_collected(&self) -> bool {
        self.has_collected
    }

    /// Looks whether garbage was collected, while the store says so: one that was killed says nothing.
    pub(super) fn note_collection(&mut self) {
        let Some(running) = self.store.as_ref().filter(|_| !self.has_collected) else { return };
        let stats = running.store.stats();
        self.has_collected = stats.is_ok_and(|stats| stats.firmware.is_some_and(|firmware| firmware.pairs_moved > 0));
    }

    /// The end that an error means.
    pub(super) fn end(&self, what: &str, error: &dyn std::fmt::Display) -> End {
        let words = format!("{what}: {error}");
        match (self.disk.is_killed(), self.may_fail) {
            (true, _) => End::Killed,
            (false, true) => End::Failed(words),
            (false, false) => End::Wrong(words),
        }
    }

    /// The end that an answer means that cannot be.
    pub(super) fn wrong(&self, words: String) -> End {
        if self.disk.is_killed() { End::Killed } else { End::Wrong(words) }
    }

    /// Opens the store, makes its drive if there is none, and looks at everything in it.
    ///
    /// # Errors
    /// The end that came meanwhile.
    pub fn open(&mut self) -> Result<(), End> {
        let files = self.disk.files();
        if !self.is_made {
            // A process that was killed may have left a part of it.
            let _ = files.remove(Path::new(PATH));
            let Hardware { design, profile, create, .. } = self.hardware;
            let created = Drive::create_all_in(&files, Path::new(PATH), profile, design, *create);
            let drive = created.map_err(|error| self.end("create", &error))?;
            self.alive()?;
            self.is_made = true;
            drop(drive);
        }
        let CreateDrive { sync, cache_bytes, .. } = self.hardware.create;
        let options = Options { missing: Missing::Fail, sync, cache_bytes, ..Options::default() };
        let opened = Store::open_in(&files, Path::new(PATH), &options);
        let store = opened.map_err(|error| self.end("open", &error))?;
        self.alive()?;
        self.store = Some(Running { store, spaces: BTreeMap::new() });
        self.windows.clear();
        let found = self.look()?;
        self.model.settle(found).map_err(|what| self.wrong(what))
    }

    /// Everything that is there; what is not the program's must be as it was.
    fn look(&mut self) -> Result<Spaces, End> {
        let running = self.store.take().expect("it was opened");
        let Found { ids, spaces, foreign } = self.look_with(&running)?;
        self.store = Some(Running { spaces: ids, ..running });
        if *self.foreign.get_or_insert_with(|| foreign.clone()) != foreign {
            return Err(self.wrong("what was in the image before has changed".to_owned()));
        }
        Ok(spaces)
    }

    pub(super) fn look_with(&self, running: &Running) -> Result<Found, End> {
        let mut found = Found { ids: BTreeMap::new(), spaces: Spaces::new(), foreign: Foreign::new() };
        let infos = running.store.namespaces().map_err(|error| self.end("namespaces", &error))?;
        for info in infos {
            let number = match &info.attributes.name {
                None => Some(0),
                Some(name) => name.strip_prefix(NAME_PREFIX).and_then(|number| number.parse().ok()),
            };
            let namespace = running.store.namespace_at(info.id);
            let (mut pairs, mut count) = (Pairs::new(), 0);
            for name in self.keys_of(running, info.id)? {
                let value = namespace.retrieve(&name).map_err(|error| self.end("retrieve", &error))?;
                let value = value.ok_or_else(|| self.wrong(format!("key {name:?} is listed and not there")))?;
                count += 1;
                match number.zip(number_of(&name)) {
                    Some((space, key)) => drop(pairs.insert(key, self.content_of(space, key, &value)?)),
                    None => drop(found.foreign.insert((info.id, name), xxh3_64(&value))),
                }
            }
            if namespace.count().map_err(|error| self.end("count", &error))? != count {
                return Err(self.wrong(format!("namespace {} counts other pairs than it lists", info.id)));
            }
            if let Some(number) = number {
                found.ids.insert(number, info.id);
                found.spaces.insert(number, pairs);
            }
        }
        Ok(found)
    }

    /// What a value was made from.
    fn content_of(&self, space: usize, key: usize, value: &[u8]) -> Result<Content, End> {
        let found = self.model.candidates(space, key).find(|content| *content == *value);
        found.ok_or_else(|| {
            self.wrong(format!("key {space}/{key} has a value of {} B that it never got, or no more", value.len()))
        })
    }

    fn keys_of(&self, running: &Running, id: NamespaceId) -> Result<Vec<Box<[u8]>>, End> {
        let namespace = running.store.namespace_at(id);
        namespace.keys(None).collect::<Result<_, _>>().map_err(|error: Error| self.end("list", &error))
    }

    /// Opens a store under which the disk has lost or misplaced something, and asks for every key: a value must be right, and a key that
    /// was there may not be missing. What cannot be read is told.
    ///
    /// # Errors
    /// [`End::Failed`] when something was told, and the end that came meanwhile.
    pub fn look_for_lies(&mut self) -> Result<(), End> {
        let CreateDrive { sync, cache_bytes, .. } = self.hardware.create;
        let options = Options { missing: Missing::Fail, sync, cache_bytes, ..Options::default() };
        let opened = Store::open_in(&self.disk.files(), Path::new(PATH), &options);
        let store = opened.map_err(|error| self.end("open", &error))?;
        let infos = store.namespaces().map_err(|error| self.end("namespaces", &error))?;
        let mut told = None;
        for (space, pairs) in self.model.spaces() {
            let is_it = |info: &&NamespaceInfo| info.attributes.name == (*space > 0).then(|| name_of(*space));
            let is_doubtful = self.model.is_doubtful(*space);
            let Some(info) = infos.iter().find(is_it) else {
                if is_doubtful {
                    continue;
                }
                return Err(End::Wrong(format!("namespace {space} is lost, and nobody said so")));
            };
            for number in pairs.keys() {
                match store.namespace_at(info.id).retrieve(&key(*number)) {
                    Ok(Some(value)) => drop(self.content_of(*space, *number, &value)?),
                    Ok(None) if self.model.may_be_absent(*space, *number) => {}
                    Ok(None) => return Err(End::Wrong(format!("key {space}/{number} is lost, and nobody said so"))),
                    Err(error) => told = Some(self.end("retrieve", &error)),
                }
            }
        }
        told.map_or(Ok(()), Err)
    }

    /// That what was answered just now was answered by a process that lives.
    pub(super) fn alive(&self) -> Result<(), End> {
        if self.disk.is_killed() { Err(End::Killed) } else { Ok(()) }
    }

    /// Ends the process in order: the store is closed.
    ///
    /// # Errors
    /// The end that came meanwhile.
    pub fn close(&mut self) -> Result<(), End> {
        if let Some(running) = self.store.take() {
            running.store.close().map_err(|error| self.end("close", &error))?;
        }
        self.alive()
    }
}

/// What a namespace is called.
pub(super) fn name_of(space: usize) -> String {
    format!("{NAME_PREFIX}{space}")
}
