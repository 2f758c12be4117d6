//! A drive of several engines over the parts of an image, as a device makes it, and what must be in it.

use crate::drive::tiny;
use kvssd_flash::{CreateOptions, DiskCall, ImageBacking, OpenOptions, PowerLoss, Profile, SimulatedDisk, Strike};
use kvssd_ftl::{BatchSequence, Design, Engine, NamespaceAttributes};
use kvssd_types::{
    BatchChange, Command, Key, KvError, NamespaceId, Nanos, Pattern, Random, Reply, StoreCondition, Value,
};
use std::collections::BTreeMap;
use std::path::Path;

pub(super) const PARTS: usize = 3;
pub(super) const KEYS: u16 = 90;
pub(super) const PATH: &str = "drive.kv";

/// What a key is bound to; none when it goes.
pub(super) type Wanted = (u16, Option<Pattern>);
pub(super) type Pairs = BTreeMap<u16, Pattern>;

/// The parts of a drive, mounted.
pub(super) struct Parts {
    pub(super) engines: Vec<Engine>,
    pub(super) clock: Nanos,
}

pub(super) fn part_of(key: u16) -> usize {
    usize::from(key) % PARTS
}

pub(super) fn options(sync: bool, read_only: bool) -> OpenOptions {
    OpenOptions { sync, read_only, cache_bytes: 0 }
}

pub(super) fn images(disk: &SimulatedDisk, options: OpenOptions) -> Result<Vec<ImageBacking>, String> {
    let opened = ImageBacking::open_parts_in(&disk.files(), Path::new(PATH), options);
    Ok(opened.map_err(|error| error.to_string())?.0)
}

impl Parts {
    pub(super) fn create(disk: &SimulatedDisk, design: &Design, profile: &Profile, sync: bool) -> Parts {
        let step_bytes = (3 * profile.geometry.superblock_bytes()).max(4 << 20);
        let staging_bytes = 2 * profile.memory.write_buffer_bytes + step_bytes + (1 << 20);
        let options = CreateOptions { staging_bytes, sync, ..CreateOptions::default() };
        let made =
            ImageBacking::create_parts_in(&disk.files(), Path::new(PATH), profile.geometry, "", PARTS as u32, options);
        let build = |image| design.build(profile, Box::new(image)).unwrap();
        let mut engines: Vec<Engine> = made.unwrap().into_iter().map(build).collect();
        engines.iter_mut().for_each(|engine| engine.commit().unwrap());
        Parts { engines, clock: Nanos::ZERO }
    }

    /// The coordinator is mounted first: it says which shares of the others count.
    pub(super) fn mount(disk: &SimulatedDisk, design: &Design, profile: &Profile, sync: bool) -> Result<Parts, String> {
        let mut parts = Parts { engines: Vec::new(), clock: Nanos::ZERO };
        let mut decided = BatchSequence::default();
        for image in images(disk, options(sync, false))? {
            let mounted = design.mount_part(profile, Box::new(image), decided);
            let (engine, report) = mounted.map_err(|error| error.to_string())?;
            parts.clock = parts.clock.max(report.took);
            if parts.engines.is_empty() {
                decided = engine.decided();
            }
            parts.engines.push(engine);
        }
        Ok(parts)
    }

    pub(super) fn done(&mut self, (done, result): (Nanos, Result<(), KvError>)) -> Result<(), KvError> {
        self.clock = self.clock.max(done);
        result
    }

