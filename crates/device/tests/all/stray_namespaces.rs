//! Namespaces that are not in all partitions: a process was killed while it made or deleted one, or partitions are of several moments.

use crate::partitions::{create, listed, open, retrieve, store};
use crate::{PATH, key};
use kvssd_device::{CreateDrive, Drive, Partitions, image_design, image_profile, partition_of};
use kvssd_flash::{Files, OpenOptions, SimulatedDisk, Strike, SystemFiles};
use kvssd_ftl::NamespaceAttributes;
use kvssd_types::{Command, NamespaceId, Reply};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Drives of three partitions in a file; `life` changes them, and they are closed.
fn in_a_life(path: &Path, life: impl FnOnce(&mut Vec<Drive>)) {
    let files: Arc<dyn Files> = Arc::new(SystemFiles);
    let options = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };
    let mut drives = Drive::open_all_in(&files, path, options).unwrap();
    life(&mut drives);
    drives.into_iter().for_each(|drive| drive.close().unwrap());
}

/// An image after these lives, of which a partition is as it was after the first of them.
fn with_an_older(partition: usize, lives: &[fn(&mut Vec<Drive>)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(PATH);
    let files: Arc<dyn Files> = Arc::new(SystemFiles);
    let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
    let options = CreateDrive { partitions: 3, value_bytes_max: Some(2 << 20), ..CreateDrive::default() };
    drop(Drive::create_all_in(&files, &path, &profile, &design, options).unwrap());
    in_a_life(&path, lives[0]);
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let part_bytes = file.metadata().unwrap().len() / 3;
    let mut before = vec![0; part_bytes as usize];
    file.read_exact_at(&mut before, partition as u64 * part_bytes).unwrap();
    lives[1..].iter().for_each(|life| in_a_life(&path, life));
    file.write_all_at(&before, partition as u64 * part_bytes).unwrap();
    (folder, path)
}

/// Behind the first one and its shadow.
const SECOND: NamespaceId = NamespaceId(3);

/// Makes a namespace of that name, the second of the drive, with 90 pairs.
fn with_pairs(drives: &mut [Drive], name: &str) {
    let attributes = NamespaceAttributes { name: Some(name.to_owned()), ..NamespaceAttributes::PLAIN };
    assert_eq!(Partitions::new(&mut *drives).create_namespace(attributes), Ok(SECOND));
    for number in 0..90u8 {
        store(drives, SECOND, &[number], &vec![number; if number == 7 { 700_000 } else { 100 }]).unwrap();
    }
}

/// What the check finds, in the partitions that have a namespace which is not in all.
fn told(path: &Path) -> Vec<(String, String)> {
    Drive::check(path).unwrap().findings.into_iter().map(|finding| (finding.place, finding.what)).collect()
}

/// The names of the namespaces.
fn names(drives: &mut Vec<Drive>) -> Vec<String> {
    Partitions::new(drives).namespaces().into_iter().filter_map(|info| info.attributes.name).collect()
}

fn in_partition(name: &[u8]) -> usize {
    partition_of(SECOND, key(name), 3)
}

/// Looks for the pairs, which are in these partitions alone; in the next life all are there.
fn has_pairs_of(path: &Path, name: &str, partitions: &[usize]) {
    for life in 0..2u8 {
        in_a_life(path, |drives| {
            assert_eq!(names(drives), [name]);
            for key in (0..90u8).map(|number| [number]) {
                let is_there = life == 1 || partitions.contains(&in_partition(&key));
                assert_eq!(retrieve(drives, SECOND, &key).is_some(), is_there, "{key:?} of {partitions:?}");
                store(drives, SECOND, &key, &[9; 10]).unwrap();
            }
        });
        assert!(Drive::check(path).unwrap().is_clean());
    }
}

const DELETE: fn(&mut Vec<Drive>) = |drives| Partitions::new(drives).delete_namespace(SECOND).unwrap();
const ACCOUNTS: fn(&mut Vec<Drive>) = |drives| with_pairs(drives, "accounts");
const OTHERS: fn(&mut Vec<Drive>) = |drives| with_pairs(drives, "others");
const EMPTY: fn(&mut Vec<Drive>) = |drives| {
    let attributes = NamespaceAttributes { name: Some("empty".to_owned()), ..NamespaceAttributes::PLAIN };
    assert_eq!(Partitions::new(drives).create_namespace(attributes), Ok(SECOND));
};

#[test]
fn what_an_older_partition_does_not_know_stays_in_the_others() {
    for older in 0..3 {
        let others: Vec<usize> = (0..3).filter(|number| *number != older).collect();
        // It knows nothing of the number, or another namespace, which has no pairs.
        for lives in [&[|_: &mut Vec<Drive>| {}, ACCOUNTS][..], &[EMPTY, DELETE, ACCOUNTS]] {
            let (_folder, path) = with_an_older(older, lives);
            let what = format!("not in partition {older}: partitions are of several moments");
            let places = others.iter().map(|number| (format!("partition {number}: namespace accounts"), what.clone()));
            assert_eq!(told(&path), places.collect::<Vec<_>>());
            has_pairs_of(&path, "accounts", &others);
        }
    }
}

/// It may as well be the newest, and the others be older.
#[test]
fn what_an_older_partition_alone_knows_stays() {
    for older in 0..3 {
        let (_folder, path) = with_an_older(older, &[ACCOUNTS, DELETE, |_| {}]);
        assert_eq!(told(&path)[0].0, format!("partition {older}: namespace accounts"));
        has_pairs_of(&path, "accounts", &[older]);
    }
}

/// Nobody sees either, the drive works, and the check goes on to tell it.
#[test]
fn namespaces_of_one_number_in_several_partitions_lose_no_pairs() {
    for older in 0..3 {
        let (_folder, path) = with_an_older(older, &[ACCOUNTS, DELETE, OTHERS]);
        let pairs = Drive::check(&path).unwrap().pairs;
        for _ in 0..2 {
            assert_eq!(told(&path).len(), 3);
            in_a_life(&path, |drives| {
                assert!(names(drives).is_empty());
                store(drives, NamespaceId::FIRST, b"one more", b"value").unwrap();
            });
        }
        assert_eq!(Drive::check(&path).unwrap().pairs, pairs + 1);
    }
}

/// Its namespace has the name that a younger one has in the others: both keep their pairs, and nobody sees either.
#[test]
fn namespaces_of_one_name_in_several_partitions_lose_no_pairs() {
    for older in 0..3 {
        let again: fn(&mut Vec<Drive>) = |drives| {
            DELETE(drives);
            let attributes = NamespaceAttributes { name: Some("accounts".to_owned()), ..NamespaceAttributes::PLAIN };
            let younger = Partitions::new(&mut *drives).create_namespace(attributes).unwrap();
            assert_ne!(younger, SECOND, "the number was given again");
            (0..90u8).for_each(|number| _ = store(drives, younger, &[number], &[number; 100]).unwrap());
        };
        let (_folder, path) = with_an_older(older, &[ACCOUNTS, again]);
        let pairs = Drive::check(&path).unwrap().pairs;
        assert_eq!(told(&path).len(), 3);
        in_a_life(&path, |drives| assert!(names(drives).is_empty()));
        assert_eq!((told(&path).len(), Drive::check(&path).unwrap().pairs), (3, pairs));
    }
}

/// Killed at every call while a namespace is made, or deleted with its pairs, and again while the next open settles that: it is in all
/// partitions or in none, and its number can be used again.
#[test]
fn a_namespace_is_in_all_partitions_or_in_none() {
    for is_made in [true, false] {
        for number in 0.. {
            let disk = SimulatedDisk::new(number);
            let options = CreateDrive { partitions: 3, value_bytes_max: Some(1 << 20), ..CreateDrive::default() };
            let mut drives = create(&disk, "plus", options);
            let attributes = || NamespaceAttributes { name: Some("a".to_owned()), ..NamespaceAttributes::PLAIN };
            let id = (!is_made).then(|| Partitions::new(&mut drives).create_namespace(attributes()).unwrap());
            for name in (0..60u8).filter(|_| !is_made) {
                store(&mut drives, id.unwrap(), &[name], &[name; 100]).unwrap();
            }
            disk.strike(disk.calls() + 1 + number, Strike::KillBefore);
            let mut partitions = Partitions::new(&mut drives);
            let done = match id {
                None => partitions.create_namespace(attributes()).map(|_| ()),
                Some(id) => partitions.delete_namespace(id),
            };
            drop(drives);
            disk.kill();
            disk.strike(disk.calls() + 1 + number * 7 % 90, Strike::KillBefore);
            let options = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };
            drop(Drive::open_all_in(&disk.files(), Path::new(PATH), options));
            disk.kill();
            let mut drives = open(&disk, false);
            let ids: Vec<Vec<NamespaceId>> =
                drives.iter().map(|drive| drive.namespaces().into_iter().map(|info| info.id).collect()).collect();
            assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{ids:?}");
            assert!(done.is_err() || ids[0].len() == 1 + usize::from(is_made), "{ids:?}");
            let is_whole = |id| (0..60u8).all(|name| retrieve(&mut drives, id, &[name]).is_some());
            assert!(id.filter(|id| ids[0].contains(id)).is_none_or(is_whole), "a part of a namespace was deleted");
            if ids[0].len() == 1 {
                let id = Partitions::new(&mut drives).create_namespace(attributes()).unwrap();
                for name in 0..20u8 {
                    assert_eq!(store(&mut drives, id, &[name], &[name; 10]), Ok(Reply::Stored));
                }
                assert_eq!(listed(&mut drives, id, 5).len(), 20);
            }
            if done.is_ok() {
                break;
            }
        }
    }
}

