//! Every store against a map, on a tiny drive that is nearly full; and what a store must have done on the way.

use super::{HashOptions, HashStore, HostStore, KeyDrive, LevelSizes, LsmOptions, LsmStore, StoreUsage};
use kvssd_flash::Profile;
use kvssd_ftl::Design;
use kvssd_types::{Key, Nanos, Pattern, Random, Value};
use std::collections::BTreeMap;

const LSM: LsmOptions = LsmOptions {
    write_buffer_bytes: 16 << 10,
    table_bytes: 16 << 10,
    level_base_bytes: 64 << 10,
    level_sizes: LevelSizes::FromLast,
    cache_bytes: 16 << 10,
    pending_slows_bytes: 8 << 20,
    pending_stops_bytes: 16 << 20,
};
// So slow that requests must wait.
const HASH: HashOptions = HashOptions {
    write_block_bytes: 32 << 10,
    write_cache_bytes: 64 << 10,
    defragmentation_sleep: Nanos(4_000_000),
    ..HashOptions::DEFAULT
};

fn tiny() -> (Design, Profile) {
    let design = kvssd_designs::named("block").unwrap();
    let profile = design.tiny_profile(&[]).unwrap();
    (design, profile)
}

fn lsm(options: LsmOptions) -> LsmStore {
    let (design, profile) = tiny();
    LsmStore::new(&design, &profile, options).unwrap()
}

fn hash() -> HashStore {
    let (design, profile) = tiny();
    HashStore::new(&design, &profile, HASH).unwrap()
}

/// Records of 1000 bytes on the average, of which there may be as many as fill this of a drive, in hundredths.
struct Life {
    percent: u64,
    operations: u64,
    seed: u64,
}

/// Random operations against a map; gives when the last was done and all that was read on the way, mixed.
fn live(store: &mut dyn HostStore, life: &Life) -> (Nanos, u64) {
    let mut random = Random::new(life.seed);
    let mut model: BTreeMap<u64, Value> = BTreeMap::new();
    let capacity = store.device().engine().utilization().capacity_bytes;
    let records = capacity * life.percent / 100 / 1000;
    let (mut clock, mut sum) = (Nanos::ZERO, 0);
    for operation in 0..life.operations {
        let record = random.below(records);
        let bytes = record.to_be_bytes();
        let key = Key::new(&bytes).unwrap();
        let length = random.below(2000) as u32;
        let value = Value::Pattern(Pattern { seed: operation, offset: 0, length });
        let before = clock;
        match random.below(10) {
            0..6 => {
                let known = model.insert(record, value.clone()).is_some();
                let done = if known { store.update(key, value, clock) } else { store.insert(key, value, clock) };
                clock = done.unwrap();
            }
            6 => {
                model.remove(&record);
                clock = store.delete(key, clock).unwrap();
            }
            _ => {
                let (done, found) = store.read(key, clock).unwrap();
                assert_eq!(found.as_ref(), model.get(&record), "record {record} after {operation} operations");
                clock = done;
            }
        }
        assert!(clock > before, "everything takes time");
        sum = kvssd_types::mix64(sum ^ clock.0);
    }
    for record in 0..records {
        let (done, found) = store.read(Key::new(&record.to_be_bytes()).unwrap(), clock).unwrap();
        assert_eq!(found.as_ref(), model.get(&record), "record {record} in the end");
        clock = done;
    }
    store.device().engine().check_invariants();
    (clock, sum)
}

fn capacity(store: &dyn HostStore) -> u64 {
    store.device().engine().utilization().capacity_bytes
}

#[test]
fn an_lsm_store_holds_what_a_map_holds_while_it_compacts_a_nearly_full_drive() {
    for (level_sizes, percent) in [(LevelSizes::FromLast, 65), (LevelSizes::FromFirst, 50)] {
        let mut store = lsm(LsmOptions { level_sizes, ..LSM });
        live(&mut store, &Life { percent, operations: 20_000, seed: 1 });
        let usage = store.usage();
        assert!(usage.flushes > 100 && usage.compactions > 100, "{usage:?}");
        assert!(usage.written_bytes > 3 * capacity(&store), "the drive was written over and over: {usage:?}");
        assert!(store.device().engine().gc_counters().superblocks > 0, "the drive had to collect");
    }
}

#[test]
fn a_hash_store_holds_what_a_map_holds_while_it_defragments_a_nearly_full_drive() {
    let mut store = hash();
    live(&mut store, &Life { percent: 75, operations: 20_000, seed: 1 });
    let usage = store.usage();
    assert!(usage.compactions > 100 && usage.stalls > 0, "{usage:?}");
    assert!(usage.space_bytes * 10 > capacity(&store) * 8, "it was nearly full: {usage:?}");
    assert!(store.device().engine().gc_counters().superblocks > 0, "the drive had to collect");
}

#[test]
fn a_key_drive_is_asked_as_the_others_are() {
    let design = kvssd_designs::named("plus").unwrap();
    let profile = design.tiny_profile(&[]).unwrap();
    let mut store = KeyDrive::new(&design, &profile, 2000).unwrap();
    live(&mut store, &Life { percent: 60, operations: 10_000, seed: 1 });
    assert!(store.usage().cpu > Nanos(10_000 * 1000));
}

#[test]
fn a_seed_tells_everything_a_store_does() {
    let life = |seed| Life { percent: 45, operations: 5000, seed };
    let run = |seed| -> [(Nanos, u64, StoreUsage); 2] {
        let (mut tree, mut table) = (lsm(LSM), hash());
        let (tree_done, tree_sum) = live(&mut tree, &life(seed));
        let (table_done, table_sum) = live(&mut table, &life(seed));
        [(tree_done, tree_sum, tree.usage()), (table_done, table_sum, table.usage())]
    };
    let once = run(1);
    assert_eq!(once, run(1));
    assert!(once[0].1 != run(2)[0].1);
}

#[test]
fn writes_wait_when_compaction_does_not_keep_up() {
    let mut store = lsm(LsmOptions { pending_stops_bytes: 256 << 10, pending_slows_bytes: 128 << 10, ..LSM });
    let mut clock = Nanos::ZERO;
    let mut longest = Nanos::ZERO;
    for record in 0..2000_u64 {
        let key = kvssd_types::mix64(record).to_be_bytes();
        let value = Value::Pattern(Pattern { seed: record, offset: 0, length: 1000 });
        let done = store.insert(Key::new(&key).unwrap(), value, clock).unwrap();
        (clock, longest) = (done, longest.max(done - clock));
    }
    let usage = store.usage();
    assert!(usage.stalls > 100, "{usage:?}");
    assert!(longest > Nanos(1_000_000), "the longest wait is a compaction's: {longest}");
    assert!(usage.stalled > Nanos(clock.0 / 2), "writes come as fast as compactions: {usage:?} of {clock}");
}

#[test]
fn tables_that_nothing_overlaps_are_moved_and_not_read() {
    let mut store = lsm(LSM);
    let mut clock = Nanos::ZERO;
    for record in 0..1500_u64 {
        let value = Value::Pattern(Pattern { seed: record, offset: 0, length: 1000 });
        clock = store.insert(Key::new(&record.to_be_bytes()).unwrap(), value, clock).unwrap();
    }
    let usage = store.usage();
    assert!(usage.flushes > 50 && usage.compactions == 0 && usage.read_bytes == 0, "{usage:?}");
}
