//! A drive in partitions is as one, also where a life ends in the middle.

use crate::images::golden::{pack, unpack};
use crate::{PATH, key};
use kvssd_cache::{CacheAttributes, CachePlan, EvictionPolicy};
use kvssd_device::{CreateDrive, Drive, Partitions, Scope, image_design, image_profile, partition_of};
use kvssd_flash::{Files, OpenOptions, SimulatedDisk, Strike, SystemFiles};
use kvssd_ftl::NamespaceAttributes;
use kvssd_types::{BatchChange, Command, IteratorOptions, KvError, NamespaceId, Random, Reply, StoreCondition, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FIRST: NamespaceId = NamespaceId::FIRST;

type Map = BTreeMap<(NamespaceId, Vec<u8>), Vec<u8>>;

/// A key of a batch, and its value, or none where it goes.
type Wanted = (NamespaceId, Vec<u8>, Option<Vec<u8>>);

pub fn create(disk: &SimulatedDisk, design: &str, options: CreateDrive) -> Vec<Drive> {
    let (profile, design) = (image_profile(64 << 20).unwrap(), image_design(design).unwrap());
    Drive::create_all_in(&disk.files(), Path::new(PATH), &profile, &design, options).unwrap()
}

pub fn open(disk: &SimulatedDisk, sync: bool) -> Vec<Drive> {
    let options = OpenOptions { sync, read_only: false, cache_bytes: 0 };
    Drive::open_all_in(&disk.files(), Path::new(PATH), options).unwrap()
}

fn execute(drives: &mut [Drive], namespace: NamespaceId, command: Command<'_>) -> Result<Reply, KvError> {
    Partitions::new(drives).execute_in(namespace, command)
}

pub fn store(drives: &mut [Drive], namespace: NamespaceId, name: &[u8], value: &[u8]) -> Result<Reply, KvError> {
    let condition = StoreCondition::Always;
    execute(drives, namespace, Command::Store { key: key(name), value: value.into(), condition })
}

pub fn retrieve(drives: &mut [Drive], namespace: NamespaceId, name: &[u8]) -> Option<Vec<u8>> {
    match execute(drives, namespace, Command::Retrieve { key: key(name), offset_bytes: 0, length_bytes: u32::MAX }) {
        Ok(Reply::Retrieved { value, .. }) => Some(value.to_vec()),
        Err(KvError::KeyNotFound) => None,
        other => panic!("{other:?}"),
    }
}

fn batch(drives: &mut [Drive], changes: &[Wanted]) -> Result<Reply, KvError> {
    let changes: Vec<BatchChange<'_>> = changes
        .iter()
        .map(|(namespace, name, value)| BatchChange {
            namespace: *namespace,
            key: key(name),
            value: value.as_deref().map(Value::from),
        })
        .collect();
    execute(drives, FIRST, Command::Batch { changes: &changes })
}

pub fn listed(drives: &mut [Drive], namespace: NamespaceId, keys_max: usize) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    loop {
        let from = all.last().map(|last| key(last));
        let Ok(Reply::Listed(keys)) = execute(drives, namespace, Command::List { from, keys_max }) else { panic!() };
        let new: Vec<Vec<u8>> = keys.iter().map(|key| key.to_vec()).filter(|key| all.last() != Some(key)).collect();
        if new.is_empty() {
            return all;
        }
        all.extend(new);
    }
}

/// The pairs of an ordered namespace, as an iterator gives them, a few at a time.
fn ranged(drives: &mut [Drive], namespace: NamespaceId, options: IteratorOptions<'_>, pairs_max: u32) -> Vec<Vec<u8>> {
    let created = execute(drives, namespace, Command::CreateIterator { options });
    let Ok(Reply::IteratorCreated(iterator)) = created else { panic!("{created:?}") };
    let mut keys = Vec::new();
    let mut command = Command::Seek { iterator, key: None, pairs_max };
    loop {
        let Ok(Reply::Pairs(pairs)) = execute(drives, namespace, command) else { panic!() };
        assert!(pairs.len() <= pairs_max as usize);
        if pairs.is_empty() {
            break;
        }
        keys.extend(pairs.into_iter().map(|(key, _)| key.to_vec()));
        command = Command::Next { iterator, pairs_max };
    }
    assert_eq!(execute(drives, namespace, Command::DestroyIterator { iterator }), Ok(Reply::IteratorDestroyed));
    let gone = execute(drives, namespace, Command::Next { iterator, pairs_max });
    assert_eq!(gone, Err(KvError::NoSuchIterator(iterator)));
    keys
}

