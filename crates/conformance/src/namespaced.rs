//! A drive with several namespaces beside a map for each.

use crate::drive::{Medium, answer};
use crate::position::Position;
use kvssd_flash::Profile;
use kvssd_ftl::{Design, Engine, NamespaceAttributes, Stream};
use kvssd_types::{
    BatchChange, Command, Key, KvError, NamespaceId, Nanos, Pattern, Random, Reply, StoreCondition, Value,
};
use std::collections::BTreeMap;

/// What must be in a namespace.
pub type Model = BTreeMap<Vec<u8>, (u64, u32)>;

/// A drive with several namespaces and what must be in each.
pub struct NamespacedDrive {
    /// The drive.
    pub engine: Engine,
    /// When the last command was done.
    pub clock: Nanos,
    /// What must be in each namespace: key to (seed, length) of the value.
    pub models: BTreeMap<NamespaceId, Model>,
    /// Of the last value.
    pub seed: u64,
    position: Position,
}

/// A tiny drive of a design that can have many namespaces, with DRAM for some.
///
/// # Panics
/// When it does not fit.
#[must_use]
pub fn few_logs(design: &Design, power_loss: &str) -> (Design, Profile) {
    let mut design = design.clone();
    design.namespaces_max = 6;
    let overrides = [
        ("geometry.blocks_per_die", "64"),
        ("geometry.oob_bytes", "1000"),
        ("memory.dram_bytes", "1500000"),
        ("memory.power_loss", power_loss),
    ];
    let profile = design.tiny_profile(&overrides).unwrap();
    (design, profile)
}

/// A drive whose superblocks lie on one die each, so that it has four logs a stream.
///
/// # Panics
/// When it does not fit.
#[must_use]
pub fn many_logs(design: &Design) -> (Design, Profile) {
    let (mut design, mut profile) = few_logs(design, "ignored");
    profile.geometry.superblock_dies = 1;
    profile.geometry.pages_per_block = 16;
    profile.geometry.blocks_per_die = 20;
    // Each log of each stream may gather a unit, and one more is programmed.
    let logs = Stream::ALL.len() as u64 * u64::from(profile.geometry.targets());
    profile.memory.write_buffer_bytes = (logs + 1) * profile.geometry.unit_bytes();
    design.gc_low_superblocks = 6;
    design.gc_high_superblocks = 2;
    (design, profile)
}

impl NamespacedDrive {
    /// An empty drive.
    ///
    /// # Panics
    /// When the design does not fit.
    #[must_use]
    pub fn of((design, profile): (Design, Profile), medium: Medium) -> Self {
        NamespacedDrive::around(design.build(&profile, medium.backing(&profile)).unwrap())
    }

    /// Has its commands noted there.
    pub(crate) fn noted(mut self, position: Position) -> Self {
        self.position = position;
        self
    }

    /// Of an engine that has nothing.
    #[must_use]
    pub fn around(engine: Engine) -> Self {
        let models = BTreeMap::from([(NamespaceId::FIRST, Model::new())]);
        NamespacedDrive { engine, clock: Nanos::ZERO, models, seed: 0, position: Position::default() }
    }

    /// Makes a namespace.
    ///
    /// # Errors
    /// What the drive answers.
    pub fn create(&mut self, attributes: NamespaceAttributes) -> Result<NamespaceId, KvError> {
        let (done, created) = self.engine.create_namespace(attributes, self.clock);
        self.clock = self.clock.max(done);
        if let Ok(id) = created {
            self.models.insert(id, Model::new());
        }
        created
    }

    /// Deletes a namespace, which must be there.
    pub fn delete_namespace(&mut self, id: NamespaceId) {
        let (done, deleted) = self.engine.delete_namespace(id, self.clock);
        deleted.unwrap();
        self.clock = self.clock.max(done);
        self.models.remove(&id);
    }

    /// Runs a command when the one before it is done.
    ///
    /// # Errors
    /// What the drive answers.
    pub fn run(&mut self, namespace: NamespaceId, command: Command<'_>) -> Result<Reply, KvError> {
        self.position.step(&command);
        self.engine.advance(self.clock).unwrap();
        let glances_along = self.position.steps().is_multiple_of(2);
        let (done, reply, _) = answer(&mut self.engine, namespace, command, self.clock, glances_along);
        self.clock = self.clock.max(done);
        reply
    }

    /// A new value, and its seed.
    pub fn value(&mut self, length: u32) -> (u64, Value) {
        self.seed += 1;
        (self.seed, Value::Pattern(Pattern { seed: self.seed, offset: 0, length }))
    }

    /// Stores a new value of so many bytes.
    ///
    /// # Errors
    /// What the drive answers.
    pub fn store(&mut self, namespace: NamespaceId, key: &[u8], length: u32) -> Result<(), KvError> {
        let (seed, value) = self.value(length);
        let condition = StoreCondition::Always;
        self.run(namespace, Command::Store { key: Key::new(key).unwrap(), value, condition })?;
        self.models.get_mut(&namespace).unwrap().insert(key.to_vec(), (seed, length));
        Ok(())
    }

