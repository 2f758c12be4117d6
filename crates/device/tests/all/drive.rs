//! A drive in a file: whatever ends its life, the next one finds what was answered.

use crate::retrieve;
use kvssd_designs::{DESIGNS, ORIGINAL, PLUS};
use kvssd_device::{CreateDrive, Drive, DriveError, image_design, image_profile};
use kvssd_flash::{ImageFault, OpenOptions};
use kvssd_ftl::{Design, NamespaceAttributes};
use kvssd_types::{BatchChange, Command, Key, KvError, NamespaceId, Random, Reply, StoreCondition};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const IMAGE_BYTES: u64 = 64 << 20;
const WRITE: OpenOptions = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };
const READ: OpenOptions = OpenOptions { sync: false, read_only: true, cache_bytes: 0 };

fn image(folder: &TempDir) -> PathBuf {
    folder.path().join("drive.kv")
}

fn create(path: &Path, design: &Design) -> Drive {
    Drive::create(path, &image_profile(IMAGE_BYTES).unwrap(), design, CreateDrive::default()).unwrap()
}

fn store(drive: &mut Drive, key: &[u8], value: &[u8]) {
    let condition = StoreCondition::Always;
    let command = Command::Store { key: Key::new(key).unwrap(), value: value.into(), condition };
    assert_eq!(drive.execute(command), Ok(Reply::Stored));
}

/// How a life ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Closed,
    Dropped,
    Forgotten,
}

#[test]
fn every_life_begins_with_what_the_one_before_was_answered() {
    for design in &DESIGNS {
        let folder = TempDir::new().unwrap();
        create(&image(&folder), design).close().unwrap();
        let mut model = BTreeMap::new();
        let mut random = Random::new(7);
        let mut collected = 0;
        for end in [End::Closed, End::Dropped, End::Forgotten, End::Dropped, End::Closed, End::Forgotten] {
            let mut drive = Drive::open(image(&folder), WRITE).unwrap();
            assert_eq!(drive.engine().utilization().pairs, model.len() as u64, "{} {end:?}", design.name);
            for _ in 0..4000 {
                let key = random.below(3000).to_le_bytes().to_vec();
                if random.below(4) == 0 {
                    let reply = drive.execute(Command::Delete { key: Key::new(&key).unwrap() });
                    assert_eq!(reply.is_ok(), model.remove(&key).is_some());
                } else {
                    let value = vec![random.below(256) as u8; random.below(12_000) as usize];
                    store(&mut drive, &key, &value);
                    model.insert(key, value);
                }
            }
            for number in 0..3000u64 {
                let key = number.to_le_bytes().to_vec();
                assert_eq!(retrieve(&mut drive, &key).as_ref(), model.get(&key), "{} {end:?}", design.name);
            }
            collected += drive.engine().gc_counters().superblocks;
            drive.engine().check_invariants();
            match end {
                End::Closed => drive.close().unwrap(),
                End::Dropped => drop(drive),
                // The lock goes with the process; here a copy is what the next life finds.
                End::Forgotten => {
                    let copy = folder.path().join("copy.kv");
                    std::fs::copy(image(&folder), &copy).unwrap();
                    drop(drive);
                    std::fs::rename(copy, image(&folder)).unwrap();
                }
            }
        }
        assert!(collected > 0, "garbage collection never ran");
    }
}

/// A batch that gives `keys` of each namespace the value `value`.
fn batch(drive: &mut Drive, namespaces: &[NamespaceId], keys: std::ops::Range<u64>, value: &[u8]) {
    let keys: Vec<[u8; 8]> = keys.map(u64::to_be_bytes).collect();
    let pairs = namespaces.iter().flat_map(|&namespace| keys.iter().map(move |key| (namespace, key)));
    let changes: Vec<BatchChange<'_>> = pairs
        .map(|(namespace, key)| BatchChange { namespace, key: Key::new(key).unwrap(), value: Some(value.into()) })
        .collect();
    assert_eq!(drive.execute(Command::Batch { changes: &changes }), Ok(Reply::Batched));
}