/// A partition that was put back was no cache yet: it becomes one if it has no pairs, and stays what it is if it has.
#[test]
fn a_cache_that_is_none_in_an_older_partition_loses_no_pairs() {
    const CACHE: &str = "lru budget=1000000";
    fn becomes_a_cache(drives: &mut Vec<Drive>) {
        for number in 0..90u8 {
            let _ = Partitions::new(&mut *drives).execute_in(SECOND, Command::Delete { key: key(&[number]) });
        }
        Partitions::new(&mut *drives).set_cache(SECOND, Some(CACHE.parse().unwrap())).unwrap();
        (0..90u8).for_each(|number| _ = store(drives, SECOND, &[number], &[number; 100]).unwrap());
    }
    fn empty(drives: &mut Vec<Drive>) {
        let attributes = NamespaceAttributes { name: Some("cache".to_owned()), ..NamespaceAttributes::PLAIN };
        assert_eq!(Partitions::new(drives).create_namespace(attributes), Ok(SECOND));
    }
    for (partition, before, differ) in [
        (0, empty as fn(&mut Vec<Drive>), 0),
        (1, empty, 0),
        (0, |drives| with_pairs(drives, "cache"), 2),
        (2, |drives| with_pairs(drives, "cache"), 1),
    ] {
        let (_folder, path) = with_an_older(partition, &[before, becomes_a_cache]);
        assert!(partition > 0 || !told(&path).is_empty(), "partitions differ before they are opened");
        in_a_life(&path, |drives| {
            let caches = drives.iter().map(|drive| drive.namespaces()[1].attributes.cache.is_some());
            let caches: Vec<bool> = caches.collect();
            let expected = if differ == 0 { vec![true; 3] } else { (0..3).map(|part| part != partition).collect() };
            assert_eq!(caches, expected, "partition {partition}");
            for number in 0..90u8 {
                let of = partition_of(SECOND, key(&[number]), 3);
                let found = retrieve(drives, SECOND, &[number]);
                assert!(found.is_some() || (differ == 0 && of == partition), "pair {number} of partition {of}");
                assert!(
                    store(drives, SECOND, &[number], b"later").is_ok()
                        && retrieve(drives, SECOND, &[number]).as_deref() == Some(b"later")
                );
            }
        });
        let findings = told(&path);
        assert_eq!(findings.len(), differ, "{findings:?}");
    }
}
