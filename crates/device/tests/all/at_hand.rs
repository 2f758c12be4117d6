//! Iterators of a drive in a file, which nobody times: pairs that are given from where they lie are those that a command reads.

use kvssd_designs::PLUS;
use kvssd_device::{CreateDrive, Drive, image_design, image_profile};
use kvssd_ftl::NamespaceAttributes;
use kvssd_types::{
    Command, IteratorId, IteratorOptions, Key, KvError, NamespaceId, Nanos, Random, Reply, StoreCondition,
};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use tempfile::TempDir;

const IMAGE_BYTES: u64 = 64 << 20;
const KEYS: u64 = 2000;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// A drive with an ordered namespace.
fn create(path: &Path, cache_bytes: u64) -> (Drive, NamespaceId) {
    let options = CreateDrive { cache_bytes, ..CreateDrive::default() };
    let design = image_design(PLUS.name).unwrap();
    let mut drive = Drive::create(path, &image_profile(IMAGE_BYTES).unwrap(), &design, options).unwrap();
    let attributes = NamespaceAttributes { is_ordered: true, ..NamespaceAttributes::PLAIN };
    let namespace = drive.create_namespace(attributes).unwrap();
    (drive, namespace)
}

/// Stores and deletes, of values in a page, over two and over many.
fn change(drive: &mut Drive, namespace: NamespaceId, model: &mut Pairs, random: &mut Random, count: u64) {
    for _ in 0..count {
        let key = (random.below(KEYS) * 7).to_be_bytes().to_vec();
        if random.below(5) == 0 {
            let deleted = drive.execute_in(namespace, Command::Delete { key: Key::new(&key).unwrap() });
            assert_eq!(deleted.is_ok(), model.remove(&key).is_some());
            continue;
        }
        let bytes_max = [200, 5000, 5000, 20_000][random.below(4) as usize];
        let value = vec![random.below(256) as u8; random.below(bytes_max) as usize];
        let condition = StoreCondition::Always;
        let command = Command::Store { key: Key::new(&key).unwrap(), value: value[..].into(), condition };
        drive.execute_in(namespace, command).unwrap();
        model.insert(key, value);
    }
}

fn begin(drive: &mut Drive, namespace: NamespaceId, descending: bool) -> IteratorId {
    let options = IteratorOptions { descending, ..IteratorOptions::default() };
    match drive.execute_in(namespace, Command::CreateIterator { options }).unwrap() {
        Reply::IteratorCreated(iterator) => iterator,
        other => panic!("{other:?}"),
    }
}

fn pairs_of(reply: Reply) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Reply::Pairs(pairs) = reply else { panic!("{reply:?}") };
    pairs.into_iter().map(|(key, value)| (key.into(), value.unwrap().to_vec())).collect()
}

/// What the model shows from a key on.
fn shown(model: &Pairs, from: &[u8], descending: bool, count: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
    match descending {
        false => model.range(from.to_vec()..).take(count).map(owned).collect(),
        true => model.range(..=from.to_vec()).rev().take(count).map(owned).collect(),
    }
}

#[test]
fn pairs_at_hand_are_those_that_a_command_reads_whatever_was_changed_and_moved_since() {
    for cache_bytes in [0, 8 << 20] {
        let folder = TempDir::new().unwrap();
        let (mut drive, namespace) = create(&folder.path().join("drive.kv"), cache_bytes);
        let (mut model, mut random) = (Pairs::new(), Random::new(3));
        change(&mut drive, namespace, &mut model, &mut random, 12_000);
        let before = model.clone();
        let iterators = [false, true].map(|descending| (descending, begin(&mut drive, namespace, descending)));
        let moved = drive.engine().gc_counters().superblocks;
        change(&mut drive, namespace, &mut model, &mut random, 16_000);
        assert!(drive.engine().gc_counters().superblocks > moved, "records were moved");
        for (descending, iterator) in iterators {
            for _ in 0..200 {
                let from = random.below(7 * KEYS).to_be_bytes();
                let (key, pairs_max) = (Some(Key::new(&from).unwrap()), random.below(20) as u32 + 1);
                let (looked, expected) =
                    (drive.engine().pages_glanced(), shown(&before, &from, descending, 2 * pairs_max as usize));
                let seek = Command::Seek { iterator, key, pairs_max };
                let timed = drive.submit_in(namespace, seek.clone(), Nanos::ZERO).reply;
                assert_eq!(drive.engine().pages_glanced(), looked, "what is timed is read");
                let mut pairs = pairs_of(drive.execute_in(namespace, seek).unwrap());
                assert_eq!(pairs, pairs_of(timed.unwrap()));
                pairs.extend(pairs_of(drive.execute_in(namespace, Command::Next { iterator, pairs_max }).unwrap()));
                assert_eq!(pairs, expected, "{descending} from {from:?}");
            }
        }
        assert!(drive.engine().pages_glanced() > 1000, "{} pages at hand", drive.engine().pages_glanced());
    }
}

/// The command tells, as it does of what it reads itself.
#[test]
fn what_cannot_be_read_is_told_and_nothing_wrong_is_shown() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("drive.kv");
    let (mut drive, namespace) = create(&path, 0);
    let (mut model, mut random) = (Pairs::new(), Random::new(4));
    change(&mut drive, namespace, &mut model, &mut random, 5000);
    let iterator = begin(&mut drive, namespace, false);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let (begin_bytes, end_bytes) = (IMAGE_BYTES / 4, file.metadata().unwrap().len());
    for at in (begin_bytes..end_bytes).step_by(40 * 4608) {
        file.write_all_at(&[0xa5; 64], at).unwrap();
    }
    let (mut told, mut right) = (0, 0);
    for _ in 0..400 {
        let from = random.below(7 * KEYS).to_be_bytes();
        let seek = Command::Seek { iterator, key: Some(Key::new(&from).unwrap()), pairs_max: 4 };
        match drive.execute_in(namespace, seek) {
            Ok(reply) => {
                let pairs = pairs_of(reply);
                assert_eq!(pairs, shown(&model, &from, false, pairs.len()));
                right += 1;
            }
            Err(KvError::Unrecovered(_)) => told += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(told > 20 && right > 20, "{told} told, {right} right");
}
