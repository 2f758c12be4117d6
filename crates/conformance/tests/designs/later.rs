//! Stores that are answered before their key is compared with those that are there: who waits, what counts, and what asks.

use kvssd_conformance::{Drive, Medium};
use kvssd_designs::MULTILEVEL;
use kvssd_ftl::Design;
use kvssd_types::{BatchChange, Command, Key, KvError, NamespaceId, Nanos, Reply, StoreCondition, Value};

/// Less than any read of flash takes, and more than any store that waits for none.
const READ: Nanos = Nanos(20_000);
const PAIRS: u32 = 400;

/// A drive of 400 pairs, all of them in flash and merged, long ago.
fn drive(compares_later: bool) -> Drive {
    let design = Design { compares_later, ..MULTILEVEL };
    let mut drive = Drive::of(&design, Medium::Ropes, &[]);
    for number in 0..PAIRS {
        drive.store(&number.to_be_bytes(), 2000).unwrap();
    }
    drive.clock.0 += 1_000_000_000;
    drive.verify_all();
    drive.clock.0 += 1_000_000_000;
    drive
}

fn reads(drive: &Drive) -> u64 {
    drive.engine.flash_counters().reads.total()
}

fn pairs(drive: &Drive) -> u64 {
    drive.engine.utilization().pairs
}

/// How long an overwrite takes.
fn overwrite(drive: &mut Drive, number: u32) -> Nanos {
    let begun = drive.clock;
    drive.store(&number.to_be_bytes(), 100).unwrap();
    drive.clock - begun
}

#[test]
fn an_overwrite_reads_nothing_before_its_answer_and_what_it_replaces_counts_until_it_is_compared() {
    for (compares_later, waits) in [(false, true), (true, false)] {
        let mut drive = drive(compares_later);
        let (all, before) = (pairs(&drive), reads(&drive));
        assert_eq!(overwrite(&mut drive, 7) > READ, waits);
        assert_eq!(reads(&drive) > before, waits);
        assert_eq!(pairs(&drive), all + u64::from(!waits));
        assert_eq!(drive.engine.has_uncompared(), !waits);
        // The later one is found, and a count that asks for it is exact.
        drive.verify(&7u32.to_be_bytes());
        drive.compare();
        assert_eq!(pairs(&drive), all);
        drive.verify_all();
    }
}

#[test]
fn a_store_with_a_condition_a_delete_and_a_batch_look_first() {
    let mut drive = drive(true);
    overwrite(&mut drive, 1);
    assert_eq!(drive.store_if(&1u32.to_be_bytes(), 9, StoreCondition::IfAbsent), Err(KvError::KeyExists));
    assert_eq!(pairs(&drive), u64::from(PAIRS), "it has compared them");
    overwrite(&mut drive, 2);
    assert_eq!(drive.store_if(&2u32.to_be_bytes(), 9, StoreCondition::IfExists), Ok(()));
    for number in [3, 3, 3] {
        overwrite(&mut drive, number);
    }
    assert_eq!(drive.delete(&3u32.to_be_bytes()), Ok(()));
    drive.verify(&3u32.to_be_bytes());
    assert_eq!(drive.delete(&3u32.to_be_bytes()), Err(KvError::KeyNotFound), "none of the four is left");
    overwrite(&mut drive, 4);
    let key = 4u32.to_be_bytes();
    let value = Some(Value::from(&[7; 100][..]));
    let change = BatchChange { namespace: NamespaceId::FIRST, key: Key::new(&key).unwrap(), value };
    let (done, reply) = drive.engine.execute(Command::Batch { changes: &[change] }, drive.clock);
    assert_eq!((reply, pairs(&drive)), (Ok(Reply::Batched), u64::from(PAIRS) - 1));
    drive.clock = done;
}

#[test]
fn a_list_has_a_key_once() {
    let mut drive = drive(true);
    for number in 0..PAIRS {
        overwrite(&mut drive, number % 50);
    }
    assert!(drive.engine.has_uncompared());
    let listed = drive.list(None, 2 * PAIRS as usize);
    let mut keys = listed.clone();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((listed.len(), keys.len()), (PAIRS as usize, PAIRS as usize));
    drive.verify_all();
}

/// What is not known to be dead takes room only until somebody needs it.
#[test]
fn a_full_drive_takes_overwrites_and_new_keys_as_if_all_were_compared() {
    let fill = |compares_later| {
        let design = Design { compares_later, ..MULTILEVEL };
        let mut drive = Drive::of(&design, Medium::Ropes, &[]);
        let stored = (0u32..).take_while(|number| drive.store(&number.to_be_bytes(), 3000).is_ok()).count();
        for round in 0..4u32 {
            for number in 0..stored as u32 {
                drive.store(&number.to_be_bytes(), 2900 - 100 * round as usize).unwrap();
            }
        }
        let more = (1u32 << 20..).take_while(|number| drive.store(&number.to_be_bytes(), 2000).is_ok()).count();
        drive.verify_all();
        (stored, more)
    };
    let (exact, later) = (fill(false), fill(true));
    assert!(exact.0.abs_diff(later.0) * 20 <= exact.0, "{exact:?} {later:?}");
    assert!(later.1 * 10 >= exact.1 * 9, "{exact:?} {later:?}");
}

/// Collection asks: it moves hardly more than where all is known at once.
#[test]
fn collection_does_not_move_what_was_replaced() {
    let moved = |compares_later| {
        let mut drive = drive(compares_later);
        for number in 0..20_000u32 {
            drive.store(&(number % 60).to_be_bytes(), 3000).unwrap();
        }
        assert!(drive.engine.gc_counters().superblocks > 100);
        drive.verify_all();
        drive.engine.gc_counters().pairs_moved
    };
    let (exact, later) = (moved(false), moved(true));
    assert!(later <= 2 * exact + 2000, "{exact} {later}");
}
