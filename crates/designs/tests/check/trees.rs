//! Namespaces with trees that are deleted: also where a tree cannot be read any more, and while the next one is filled.

use crate::drive::{Medium, powered};
use kvssd_flash::{ByteBacking, PageAddress, PowerLoss, Profile};
use kvssd_ftl::{Design, Engine, NamespaceAttributes};
use kvssd_types::{Command, Key, KvError, NamespaceId, Nanos, Random, Reply, StoreCondition, Value};
use std::sync::{Arc, Mutex};

/// Pairs of the namespace that is deleted: so many deletes would be more tables than one change of the journal can name.
const PAIRS: u64 = 9000;
const VALUE: &[u8] = &[7; 100];
/// Pairs of the drive's first namespace.
const STAYING: u64 = 300;

struct Drive {
    design: Design,
    profile: Profile,
    medium: Medium,
}

impl Drive {
    /// A drive of three namespaces at the most, and its first life.
    fn new(design: &Design, superblocks: &str, dram_bytes: &str) -> (Drive, Life) {
        let design = Design { namespaces_max: 3, ..design.clone() };
        let power_loss = ("memory.power_loss", PowerLoss::Protected.name());
        let overrides = [("geometry.blocks_per_die", superblocks), ("memory.dram_bytes", dram_bytes), power_loss];
        let profile = design.tiny_profile(&overrides).unwrap();
        let medium = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
        let engine = design.build(&profile, Box::new(powered(profile.geometry, &medium))).unwrap();
        (Drive { design, profile, medium }, Life { engine, clock: Nanos::ZERO })
    }

    fn mount(&self) -> Life {
        let backing = powered(self.profile.geometry, &self.medium);
        let (engine, report) = self.design.mount(&self.profile, Box::new(backing)).unwrap();
        Life { engine, clock: report.took }
    }

    /// Loses all pages that have a key and not its value: those of tables.
    fn lose_tables_with(&self, key: &[u8]) -> usize {
        let mut medium = self.medium.lock().unwrap();
        let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        let mut lost = 0;
        for page in (0..self.profile.geometry.pages()).map(|page| PageAddress(page as u32)) {
            let bytes = medium.page_mut(page);
            if bytes.as_ref().is_some_and(|bytes| has(bytes, key) && !has(bytes, VALUE)) {
                *bytes = Some(vec![0xAA; 10].into());
                lost += 1;
            }
        }
        lost
    }
}

struct Life {
    engine: Engine,
    clock: Nanos,
}

impl Life {
    fn run(&mut self, namespace: NamespaceId, command: Command<'_>) -> Result<Reply, KvError> {
        self.engine.advance(self.clock).unwrap();
        let (done, reply) = self.engine.execute_in(namespace, command, self.clock);
        self.clock = done;
        reply
    }

    fn create(&mut self) -> NamespaceId {
        let attributes = NamespaceAttributes { is_ordered: true, ..NamespaceAttributes::PLAIN };
        let (done, made) = self.engine.create_namespace(attributes, self.clock);
        self.clock = done;
        made.unwrap()
    }

    fn store(&mut self, namespace: NamespaceId, key: &[u8], value: &[u8]) -> Result<Reply, KvError> {
        let (key, value) = (Key::new(key).unwrap(), Value::from(value));
        self.run(namespace, Command::Store { key, value, condition: StoreCondition::Always })
    }

    /// Whether the pairs of the first namespace are all there, with this value.
    fn verify(&mut self, wanted: &[u8]) {
        for number in 0..STAYING {
            let key = number.to_be_bytes();
            let command = Command::Retrieve { key: Key::new(&key).unwrap(), offset_bytes: 0, length_bytes: u32::MAX };
            let reply = self.run(NamespaceId::FIRST, command);
            let Ok(Reply::Retrieved { value, .. }) = reply else { panic!("key {number}: {reply:?}") };
            assert_eq!(value.into_bytes(), *wanted, "key {number}");
        }
        self.engine.check_invariants();
    }
}

/// Long keys: few fill a table.
fn key(number: u64) -> Vec<u8> {
    [&number.to_be_bytes()[..], &[b'k'; 240]].concat()
}

