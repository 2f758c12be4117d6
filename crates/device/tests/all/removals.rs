//! Namespaces that are deleted close to a checkpoint: what is removed is removed once, in whatever order notes and checkpoints come.

use crate::PATH;
use crate::partitions::{create, open, store};
use kvssd_device::{CreateDrive, Drive, Partitions, image_design, partition_of};
use kvssd_flash::{OpenOptions, SimulatedDisk};
use kvssd_ftl::NamespaceAttributes;
use kvssd_types::{Command, Key, NamespaceId, Nanos, StoreCondition};
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
        drop(drive.submit_in(NamespaceId::FIRST, asked, Nanos(hour * 3_600_000_000_000)));
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
    for more in 10..35 {
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