fn look_at_all(drives: &mut [Drive], map: &Map, spaces: &[NamespaceId], told: &str) {
    for &space in spaces {
        let known: Vec<&Vec<u8>> = map.keys().filter(|(of, _)| *of == space).map(|(_, name)| name).collect();
        let mut keys = listed(drives, space, 7);
        if !drives[0].engine().is_ordered(space) {
            keys.sort();
        }
        assert_eq!(keys.iter().collect::<Vec<_>>(), known, "{told}, namespace {space}");
        let salvaged = Partitions::new(drives.iter_mut()).salvage_keys(space).unwrap();
        assert!(salvaged.iter().map(|key| key.to_vec()).eq(known.iter().map(|key| key.to_vec())), "{told}");
        for name in known {
            assert_eq!(retrieve(drives, space, name).as_ref(), map.get(&(space, name.clone())), "{told}");
        }
    }
    for info in Partitions::new(drives.iter_mut()).namespaces() {
        let pairs = map.keys().filter(|(of, _)| *of == info.id).count() as u64;
        assert_eq!(info.utilization.pairs, pairs, "{told}, namespace {}", info.id);
    }
}

/// Changes, batches and lists of three namespaces in lives that end in order, by kill or with the power, beside a plain map.
fn live(design: &str, partitions: u32, value_bytes_max: Option<u32>, seed: u64) {
    let disk = SimulatedDisk::new(seed);
    let create_options = CreateDrive { partitions, value_bytes_max, sync: true, ..CreateDrive::default() };
    let mut drives = create(&disk, design, create_options);
    let ordered = NamespaceAttributes { is_ordered: true, name: Some("b".to_owned()), ..NamespaceAttributes::PLAIN };
    let ordered = Partitions::new(&mut drives).create_namespace(ordered).unwrap();
    let plain = NamespaceAttributes { name: Some("c".to_owned()), ..NamespaceAttributes::PLAIN };
    let plain = Partitions::new(&mut drives).create_namespace(plain).unwrap();
    let spaces = [FIRST, ordered, plain];
    let (mut map, mut random) = (Map::new(), Random::new(seed));
    let large = |random: &mut Random| value_bytes_max.is_some() && random.below(20) == 0;
    for life in 0..6u8 {
        for round in 0..150u32 {
            let space = spaces[random.below(3) as usize];
            let name = format!("key {}", random.below(60)).into_bytes();
            let bytes = if large(&mut random) { 700_000 } else { random.below(3000) as usize };
            let value = vec![round as u8; bytes];
            match random.below(10) {
                0..4 => {
                    assert_eq!(store(&mut drives, space, &name, &value), Ok(Reply::Stored));
                    map.insert((space, name), value);
                }
                4..6 => {
                    let deleted = execute(&mut drives, space, Command::Delete { key: key(&name) });
                    let was_there = map.remove(&(space, name)).is_some();
                    assert_eq!(deleted, if was_there { Ok(Reply::Deleted) } else { Err(KvError::KeyNotFound) });
                }
                6..9 => {
                    let mut changes = BTreeMap::new();
                    for _ in 0..random.below(12) {
                        let name = format!("key {}", random.below(60)).into_bytes();
                        let value = (random.below(3) > 0).then(|| vec![round as u8; random.below(2000) as usize]);
                        changes.insert((spaces[random.below(3) as usize], name), value);
                    }
                    let listed: Vec<_> =
                        changes.iter().map(|((space, name), value)| (*space, name.clone(), value.clone())).collect();
                    assert_eq!(batch(&mut drives, &listed), Ok(Reply::Batched));
                    for (pair, value) in changes {
                        match value {
                            Some(value) => drop(map.insert(pair, value)),
                            None => drop(map.remove(&pair)),
                        }
                    }
                }
                _ => {
                    let mut known: Vec<Vec<u8>> =
                        map.keys().filter(|(of, _)| *of == ordered).map(|(_, name)| name.clone()).collect();
                    let options = IteratorOptions { descending: random.below(2) == 0, ..IteratorOptions::default() };
                    if options.descending {
                        known.reverse();
                    }
                    let pairs_max = 1 + random.below(20) as u32;
                    assert_eq!(ranged(&mut drives, ordered, options, pairs_max), known);
                }
            }
        }
        let told = format!("{design} in {partitions}, seed {seed}, life {life}");
        look_at_all(&mut drives, &map, &spaces, &told);
        match life % 3 {
            0 => drives.into_iter().for_each(|drive| drive.close().unwrap()),
            _ => drop(drives),
        }
        if life % 2 == 0 {
            disk.kill();
        } else {
            disk.lose_power();
        }
        assert_eq!(Drive::check_in(&disk.files(), Path::new(PATH)).unwrap().findings, [], "{told}");
        drives = open(&disk, true);
        look_at_all(&mut drives, &map, &spaces, &told);
    }
}

