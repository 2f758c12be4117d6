//! Namespaces that are caches: against plain lists, over lives, and where they meet everything else that a drive does.

mod attacks;
mod joints;
mod lives;
mod own;
mod refusals;

use crate::{create, designs, key, reopened};
use kvssd_cache::{CacheAttributes, Counts, KeyedCache};
use kvssd_device::{CreateDrive, Drive, image_design, image_profile};
use kvssd_ftl::NamespaceAttributes;
use kvssd_types::{Command, KvError, NamespaceId, Nanos, Random, Reply, StoreCondition, Value};
use std::collections::BTreeMap;
use std::path::Path;

const FIRST: NamespaceId = NamespaceId::FIRST;
/// Those that come along, and one of one's own.
const POLICIES: [&str; 5] = ["fifo", "lru", "s3-fifo", "ttl", "largest"];

fn cache(text: &str) -> CacheAttributes {
    own::add();
    text.parse().unwrap()
}

fn create_cache(drive: &mut Drive, name: &str, text: &str) -> NamespaceId {
    let attributes =
        NamespaceAttributes { name: Some(name.to_owned()), cache: Some(cache(text)), ..NamespaceAttributes::PLAIN };
    drive.create_namespace(attributes).unwrap()
}

fn store(drive: &mut Drive, id: NamespaceId, name: &[u8], value: &[u8]) -> Result<Reply, KvError> {
    let condition = StoreCondition::Always;
    drive.execute_in(id, Command::Store { key: key(name), value: value.into(), condition })
}

fn retrieve(drive: &mut Drive, id: NamespaceId, name: &[u8]) -> Option<Vec<u8>> {
    let command = Command::Retrieve { key: key(name), offset_bytes: 0, length_bytes: u32::MAX };
    match drive.execute_in(id, command) {
        Ok(Reply::Retrieved { value, value_bytes }) => {
            assert_eq!(value.len(), value_bytes as usize);
            Some(value.to_vec())
        }
        Err(KvError::KeyNotFound) => None,
        other => panic!("{other:?}"),
    }
}

fn keys(drive: &mut Drive, id: NamespaceId) -> Vec<Vec<u8>> {
    match drive.execute_in(id, Command::List { from: None, keys_max: 100_000 }) {
        Ok(Reply::Listed(keys)) => {
            let mut keys: Vec<Vec<u8>> = keys.into_iter().map(Vec::from).collect();
            keys.sort();
            keys
        }
        other => panic!("{other:?}"),
    }
}

fn value_of(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (seed.wrapping_mul(31).wrapping_add(at * 7) % 251) as u8).collect()
}

/// First in, first out, and least recently used, as anybody would write them down.
struct Plain {
    is_lru: bool,
    budget_bytes: usize,
    pairs: Vec<(Vec<u8>, usize)>,
}

impl Plain {
    fn held(&self) -> usize {
        self.pairs.iter().map(|(_, bytes)| bytes).sum()
    }

    fn look(&mut self, name: &[u8]) -> bool {
        let Some(at) = self.pairs.iter().position(|(known, _)| known == name) else { return false };
        if self.is_lru {
            let pair = self.pairs.remove(at);
            self.pairs.push(pair);
        }
        true
    }

    fn store(&mut self, name: &[u8], bytes: usize) {
        let before = |plain: &Plain| plain.pairs.iter().find(|(known, _)| known == name).map_or(0, |(_, bytes)| *bytes);
        while self.held() - before(self) + bytes > self.budget_bytes {
            self.pairs.remove(0);
        }
        self.delete(name);
        self.pairs.push((name.to_owned(), bytes));
    }

    fn delete(&mut self, name: &[u8]) {
        self.pairs.retain(|(known, _)| known != name);
    }
}

/// Ten times what the drive has room for comes by, and each answer is that of the policy alone: who is in, with which bytes.
#[test]
fn every_policy_on_every_design_does_on_a_drive_what_it_does_alone() {
    let folder = tempfile::tempdir().unwrap();
    for design in designs() {
        for policy in POLICIES {
            let path = folder.path().join(format!("{design} {policy}.kv"));
            let mut drive = create(&path, design, None);
            let attributes = cache(&format!("{policy} budget=400000"));
            drive.set_cache(FIRST, Some(attributes.clone())).unwrap();
            let mut alone = KeyedCache::within(&attributes.plan, u64::MAX);
            let is_plain = matches!(policy, "fifo" | "lru");
            let mut plain = Plain { is_lru: policy == "lru", budget_bytes: 400_000, pairs: Vec::new() };
            let mut bytes_of: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            let (mut random, mut hits, mut asked) = (Random::new(7), 0, 0);
            for round in 0..4000u64 {
                // Few keys are asked for often.
                let below = 1 + random.below(600);
                let number = random.below(below);
                let name = format!("key {number}").into_bytes();
                let now = Nanos(round);
                match random.below(20) {
                    0 => {
                        let deleted = drive.execute(Command::Delete { key: key(&name) });
                        assert_eq!(deleted.is_ok(), alone.remove(&name), "{design} {policy} {round}");
                        plain.delete(&name);
                    }
                    _ => {
                        let found = retrieve(&mut drive, FIRST, &name);
                        let is_in = alone.look(&name, now);
                        assert_eq!(found.is_some(), is_in, "{design} {policy} {round}");
                        assert!(!is_plain || plain.look(&name) == is_in);
                        assert!(found.is_none() || found.as_ref() == bytes_of.get(&name));
                        (asked, hits) = (asked + 1, hits + u64::from(is_in));
                        if !is_in {
                            let value = value_of(round, random.below(20_000) as usize);
                            assert_eq!(store(&mut drive, FIRST, &name, &value), Ok(Reply::Stored));
                            alone.admits(&name, (name.len() + value.len()) as u64, now);
                            alone.insert(&name, (name.len() + value.len()) as u64, Nanos::MAX);
                            plain.store(&name, name.len() + value.len());
                            bytes_of.insert(name, value);
                        }
                    }
                }
            }
            let info = drive.cache(FIRST).unwrap();
            assert_eq!((info.hits, info.misses), (hits, asked - hits));
            let Counts { evicted, .. } = info.counts;
            assert!(evicted > 500 && hits > 400, "{evicted} left, and {hits} were hit");
            assert_eq!((info.held_bytes, info.counts), (alone.held_bytes(), alone.counts()));
            assert_eq!(drive.namespaces()[0].utilization.pair_bytes, info.held_bytes);
            assert_eq!(drive.engine().dram().parts()["cache"], info.kept_bytes.next_multiple_of(4096));
            drive.close().unwrap();
            assert_eq!(Drive::check(&path).unwrap().findings, []);
            std::fs::remove_file(&path).unwrap();
        }
    }
}

