//! Namespaces that are deleted close to a checkpoint: what is removed is removed once, in whatever order notes and checkpoints come.

use crate::PATH;
use crate::partitions::{create, open, store};
use kvssd_device::{CreateDrive, Drive, Partitions, image_design, partition_of};
use kvssd_flash::{OpenOptions, SimulatedDisk};
use kvssd_ftl::NamespaceAttributes;
use kvssd_types::{Command, Key, NamespaceId, Nanos, StoreCondition};
use std::ops::RangeInclusive;
use std::path::Path;

const SECOND: NamespaceId = NamespaceId(2);

fn named() -> NamespaceAttributes {
    NamespaceAttributes { name: Some("second".to_owned()), ..NamespaceAttributes::PLAIN }
}

fn put(drive: &mut Drive, namespace: NamespaceId, number: usize, bytes: usize) {
    let (name, value) = ((number as u32).to_be_bytes(), vec![7; bytes]);
    let condition = StoreCondition::Always;
    let command = Command::Store { key: Key::new(&name).unwrap(), value: (&*value).into(), condition };
    drive.execute_in(namespace, command).unwrap();
}

/// Of the first namespace.
fn overwrite(drive: &mut Drive, number: usize, bytes: usize) {
    put(drive, NamespaceId::FIRST, number % 50, bytes);
}

/// A drive that has made a namespace, deleted it behind so many stores, of which `longer` have longer values, and removed it, its index as well.
fn removed(disk: &SimulatedDisk, stores: usize, longer: usize) -> Drive {
    let design = image_design("plus").unwrap();
    let mut profile =
        design.tiny_profile(&[("memory.power_loss", "protected"), ("geometry.oob_bytes", "512")]).unwrap();
    profile.memory.dram_bytes += 100_000;
    let options = CreateDrive::default();
    let mut drive = Drive::create_in(&disk.files(), Path::new(PATH), &profile, &design, options).unwrap();
    assert_eq!(drive.create_namespace(named()), Ok(SECOND));
    (0..1500).for_each(|number| put(&mut drive, SECOND, number, 100));
    (0..stores).for_each(|number| overwrite(&mut drive, number, if number + longer >= stores { 200 } else { 100 }));
    drive.delete_namespace(SECOND).unwrap();
    for hour in 1.. {
        if !drive.engine().is_removing() {
            break;
        }
        let asked = Command::Exist { key: Key::new(b"none").unwrap() };
        drop(drive.submit_as(None, NamespaceId::FIRST, asked, Nanos(hour * 3_600_000_000_000)));
    }
    drive
}

#[test]
fn an_index_is_removed_once_wherever_the_checkpoint_comes() {
    // How many stores behind the removal bring the next one, which frees the number. Where there are as many before it and a few more, which
    // leave less behind than those, it comes with the removal.
    let mut drive = removed(&SimulatedDisk::new(1), 0, 0);
    let to_checkpoint = (0..).find(|&number| {
        overwrite(&mut drive, number, 100);
        drive.engine().free_numbers().contains(&SECOND)
    });
    let mut within = 0;
    for more in 200..220 {
        for longer in [0, 5, 10] {
            let disk = SimulatedDisk::new(1);
            let drive = removed(&disk, to_checkpoint.unwrap() + more, longer);
            within += u32::from(drive.engine().free_numbers().contains(&SECOND));
            drop(drive);
            disk.kill();
            let report = Drive::check_in(&disk.files(), Path::new(PATH)).unwrap();
            assert!(report.is_clean(), "{more}, {longer}: {} findings", report.findings.len());
            let write = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };
            let drive = Drive::open_in(&disk.files(), Path::new(PATH), write).unwrap();
            assert!(!drive.engine().is_removing(), "{more}, {longer}: it is removed again");
        }
    }
    assert!(within > 5, "only {within} checkpoints came with the removal");
}

