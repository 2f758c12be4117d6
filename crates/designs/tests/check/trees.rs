//! Namespaces with trees that are deleted: also where a tree cannot be read any more, and while the next one is filled.

use crate::drive::{Medium, powered};
use kvssd_flash::{ByteBacking, PageAddress, PowerLoss, Profile};
use kvssd_ftl::{Design, Engine, NamespaceAttributes};
use kvssd_types::{Command, IteratorOptions, Key, KvError, NamespaceId, Nanos, Random, Reply, StoreCondition, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;

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

/// A removal keeps nothing for iterators of another namespace, which cannot see it; and a store that its quota refuses does not wait for it.
#[test]
fn a_removal_concerns_no_other_namespace() {
    let (_, mut life) = Drive::new(&kvssd_designs::named("iter").unwrap(), "64", "900000");
    let large = life.create();
    let attributes = NamespaceAttributes { quota_bytes: Some(1000), ..NamespaceAttributes::PLAIN };
    let bounded = life.engine.create_namespace(attributes, life.clock).1.unwrap();
    (0..3000).for_each(|number| drop(life.store(large, &key(number), b"").unwrap()));
    life.store(NamespaceId::FIRST, b"a key", VALUE).unwrap();
    life.run(NamespaceId::FIRST, Command::CreateIterator { options: IteratorOptions::default() }).unwrap();
    let kept = |life: &Life| life.engine.dram().parts()["held_records"];
    let (kept_before, live_bytes) = (kept(&life), life.engine.utilization().live_bytes);

    life.clock = life.engine.delete_namespace(large, life.clock).0;
    let key = Key::new(b"another").unwrap();
    let store = Command::Store { key, value: Value::from(&[1; 2000][..]), condition: StoreCondition::Always };
    assert_eq!(life.engine.execute_in(bounded, store, life.clock).1, Err(KvError::CapacityExceeded));
    assert!(life.engine.is_removing(), "its end makes no room in a quota");

    while life.engine.is_removing() {
        life.clock += Nanos(1_000_000);
        life.engine.advance(life.clock).unwrap();
    }
    assert_eq!(kept(&life), kept_before);
    assert!(life.engine.utilization().live_bytes < live_bytes / 4, "{:?}", life.engine.utilization());
}

/// An ordered namespace, and the length of each value that it must have.
struct Space {
    id: NamespaceId,
    model: BTreeMap<u64, usize>,
}

impl Space {
    /// Stores what has few bytes beside its key, until that is refused.
    fn fill(&mut self, life: &mut Life, mut number: impl FnMut() -> u64, key: impl Fn(u64) -> Vec<u8>) {
        for _ in 0..30_000 {
            let number = number();
            match life.store(self.id, &key(number), &[number as u8; 2]) {
                Ok(_) => drop(self.model.insert(number, 2)),
                Err(error) => {
                    assert_eq!(error, KvError::CapacityExceeded);
                    return;
                }
            }
        }
    }

    fn verify(&self, life: &mut Life, key: impl Fn(u64) -> Vec<u8>) {
        let (_, listed) = life.engine.execute_in(self.id, Command::List { from: None, keys_max: 1 << 20 }, life.clock);
        let wanted = self.model.keys().map(|&number| key(number).into()).collect();
        assert!(listed == Ok(Reply::Listed(wanted)), "{} has other keys", self.id);
        for (&number, &length) in &self.model {
            let key = key(number);
            let command = Command::Retrieve { key: Key::new(&key).unwrap(), offset_bytes: 0, length_bytes: u32::MAX };
            let reply = life.run(self.id, command);
            let Ok(Reply::Retrieved { value, .. }) = reply else { panic!("{} key {number}: {reply:?}", self.id) };
            assert_eq!(value.into_bytes(), vec![number as u8; length], "{} key {number}", self.id);
        }
    }
}

/// Trees that come and go on a small drive, beside each other and over many lives: changes, iterators that stay open, and full drives.
fn come_and_go(name: &str, seed: u64) {
    let mut random = Random::new(seed);
    let mut choose = |choices: &[usize]| choices[random.below(choices.len() as u64) as usize];
    let (rest, length_max, keys) =
        (choose(&[0, 60, 240]), choose(&[1, 10, 400]), choose(&[1000, 20_000, 1 << 40]) as u64);
    let (superblocks, deletes) = (choose(&[48, 64]).to_string(), choose(&[0, 2000, 9000]) as u64);
    let key = |number: u64| [&number.to_be_bytes()[..], &vec![b'k'; rest]].concat();
    let (drive, mut life) = Drive::new(&kvssd_designs::named(name).unwrap(), &superblocks, "600000");
    let mut spaces = [(); 2].map(|()| Space { id: life.create(), model: BTreeMap::new() });
    for _ in 0..12_000 {
        let space = &mut spaces[random.below(2) as usize];
        let number = random.below(keys);
        match random.below(20_000) {
            dice if dice < deletes => {
                let key = key(number);
                match life.run(space.id, Command::Delete { key: Key::new(&key).unwrap() }) {
                    Ok(_) => assert!(space.model.remove(&number).is_some()),
                    Err(KvError::KeyNotFound) => assert!(!space.model.contains_key(&number)),
                    Err(KvError::CapacityExceeded) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            10_000..10_020 => drop(life.run(space.id, Command::CreateIterator { options: IteratorOptions::default() })),
            10_020..10_026 => {
                life.clock = life.engine.delete_namespace(space.id, life.clock).0;
                *space = Space { id: life.create(), model: BTreeMap::new() };
            }
            10_026..10_050 => {
                if random.below(2) == 0 {
                    life.engine.close().unwrap();
                }
                life = drive.mount();
                if random.below(4) == 0 {
                    assert_eq!(life.engine.check().findings, []);
                    spaces.iter().for_each(|space| space.verify(&mut life, key));
                }
            }
            10_050..10_055 => space.fill(&mut life, || random.below(keys), key),
            10_055..10_200 => life.clock += Nanos(random.below(20_000_000)),
            _ => {
                let length = random.below(length_max as u64) as usize;
                match life.store(space.id, &key(number), &vec![number as u8; length]) {
                    Ok(_) => drop(space.model.insert(number, length)),
                    Err(error) => assert_eq!(error, KvError::CapacityExceeded),
                }
            }
        }
    }
    spaces.iter().for_each(|space| space.verify(&mut life, key));
    assert_eq!(life.engine.check().findings, []);
}

mod campaigns {
    use super::*;

    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn trees_that_come_and_go_lose_nothing_and_leave_nothing() {
        let seeds: u64 = std::env::var("SEEDS").map_or(4, |seeds| seeds.parse().unwrap());
        thread::scope(|scope| {
            for name in ["rhik", "iter", "pink", "tessera", "original"] {
                scope.spawn(move || (0..seeds).for_each(|seed| come_and_go(name, seed)));
            }
        });
    }
}