/// What the drive has of a pair that is not worth a write goes, since it is old.
#[test]
fn a_pair_that_is_kept_out_is_answered_and_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut drive = create(&folder.path().join("drive.kv"), "plus", None);
    let id = create_cache(&mut drive, "small", "lru budget=100000 at-most=1000");
    store(&mut drive, id, b"a", &[1; 500]).unwrap();
    assert_eq!(store(&mut drive, id, b"a", &[2; 2000]), Ok(Reply::Stored));
    assert_eq!(store(&mut drive, id, b"b", &[2; 2000]), Ok(Reply::Stored));
    assert_eq!((retrieve(&mut drive, id, b"a"), retrieve(&mut drive, id, b"b")), (None, None));
    let often = create_cache(&mut drive, "often", "fifo budget=100000 asked=3");
    let seen: Vec<bool> = (0..4)
        .map(|_| {
            store(&mut drive, often, b"c", &[3; 10]).unwrap();
            retrieve(&mut drive, often, b"c").is_some()
        })
        .collect();
    assert_eq!(seen, [false, false, true, true]);
    let budget = create_cache(&mut drive, "a day", "fifo budget=100000 a-day=24000");
    // A bucket of an hour's bytes: 1000, and whatever comes first is let in.
    drive.tell_time(Nanos(1));
    (0..5u8).for_each(|name| drop(store(&mut drive, budget, &[name], &[name; 499]).unwrap()));
    assert_eq!(keys(&mut drive, budget), [[0], [1]]);
    let day = 24 * 3600 * 1_000_000_000;
    drive.tell_time(Nanos(1 + day));
    store(&mut drive, budget, &[9], &[9; 499]).unwrap();
    assert_eq!(keys(&mut drive, budget), [[0], [1], [9]]);
}

/// Larger than the budget, or than any value: nobody leaves for it, and what was there stays.
#[test]
fn nobody_leaves_for_what_can_never_be_in() {
    let folder = tempfile::tempdir().unwrap();
    let mut drive = create(&folder.path().join("drive.kv"), "plus", None);
    let id = create_cache(&mut drive, "a", "lru budget=100000");
    (0..9u8).for_each(|name| drop(store(&mut drive, id, &[name], &[name; 10_000]).unwrap()));
    assert_eq!(store(&mut drive, id, &[0], &[0; 100_000]), Err(KvError::CapacityExceeded));
    let most = drive.value_bytes_max() as usize;
    let wide = create_cache(&mut drive, "b", "lru budget=1000000000");
    store(&mut drive, wide, b"whole", &vec![1; most - 8]).unwrap();
    let refused = store(&mut drive, wide, b"whole", &vec![1; most - 7]);
    let (value_bytes, value_bytes_max) = (most as u64 - 7, most as u64 - 8);
    assert_eq!(refused, Err(KvError::InvalidValueSize { value_bytes, value_bytes_max }));
    assert_eq!(retrieve(&mut drive, wide, b"whole").unwrap().len(), most - 8);
    assert_eq!(keys(&mut drive, id).len(), 9);
    let conditional = |condition| Command::Store { key: key(b"new"), value: Value::from(&[1; 20_000][..]), condition };
    assert_eq!(drive.execute_in(id, conditional(StoreCondition::IfExists)), Err(KvError::KeyNotFound));
    assert_eq!(keys(&mut drive, id).len(), 9, "nobody left for what was not stored");
    assert_eq!(drive.execute_in(id, conditional(StoreCondition::IfAbsent)), Ok(Reply::Stored));
    assert_eq!(drive.execute_in(id, conditional(StoreCondition::IfAbsent)), Err(KvError::KeyExists));
    assert_eq!(drive.execute_in(id, conditional(StoreCondition::IfExists)), Ok(Reply::Stored));
    assert_eq!(keys(&mut drive, id).len(), 8, "two left for one of twice the size");
}
