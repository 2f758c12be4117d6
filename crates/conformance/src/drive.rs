//! A tiny drive beside the map that says what must be on it.

use crate::position::Position;
use kvssd_flash::{Backing, ByteBacking, Profile, RopeBacking};
use kvssd_ftl::{Design, Engine, MountReport};
use kvssd_types::{
    BatchChange, Command, Key, KvError, NamespaceId, Nanos, Pattern, Random, Reply, StoreCondition, Value, named_enum,
};
use std::collections::BTreeMap;

/// Memory that ropes give up: so much that what is kept of pairs outlives the places that it is named by.
const SPARE_BYTES: u64 = 16 << 20;

named_enum! {
    /// What keeps the pages.
    pub enum Medium: "medium" {
        /// Ropes.
        Ropes = "ropes",
        /// Bytes, checked when they are read.
        Bytes = "bytes",
    }
}

impl Medium {
    /// A new one for a drive of that profile.
    #[must_use]
    pub fn backing(self, profile: &Profile) -> Box<dyn Backing> {
        match self {
            Medium::Ropes => Box::new(RopeBacking::new(profile.geometry).giving(SPARE_BYTES)),
            Medium::Bytes => Box::new(ByteBacking::new(profile.geometry)),
        }
    }
}

/// When a command is done, its answer, and whether a glance has it: what a glance sees is just what the command answers. A glance at an iterator
/// moves it, as the command does: so it is asked for one of the two.
pub(crate) fn answer(
    engine: &mut Engine,
    namespace: NamespaceId,
    command: Command<'_>,
    at: Nanos,
    glances_along: bool,
) -> (Nanos, Result<Reply, KvError>, bool) {
    let is_of_iterator = command.is_of_iterator();
    let glance = if is_of_iterator && !glances_along { None } else { engine.glance(namespace, &command) };
    match glance {
        Some(reply) if is_of_iterator => (at, reply, true),
        glance => {
            let (done, reply) = engine.execute_in(namespace, command, at);
            let is_right = glance.as_ref().is_none_or(|seen| *seen == reply);
            assert!(is_right, "a glance sees {glance:?}, and the command answers {reply:?}");
            (done, reply, glance.is_some())
        }
    }
}

/// A drive, its clock, and the pairs that it must hold: key to (seed, length) of the value.
pub struct Drive {
    /// The drive.
    pub engine: Engine,
    /// When the last command was done.
    pub clock: Nanos,
    model: BTreeMap<Vec<u8>, (u64, u32)>,
    seed: u64,
    position: Position,
    /// Commands that a glance has answered ([`Engine::glance`]).
    pub glances: u64,
    commands: u64,
    /// Iterators are asked by commands alone, which take their time.
    is_timed: bool,
}

impl Drive {
    /// An empty tiny drive of the design, with overrides of its profile.
    ///
    /// # Panics
    /// When the design does not fit.
    #[must_use]
    pub fn of(design: &Design, medium: Medium, overrides: &[(&str, &str)]) -> Self {
        let profile = design.tiny_profile(overrides).unwrap();
        Drive::around(design.build(&profile, medium.backing(&profile)).unwrap())
    }

    /// Of an engine that has nothing.
    pub(crate) fn around(engine: Engine) -> Self {
        Drive {
            engine,
            clock: Nanos::ZERO,
            model: BTreeMap::new(),
            seed: 0,
            position: Position::default(),
            glances: 0,
            commands: 0,
            is_timed: false,
        }
    }

    /// The same drive once more.
    pub(crate) fn snapshot(&self) -> Self {
        let engine = self.engine.snapshot().expect("it is in memory");
        Drive {
            engine,
            clock: self.clock,
            model: self.model.clone(),
            seed: self.seed,
            position: self.position.clone(),
            glances: self.glances,
            commands: self.commands,
            is_timed: self.is_timed,
        }
    }

    /// The drive on which these pairs are, mounted again.
    pub(crate) fn again(self, remount: impl FnOnce(Engine) -> (Engine, MountReport)) -> Self {
        let Drive { engine, model, seed, position, glances, commands, is_timed, .. } = self;
        let (engine, mounted) = remount(engine);
        Drive { engine, clock: mounted.took, model, seed, position, glances, commands, is_timed }
    }

    /// Has its commands noted there.
    pub(crate) fn noted(mut self, position: Position) -> Self {
        self.position = position;
        self
    }

    /// With iterators that are asked by commands alone, which take their time.
    pub(crate) fn timed(mut self) -> Self {
        self.is_timed = true;
        self
    }