#[test]
fn partitions_are_as_one_drive() {
    for (seed, (design, partitions)) in [("plus", 3), ("pink", 2), ("rhik", 4)].into_iter().enumerate() {
        live(design, partitions, (seed == 0).then_some(1 << 20), seed as u64);
    }
}

/// Killed at every call of the disk in a batch over all partitions: all of it is there or nothing, in whichever life one looks.
#[test]
fn a_batch_over_partitions_is_there_or_not_wherever_it_is_cut() {
    for (sync, value_bytes_max) in [(true, None), (false, None), (true, Some(1 << 20))] {
        let (mut cuts, mut torn, mut whole) = (0, 0, 0);
        for number in 0.. {
            let disk = SimulatedDisk::new(number);
            let options = CreateDrive { partitions: 3, sync, value_bytes_max, ..CreateDrive::default() };
            let mut drives = create(&disk, "plus", options);
            let names: Vec<Vec<u8>> = (0..12u8).map(|name| vec![name]).collect();
            let used: Vec<usize> = names.iter().map(|name| partition_of(FIRST, key(name), 3)).collect();
            assert!((0..3).all(|number| used.contains(&number)));
            for name in &names[..6] {
                let bytes = if value_bytes_max.is_some() && name[0] < 3 { 700_000 } else { 100 };
                store(&mut drives, FIRST, name, &vec![0; bytes]).unwrap();
            }
            // Half of them are new, half are there, and two go.
            let change = |name: &Vec<u8>| (FIRST, name.clone(), (!name[0].is_multiple_of(6)).then(|| vec![1; 200]));
            let changes: Vec<_> = names.iter().map(change).collect();
            let strike = [Strike::KillBefore, Strike::KillWithin, Strike::KillAfter][(number % 3) as usize];
            disk.strike(disk.calls() + 1 + number / 3, strike);
            let made = batch(&mut drives, &changes);
            let before: Vec<usize> = names.iter().map(|name| usize::from(name[0] < 6)).collect();
            drop(drives);
            if sync && number % 2 == 0 {
                disk.lose_power();
            } else {
                disk.kill();
            }
            for life in 0..3 {
                let mut drives = open(&disk, sync);
                let found: Vec<Option<Vec<u8>>> = names.iter().map(|name| retrieve(&mut drives, FIRST, name)).collect();
                let is_new = found.iter().any(|value| value.as_ref().is_some_and(|value| value.len() == 200));
                for ((name, value), was_there) in names.iter().zip(&found).zip(&before) {
                    let is_as_before = value.as_ref().map_or(0, |value| usize::from(value.len() != 200)) == *was_there;
                    let is_as_behind = value.is_some() != name[0].is_multiple_of(6);
                    assert!(
                        if is_new { is_as_behind } else { is_as_before },
                        "{strike:?} at {number}, life {life}: {name:?} is torn"
                    );
                }
                assert!(made.is_err() || is_new, "{strike:?} at {number}: what was answered is gone");
                if life == 0 {
                    (torn, whole) = (torn + u64::from(!is_new), whole + u64::from(is_new));
                }
                match life {
                    0 => drop(drives),
                    _ => drives.into_iter().for_each(|drive| drive.close().unwrap()),
                }
                disk.kill();
                assert_eq!(Drive::check_in(&disk.files(), Path::new(PATH)).unwrap().findings, []);
            }
            cuts += u64::from(made.is_err());
            if made.is_ok() && number % 3 == 2 {
                break;
            }
        }
        assert!(cuts >= if sync { 9 } else { 3 }, "{cuts} cuts, sync {sync}");
        assert!(torn > 0 && whole > 0, "{torn} before the decision, {whole} behind it, sync {sync}");
    }
}