    /// Some changes over all namespaces, as one batch.
    ///
    /// # Errors
    /// What the drive answers.
    pub fn batch(&mut self, random: &mut Random, changes: usize) -> Result<(), KvError> {
        let ids: Vec<NamespaceId> = self.models.keys().copied().collect();
        let mut wanted: BTreeMap<(NamespaceId, Vec<u8>), Option<u32>> = BTreeMap::new();
        for _ in 0..changes {
            let namespace = ids[random.below(ids.len() as u64) as usize];
            let length = (random.below(4) > 0).then(|| random.below(1500) as u32);
            wanted.insert((namespace, key_of(random.below(400))), length);
        }
        let values: Vec<Option<(u64, Value)>> =
            wanted.values().map(|length| length.map(|length| self.value(length))).collect();
        let changes: Vec<BatchChange<'_>> = wanted
            .keys()
            .zip(&values)
            .map(|((namespace, key), value)| BatchChange {
                namespace: *namespace,
                key: Key::new(key).unwrap(),
                value: value.as_ref().map(|(_, value)| value.clone()),
            })
            .collect();
        assert_eq!(self.run(NamespaceId::FIRST, Command::Batch { changes: &changes })?, Reply::Batched);
        for ((namespace, key), value) in wanted.keys().cloned().zip(values) {
            let model = self.models.get_mut(&namespace).unwrap();
            match value {
                Some((seed, value)) => model.insert(key, (seed, value.len() as u32)),
                None => model.remove(&key),
            };
        }
        Ok(())
    }

    /// Deletes a pair; that must succeed just when it is there.
    pub fn delete(&mut self, namespace: NamespaceId, key: &[u8]) {
        let reply = self.run(namespace, Command::Delete { key: Key::new(key).unwrap() });
        assert_eq!(reply.is_ok(), self.models.get_mut(&namespace).unwrap().remove(key).is_some());
    }

    /// Checks one key.
    pub fn verify(&mut self, namespace: NamespaceId, key: &[u8]) {
        let expected = self.models[&namespace].get(key).copied();
        let key = Key::new(key).unwrap();
        let reply = self.run(namespace, Command::Retrieve { key, offset_bytes: 0, length_bytes: u32::MAX });
        let expected = expected.map(|(seed, length)| Reply::Retrieved {
            value: Value::Pattern(Pattern { seed, offset: 0, length }),
            value_bytes: length,
        });
        assert_eq!(reply, expected.ok_or(KvError::KeyNotFound), "{key:?} of namespace {namespace}");
    }

    /// Checks every key that [`NamespacedDrive::life`] uses, counts, DRAM, the engine's invariants, and the drive as a whole.
    pub fn verify_all(&mut self) {
        let (done, compared) = self.engine.compare(self.clock);
        compared.unwrap();
        self.clock = done;
        for (namespace, model) in self.models.clone() {
            for number in 0..400 {
                self.verify(namespace, &key_of(number));
            }
            let info = self.engine.namespaces().into_iter().find(|info| info.id == namespace).unwrap();
            let bytes: usize = model.iter().map(|(key, (_, length))| key.len() + *length as usize).sum();
            assert_eq!((info.utilization.pairs, info.utilization.pair_bytes), (model.len() as u64, bytes as u64));
        }
        let dram = self.engine.dram();
        assert!(dram.total_bytes() <= self.engine.dram_budget_bytes(), "{:?}", dram.parts());
        self.engine.check_invariants();
        let report = self.engine.check();
        assert!(report.is_clean(), "{report}");
    }

    /// Random operations on a few hundred keys of each namespace.
    pub fn life(&mut self, random: &mut Random, operations: u32) {
        let ids: Vec<NamespaceId> = self.models.keys().copied().collect();
        for _ in 0..operations {
            let namespace = ids[random.below(ids.len() as u64) as usize];
            let key = key_of(random.below(400));
            match random.below(20) {
                0..10 => {
                    let length = if random.below(30) == 0 { random.below(30_000) } else { random.below(2000) } as u32;
                    match self.store(namespace, &key, length) {
                        Ok(()) | Err(KvError::CapacityExceeded) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                10..13 => self.delete(namespace, &key),
                13..15 => {
                    let changes = 1 + random.below(12) as usize;
                    match self.batch(random, changes) {
                        Ok(()) | Err(KvError::CapacityExceeded) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                _ => self.verify(namespace, &key),
            }
        }
    }
}

/// A key of 2 to 41 bytes.
#[must_use]
pub fn key_of(number: u64) -> Vec<u8> {
    let mut key = number.to_be_bytes()[6..].to_vec();
    key.resize(if number.is_multiple_of(3) { 8 } else { 2 + (number % 40) as usize }, number as u8);
    key
}
