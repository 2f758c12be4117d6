//! What `original` and `plus` promise beyond the suite: a list goes on behind a key that is gone and whose slot another one has.

use crate::design_with;
use kvssd_conformance::{Drive, Medium};
use xxhash_rust::xxh3::xxh3_64;

/// One key goes, and another one takes its slot; those behind it are listed. Searches go to the slots 0, 2 and 6 behind the first.
fn skips_nothing(name: &str, is_at_end: bool) {
    let design = design_with(name, &[]);
    let mut drive = Drive::of(&design, Medium::Ropes, &[]);
    let slots = drive.engine.geometry().raw_bytes() / u64::from(design.grain_bytes);
    // Of the keys whose search begins at that slot.
    let key = |slot: u64, number: usize| {
        let keys = (0u32..).map(u32::to_be_bytes).filter(|key| xxh3_64(key) % slots == slot);
        keys.into_iter().nth(number).unwrap()
    };
    let (middle, last) = (slots / 2, slots - 1);
    let (goes, comes, stay) = if is_at_end {
        // It finds the last slot taken, and goes on at the beginning of the table.
        drive.store(&key(last, 0), 10).unwrap();
        (key(last, 1), key(1, 0), 2..5)
    } else {
        (key(middle, 0), key(middle, 1), middle + 1..middle + 7)
    };
    drive.store(&goes, 10).unwrap();
    let stay: Vec<[u8; 4]> = stay.map(|slot| key(slot, 0)).collect();
    stay.iter().for_each(|key| drive.store(key, 10).unwrap());
    assert_eq!(&*drive.list(None, 1)[0], goes, "{name}: it is the first");
    drive.delete(&goes).unwrap();
    drive.store(&comes, 10).unwrap();
    let listed = drive.list(Some(&goes), usize::MAX);
    let missed = stay.iter().filter(|key| !listed.iter().any(|other| other[..] == key[..])).count();
    assert_eq!(missed, 0, "{name}, at the end of the table: {is_at_end}, {listed:?}");
}

#[test]
fn a_list_goes_on_where_a_key_was_whose_slot_another_one_has() {
    for name in ["original", "plus"] {
        skips_nothing(name, false);
        skips_nothing(name, true);
    }
}