    /// Runs a command when the one before it is done.
    ///
    /// # Errors
    /// What the drive answers.
    pub fn run(&mut self, command: Command<'_>) -> Result<Reply, KvError> {
        self.position.step(&command);
        self.engine.advance(self.clock).unwrap();
        self.commands += 1;
        let glances_along = !self.is_timed && self.commands.is_multiple_of(2);
        let (done, reply, is_seen) = answer(&mut self.engine, NamespaceId::FIRST, command, self.clock, glances_along);
        assert!(done >= self.clock, "time goes forward");
        self.glances += u64::from(is_seen);
        self.clock = done;
        reply
    }

    /// Stores a new value of so many bytes.
    ///
    /// # Errors
    /// What the drive answers.
    pub fn store(&mut self, key: &[u8], value_bytes: usize) -> Result<(), KvError> {
        self.store_if(key, value_bytes, StoreCondition::Always)
    }

    /// The same under a condition.
    ///
    /// # Errors
    /// What the drive answers.
    pub fn store_if(&mut self, key: &[u8], value_bytes: usize, condition: StoreCondition) -> Result<(), KvError> {
        self.seed += 1;
        let pattern = Pattern { seed: self.seed, offset: 0, length: value_bytes as u32 };
        // Every other value is bytes, not a pattern.
        let value = Value::Pattern(pattern);
        let value = if self.seed.is_multiple_of(2) { Value::from(&value.to_vec()[..]) } else { value };
        let reply = self.run(Command::Store { key: Key::new(key).unwrap(), value, condition })?;
        assert_eq!(reply, Reply::Stored);
        self.model.insert(key.to_vec(), (self.seed, value_bytes as u32));
        Ok(())
    }

    /// Stores values of so many bytes, or deletes where there is none, as one batch.
    ///
    /// # Errors
    /// What the drive answers.
    pub fn batch(&mut self, changes: &BTreeMap<Vec<u8>, Option<usize>>) -> Result<(), KvError> {
        let seed = self.seed;
        self.seed += changes.len() as u64;
        let contents: Vec<_> = (seed + 1..)
            .zip(changes)
            .map(|(seed, (key, length))| (key, length.map(|length| (seed, length as u32))))
            .collect();
        let value = |(seed, length)| Value::Pattern(Pattern { seed, offset: 0, length });
        let change = |key, content: &Option<_>| BatchChange {
            namespace: NamespaceId::FIRST,
            key: Key::new(key).unwrap(),
            value: content.map(value),
        };
        let changes: Vec<BatchChange<'_>> = contents.iter().map(|(key, content)| change(key, content)).collect();
        assert_eq!(self.run(Command::Batch { changes: &changes })?, Reply::Batched);
        for (key, content) in &contents {
            match content {
                Some(content) => self.model.insert((*key).clone(), *content),
                None => self.model.remove(*key),
            };
        }
        Ok(())
    }