#[test]
fn a_tree_that_cannot_be_read_is_deleted_with_its_namespace() {
    let mut design = kvssd_designs::named("iter").unwrap();
    design.set("table_pages", "1").unwrap();
    let (drive, mut life) = Drive::new(&design, "300", "2000000");
    let (large, mut random) = (life.create(), Random::new(1));
    (0..PAIRS).for_each(|number| drop(life.store(large, &key(number * 7919 % PAIRS), VALUE).unwrap()));
    life.engine.close().unwrap();
    assert!(drive.lose_tables_with(&key(PAIRS * 19 / 20)) > 0);

    let mut life = drive.mount();
    let mut stores = 0;
    while !matches!(life.store(large, &key(random.below(PAIRS)), VALUE), Err(KvError::Unrecovered(why)) if why.contains("no changes"))
    {
        stores += 1;
        assert!(stores < 20 * PAIRS, "no merge has come to the table that cannot be read");
    }
    life.clock = life.engine.delete_namespace(large, life.clock).0;
    // The power goes while pairs are listed, and while those go that are told of all the same; then all that can go has gone.
    for (number, rest) in [PAIRS / 2, 300, 0, 0].into_iter().enumerate() {
        for _ in 0..PAIRS {
            if life.engine.utilization().pairs <= rest {
                break;
            }
            life.clock += Nanos(1_000_000);
            life.engine.advance(life.clock).unwrap();
        }
        assert_eq!(life.engine.is_removing(), rest > 0);
        if rest == 0 {
            let value = [number as u8; 200];
            for round in 0..3000 {
                life.store(NamespaceId::FIRST, &(round % STAYING).to_be_bytes(), &value).unwrap();
            }
            life.verify(&value);
            // A table of so long keys has 15.
            let left = life.engine.utilization().pairs - STAYING;
            assert!((1..=2 * 15).contains(&left), "{left} pairs are left");
            life.engine.close().unwrap();
            life = drive.mount();
            life.verify(&value);
        } else {
            life.engine.check_invariants();
            life = drive.mount();
        }
    }
}

/// A store that finds the drive full waits for the end of a deleted namespace, also where collection made the trees larger meanwhile, and where
/// deletes would take what they free, since keys are nearly all of a pair.
#[test]
fn no_store_is_refused_while_a_deleted_namespace_holds_room() {
    let long = [b'k'; 100];
    for (rest, value) in [(&[][..], VALUE), (&long[..], b"")] {
        let (drive, mut life) = Drive::new(&kvssd_designs::named("rhik").unwrap(), "64", "600000");
        let (mut random, mut first) = (Random::new(1), None);
        for cycle in 0..4 {
            let (filled, mut stored) = (life.create(), 0);
            while life.store(filled, &[&random.below(1 << 40).to_be_bytes()[..], rest].concat(), value).is_ok() {
                stored += 1;
            }
            assert!(!life.engine.is_removing(), "cycle {cycle}: {:?}", life.engine.utilization());
            let first: u64 = *first.get_or_insert(stored);
            assert!(stored > first * 9 / 10, "cycle {cycle}: {stored} stores, and {first} in the first");
            life.clock = life.engine.delete_namespace(filled, life.clock).0;
            life = drive.mount();
        }
    }
}

/// The power goes again and again while a full namespace is removed: each life finds the rest of it, and the others whole.
#[test]
fn a_tree_is_taken_apart_over_many_lives() {
    let (drive, mut life) = Drive::new(&kvssd_designs::named("rhik").unwrap(), "64", "600000");
    let (large, staying) = (life.create(), life.create());
    let numbers: Vec<u64> = (0..STAYING).collect();
    for number in &numbers {
        life.store(NamespaceId::FIRST, &number.to_be_bytes(), VALUE).unwrap();
        life.store(staying, &key(*number), VALUE).unwrap();
    }
    let mut stored = 0u64;
    while life.store(large, &key(stored.wrapping_mul(7919) % 100_003), b"").is_ok() {
        stored += 1;
    }
    life.clock = life.engine.delete_namespace(large, life.clock).0;
    let (mut lives, mut pairs) = (0, u64::MAX);
    while life.engine.is_removing() {
        // Few steps: a mount begins at 0.
        life.engine.advance(Nanos(1_000_000)).unwrap();
        let left = life.engine.utilization().pairs;
        assert!(left <= pairs, "{left} pairs, and {pairs} before");
        pairs = left;
        life = drive.mount();
        if lives % 8 == 0 {
            assert_eq!(life.engine.check().findings, [], "life {lives}");
        }
        lives += 1;
        assert!(lives < 1000, "{left} of {stored} pairs are left");
    }
    assert!(lives > 20, "{lives} lives");
    life.verify(VALUE);
    let (_, listed) = life.engine.execute_in(staying, Command::List { from: None, keys_max: 1000 }, life.clock);
    let wanted = numbers.iter().map(|number| key(*number).into()).collect();
    assert_eq!(listed, Ok(Reply::Listed(wanted)));
    assert_eq!(life.engine.utilization().pairs, 2 * STAYING);
    assert_eq!(life.engine.check().findings, []);
}