/// What goes on in a partition between its own delete and those of the others could remove the namespace, and a checkpoint forget it.
#[test]
fn a_delete_removes_no_pair_before_all_partitions_know() {
    let disk = SimulatedDisk::new(1);
    let options = CreateDrive { partitions: 3, value_bytes_max: Some(1 << 20), ..CreateDrive::default() };
    let mut drives = create(&disk, "plus", options);
    let id = Partitions::new(&mut drives).create_namespace(named()).unwrap();
    for name in 0..60u8 {
        store(&mut drives, id, &[name], &[name; 100]).unwrap();
    }
    let pairs = |drive: &Drive| drive.engine().utilization().pairs;
    let before = pairs(&drives[0]);
    assert!(before > 10 && partition_of(id, Key::new(&[0]).unwrap(), 3) < 3);
    // The process ends in the middle of `Partitions::delete_namespace`.
    drives[0].delete_namespace(id).unwrap();
    assert_eq!(pairs(&drives[0]), before);
    drop(drives);
    disk.kill();
    let mut drives = open(&disk, false);
    assert_eq!(Partitions::new(&mut drives).namespaces().len(), 1);
}

/// The pairs of the namespace that the next open shows, of which it must show all or none.
fn seen_pairs(disk: &SimulatedDisk, id: NamespaceId, pairs: u8) -> usize {
    let mut drives = open(disk, false);
    let mut partitions = Partitions::new(&mut drives);
    let is_there = partitions.namespaces().iter().any(|info| info.id == id);
    let has = |name: &u8| partitions.execute_in(id, Command::Exist { key: Key::new(&[*name]).unwrap() }).is_ok();
    if is_there { (0..pairs).filter(has).count() } else { 0 }
}

/// A partition that mounts removes nothing that another one has not deleted yet: its next checkpoint would forget it.
#[test]
fn a_delete_that_ended_between_partitions_takes_all_or_nothing() {
    const PAIRS: u8 = 16;
    // Where the first partition's journal comes to a checkpoint.
    const STORES: RangeInclusive<u32> = 12_490..=12_560;
    let disk = SimulatedDisk::new(1);
    let options = CreateDrive { partitions: 2, value_bytes_max: Some(8 << 20), ..CreateDrive::default() };
    let mut drives = create(&disk, "plus", options);
    let id = Partitions::new(&mut drives).create_namespace(named()).unwrap();
    (0..PAIRS).for_each(|name| _ = store(&mut drives, id, &[name], &[name; 10]).unwrap());
    let mut changes = Vec::new();
    for number in 0..=*STORES.end() {
        store(&mut drives, NamespaceId::FIRST, &number.to_be_bytes(), b"").unwrap();
        if STORES.contains(&number) {
            let disk = disk.copy(u64::from(number));
            let mut killed = open(&disk, false);
            changes.push(killed[0].mounted().unwrap().changes);
            killed[0].delete_namespace(id).unwrap();
            drop(killed);
            disk.kill();
            assert_eq!(seen_pairs(&disk, id, PAIRS), 0, "behind {number} stores it is there again, or a part of it");
        }
    }
    assert!(changes.iter().any(|&after| after < changes[0] / 2), "no checkpoint came: {changes:?}");
}

/// With `sync`, a partition's later changes take its delete to the disk, and go on: the machine may stop before the others have theirs there.
#[test]
fn a_delete_is_safe_in_all_partitions_before_one_of_them_goes_on() {
    const PAIRS: u8 = 16;
    let disk = SimulatedDisk::new(3);
    let mut drives = create(&disk, "plus", CreateDrive { partitions: 2, sync: true, ..CreateDrive::default() });
    let id = Partitions::new(&mut drives).create_namespace(named()).unwrap();
    (0..PAIRS).for_each(|name| _ = store(&mut drives, id, &[name], &[name; 10]).unwrap());
    drives.iter_mut().for_each(|drive| drive.commit().unwrap());
    // As a host does that shares commits.
    drives.iter_mut().for_each(|drive| drive.hold_commits(true));
    Partitions::new(&mut drives).delete_namespace(id).unwrap();
    for number in 0u32.. {
        let name = number.to_be_bytes();
        if partition_of(NamespaceId::FIRST, Key::new(&name).unwrap(), 2) == 0 {
            store(&mut drives, NamespaceId::FIRST, &name, b"").unwrap();
        }
        if number % 64 == 0 {
            drives[0].commit().unwrap();
        }
        if !drives[0].engine().has_deleted(id, named().name.as_deref()) {
            break;
        }
    }
    drives[0].commit().unwrap();
    drop(drives);
    disk.lose_power();
    assert_eq!(seen_pairs(&disk, id, PAIRS), 0);
}
