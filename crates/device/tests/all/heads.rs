//! What is known of the heads of records: it spares the reads of what is replaced, and is never another record's.

use crate::{PATH, create_protected, retrieve};
use kvssd_designs::DESIGNS;
use kvssd_device::Drive;
use kvssd_flash::{DiskCall, OpenOptions, SimulatedDisk};
use kvssd_types::{Command, Key, KvError, Random, StoreCondition};
use std::collections::BTreeMap;
use std::path::Path;

const KEYS: u64 = 300;

fn open(disk: &SimulatedDisk, cache_bytes: u64) -> Drive {
    Drive::open_in(&disk.files(), Path::new(PATH), OpenOptions { sync: false, read_only: false, cache_bytes }).unwrap()
}

fn store(drive: &mut Drive, key: &[u8], value: &[u8]) -> Result<(), KvError> {
    let (key, condition) = (Key::new(key).unwrap(), StoreCondition::Always);
    drive.execute(Command::Store { key, value: value.into(), condition }).map(drop)
}

fn delete(drive: &mut Drive, key: &[u8]) -> bool {
    drive.execute(Command::Delete { key: Key::new(key).unwrap() }).is_ok()
}

/// Bytes that are read of the disk while all keys are replaced, and then deleted; of a drive that is opened anew before, or not.
fn bytes_read(cache_bytes: u64, anew: bool) -> u64 {
    let disk = create_protected(&kvssd_designs::named("plus").unwrap());
    let mut drive = open(&disk, cache_bytes);
    let keys: Vec<[u8; 8]> = (0..KEYS).map(u64::to_le_bytes).collect();
    keys.iter().for_each(|key| store(&mut drive, key, &[1; 3000]).unwrap());
    if anew {
        drive.close().unwrap();
        drive = open(&disk, cache_bytes);
    }
    disk.begin_trace();
    keys.iter().for_each(|key| store(&mut drive, key, &[2; 2900]).unwrap());
    keys.iter().for_each(|key| assert!(delete(&mut drive, key)));
    assert!(keys.iter().all(|key| !delete(&mut drive, key)));
    disk.trace().into_iter().filter(|(call, ..)| *call == DiskCall::Read).map(|(.., bytes)| bytes).sum()
}

#[test]
fn what_is_replaced_or_deleted_is_not_read_if_it_was_written_in_this_life() {
    // What heads may have of it is enough for all of them; pages have room for a few pairs.
    let cache_bytes = 16 * KEYS * 48 * 2;
    let (known, before, none) = (bytes_read(cache_bytes, false), bytes_read(cache_bytes, true), bytes_read(0, false));
    assert!(known * 5 < before && known * 5 < none, "{known}, {before} and {none} bytes");
}

/// Against a map, through collection and several lives, with room for all heads, for a few, and for none.
#[test]
fn heads_are_those_of_the_records_that_lie_there() {
    for (design, cache_bytes) in DESIGNS.iter().flat_map(|design| [0, 8 << 10, 1 << 20].map(|bytes| (design, bytes))) {
        if !design.takes_keys() {
            continue;
        }
        let disk = create_protected(design);
        let (mut model, mut random) = (BTreeMap::<[u8; 8], Vec<u8>>::new(), Random::stream(7, cache_bytes));
        let mut moved = 0;
        for life in 0..3u8 {
            let mut drive = open(&disk, cache_bytes);
            for turn in 0..2500u32 {
                let key = random.below(KEYS).to_le_bytes();
                if random.below(4) == 0 {
                    assert_eq!(delete(&mut drive, &key), model.remove(&key).is_some(), "{}, turn {turn}", design.name);
                } else {
                    let length = [20, 700, 2100, 5000][random.below(4) as usize];
                    let value = vec![turn as u8 ^ life; length];
                    store(&mut drive, &key, &value).unwrap();
                    model.insert(key, value);
                }
            }
            assert_eq!(drive.utilization().pairs, model.len() as u64, "{}", design.name);
            for key in (0..KEYS).map(u64::to_le_bytes) {
                assert_eq!(retrieve(&mut drive, &key), model.get(&key).cloned(), "{}", design.name);
            }
            moved += drive.engine().flash_counters().erases;
            drive.close().unwrap();
        }
        assert!(moved > 0, "{}: places are used again", design.name);
    }
}