/// A batch that one partition refuses changes nothing in any.
#[test]
fn a_batch_that_is_refused_changes_nothing() {
    let disk = SimulatedDisk::new(1);
    let mut drives =
        create(&disk, "plus", CreateDrive { partitions: 3, value_bytes_max: Some(1 << 20), ..CreateDrive::default() });
    let quota = NamespaceAttributes { quota_bytes: Some(3 * 40_000), ..NamespaceAttributes::PLAIN };
    let small = Partitions::new(&mut drives).create_namespace(quota).unwrap();
    let info = Partitions::new(&mut drives).namespaces().into_iter().find(|info| info.id == small).unwrap();
    assert_eq!(info.attributes.quota_bytes, Some(3 * 40_000));
    let mut map = Map::new();
    for name in 0..30u8 {
        let (space, bytes) = (if name % 2 == 0 { FIRST } else { small }, if name == 4 { 700_000 } else { 1000 });
        store(&mut drives, space, &[name], &vec![name; bytes]).unwrap();
        map.insert((space, vec![name]), vec![name; bytes]);
    }
    let mut changes: Vec<_> = (0..40u8).map(|name| (FIRST, vec![name], Some(vec![9; 500]))).collect();
    // More than a share of the quota.
    let refused = (0u8..).find(|name| partition_of(small, key(&[100, *name]), 3) == 2).unwrap();
    changes.push((small, vec![100, refused], Some(vec![9; 50_000])));
    for _ in 0..3 {
        assert_eq!(batch(&mut drives, &changes), Err(KvError::CapacityExceeded));
        look_at_all(&mut drives, &map, &[FIRST, small], "refused");
        drop(drives);
        disk.kill();
        assert_eq!(Drive::check_in(&disk.files(), Path::new(PATH)).unwrap().findings, []);
        drives = open(&disk, false);
        look_at_all(&mut drives, &map, &[FIRST, small], "refused, and mounted");
    }
    changes.pop();
    assert_eq!(batch(&mut drives, &changes), Ok(Reply::Batched));
    map.extend(changes.into_iter().map(|(space, name, value)| ((space, name), value.unwrap())));
    look_at_all(&mut drives, &map, &[FIRST, small], "made");
}

/// What a golden image of two partitions holds: stores, deletes, and batches over both, of two namespaces and in two lives.
fn fill_golden(path: &Path, is_closed: bool) -> Map {
    let files: Arc<dyn Files> = Arc::new(SystemFiles);
    let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
    let options = CreateDrive { partitions: 2, value_bytes_max: Some(2 << 20), ..CreateDrive::default() };
    let mut drives = Drive::create_all_in(&files, path, &profile, &design, options).unwrap();
    let ordered = NamespaceAttributes { is_ordered: true, name: Some("b".to_owned()), ..NamespaceAttributes::PLAIN };
    let ordered = Partitions::new(&mut drives).create_namespace(ordered).unwrap();
    let mut map = Map::new();
    for life in 0..2u8 {
        for number in 0..60u8 {
            let space = if number % 3 == 0 { ordered } else { FIRST };
            let value = vec![number ^ life; if number == 7 { 700_000 } else { 40 * usize::from(number) }];
            store(&mut drives, space, &[number, 1], &value).unwrap();
            map.insert((space, vec![number, 1]), value);
        }
        let change = |number: u8| {
            let space = if number.is_multiple_of(2) { ordered } else { FIRST };
            (space, vec![number, 2 - number % 2], (!number.is_multiple_of(5)).then(|| vec![life; 100]))
        };
        let changes: Vec<Wanted> = (0..30).map(change).collect();
        batch(&mut drives, &changes).unwrap();
        for (space, name, value) in changes {
            match value {
                Some(value) => drop(map.insert((space, name), value)),
                None => drop(map.remove(&(space, name))),
            }
        }
        if is_closed || life == 0 {
            std::mem::take(&mut drives).into_iter().for_each(|drive| drive.close().unwrap());
            drives = if life == 0 { Drive::open_all_in(&files, path, WRITE).unwrap() } else { Vec::new() };
        }
    }
    map
}

const WRITE: OpenOptions = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };

fn golden(end: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/images/v4/plus-{end}.zst"))
}