    /// A batch over several parts, as a drive makes it: what a device does with the locks of all of them.
    pub(super) fn batch(&mut self, shares: &[Vec<BatchChange<'_>>]) -> Result<(), KvError> {
        let sequence = self.engines[0].decided().next();
        let taking: Vec<usize> = (0..PARTS).filter(|&part| !shares[part].is_empty()).collect();
        let others = || taking.iter().copied().filter(|&part| part > 0);
        for (number, &part) in taking.iter().enumerate() {
            let prepared = self.engines[part].prepare_batch(&shares[part], self.clock);
            if let Err(refused) = self.done(prepared) {
                for &before in taking[..number].iter().filter(|_| !refused.is_fatal()) {
                    let abandoned = self.engines[before].abandon_batch(&shares[before], self.clock);
                    self.done(abandoned)?;
                }
                return Err(refused);
            }
        }
        for part in others() {
            let finished = self.engines[part].finish_batch(&shares[part], sequence, self.clock);
            self.done(finished)?;
        }
        let decided = self.engines[0].decide_batch(&shares[0], sequence, self.clock);
        self.done(decided)?;
        others().try_for_each(|part| self.engines[part].end_batch(self.clock))
    }

    /// As [`Parts::batch`], of keys; with `refused` the last share has a value for which there is no room.
    pub(super) fn change(&mut self, wanted: &[Wanted], refused: bool) -> Result<(), KvError> {
        let keys: Vec<[u8; 2]> = wanted.iter().map(|(key, _)| key.to_be_bytes()).collect();
        let mut shares: Vec<Vec<BatchChange<'_>>> = vec![Vec::new(); PARTS];
        for ((key, value), bytes) in wanted.iter().zip(&keys) {
            let (namespace, key_bytes) = (NamespaceId::FIRST, Key::new(bytes).unwrap());
            shares[part_of(*key)].push(BatchChange { namespace, key: key_bytes, value: value.map(Value::Pattern) });
        }
        if refused {
            let pattern = Pattern { seed: 1, offset: 0, length: 9000 };
            let (namespace, value) = (NamespaceId(2), Some(Value::Pattern(pattern)));
            let last = shares.iter_mut().rfind(|share| !share.is_empty()).unwrap();
            last.push(BatchChange { namespace, key: Key::new(b"more").unwrap(), value });
        }
        self.batch(&shares)
    }

    pub(super) fn single(&mut self, (key, value): Wanted) -> Result<(), KvError> {
        let bytes = key.to_be_bytes();
        let key_bytes = Key::new(&bytes)?;
        let command = match value {
            Some(pattern) => {
                Command::Store { key: key_bytes, value: Value::Pattern(pattern), condition: StoreCondition::Always }
            }
            None => Command::Delete { key: key_bytes },
        };
        let engine = &mut self.engines[part_of(key)];
        engine.advance(self.clock)?;
        let (done, reply) = engine.execute(command, self.clock);
        self.done((done, reply.map(|_| ())))
    }

    /// What is there, if all of it can be read.
    pub(super) fn pairs(&mut self) -> Result<Pairs, String> {
        let mut pairs = Pairs::new();
        for key in 0..KEYS {
            let bytes = key.to_be_bytes();
            let command = Command::Retrieve { key: Key::new(&bytes).unwrap(), offset_bytes: 0, length_bytes: u32::MAX };
            let (done, reply) = self.engines[part_of(key)].execute(command, self.clock);
            self.clock = self.clock.max(done);
            match reply {
                Err(KvError::KeyNotFound) => {}
                Ok(Reply::Retrieved { value, .. }) => {
                    let bytes = value.to_vec();
                    let seed = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                    pairs.insert(key, Pattern { seed, offset: 0, length: bytes.len() as u32 });
                }
                other => return Err(format!("key {key}: {other:?}")),
            }
        }
        Ok(pairs)
    }
}

/// The map with the seeds as they are read: a pattern's first bytes.
pub(super) fn read_as(pairs: &Pairs) -> Pairs {
    let first = |pattern: &Pattern| {
        let bytes = Value::Pattern(*pattern).to_vec();
        Pattern { seed: u64::from_le_bytes(bytes[..8].try_into().unwrap()), ..*pattern }
    };
    pairs.iter().map(|(key, pattern)| (*key, first(pattern))).collect()
}

pub(super) fn with(pairs: &Pairs, changes: &[Wanted]) -> Pairs {
    let mut pairs = pairs.clone();
    for (key, value) in changes {
        match value {
            Some(pattern) => drop(pairs.insert(*key, *pattern)),
            None => drop(pairs.remove(key)),
        }
    }
    pairs
}

/// A drive of several parts over many lives.
pub(super) struct Drive {
    pub(super) disk: SimulatedDisk,
    pub(super) design: Design,
    pub(super) profile: Profile,
    pub(super) sync: bool,
    pub(super) random: Random,
    pub(super) pairs: Pairs,
    /// What was under way when the last life ended.
    pub(super) doubt: Vec<Wanted>,
    pub(super) seed: u64,
    /// Calls of the disk that had failed before this life.
    pub(super) failures: u64,
    /// Batches that were made, were refused, and were in doubt and found to be made or not.
    pub(super) made: u64,
    pub(super) refused: u64,
    pub(super) in_doubt: [u64; 2],
}

impl Drive {
    pub(super) fn new(design: &Design, sync: bool, seed: u64) -> Drive {
        let disk = SimulatedDisk::new(seed);
        let profile = tiny(design, PowerLoss::Protected);
        let mut parts = Parts::create(&disk, design, &profile, sync);
        // Where there can be another namespace, it refuses what comes.
        let attributes = NamespaceAttributes { quota_bytes: Some(4096), ..NamespaceAttributes::PLAIN };
        for engine in &mut parts.engines {
            let _ = engine.create_namespace(attributes.clone(), Nanos::ZERO).1;
            engine.commit().unwrap();
        }
        drop(parts);
        Drive {
            disk,
            design: design.clone(),
            profile,
            sync,
            random: Random::new(seed),
            pairs: Pairs::new(),
            doubt: Vec::new(),
            seed: 0,
            failures: 0,
            made: 0,
            refused: 0,
            in_doubt: [0; 2],
        }
    }

    pub(super) fn mount(&self) -> Result<Parts, String> {
        Parts::mount(&self.disk, &self.design, &self.profile, self.sync)
    }