    /// Deletes a pair; that must succeed just when it is there.
    ///
    /// # Errors
    /// What the drive answers.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), KvError> {
        let reply = self.run(Command::Delete { key: Key::new(key).unwrap() });
        assert_eq!(
            reply.is_ok(),
            self.model.remove(key).is_some(),
            "a delete succeeds just when the key is there: {reply:?}"
        );
        reply.map(|_| ())
    }

    /// Keys in the order of the index.
    pub fn list(&mut self, from: Option<&[u8]>, keys_max: usize) -> Vec<Box<[u8]>> {
        let from = from.map(|key| Key::new(key).unwrap());
        match self.run(Command::List { from, keys_max }) {
            Ok(Reply::Listed(keys)) => {
                assert!(keys.len() <= keys_max, "a list of {keys_max} keys at the most has {}", keys.len());
                keys
            }
            other => panic!("{other:?}"),
        }
    }

    /// What must be there: key to (seed, length) of the value.
    #[must_use]
    pub fn model(&self) -> &BTreeMap<Vec<u8>, (u64, u32)> {
        &self.model
    }

    /// The keys that must be there, in order.
    #[must_use]
    pub fn keys(&self) -> Vec<Box<[u8]>> {
        self.model.keys().map(|key| key.as_slice().into()).collect()
    }

    /// Checks one key by retrieve, in whole and in part, and by exist.
    pub fn verify(&mut self, key: &[u8]) {
        let expected = self.model.get(key).copied();
        let exists = self.run(Command::Exist { key: Key::new(key).unwrap() });
        assert_eq!(exists, expected.map(|_| Reply::Exists).ok_or(KvError::KeyNotFound));
        let length = expected.map_or(0, |(_, length)| length);
        let middle = (length / 3, length / 2);
        for (offset, wanted) in [(0, u32::MAX), middle, (length, 5), (length + 9, 5), (length / 2, 0)] {
            let key = Key::new(key).unwrap();
            let reply = self.run(Command::Retrieve { key, offset_bytes: offset, length_bytes: wanted });
            let expected = expected.map(|(seed, length)| {
                let (start, end) = (offset.min(length), offset.min(length).saturating_add(wanted).min(length));
                let pattern = Pattern { seed, offset: start, length: end - start };
                Reply::Retrieved { value: Value::Pattern(pattern), value_bytes: length }
            });
            assert_eq!(reply, expected.ok_or(KvError::KeyNotFound), "{key:?} from {offset}");
        }
    }

    /// Checks every key, the count of pairs and bytes, and the engine's own invariants.
    pub fn verify_all(&mut self) {
        for key in self.keys() {
            self.verify(&key);
        }
        self.compare();
        let utilization = self.engine.utilization();
        let bytes: usize = self.model.iter().map(|(key, (_, length))| key.len() + *length as usize).sum();
        assert_eq!((utilization.pairs, utilization.pair_bytes), (self.model.len() as u64, bytes as u64));
        assert!(utilization.record_bytes >= utilization.pair_bytes && utilization.live_bytes >= utilization.pair_bytes);
        assert!(utilization.live_bytes <= self.engine.geometry().raw_bytes());
        let dram = self.engine.dram();
        assert!(dram.total_bytes() <= self.engine.dram_budget_bytes(), "{:?}", dram.parts());
        self.engine.check_invariants();
    }

    /// Has all pairs compared with those that they may have replaced; until then at least as many are counted as there are.
    pub fn compare(&mut self) {
        assert!(self.engine.utilization().pairs >= self.model.len() as u64);
        let (done, compared) = self.engine.compare(self.clock);
        compared.unwrap();
        assert!(done >= self.clock && !self.engine.has_uncompared());
        self.clock = done;
    }

    /// Random operations on a few thousand keys of all lengths, on a drive that is often full.
    pub fn life(&mut self, random: &mut Random, operations: u32) {
        for step in 0..operations {
            let number = random.below(3000);
            let key = key_of(number);
            match random.below(100) {
                0..50 => {
                    let value_bytes = match random.below(60) {
                        0 => random.below(self.engine.value_bytes_max() + 1),
                        1..6 => random.below(20_000),
                        6..16 => random.below(4200),
                        _ => random.below(1200),
                    };
                    let condition = match random.below(8) {
                        0 => StoreCondition::IfAbsent,
                        1 => StoreCondition::IfExists,
                        _ => StoreCondition::Always,
                    };
                    let there = self.model.contains_key(&key);
                    match self.store_if(&key, value_bytes as usize, condition) {
                        Ok(()) | Err(KvError::CapacityExceeded) => {}
                        Err(KvError::KeyExists) => assert!(there && condition == StoreCondition::IfAbsent),
                        Err(KvError::KeyNotFound) => assert!(!there && condition == StoreCondition::IfExists),
                        Err(other) => panic!("{other}"),
                    }
                }
                50..65 => {
                    let _ = self.delete(&key);
                }
                65..96 => self.verify(&key),
                96..99 => {
                    let mut changes = BTreeMap::new();
                    for _ in 0..1 + random.below(10) {
                        let value_bytes = (random.below(4) > 0).then(|| random.below(2000) as usize);
                        changes.insert(key_of(random.below(3000)), value_bytes);
                    }
                    let reply = self.batch(&changes);
                    assert!(matches!(reply, Ok(()) | Err(KvError::CapacityExceeded)), "{reply:?}");
                }
                _ => {
                    let _ = self.list(Some(&key), 5);
                }
            }
            if step % 500 == 0 {
                self.engine.check_invariants();
            }
        }
    }

    /// Stores and overwrites enough to have garbage collection come by.
    pub fn make_garbage(&mut self, stores: u32) {
        for number in 0..stores {
            let _ = self.store(format!("garbage {}", number % 20).as_bytes(), 3000);
        }
    }
}

/// A key of 1 to 255 bytes, most of them short.
fn key_of(number: u64) -> Vec<u8> {
    let mut key = number.to_be_bytes()[6..].to_vec();
    let length = if number.is_multiple_of(7) { number % 255 } else { number % 20 };
    key.resize(2 + (length as usize).min(253), number as u8);
    key
}
