//! Namespaces: indexes of all kinds on one drive, each beside a map of its own.

use crate::drive::Medium;
use kvssd_flash::{Backing, ByteBacking, Profile, RopeBacking};
use kvssd_ftl::{DESIGNS, Design, Engine, NamespaceAttributes};
use kvssd_types::{
    BatchChange, Command, Key, KvError, NamespaceId, Nanos, Pattern, Random, Reply, StoreCondition, Value,
};
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, (u64, u32)>;

/// A drive with several namespaces and what must be in each.
pub struct Drive {
    pub engine: Engine,
    pub clock: Nanos,
    pub models: BTreeMap<NamespaceId, Model>,
    pub seed: u64,
}

/// A tiny drive of a design that can have many namespaces, with DRAM for some.
pub fn roomy(name: &str, power_loss: &str) -> (Design, Profile) {
    let mut design = Design::named(name).unwrap();
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

fn index(name: &str) -> NamespaceAttributes {
    NamespaceAttributes { index: Some(name.to_owned()), ..NamespaceAttributes::PLAIN }
}

impl Drive {
    fn new(name: &str, medium: Medium) -> Self {
        Drive::of(roomy(name, "ignored"), medium)
    }

    pub fn of((design, profile): (Design, Profile), medium: Medium) -> Self {
        let backing: Box<dyn Backing> = match medium {
            Medium::Ropes => Box::new(RopeBacking::new(profile.geometry)),
            Medium::Bytes => Box::new(ByteBacking::new(profile.geometry)),
        };
        Drive::around(design.build(&profile, backing).unwrap())
    }

    /// Of an engine that has nothing.
    pub fn around(engine: Engine) -> Self {
        Drive { engine, clock: Nanos::ZERO, models: BTreeMap::from([(NamespaceId::FIRST, Model::new())]), seed: 0 }
    }

    pub fn create(&mut self, attributes: NamespaceAttributes) -> Result<NamespaceId, KvError> {
        let (done, created) = self.engine.create_namespace(attributes, self.clock);
        self.clock = self.clock.max(done);
        if let Ok(id) = created {
            self.models.insert(id, Model::new());
        }
        created
    }

    pub fn delete_namespace(&mut self, id: NamespaceId) {
        let (done, deleted) = self.engine.delete_namespace(id, self.clock);
        deleted.unwrap();
        self.clock = self.clock.max(done);
        self.models.remove(&id);
    }

    pub fn run(&mut self, namespace: NamespaceId, command: Command<'_>) -> Result<Reply, KvError> {
        self.engine.advance(self.clock).unwrap();
        let (done, reply) = self.engine.execute_in(namespace, command, self.clock);
        self.clock = self.clock.max(done);
        reply
    }

    fn value(&mut self, length: u32) -> (u64, Value) {
        self.seed += 1;
        (self.seed, Value::Pattern(Pattern { seed: self.seed, offset: 0, length }))
    }

    pub fn store(&mut self, namespace: NamespaceId, key: &[u8], length: u32) -> Result<(), KvError> {
        let (seed, value) = self.value(length);
        let condition = StoreCondition::Always;
        self.run(namespace, Command::Store { key: Key::new(key).unwrap(), value, condition })?;
        self.models.get_mut(&namespace).unwrap().insert(key.to_vec(), (seed, length));
        Ok(())
    }

    /// Some changes over all namespaces, as one batch.
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

    pub fn delete(&mut self, namespace: NamespaceId, key: &[u8]) {
        let reply = self.run(namespace, Command::Delete { key: Key::new(key).unwrap() });
        assert_eq!(reply.is_ok(), self.models.get_mut(&namespace).unwrap().remove(key).is_some());
    }

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

    pub fn verify_all(&mut self) {
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

pub fn key_of(number: u64) -> Vec<u8> {
    let mut key = number.to_be_bytes()[6..].to_vec();
    key.resize(if number.is_multiple_of(3) { 8 } else { 2 + (number % 40) as usize }, number as u8);
    key
}

/// Key indexes by name.
fn indexes() -> Vec<&'static str> {
    let mut names: Vec<_> = DESIGNS.iter().map(|design| design.index.plan().name()).collect();
    names.dedup();
    names
}

#[test]
fn indexes_of_all_kinds_share_a_drive_and_its_batches() {
    for (design, medium) in [("original", Medium::Ropes), ("rhik", Medium::Bytes), ("iter", Medium::Ropes)] {
        let mut drive = Drive::new(design, medium);
        for name in indexes() {
            if drive.models.len() < 6 {
                let created = drive.create(index(name));
                assert!(created.is_ok(), "{design}: {name}: {created:?}");
            }
        }
        let mut random = Random::new(5);
        drive.life(&mut random, 12_000);
        assert!(drive.engine.gc_counters().pairs_moved > 100, "{design}: garbage collection had pairs to move");
        drive.verify_all();
    }
}

#[test]
fn the_space_of_a_deleted_namespace_comes_back_and_no_other_is_touched() {
    for medium in [Medium::Ropes, Medium::Bytes] {
        for name in indexes() {
            let mut drive = Drive::new("plus", medium);
            let doomed = drive.create(index(name)).unwrap();
            let other = drive.create(index("lsm")).unwrap();
            for number in 0..200 {
                drive.store(other, &key_of(number), 700).unwrap();
            }
            let fill = |drive: &mut Drive, namespace| {
                let mut stored = 0u32;
                while drive.store(namespace, &stored.to_be_bytes(), 9000).is_ok() {
                    stored += 1;
                }
                stored
            };
            let stored = fill(&mut drive, doomed);
            assert_eq!(drive.store(NamespaceId::FIRST, b"one more", 9000), Err(KvError::CapacityExceeded));
            drive.delete_namespace(doomed);
            let gone = drive.run(doomed, Command::Exist { key: Key::new(b"a").unwrap() });
            assert_eq!(gone, Err(KvError::NoSuchNamespace(doomed)));
            // Its number is not another's before the journal has forgotten it.
            let again = drive.create(index("rhik")).unwrap();
            assert_ne!(again, doomed);
            let restored = fill(&mut drive, again);
            assert!(restored * 10 >= stored * 8, "{name}: {stored} pairs had room, and now {restored} have");
            drive.verify_all();
        }
    }
}

/// A drive whose superblocks lie on one die each, so that it has four logs a stream.
pub fn many_logs(name: &str) -> (Design, Profile) {
    let (mut design, mut profile) = roomy(name, "ignored");
    profile.geometry.superblock_dies = 1;
    profile.geometry.pages_per_block = 16;
    profile.geometry.blocks_per_die = 20;
    design.gc_low_superblocks = 6;
    design.gc_high_superblocks = 2;
    (design, profile)
}

/// Programs by die.
fn programs(drive: &mut Drive) -> Vec<u64> {
    drive.engine.flash_counters().die_programs.clone()
}

#[test]
fn many_logs_share_a_drive_that_is_nearly_full() {
    for name in ["original", "plus", "rhik", "iter"] {
        for medium in [Medium::Ropes, Medium::Bytes] {
            let mut drive = Drive::of(many_logs(name), medium);
            drive.create(NamespaceAttributes { logs: Some(1), ..index("lsm") }).unwrap();
            drive.create(NamespaceAttributes { logs: Some(2), ..index("hash-compact") }).unwrap();
            drive.life(&mut Random::new(2), 20_000);
            assert!(drive.engine.gc_counters().pairs_moved > 100, "{name}");
            drive.verify_all();
            let programs = programs(&mut drive);
            assert!(programs.iter().all(|&count| count > 100), "{name}: {programs:?}");
        }
    }
}

#[test]
fn a_namespace_writes_to_its_logs_and_to_others_when_that_is_changed() {
    let mut drive = Drive::of(many_logs("plus"), Medium::Ropes);
    let one = drive.create(NamespaceAttributes { logs: Some(1), ..NamespaceAttributes::PLAIN }).unwrap();
    let store = |drive: &mut Drive| {
        let before = programs(drive);
        for number in 0..60 {
            drive.store(one, &key_of(number), 3000).unwrap();
        }
        let after = programs(drive);
        before.iter().zip(after).map(|(before, after)| after - before).filter(|&count| count > 2).count()
    };
    assert_eq!(store(&mut drive), 1, "one log is one die");
    let (_, assigned) = drive.engine.set_logs(one, Some(3), drive.clock);
    assert_eq!((assigned, store(&mut drive)), (Ok(()), 3));
    let (_, balanced) = drive.engine.balance_logs(drive.clock);
    assert_eq!((balanced, store(&mut drive)), (Ok(()), 4), "all that was stored was this namespace's");
    // Nothing has been stored since the last time.
    assert_eq!(drive.engine.balance_logs(drive.clock).1, Ok(()));
    assert_eq!((drive.engine.balance_logs(drive.clock).1, store(&mut drive)), (Ok(()), 4));
    drive.verify_all();
}

/// What is free on other targets is no good to it.
#[test]
fn a_namespace_keeps_to_its_logs_however_often_they_are_written_over() {
    // One collects by erase counts, the other what gives the most.
    for name in ["kaml", "plus"] {
        let mut drive = Drive::of(many_logs(name), Medium::Ropes);
        let two = drive.create(NamespaceAttributes { logs: Some(2), ..NamespaceAttributes::PLAIN }).unwrap();
        let before = programs(&mut drive);
        for number in 0..8000 {
            drive.store(two, &key_of(number % 60), 3000).unwrap();
        }
        let after = programs(&mut drive);
        let mut written: Vec<u64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
        written.sort_unstable();
        assert!(drive.engine.gc_counters().superblocks > 100, "they were written over");
        assert!(written[..2].iter().sum::<u64>() * 10 < written[2..].iter().sum(), "{name}: {written:?}");
        drive.verify_all();
    }
}

/// No more is to be kept free than the capacity leaves, or the collector moves what lives around for nothing.
#[test]
fn the_collector_of_many_logs_comes_to_rest_on_a_full_drive() {
    const STORES: u64 = 3000;
    for name in ["plus", "kaml"] {
        let mut drive = Drive::of(many_logs(name), Medium::Ropes);
        let pairs = (0..).take_while(|&number| drive.store(NamespaceId::FIRST, &key_of(number), 3000).is_ok()).count();
        let mut random = Random::new(1);
        let before = drive.engine.gc_counters().pairs_moved;
        for _ in 0..STORES {
            // Time enough for whatever it wants to do.
            drive.clock.0 += 20_000_000;
            drive.store(NamespaceId::FIRST, &key_of(random.below(pairs as u64)), 3000).unwrap();
        }
        let moved = drive.engine.gc_counters().pairs_moved - before;
        assert!(moved * 2 < STORES * 3, "{name}: {moved} pairs were moved for {STORES} stores");
        drive.verify_all();
    }
}

#[test]
fn what_a_namespace_cannot_be_is_said() {
    let mut drive = Drive::new("plus", Medium::Ropes);
    let refused = |drive: &mut Drive, attributes: NamespaceAttributes| match drive.create(attributes) {
        Err(KvError::InvalidNamespace(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(refused(&mut drive, index("b-tree")).contains("there are: "));
    let ordered = |name: &str| NamespaceAttributes { is_ordered: true, ..index(name) };
    assert!(refused(&mut drive, ordered("rhik")).contains("no order"));
    let mut odd = index("lsm");
    odd.parameters.push(("pinned_levels".to_owned(), "many".to_owned()));
    assert!(refused(&mut drive, odd).contains("whole number"));
    let ordered = NamespaceAttributes { is_ordered: true, ..NamespaceAttributes::PLAIN };
    let tree = drive.create(ordered).unwrap();
    assert_eq!(drive.engine.namespaces().iter().find(|info| info.id == tree).unwrap().index, "lsm");
    for _ in 0..4 {
        drive.create(NamespaceAttributes::PLAIN).unwrap();
    }
    assert_eq!(drive.create(NamespaceAttributes::PLAIN), Err(KvError::TooManyNamespaces { namespaces: 6 }));
    let absent = NamespaceId(99);
    assert_eq!(drive.run(absent, Command::Flush), Err(KvError::NoSuchNamespace(absent)));
}

#[test]
fn a_name_is_one_namespaces_until_it_is_deleted() {
    let mut drive = Drive::new("plus", Medium::Ropes);
    let called = |name: &str| NamespaceAttributes { name: Some(name.to_owned()), ..NamespaceAttributes::PLAIN };
    let cannot_be = |drive: &mut Drive, name: &str| {
        let created = drive.create(called(name));
        assert!(matches!(created, Err(KvError::InvalidNamespace(_))), "{name:?}: {created:?}");
    };
    for name in ["", "12", "two\nlines", &"n".repeat(65)] {
        cannot_be(&mut drive, name);
    }
    let first = drive.create(called("a")).unwrap();
    drive.create(called(&"n".repeat(64))).unwrap();
    cannot_be(&mut drive, "a");
    drive.delete_namespace(first);
    drive.create(called("a")).unwrap();
    cannot_be(&mut drive, "a");
}

#[test]
fn a_quota_bounds_one_namespace_and_no_other() {
    let mut drive = Drive::new("plus", Medium::Ropes);
    let quota_bytes = 100_000;
    let bounded =
        drive.create(NamespaceAttributes { quota_bytes: Some(quota_bytes), ..NamespaceAttributes::PLAIN }).unwrap();
    let mut stored = 0u32;
    while drive.store(bounded, &stored.to_be_bytes(), 1000).is_ok() {
        stored += 1;
    }
    assert!((80..100).contains(&stored), "{stored}");
    drive.store(NamespaceId::FIRST, b"another's", 1000).unwrap();
    drive.store(bounded, &0u32.to_be_bytes(), 1000).expect("an overwrite is always welcome");
    let info = drive.engine.namespaces().into_iter().find(|info| info.id == bounded).unwrap();
    assert_eq!(info.utilization.capacity_bytes, quota_bytes);
    assert!(info.utilization.record_bytes <= quota_bytes);
}

#[test]
fn a_batch_that_cannot_be_changes_nothing() {
    let mut drive = Drive::new("plus", Medium::Ropes);
    let other = drive.create(index("lsm")).unwrap();
    drive.store(NamespaceId::FIRST, b"a", 100).unwrap();
    let (a, b) = (Key::new(b"a").unwrap(), Key::new(b"b").unwrap());
    let value = |length| Some(Value::Pattern(Pattern { seed: 1, offset: 0, length }));
    let change = |namespace, key, value| BatchChange { namespace, key, value };
    let first = NamespaceId::FIRST;
    let too_large = drive.engine.value_bytes_max() as u32;
    let batches = [
        vec![change(first, a, value(5)), change(first, a, None)],
        vec![change(first, a, value(5)), change(NamespaceId(77), b, value(5))],
        vec![change(first, a, value(5)), change(other, b, value(too_large))],
    ];
    for (number, changes) in batches.iter().enumerate() {
        let reply = drive.run(first, Command::Batch { changes });
        assert!(reply.is_err(), "batch {number}: {reply:?}");
        drive.verify(first, b"a");
        drive.verify(other, b"b");
    }
    let many: Vec<Vec<u8>> = (0..2000).map(key_of).collect();
    let changes: Vec<_> = many.iter().map(|key| change(first, Key::new(key).unwrap(), value(1))).collect();
    assert!(matches!(drive.run(first, Command::Batch { changes: &changes }), Err(KvError::BatchTooLarge { .. })));
    // A drive that is full takes none of a batch whose first change alone would have room.
    let mut stored = 0u32;
    while drive.store(first, &stored.to_be_bytes(), 9000).is_ok() {
        stored += 1;
    }
    let changes = [change(first, a, None), change(other, a, value(60_000)), change(other, b, value(60_000))];
    assert_eq!(drive.run(first, Command::Batch { changes: &changes }), Err(KvError::CapacityExceeded));
    drive.verify(first, b"a");
    drive.verify(other, b"a");
    drive.verify_all();
    // What one namespace frees is room for another.
    let gone = 0u32.to_be_bytes();
    let changes = [change(first, Key::new(&gone).unwrap(), None), change(other, a, value(5000))];
    assert_eq!(drive.run(first, Command::Batch { changes: &changes }), Ok(Reply::Batched));
}

#[test]
fn who_comes_before_a_batch_is_done_waits_for_it() {
    let mut drive = Drive::new("plus", Medium::Ropes);
    let key = Key::new(b"a").unwrap();
    let value = Some(Value::Pattern(Pattern { seed: 1, offset: 0, length: 20_000 }));
    let changes = [BatchChange { namespace: NamespaceId::FIRST, key, value }];
    let (done, reply) = drive.engine.execute_in(NamespaceId::FIRST, Command::Batch { changes: &changes }, Nanos(100));
    assert_eq!(reply, Ok(Reply::Batched));
    let (answered, _) = drive.engine.execute(Command::Exist { key }, Nanos(101));
    assert!(answered > done, "{answered} is before {done}");
}

/// A table of a megabyte.
fn large_table() -> NamespaceAttributes {
    let parameters = vec![("flash_bytes_per_slot".to_owned(), "128".to_owned())];
    NamespaceAttributes { parameters, ..index("dram-hash") }
}

/// DRAM of a namespace's index.
fn held(drive: &Drive, id: NamespaceId) -> u64 {
    let info = drive.engine.namespaces().into_iter().find(|info| info.id == id).unwrap();
    info.dram.total_bytes()
}

/// Nobody uses the drive for two seconds.
fn idle(drive: &mut Drive) {
    drive.clock.0 += 2_000_000_000;
    drive.engine.advance(drive.clock).unwrap();
}

#[test]
fn a_table_that_nobody_uses_makes_room_for_one_in_use_and_comes_back() {
    // With DRAM for one.
    let mut drive = Drive::of(roomy("kaml", "ignored"), Medium::Ropes);
    let (first, second) = (drive.create(large_table()).unwrap(), drive.create(large_table()).unwrap());
    let fill = |drive: &mut Drive, namespace| {
        for number in 0..400 {
            drive.store(namespace, &key_of(number), 300).unwrap();
        }
    };
    fill(&mut drive, first);
    idle(&mut drive);
    fill(&mut drive, second);
    idle(&mut drive);
    let (before, all) = (held(&drive, first), held(&drive, second));
    assert!(before < all * 2 / 3, "{before} of {all} bytes are still there");
    fill(&mut drive, second);
    idle(&mut drive);
    drive.verify(first, &key_of(7));
    idle(&mut drive);
    drive.verify(first, &key_of(8));
    assert!(held(&drive, second) < all && held(&drive, first) > before, "they have changed places");
    drive.verify_all();
}

/// Hosts send a batch to the first namespace, whatever its changes are of.
#[test]
fn a_batch_uses_the_namespaces_of_its_changes_alone() {
    let (mut design, profile) = roomy("kaml", "ignored");
    design.set("flash_bytes_per_slot", "128").unwrap();
    let mut drive = Drive::of((design, profile), Medium::Ropes);
    let second = drive.create(large_table()).unwrap();
    for number in 0..400 {
        drive.store(NamespaceId::FIRST, &key_of(number), 300).unwrap();
    }
    idle(&mut drive);
    for number in 0..400 {
        let (key, (seed, value)) = (key_of(number), drive.value(300));
        let changes = [BatchChange { namespace: second, key: Key::new(&key).unwrap(), value: Some(value) }];
        drive.run(NamespaceId::FIRST, Command::Batch { changes: &changes }).unwrap();
        drive.models.get_mut(&second).unwrap().insert(key, (seed, 300));
        drive.clock.0 += 10_000_000;
    }
    let (first, second) = (held(&drive, NamespaceId::FIRST), held(&drive, second));
    assert!(first < second * 2 / 3, "{first} bytes of a table that nobody uses stay beside {second}");
    drive.verify_all();
}

#[test]
fn a_number_comes_back_as_often_as_it_is_given_back() {
    for power_loss in ["ignored", "volatile", "protected"] {
        for name in DESIGNS.iter().map(|design| design.name).filter(|name| !name.contains("block")) {
            let mut drive = Drive::of(roomy(name, power_loss), Medium::Ropes);
            let Ok(other) = drive.create(NamespaceAttributes::PLAIN) else { continue };
            let held = (0..100).take_while(|&number| drive.store(other, &key_of(number), 300).is_ok()).count();
            // So small a drive has no room for pairs beside that design's reserve.
            if held == 0 && name == "multilevel" {
                continue;
            }
            assert!(held > 10, "{name}, {power_loss}: {held} pairs");
            for round in 0..40u64 {
                let made = drive.create(NamespaceAttributes::PLAIN).unwrap_or_else(|error| panic!("{name}: {error}"));
                let listed = drive.run(made, Command::List { from: None, keys_max: 10 });
                assert!(matches!(listed, Ok(Reply::Listed(keys)) if keys.is_empty()), "{name}: {made} is not empty");
                (0..round % 7 * 20).for_each(|number| drive.store(made, &key_of(number), 100).unwrap());
                drive.delete_namespace(made);
            }
            drive.verify_all();
        }
    }
}
