//! Batches over several drives in one file: all of their changes or none, wherever the process is killed or the machine stops.
//!
//! ```text
//!   key k -> part k % 3, each an engine over its part of the image; part 0 decides
//!   a map has what must be there, and the change that was under way when the end came may be there as a whole or not at all
//! ```

use crate::drive::{designs, tiny};
use kvssd_designs::{PLUS, TESSERA};
use kvssd_flash::{CreateOptions, ImageBacking, OpenOptions, PowerLoss, Profile, SimulatedDisk, Strike};
use kvssd_ftl::{BatchSequence, Design, Engine, NamespaceAttributes, PlantedBug};
use kvssd_types::{
    BatchChange, Command, Key, KvError, NamespaceId, Nanos, Pattern, Random, Reply, StoreCondition, Value,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

const PARTS: usize = 3;
const KEYS: u16 = 90;
const PATH: &str = "drive.kv";

/// What a key is bound to; none when it goes.
type Wanted = (u16, Option<Pattern>);
type Pairs = BTreeMap<u16, Pattern>;

/// The parts of a drive, mounted.
struct Parts {
    engines: Vec<Engine>,
    clock: Nanos,
}

fn part_of(key: u16) -> usize {
    usize::from(key) % PARTS
}

fn options(sync: bool, read_only: bool) -> OpenOptions {
    OpenOptions { sync, read_only, cache_bytes: 0 }
}

fn images(disk: &SimulatedDisk, options: OpenOptions) -> Result<Vec<ImageBacking>, String> {
    let opened = ImageBacking::open_parts_in(&disk.files(), Path::new(PATH), options);
    Ok(opened.map_err(|error| error.to_string())?.0)
}

impl Parts {
    fn create(disk: &SimulatedDisk, design: &Design, profile: &Profile, sync: bool) -> Parts {
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
    fn mount(disk: &SimulatedDisk, design: &Design, profile: &Profile, sync: bool) -> Result<Parts, String> {
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

    fn done(&mut self, (done, result): (Nanos, Result<(), KvError>)) -> Result<(), KvError> {
        self.clock = self.clock.max(done);
        result
    }

    /// A batch over several parts, as a drive makes it: what a device does with the locks of all of them.
    fn batch(&mut self, shares: &[Vec<BatchChange<'_>>]) -> Result<(), KvError> {
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
    fn change(&mut self, wanted: &[Wanted], refused: bool) -> Result<(), KvError> {
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

    fn single(&mut self, (key, value): Wanted) -> Result<(), KvError> {
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
    fn pairs(&mut self) -> Result<Pairs, String> {
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
fn read_as(pairs: &Pairs) -> Pairs {
    let first = |pattern: &Pattern| {
        let bytes = Value::Pattern(*pattern).to_vec();
        Pattern { seed: u64::from_le_bytes(bytes[..8].try_into().unwrap()), ..*pattern }
    };
    pairs.iter().map(|(key, pattern)| (*key, first(pattern))).collect()
}

fn with(pairs: &Pairs, changes: &[Wanted]) -> Pairs {
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
struct Drive {
    disk: SimulatedDisk,
    design: Design,
    profile: Profile,
    sync: bool,
    random: Random,
    pairs: Pairs,
    /// What was under way when the last life ended.
    doubt: Vec<Wanted>,
    seed: u64,
    /// Batches that were made, were refused, and were in doubt and found to be made or not.
    made: u64,
    refused: u64,
    in_doubt: [u64; 2],
}

impl Drive {
    fn new(design: &Design, sync: bool, seed: u64) -> Drive {
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
            made: 0,
            refused: 0,
            in_doubt: [0; 2],
        }
    }

    fn mount(&self) -> Result<Parts, String> {
        Parts::mount(&self.disk, &self.design, &self.profile, self.sync)
    }

    /// What a key gets.
    fn pattern(&mut self) -> Pattern {
        self.seed += 1;
        let most = if self.random.below(4) == 0 { 6000 } else { 600 };
        let length = 8 + self.random.below(most) as u32;
        Pattern { seed: self.seed, offset: 0, length }
    }

    /// So many changes, each of a key of its own.
    fn changes(&mut self, most: u64) -> Vec<Wanted> {
        let count = 1 + self.random.below(most);
        let keys: Vec<u16> = (0..count).map(|_| self.random.below(KEYS.into()) as u16).collect();
        let changes = keys.into_iter().map(|key| {
            let value = (self.random.below(4) > 0).then(|| self.pattern());
            (key, value)
        });
        changes.collect::<BTreeMap<u16, Option<Pattern>>>().into_iter().collect()
    }

    /// What is there is what must be, and of what was under way all or nothing.
    fn look(&mut self, parts: &mut Parts) -> Result<(), String> {
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
    fn step(&mut self, parts: &mut Parts) -> Result<bool, String> {
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
            Err(_) if self.disk.is_killed() => {
                self.doubt = if is_refused { Vec::new() } else { changes };
                return Ok(false);
            }
            Err(error) => Err(error.to_string())?,
        }
        Ok(true)
    }

    fn life(&mut self) -> Result<(), String> {
        let kinds = [Strike::KillBefore, Strike::KillWithin, Strike::KillAfter, Strike::PowerBefore];
        let strike = kinds[self.random.below(if self.sync { 4 } else { 3 }) as usize];
        self.disk.strike(self.disk.calls() + self.random.below(600), strike);
        let mut parts = match self.mount() {
            Ok(parts) => parts,
            Err(_) if self.disk.is_killed() => {
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

    fn look_unless_killed(&mut self, parts: &mut Parts) -> Result<bool, String> {
        match self.look(parts) {
            Err(_) if self.disk.is_killed() => Ok(false),
            looked => looked.map(|()| true),
        }
    }

    /// Nothing is wrong with any part.
    fn check(&mut self) -> Result<(), String> {
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

#[test]
fn batches_over_parts_are_all_or_none_over_many_lives() {
    thread::scope(|threads| {
        for design in designs() {
            threads.spawn(move || {
                let (mut made, mut refused, mut in_doubt) = (0, 0, [0; 2]);
                for sync in [false, true] {
                    let mut drive = Drive::new(&design, sync, 3);
                    for life in 0..40 {
                        let lived = drive.life().and_then(|()| if life % 10 == 9 { drive.check() } else { Ok(()) });
                        lived.unwrap_or_else(|why| panic!("{}, sync {sync}, life {life}: {why}", design.name));
                    }
                    (made, refused) = (made + drive.made, refused + drive.refused);
                    in_doubt = [in_doubt[0] + drive.in_doubt[0], in_doubt[1] + drive.in_doubt[1]];
                }
                let name = design.name;
                assert!(made > 200 && refused > 50, "{name}: {made} made, {refused} refused");
                assert!(in_doubt[0] > 5, "{name}: {in_doubt:?} were in doubt");
            });
        }
    });
}

/// The batch of [`struck_anywhere`]: new keys, changes and deletes, with or without a share of the coordinator.
fn scripted(drive: &mut Drive, with_coordinator: bool) -> Vec<Wanted> {
    let keys = (20..40u16).filter(|key| with_coordinator || part_of(*key) > 0);
    let new = |drive: &mut Drive, key| (key, (key % 5 > 0 || key >= 30).then(|| drive.pattern()));
    keys.map(|key| new(drive, key)).collect()
}

/// A batch is struck at each of its calls of the disk, the mounts behind it too; then batches of the other parts are decided, and nothing of the
/// first comes back.
fn struck_anywhere(design: &Design, sync: bool, with_coordinator: bool) -> Result<[u64; 2], String> {
    let mut base = Drive::new(design, sync, 5);
    let mut parts = base.mount()?;
    base.pairs = with(&Pairs::new(), &(0..30).map(|key| (key, Some(base.pattern()))).collect::<Vec<Wanted>>());
    let all: Vec<Wanted> = base.pairs.iter().map(|(key, pattern)| (*key, Some(*pattern))).collect();
    parts.change(&all, false).map_err(|error| error.to_string())?;
    base.disk.kill();
    drop(parts);
    let changes = scripted(&mut base, with_coordinator);
    let mut found = [0; 2];
    let kinds = [Strike::KillBefore, Strike::KillWithin, Strike::KillAfter, Strike::PowerBefore];
    for strike in kinds.into_iter().take(if sync { 4 } else { 3 }) {
        for call in 0.. {
            let mut drive = Drive { disk: base.disk.copy(call), ..Drive::new(design, sync, call) };
            (drive.pairs, drive.seed) = (base.pairs.clone(), 1000);
            let mut parts = drive.mount()?;
            let first = drive.disk.calls();
            drive.disk.strike(first + call, strike);
            let is_answered = parts.change(&changes, false).is_ok();
            let is_over = drive.disk.calls() <= first + call;
            if is_answered {
                drive.pairs = with(&drive.pairs, &changes);
            } else {
                drive.doubt.clone_from(&changes);
            }
            drive.disk.kill();
            drop(parts);
            for _ in 0..2 {
                drive.disk.strike(drive.disk.calls() + drive.random.below(60), strike);
                drop(drive.mount());
                drive.disk.kill();
            }
            go_on(&mut drive).map_err(|why| format!("{strike:?} at call {call}: {why}"))?;
            found = [found[0] + drive.in_doubt[0], found[1] + drive.in_doubt[1]];
            if is_over {
                break;
            }
        }
    }
    Ok(found)
}

/// Lives behind a batch that was struck: what is there stays, whatever other parts decide.
fn go_on(drive: &mut Drive) -> Result<(), String> {
    for round in 0..3 {
        let mut parts = drive.mount()?;
        drive.look(&mut parts)?;
        // Of the coordinator and the last part, and then of all.
        let changes: Vec<Wanted> = (50..62).map(|key| (key, Some(drive.pattern()))).collect();
        let changes: Vec<Wanted> = changes.into_iter().filter(|(key, _)| round > 0 || part_of(*key) != 1).collect();
        parts.change(&changes, false).map_err(|error| error.to_string())?;
        drive.pairs = with(&drive.pairs, &changes);
        drive.disk.kill();
    }
    drive.check()
}

#[test]
fn a_batch_over_parts_that_is_struck_at_any_call_is_there_or_not() {
    thread::scope(|threads| {
        for (design, sync) in [(PLUS, false), (PLUS, true), (TESSERA, false), (TESSERA, true)] {
            threads.spawn(move || {
                for with_coordinator in [false, true] {
                    let found = struck_anywhere(&design, sync, with_coordinator);
                    let found = found.unwrap_or_else(|why| panic!("{}, sync {sync}: {why}", design.name));
                    assert!(found[0] > 3 && found[1] > 0, "{}, sync {sync}: {found:?}", design.name);
                }
            });
        }
    });
}

#[test]
fn a_mount_that_does_not_look_at_the_decision_is_found_out() {
    let design = Design { planted: Some(PlantedBug::UndecidedBatch), ..PLUS };
    assert!(struck_anywhere(&design, false, true).is_err());
}

/// In the middle of a batch an engine does nothing else, and without one no call of it means anything.
#[test]
fn the_calls_of_a_batch_come_in_their_order() {
    let (disk, profile) = (SimulatedDisk::new(1), tiny(&PLUS, PowerLoss::Protected));
    let mut parts = Parts::create(&disk, &PLUS, &profile, false);
    let change = BatchChange {
        namespace: NamespaceId::FIRST,
        key: Key::new(b"key").unwrap(),
        value: Some(Value::from(&b"value"[..])),
    };
    let changes = [change];
    let [coordinator, engine, _] = &mut parts.engines[..] else { unreachable!() };
    let (zero, one) = (Nanos::ZERO, BatchSequence(1));
    let is_refused =
        |result: Result<(), KvError>| assert!(matches!(result, Err(KvError::InvalidCommand(_))), "{result:?}");
    is_refused(engine.finish_batch(&changes, one, zero).1);
    is_refused(engine.abandon_batch(&changes, zero).1);
    is_refused(engine.end_batch(zero));
    is_refused(coordinator.decide_batch(&changes, one, zero).1);
    is_refused(coordinator.decide_batch(&[], BatchSequence(0), zero).1);
    engine.prepare_batch(&changes, zero).1.unwrap();
    is_refused(engine.prepare_batch(&changes, zero).1);
    is_refused(engine.finish_batch(&changes, BatchSequence(0), zero).1);
    is_refused(engine.finish_batch(&[], one, zero).1);
    is_refused(engine.execute(Command::Flush, zero).1.map(|_| ()));
    is_refused(engine.advance(zero));
    is_refused(engine.commit());
    engine.finish_batch(&changes, one, zero).1.unwrap();
    is_refused(engine.abandon_batch(&changes, zero).1);
    is_refused(engine.commit());
    coordinator.decide_batch(&[], one, zero).1.unwrap();
    is_refused(coordinator.decide_batch(&[], one, zero).1);
    engine.end_batch(zero).unwrap();
    assert_eq!((coordinator.decided(), engine.decided()), (one, BatchSequence(0)));
    assert!(matches!(engine.execute(Command::Exist { key: changes[0].key }, zero).1, Ok(Reply::Exists)));
    disk.kill();
    drop(parts);
    // Whoever forgets to ask the coordinator is told, once the part has gone on.
    let mut parts = Parts::mount(&disk, &PLUS, &profile, false).unwrap();
    parts.single((1, Some(Pattern { seed: 1, offset: 0, length: 9 }))).unwrap();
    disk.kill();
    drop(parts);
    let image = images(&disk, options(false, false)).unwrap().remove(1);
    let why = PLUS.mount(&profile, Box::new(image)).err().unwrap().to_string();
    assert!(why.contains("of which nobody knows that it was decided"), "{why}");
}
