//! What `original` and `plus` promise beyond the suite: a list goes on behind a key that is gone and whose slot another one has.

use crate::design_with;
use kvssd_conformance::{Drive, Medium};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

#[test]
fn a_list_goes_on_where_a_key_was_whose_slot_another_one_has() {
    for name in ["original", "plus"] {
        let design = design_with(name, &[]);
        let mut drive = Drive::of(&design, Medium::Ropes, &[]);
        let slots = drive.engine.geometry().raw_bytes() / u64::from(design.grain_bytes);
        let mut by_slot = BTreeMap::<u64, Vec<[u8; 4]>>::new();
        for key in (0..100_000u32).map(u32::to_be_bytes) {
            by_slot.entry(xxh3_64(&key) % slots).or_default().push(key);
        }
        // Searches go to the slots 0, 2 and 6 behind the first.
        let is_wanted =
            |slot: &u64| (0..7).all(|behind| by_slot.get(&(slot + behind)).is_some_and(|keys| keys.len() > 1));
        let slot = by_slot.keys().copied().find(is_wanted).unwrap();
        let [goes, comes] = [0, 1].map(|key| by_slot[&slot][key]);
        drive.store(&goes, 10).unwrap();
        let stay: Vec<[u8; 4]> = (1..7).map(|behind| by_slot[&(slot + behind)][0]).collect();
        stay.iter().for_each(|key| drive.store(key, 10).unwrap());
        assert_eq!(&*drive.list(None, 1)[0], goes, "{name}: it is the first");
        drive.delete(&goes).unwrap();
        drive.store(&comes, 10).unwrap();
        let listed = drive.list(Some(&goes), usize::MAX);
        let missed = stay.iter().filter(|key| !listed.iter().any(|other| other[..] == key[..])).count();
        assert_eq!(missed, 0, "{name}: {listed:?}");
    }
}