    /// What a key gets.
    pub(super) fn pattern(&mut self) -> Pattern {
        self.seed += 1;
        let most = if self.random.below(4) == 0 { 6000 } else { 600 };
        let length = 8 + self.random.below(most) as u32;
        Pattern { seed: self.seed, offset: 0, length }
    }

    /// So many changes, each of a key of its own.
    pub(super) fn changes(&mut self, most: u64) -> Vec<Wanted> {
        let count = 1 + self.random.below(most);
        let keys: Vec<u16> = (0..count).map(|_| self.random.below(KEYS.into()) as u16).collect();
        let changes = keys.into_iter().map(|key| {
            let value = (self.random.below(4) > 0).then(|| self.pattern());
            (key, value)
        });
        changes.collect::<BTreeMap<u16, Option<Pattern>>>().into_iter().collect()
    }

    /// What is there is what must be, and of what was under way all or nothing.
    pub(super) fn look(&mut self, parts: &mut Parts) -> Result<(), String> {
        let found = parts.pairs()?;
        let after = with(&self.pairs, &self.doubt);
        let is_made = found == read_as(&after);
        if !is_made && found != read_as(&self.pairs) {
            let wanted = read_as(&self.pairs);
            let wrong: Vec<u16> = (0..KEYS).filter(|key| found.get(key) != wanted.get(key)).collect();
            return Err(format!("{:?} was under way, and of {wrong:?} there is what was not", self.doubt));
        }
        if self.doubt.len() > 1 && after != self.pairs {
            self.in_doubt[usize::from(is_made)] += 1;
        }
        if is_made {
            self.pairs = after;
        }
        self.doubt.clear();
        Ok(())
    }

    /// A change of one key, or of several, or one that is refused. Gives false when that was the end.
    pub(super) fn step(&mut self, parts: &mut Parts) -> Result<bool, String> {
        let is_batch = self.random.below(3) == 0;
        let changes = self.changes(if is_batch { 12 } else { 1 });
        let is_refused = is_batch && self.random.below(4) == 0;
        let result = if is_batch { parts.change(&changes, is_refused) } else { parts.single(changes[0]) };
        match result {
            Ok(()) if is_refused => Err("there was room where there is none".to_owned())?,
            Ok(()) => {
                self.made += u64::from(changes.len() > 1);
                self.pairs = with(&self.pairs, &changes);
            }
            // A key that is to go need not be there.
            Err(KvError::KeyNotFound) => {}
            Err(KvError::CapacityExceeded | KvError::NoSuchNamespace { .. }) if is_refused => self.refused += 1,
            Err(_) if self.is_dead() => {
                self.doubt = if is_refused { Vec::new() } else { changes };
                return Ok(false);
            }
            Err(error) => Err(error.to_string())?,
        }
        Ok(true)
    }

    /// Whether the process was killed, or its disk has failed.
    pub(super) fn is_dead(&self) -> bool {
        self.disk.is_killed() || self.disk.failures() > self.failures
    }

    pub(super) fn life(&mut self) -> Result<(), String> {
        let kinds = [Strike::KillBefore, Strike::KillWithin, Strike::KillAfter, Strike::PowerBefore];
        let strike = kinds[self.random.below(if self.sync { 4 } else { 3 }) as usize];
        let at = self.disk.calls() + self.random.below(600);
        self.failures = self.disk.failures();
        match self.random.below(4) {
            0 => self.disk.strike_next(at, DiskCall::Sync, Strike::Fail),
            1 => self.disk.strike_next(at, DiskCall::Write, Strike::Full),
            _ => self.disk.strike(at, strike),
        }
        let mut parts = match self.mount() {
            Ok(parts) => parts,
            Err(_) if self.is_dead() => {
                self.disk.kill();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let looked = self.look_unless_killed(&mut parts);
        let mut goes_on = looked?;
        for _ in 0..self.random.below(120) {
            goes_on = goes_on && self.step(&mut parts)?;
        }
        if goes_on && self.random.below(4) == 0 {
            self.disk.spare();
            parts.engines.drain(..).try_for_each(Engine::close).map_err(|error| error.to_string())?;
        }
        self.disk.kill();
        Ok(())
    }

    pub(super) fn look_unless_killed(&mut self, parts: &mut Parts) -> Result<bool, String> {
        match self.look(parts) {
            Err(_) if self.is_dead() => Ok(false),
            looked => looked.map(|()| true),
        }
    }

    /// Nothing is wrong with any part.
    pub(super) fn check(&mut self) -> Result<(), String> {
        self.disk.kill();
        let decided = self.mount()?.engines[0].decided();
        for image in images(&self.disk, options(false, true))? {
            let report = self.design.check_part(&self.profile, Box::new(image), decided);
            if !report.is_clean() {
                return Err(report.to_string());
            }
        }
        Ok(())
    }
}