#[test]
fn a_deleted_namespace_goes_on_going_in_the_next_life() {
    for name in DESIGNS.map(|design| design.name) {
        let folder = TempDir::new().unwrap();
        let mut drive = create(&image(&folder), &image_design(name).unwrap());
        // The tree has no room in the part of a page that multilevel uses.
        let ordered = NamespaceAttributes { is_ordered: name != "multilevel", ..NamespaceAttributes::PLAIN };
        let spaces = [NamespaceId::FIRST, drive.create_namespace(ordered).unwrap(), NamespaceId(3)];
        assert_eq!(drive.create_namespace(NamespaceAttributes::PLAIN), Ok(spaces[2]), "{name}");
        for round in 0..50u64 {
            batch(&mut drive, &spaces, round * 40..(round + 1) * 40, &[round as u8; 100]);
        }
        drive.delete_namespace(spaces[1]).unwrap();
        drop(drive);
        let report = Drive::check(image(&folder)).unwrap();
        assert!(report.is_clean() && report.pairs > 4000, "{name}: {report}");
        let mut drive = Drive::open(image(&folder), WRITE).unwrap();
        let left: Vec<_> = drive.namespaces().iter().map(|info| (info.id, info.utilization.pairs)).collect();
        assert_eq!(left, [(spaces[0], 2000), (spaces[2], 2000)], "{name}");
        let gone = drive.execute_in(spaces[1], Command::List { from: None, keys_max: 1 });
        assert_eq!(gone, Err(KvError::NoSuchNamespace(spaces[1])));
        batch(&mut drive, &[spaces[0]], 0..1, b"");
        drive.close().unwrap();
        let report = Drive::check(image(&folder)).unwrap();
        assert!(report.is_clean() && report.pairs == 4000, "{name}: {report}");
        let drive = Drive::open(image(&folder), READ).unwrap();
        assert_eq!(drive.engine().utilization().pairs, 4000);
    }
}

#[test]
fn held_commits_come_together() {
    let folder = TempDir::new().unwrap();
    let mut drive = create(&image(&folder), &PLUS);
    store(&mut drive, b"before", b"1");
    let lengths = |name: &str| {
        let copy = folder.path().join(name);
        std::fs::copy(image(&folder), &copy).unwrap();
        let mut drive = Drive::open(copy, READ).unwrap();
        ["before", "a", "b"].map(|key| retrieve(&mut drive, key.as_bytes()).map(|value| value.len()))
    };
    drive.hold_commits(true);
    store(&mut drive, b"a", b"1");
    store(&mut drive, b"b", b"22");
    assert_eq!(lengths("held.kv"), [Some(1), None, None]);
    drive.commit().unwrap();
    assert_eq!(lengths("committed.kv"), [Some(1), Some(1), Some(2)]);
}

#[test]
fn reading_changes_no_byte() {
    for design in &DESIGNS {
        let folder = TempDir::new().unwrap();
        let mut drive = create(&image(&folder), design);
        for number in 0..2000u32 {
            store(&mut drive, &number.to_be_bytes(), &vec![number as u8; 5000]);
        }
        drop(drive);
        let before = std::fs::read(image(&folder)).unwrap();
        let mut one = Drive::open(image(&folder), READ).unwrap();
        let mut two = Drive::open(image(&folder), READ).unwrap();
        for number in 0..2000u32 {
            assert_eq!(retrieve(&mut one, &number.to_be_bytes()), Some(vec![number as u8; 5000]));
            assert_eq!(retrieve(&mut two, &number.to_be_bytes()), Some(vec![number as u8; 5000]));
        }
        one.close().unwrap();
        drop(two);
        assert!(before == std::fs::read(image(&folder)).unwrap(), "{}: the image has changed", design.name);
    }
}

#[test]
fn a_drive_in_use_and_a_file_that_is_there_are_refused() {
    let folder = TempDir::new().unwrap();
    let drive = create(&image(&folder), &ORIGINAL);
    let holder = format!("process {}", std::process::id());
    match Drive::open(image(&folder), WRITE).map(|_| ()) {
        Err(DriveError::Image(error)) => assert!(error.to_string().contains(&holder), "{error}"),
        other => panic!("{other:?}"),
    }
    let profile = image_profile(IMAGE_BYTES).unwrap();
    match Drive::create(image(&folder), &profile, &ORIGINAL, CreateDrive::default()).map(|_| ()) {
        Err(DriveError::Image(error)) => assert_eq!(error.fault, ImageFault::Exists),
        other => panic!("{other:?}"),
    }
    drop(drive);
    Drive::open(image(&folder), WRITE).unwrap();
}

#[test]
fn a_design_that_does_not_fit_leaves_no_file() {
    let folder = TempDir::new().unwrap();
    let mut profile = image_profile(IMAGE_BYTES).unwrap();
    profile.memory.dram_bytes = 1000;
    assert!(Drive::create(image(&folder), &profile, &PLUS, CreateDrive::default()).is_err());
    assert!(!image(&folder).exists());
}
