//! Pairs and the map beside them: life, full drives, sizes, conditions, lists, flushes.

use crate::drive::{Drive, Medium};
use crate::trial::Trial;
use kvssd_types::{Command, KvError, NamespaceId, Reply, StoreCondition};
use std::collections::BTreeSet;

/// Keys that are not there, from which lists begin.
const ABSENT_KEYS: u32 = 20;
/// Keys that a full drive is asked to take. Of a drive that refuses three keys of four, none is taken once in thirty times.
const REFUSED_KEYS: u32 = 12;

pub(super) fn random_operations_against_a_map(trial: &Trial) {
    for seed in 0..3 {
        let mut drive = trial.drive();
        drive.life(&mut trial.stream(seed, 1), 12_000);
        assert!(drive.engine.gc_counters().pairs_moved > 100, "garbage collection had pairs to move");
        drive.verify_all();
    }
}

pub(super) fn the_same_seed_gives_the_same_run(trial: &Trial) {
    let run = |seed| {
        let mut drive = trial.drive();
        drive.life(&mut trial.random(seed), 5_000);
        let engine = &drive.engine;
        (drive.clock, engine.flash_counters().clone(), engine.index_counters(), engine.gc_counters(), engine.dram())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// A snapshot of a drive in the middle of its life goes on exactly as the drive does, and neither touches the other.
pub(super) fn a_snapshot_goes_on_as_the_drive_does(trial: &Trial) {
    let mut drive = trial.drive();
    drive.life(&mut trial.random(4), 6_000);
    let copy = drive.snapshot();
    let go_on = |mut drive: Drive, seed: u64, operations: u32| {
        drive.life(&mut trial.random(seed), operations);
        drive.verify_all();
        let engine = &drive.engine;
        (drive.clock, engine.flash_counters().clone(), engine.index_counters(), engine.gc_counters(), engine.dram())
    };
    // The copy's life is longer, so that it takes blocks that the drive still needs.
    let other = go_on(copy.snapshot(), 6, 9_000);
    let [first, second] = [drive, copy].map(|drive| go_on(drive, 5, 6_000));
    assert_eq!(first, second);
    assert_ne!(first, other);
}

/// Once, on whatever medium: it compares them.
pub(super) fn both_media_take_the_same_time_and_operations(trial: &Trial) {
    let run = |medium| {
        let mut drive = trial.on(medium).drive();
        drive.life(&mut trial.random(9), 5_000);
        (drive.clock, drive.engine.flash_counters().clone())
    };
    assert_eq!(run(Medium::Ropes), run(Medium::Bytes));
}

pub(super) fn a_full_drive_serves_reads_and_deletes_and_takes_stores_again(trial: &Trial) {
    for value_bytes in [0usize, 40, 1000, 5000, 70_000] {
        // Of the smallest pairs two thirds of a drive are tens of thousands.
        let blocks_per_die = if value_bytes < 100 { "28" } else { "48" };
        let mut drive = trial.drive_of(trial.design(), &[("geometry.blocks_per_die", blocks_per_die)]);
        let stored = fill(&mut drive, value_bytes);
        for number in 0..REFUSED_KEYS {
            let reply = drive.store(format!("one more {number:02}").as_bytes(), value_bytes);
            let why = "a full drive refuses every key";
            assert_eq!(reply, Err(KvError::CapacityExceeded), "{value_bytes} B, key `one more {number:02}`: {why}");
        }
        drive.verify_all();
        assert_eq!(BTreeSet::from_iter(drive.list(None, usize::MAX)), BTreeSet::from_iter(drive.keys()));
        for round in 0..3u32 {
            for number in (0..stored).filter(|number| number % 3 == round) {
                assert_eq!(drive.delete(&number.to_be_bytes()), Ok(()), "{value_bytes} B: {number} of {stored}");
            }
            let mut again = 0;
            for number in (0..stored).filter(|number| number % 3 == round) {
                again += u32::from(drive.store(&number.to_be_bytes(), value_bytes).is_ok());
            }
            let deleted = (stored - round).div_ceil(3);
            assert!(again * 10 >= deleted * 8, "{value_bytes} B: of {deleted} places {again} could be used again");
        }
        drive.verify_all();
        for key in drive.keys() {
            assert_eq!(drive.delete(&key), Ok(()));
        }
        let utilization = drive.engine.utilization();
        assert_eq!((utilization.pairs, utilization.pair_bytes, utilization.record_bytes), (0, 0, 0));
        let refilled = fill(&mut drive, value_bytes);
        assert!(refilled * 10 >= stored * 9, "{value_bytes} B: {stored} pairs fitted, after deletes {refilled}");
    }
}

/// Of a quarter of a gigabyte places have more bits than those of a tiny drive.
pub(super) fn places_of_a_larger_drive_are_told_apart(trial: &Trial) {
    let quarter_of_a_gigabyte = [("geometry.blocks_per_die", "512"), ("geometry.pages_per_block", "32")];
    let mut drive = trial.drive_of(trial.design(), &quarter_of_a_gigabyte);
    let stored = fill(&mut drive, 100_000);
    assert!(stored > 1000, "only {stored} values lie on a drive of 256 MiB");
    drive.verify_all();
    assert_eq!(BTreeSet::from_iter(drive.list(None, usize::MAX)), BTreeSet::from_iter(drive.keys()));
}

/// Stores pairs of that size until there is no room; gives how many.
fn fill(drive: &mut Drive, value_bytes: usize) -> u32 {
    let mut stored = 0u32;
    while drive.store(&stored.to_be_bytes(), value_bytes).is_ok() {
        stored += 1;
        assert!(stored < 1_000_000, "the drive never fills");
    }
    stored
}

/// A full drive under overwrites for many times its capacity: garbage collection never wedges, whatever sizes lie together.
pub(super) fn overwrites_of_a_full_drive_go_on_for_ever(trial: &Trial) {
    let mixes: [(&[usize], bool); 5] = [
        (&[900], false),
        (&[900, 2990], false),
        (&[100, 2990], true),
        (&[900, 6000], true),
        (&[1500, 2000, 9000], true),
    ];
    for (sizes, is_random) in mixes {
        let mut drive = trial.drive();
        let (mut random, mut stored) = (trial.random(4), Vec::new());
        loop {
            let number = if is_random { random.below(sizes.len() as u64) as usize } else { stored.len() };
            let size = sizes[number % sizes.len()];
            if drive.store(&(stored.len() as u32).to_be_bytes(), size).is_err() {
                break;
            }
            stored.push(size);
        }
        for _ in 0..4 * stored.len() {
            let number = random.below(stored.len() as u64) as usize;
            let reply = drive.store(&(number as u32).to_be_bytes(), stored[number]);
            assert_eq!(reply, Ok(()), "an overwrite of a drive full of {sizes:?}");
        }
        drive.verify_all();
    }
}

pub(super) fn values_of_every_size_come_back_whole_and_in_parts(trial: &Trial) {
    let mut drive = trial.drive();
    let value_bytes_max = drive.engine.value_bytes_max() as usize;
    let sizes = [0, 1, 15, 16, 63, 64, 65, 499, 512, 4000, 4095, 4096, 4097, 8192, 30_000, value_bytes_max];
    for (number, &size) in sizes.iter().enumerate() {
        for key_bytes in [1, 8, 17, 255] {
            let key = vec![number as u8 + 1; key_bytes];
            assert_eq!(drive.store(&key, size), Ok(()));
            drive.verify(&key);
        }
        drive.make_garbage(200);
    }
    drive.verify_all();
    let too_large = drive.store(b"k", value_bytes_max + 1);
    assert!(matches!(too_large, Err(KvError::InvalidValueSize { .. })));
}

pub(super) fn conditions_are_kept(trial: &Trial) {
    let mut drive = trial.drive();
    assert_eq!(drive.store_if(b"a", 10, StoreCondition::IfExists), Err(KvError::KeyNotFound));
    assert_eq!(drive.store_if(b"a", 10, StoreCondition::IfAbsent), Ok(()));
    assert_eq!(drive.store_if(b"a", 20, StoreCondition::IfAbsent), Err(KvError::KeyExists));
    drive.verify(b"a");
    assert_eq!(drive.store_if(b"a", 30, StoreCondition::IfExists), Ok(()));
    drive.verify(b"a");
    assert_eq!(drive.delete(b"a"), Ok(()));
    assert_eq!(drive.delete(b"a"), Err(KvError::KeyNotFound));
}

pub(super) fn a_list_names_every_key_once_in_a_stable_order_from_any_key_on(trial: &Trial) {
    let mut drive = trial.drive();
    drive.life(&mut trial.random(3), 3_000);
    let whole = drive.list(None, usize::MAX);
    let mut sorted = whole.clone();
    sorted.sort();
    assert_eq!(sorted, drive.keys());
    let told = |drive: &mut Drive| Vec::from_iter(drive.engine.salvage_keys(NamespaceId::FIRST).unwrap());
    assert_eq!(told(&mut drive), sorted, "of a drive that is whole all keys can be told");
    assert_eq!(drive.list(None, usize::MAX), whole, "the order is stable");
    let mut paged = drive.list(None, 7);
    loop {
        let last = paged.last().unwrap().clone();
        let page = drive.list(Some(&last), 8);
        assert_eq!(page[0], last, "a list starts at the given key");
        paged.extend_from_slice(&page[1..]);
        if page.len() < 8 {
            break;
        }
    }
    assert_eq!(paged, whole);
    assert!(lists_from_absent_keys(&mut drive, &whole) < ABSENT_KEYS, "lists from an absent key are of all keys");
    // Deleting what was listed and going on from there skips nothing.
    let (head, tail) = whole.split_at(whole.len() / 2);
    for key in head {
        drive.delete(key).unwrap();
    }
    let rest = drive.list(head.last().map(|key| &**key), usize::MAX);
    assert!(tail.iter().all(|key| rest.contains(key)));
    assert_eq!(told(&mut drive), drive.keys(), "no key comes back");
}

/// A list from a key that is not there begins where the key would be; tells how many of these have all keys.
fn lists_from_absent_keys(drive: &mut Drive, whole: &[Box<[u8]>]) -> u32 {
    let mut lists_of_all = 0;
    for number in 0..ABSENT_KEYS {
        let absent = format!("surely absent {number}");
        let rest = drive.list(Some(absent.as_bytes()), usize::MAX);
        let is_end = whole.ends_with(&rest);
        assert!(is_end, "a list from the absent key `{absent}` is no end of the whole list");
        assert_eq!(drive.list(Some(absent.as_bytes()), 5), rest[..rest.len().min(5)]);
        lists_of_all += u32::from(rest.len() == whole.len());
    }
    lists_of_all
}

/// Hosts list page by page while others store: keys that are there all the time are all listed, whatever comes, moves or splits.
pub(super) fn a_list_that_goes_on_while_keys_come_has_all_that_stay(trial: &Trial) {
    let mut drive = trial.drive();
    let mut random = trial.random(6);
    let stay: BTreeSet<Box<[u8]>> = (0..600u32).map(|number| Box::from(number.to_be_bytes())).collect();
    for key in &stay {
        drive.store(key, 40).unwrap();
    }
    let (mut listed, mut came) = (drive.list(None, 7), 600u32);
    loop {
        for _ in 0..3 {
            came += 1;
            drive.store(&came.to_be_bytes(), 40).unwrap();
            drive.store(&(random.below(600) as u32).to_be_bytes(), 60).unwrap();
        }
        let page = drive.list(listed.last().map(|key| &**key), 8);
        let is_last = page.len() < 8;
        listed.extend(page);
        if is_last {
            break;
        }
    }
    let missed: Vec<_> = stay.iter().filter(|key| !listed.contains(key)).collect();
    assert!(missed.is_empty(), "{} keys that stayed are not listed, as {:?}; {came} came", missed.len(), missed[0]);
}

pub(super) fn a_flush_puts_everything_into_flash(trial: &Trial) {
    let mut drive = trial.drive();
    for number in 0..50u32 {
        drive.store(&number.to_be_bytes(), 300).unwrap();
    }
    // What an index does in between is done.
    drive.clock.0 += 1_000_000_000;
    drive.engine.advance(drive.clock).unwrap();
    let before = drive.engine.flash_counters().programs.total();
    assert_eq!(drive.run(Command::Flush), Ok(Reply::Flushed));
    assert!(drive.engine.flash_counters().programs.total() > before);
    let programs = drive.engine.flash_counters().programs.total();
    assert_eq!(drive.run(Command::Flush), Ok(Reply::Flushed));
    assert_eq!(drive.engine.flash_counters().programs.total(), programs, "nothing is left to flush");
    drive.verify_all();
    drive.life(&mut trial.random(1), 2_000);
    drive.verify_all();
}