#[test]
#[ignore = "writes images that are missing into the repository, for a new format version of several parts"]
fn write_golden_images_of_partitions() {
    let folder = tempfile::tempdir().unwrap();
    for end in ["closed", "cut"] {
        let path = folder.path().join(end);
        fill_golden(&path, end == "closed");
        fs::create_dir_all(golden(end).parent().unwrap()).unwrap();
        if !golden(end).exists() {
            fs::write(golden(end), pack(&path)).unwrap();
        }
    }
}

/// Images of version 4, as the program wrote them that made it first: every later one reads, checks and changes them.
#[test]
fn golden_images_of_partitions_are_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let files: Arc<dyn Files> = Arc::new(SystemFiles);
    for end in ["closed", "cut"] {
        let path = folder.path().join(format!("{end}.kv"));
        let mut map = fill_golden(&folder.path().join(end), end == "closed");
        unpack(&fs::read(golden(end)).unwrap(), &path);
        for life in 0..2 {
            assert_eq!(Drive::check(&path).unwrap().findings, [], "{end}");
            let mut drives = Drive::open_all_in(&files, &path, WRITE).unwrap();
            look_at_all(&mut drives, &map, &[FIRST, NamespaceId(3)], &format!("{end}, life {life}"));
            let changes: Vec<Wanted> = (0..30u8).map(|number| (FIRST, vec![number, 9], Some(vec![life; 50]))).collect();
            batch(&mut drives, &changes).unwrap();
            map.extend(changes.into_iter().map(|(space, name, value)| ((space, name), value.unwrap())));
        }
    }
}

/// Where a drive is damaged is said by partition, as [`Drive::check`] says it.
#[test]
fn a_mount_that_fails_says_in_which_partition() {
    let desk = tempfile::tempdir().unwrap();
    let path = desk.path().join("drive.kv");
    let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
    let options = CreateDrive { partitions: 3, ..CreateDrive::default() };
    let files: Arc<dyn Files> = Arc::new(SystemFiles);
    let drives = Drive::create_all_in(&files, &path, &profile, &design, options).unwrap();
    drives.into_iter().for_each(|drive| drive.close().unwrap());
    let whole = fs::read(&path).unwrap();
    // Where the header has the offset of the pages, and the bytes of a partition.
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
    let (pages_offset, part_bytes) = (number(128), number(136));
    for partition in 0..3 {
        let mut damaged = whole.clone();
        damaged[partition * part_bytes + pages_offset..(partition + 1) * part_bytes].fill(0);
        fs::write(&path, damaged).unwrap();
        let options = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };
        let error = Drive::open_all_in(&files, &path, options).err().unwrap().to_string();
        assert!(error.contains(&format!("drive.kv: partition {partition}: ")), "{error}");
    }
}

/// Keys are spread evenly, and the place of a key is of its bytes and namespace alone: images depend on it.
#[test]
fn keys_are_spread_over_partitions() {
    let mut counts = [0; 8];
    for number in 0..8000u32 {
        counts[partition_of(FIRST, key(&number.to_le_bytes()), 8)] += 1;
    }
    assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    assert_eq!([1u8, 2, 3, 4, 5, 6].map(|name| partition_of(FIRST, key(&[name]), 4)), SPREAD);
    let retrieve = Command::Retrieve { key: key(&[1]), offset_bytes: 0, length_bytes: 1 };
    assert_eq!(Scope::of(FIRST, &retrieve, 4), Scope::One(SPREAD[0]));
    assert_eq!(Scope::of(FIRST, &Command::Flush, 4), Scope::All);
    assert_eq!(Scope::of(FIRST, &Command::Flush, 1), Scope::One(0));
}

const SPREAD: [usize; 6] = [0, 0, 2, 2, 0, 1];

