//! A partition that is older than the others: the machine stopped before all was written, or a part of the file was put back.

use crate::PATH;
use crate::partitions::{key, retrieve, store};
use kvssd_device::{CreateDrive, Drive, Partitions, image_design, image_profile, partition_of};
use kvssd_flash::{Files, OpenOptions, SystemFiles};
use kvssd_ftl::NamespaceAttributes;
use kvssd_types::NamespaceId;
use std::fs;
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
    let before = fs::read(&path).unwrap();
    lives[1..].iter().for_each(|life| in_a_life(&path, life));
    let mut after = fs::read(&path).unwrap();
    let part_bytes = after.len() / 3;
    let part = partition * part_bytes..(partition + 1) * part_bytes;
    after[part.clone()].copy_from_slice(&before[part]);
    fs::write(&path, after).unwrap();
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

#[test]
fn what_an_older_partition_does_not_know_stays_in_the_others() {
    for older in 0..3 {
        let (_folder, path) = with_an_older(older, &[|_| {}, |drives| with_pairs(drives, "accounts")]);
        let report = Drive::check(&path).unwrap();
        let finding = &report.findings[0];
        let told = format!("partition {older} does not know it: it is older than the others");
        assert_eq!((finding.place.as_str(), &finding.what, report.findings.len()), ("namespace accounts", &told, 1));
        for life in 0..2u8 {
            in_a_life(&path, |drives| {
                for name in (0..90u8).map(|number| [number]) {
                    let is_there = partition_of(SECOND, key(&name), 3) != older;
                    assert_eq!(retrieve(drives, SECOND, &name).is_some(), is_there || life == 1, "{name:?} of {older}");
                    store(drives, SECOND, &name, &[9; 10]).unwrap();
                }
            });
            assert!(Drive::check(&path).unwrap().is_clean());
        }
    }
}

#[test]
fn partitions_with_other_namespaces_of_one_number_are_no_drive() {
    let lives: [fn(&mut Vec<Drive>); 3] = [
        |drives| with_pairs(drives, "accounts"),
        |drives| Partitions::new(drives).delete_namespace(SECOND).unwrap(),
        |drives| with_pairs(drives, "others"),
    ];
    for older in 0..3 {
        let (_folder, path) = with_an_older(older, &lives);
        let files: Arc<dyn Files> = Arc::new(SystemFiles);
        let options = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };
        let refusal = Drive::open_all_in(&files, &path, options).map(|_| ()).unwrap_err().to_string();
        assert!(refusal.contains("is older than the others"), "{refusal}");
        assert!(!Drive::check(&path).unwrap().is_clean());
    }
}
