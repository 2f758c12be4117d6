//! Long values, which are read past the pages that memory keeps.

use crate::{PATH, retrieve};
use kvssd_device::{CreateDrive, Drive, image_design, image_profile};
use kvssd_flash::{DiskCall, OpenOptions, SimulatedDisk};
use kvssd_types::{Command, Key, KvError, Random, StoreCondition};
use std::path::Path;

const LENGTHS: [usize; 4] = [262_143, 262_144, 300_001, 500_000];

fn value(number: usize) -> Vec<u8> {
    let mut random = Random::new(number as u64);
    (0..LENGTHS[number]).map(|_| random.bits() as u8).collect()
}

fn open(disk: &SimulatedDisk, cache_bytes: u64) -> Drive {
    Drive::open_in(&disk.files(), Path::new(PATH), OpenOptions { sync: false, read_only: false, cache_bytes }).unwrap()
}

fn store(drive: &mut Drive, key: &[u8], value: &[u8]) {
    let (key, condition) = (Key::new(key).unwrap(), StoreCondition::Always);
    drive.execute(Command::Store { key, value: value.into(), condition }).unwrap();
}

/// A drive with a value of each length, and small ones between.
fn filled(cache_bytes: u64) -> (SimulatedDisk, Drive) {
    let (disk, profile) = (SimulatedDisk::new(3), image_profile(64 << 20).unwrap());
    let (design, options) = (image_design("plus").unwrap(), CreateDrive { cache_bytes, ..CreateDrive::default() });
    let mut drive = Drive::create_in(&disk.files(), Path::new(PATH), &profile, &design, options).unwrap();
    for number in 0..LENGTHS.len() {
        store(&mut drive, &[b's', number as u8], &[number as u8; 700]);
        store(&mut drive, &[number as u8], &value(number));
    }
    (disk, drive)
}

/// Gathered, kept in memory, some kept and some not, and all in the file.
#[test]
fn they_are_what_was_stored_wherever_their_pages_are() {
    for cache_bytes in [0, 300 << 10, 16 << 20] {
        let (disk, mut drive) = filled(cache_bytes);
        for life in 0..2 {
            for number in (0..LENGTHS.len()).chain([2, 2, 0]) {
                assert!(retrieve(&mut drive, &[number as u8]) == Some(value(number)), "{number} in life {life}");
                assert_eq!(retrieve(&mut drive, &[b's', number as u8]), Some(vec![number as u8; 700]));
            }
            let key = Key::new(&[3]).unwrap();
            let part = Command::Retrieve { key, offset_bytes: 100_001, length_bytes: 300_000 };
            let Ok(kvssd_types::Reply::Retrieved { value: part, .. }) = drive.execute(part) else { panic!("a part") };
            assert!(part.to_vec() == value(3)[100_001..400_001]);
            drive.close().unwrap();
            drive = open(&disk, cache_bytes);
        }
    }
}

#[test]
fn they_leave_the_pages_of_others_in_memory() {
    let (disk, drive) = filled(0);
    drive.close().unwrap();
    let mut drive = open(&disk, 1 << 20);
    let small = |drive: &mut Drive| (0..4).for_each(|number| assert!(retrieve(drive, &[b's', number]).is_some()));
    small(&mut drive);
    for number in (0..LENGTHS.len()).cycle().take(20).filter(|&number| number > 0) {
        assert!(retrieve(&mut drive, &[number as u8]).is_some());
    }
    disk.begin_trace();
    small(&mut drive);
    assert_eq!(disk.trace().into_iter().filter(|(call, ..)| *call == DiskCall::Read).count(), 0);
}

/// Where a byte of it is damaged, wherever that is, it is an error and not another value.
#[test]
fn damage_is_an_error() {
    let (disk, drive) = filled(0);
    drive.close().unwrap();
    let image = disk.read(Path::new(PATH)).unwrap();
    let wanted = value(3);
    // Behind what was staged of it.
    let place = |from: usize| image.windows(64).rposition(|bytes| bytes == &wanted[from..][..64]).unwrap();
    for at in [place(200_000), place(300_000), place(200_000) + 4608, place(499_000)] {
        let disk = SimulatedDisk::new(4);
        let mut damaged = image.clone();
        damaged[at] ^= 0x10;
        disk.put(Path::new(PATH), damaged.len() as u64, [(0, &damaged[..])]);
        let mut drive = open(&disk, 0);
        let key = Key::new(&[3]).unwrap();
        let done = drive.execute(Command::Retrieve { key, offset_bytes: 0, length_bytes: u32::MAX });
        assert!(matches!(done, Err(KvError::Unrecovered(_))), "byte {at} of {}: {:?}", image.len(), done.map(drop));
        assert!(retrieve(&mut drive, &[2]) == Some(value(2)));
    }
}