/// A batch over all partitions has pairs leave in each of them: they leave with it, and not with a later change.
#[test]
fn who_leaves_a_cache_for_a_batch_over_partitions_leaves_with_it() {
    let disk = SimulatedDisk::new(1);
    let mut drives = create(&disk, "plus", CreateDrive { partitions: 3, ..CreateDrive::default() });
    let plan = CachePlan { budget_bytes: 6000, eviction: EvictionPolicy::LRU, admission: Vec::new() };
    let cache = Some(CacheAttributes { plan, time_to_live_ms: None });
    let attributes = NamespaceAttributes { cache, name: Some("cache".to_owned()), ..NamespaceAttributes::PLAIN };
    let space = Partitions::new(&mut drives).create_namespace(attributes).unwrap();
    let mut evicted = 0;
    for round in 0..30u8 {
        let changes: Vec<Wanted> = (0..6u8).map(|name| (space, vec![round, name], Some(vec![round; 300]))).collect();
        // A share may be larger than its part of the budget.
        match batch(&mut drives, &changes) {
            Ok(_) | Err(KvError::CapacityExceeded) => {}
            other => panic!("{other:?}"),
        }
        let info = Partitions::new(&mut drives).cache(space).unwrap();
        assert!(info.held_bytes <= info.budget_bytes, "round {round}: {info:?}");
        assert_eq!(info.held_bytes, 302 * listed(&mut drives, space, 7).len() as u64, "round {round}");
        evicted = info.counts.evicted;
    }
    assert!(evicted > 60, "{evicted} left");
}

/// A cache with a smaller budget is looked through by the next batch: large values leave it by batches of their own, which are no share.
#[test]
fn large_values_leave_a_cache_while_a_batch_over_partitions_is_prepared() {
    let disk = SimulatedDisk::new(1);
    let options = CreateDrive { partitions: 2, value_bytes_max: Some(4 << 20), ..CreateDrive::default() };
    let mut drives = create(&disk, "plus", options);
    let of_budget = |budget_bytes| {
        let plan = CachePlan { budget_bytes, eviction: EvictionPolicy::LRU, admission: Vec::new() };
        Some(CacheAttributes { plan, time_to_live_ms: None })
    };
    let (cache, name) = (of_budget(1 << 30), Some("cache".to_owned()));
    let attributes = NamespaceAttributes { cache, name, ..NamespaceAttributes::PLAIN };
    let space = Partitions::new(&mut drives).create_namespace(attributes).unwrap();
    for name in 0..8u8 {
        store(&mut drives, space, &[name], &[name; 2_000_000]).unwrap();
    }
    Partitions::new(&mut drives).set_cache(space, of_budget(1 << 20)).unwrap();
    let changes: Vec<Wanted> = (0..8).map(|name| (space, vec![name, 1], Some(vec![name; 9000]))).collect();
    batch(&mut drives, &changes).unwrap();
    assert_eq!(listed(&mut drives, space, 99).len(), changes.len());
    store(&mut drives, FIRST, b"key", b"value").unwrap();
    assert_eq!(retrieve(&mut drives, FIRST, b"key").unwrap(), b"value");
}

/// A page of the first pair of partition 0 is damaged.
#[test]
fn a_seek_that_fails_in_one_partition_hides_nothing_behind_an_end() {
    let disk = SimulatedDisk::new(1);
    let mut drives = create(&disk, "pink", CreateDrive { partitions: 2, ..CreateDrive::default() });
    let names: Vec<Vec<u8>> = (0..20).map(|number| format!("key{number:02}").into_bytes()).collect();
    for name in &names {
        let mut value = vec![0; 9000];
        value[4000..4005].copy_from_slice(name);
        store(&mut drives, FIRST, name, &value).unwrap();
    }
    drives.into_iter().for_each(|drive| drive.close().unwrap());
    let hurt = names.iter().find(|name| partition_of(FIRST, key(name), 2) == 0).unwrap();
    let mut bytes = disk.read(Path::new(PATH)).unwrap();
    let is_value = |at: &usize| bytes[*at..].starts_with(hurt) && bytes[at - 100..*at].iter().all(|byte| *byte == 0);
    let places: Vec<usize> = (100..bytes.len()).filter(is_value).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|&at| bytes[at] ^= 0x55);
    disk.put(Path::new(PATH), bytes.len() as u64, [(0, &bytes[..])]);
    let mut drives = open(&disk, false);
    let options = IteratorOptions::default();
    let created = execute(&mut drives, FIRST, Command::CreateIterator { options });
    let Ok(Reply::IteratorCreated(iterator)) = created else { panic!("{created:?}") };
    let mut answer = |command| execute(&mut drives, FIRST, command);
    let end = answer(Command::Seek { iterator, key: Some(key(b"z")), pairs_max: 40 });
    assert_eq!(end, Ok(Reply::Pairs(Vec::new())));
    assert!(answer(Command::Seek { iterator, key: None, pairs_max: 40 }).is_err());
    assert!(answer(Command::Next { iterator, pairs_max: 40 }).is_err(), "it has not come to the end");
}
