//! Namespaces, of which one design stands for all: attributes, quotas, batches, logs, and DRAM that they share.

use kvssd_conformance::{Medium, NamespacedDrive, few_logs, key_of, many_logs};
use kvssd_designs::indexes;
use kvssd_ftl::{Design, NamespaceAttributes};
use kvssd_types::{BatchChange, Command, Key, KvError, NamespaceId, Nanos, Pattern, Reply, StoreCondition, Value};

fn named(name: &str) -> Design {
    kvssd_designs::named(name).unwrap()
}

fn drive(name: &str, medium: Medium) -> NamespacedDrive {
    NamespacedDrive::of(few_logs(&named(name), "ignored"), medium)
}

fn index(name: &str) -> NamespaceAttributes {
    NamespaceAttributes { index: Some(name.to_owned()), ..NamespaceAttributes::PLAIN }
}

/// Programs by die.
fn programs(drive: &mut NamespacedDrive) -> Vec<u64> {
    drive.engine.flash_counters().die_programs.clone()
}

#[test]
fn the_space_of_a_deleted_namespace_comes_back_and_no_other_is_touched() {
    let unlisted =
        NamespaceAttributes { parameters: vec![("iterators".to_owned(), "false".to_owned())], ..index("multilevel") };
    for medium in [Medium::Ropes, Medium::Bytes] {
        for attributes in indexes().into_iter().map(index).chain([unlisted.clone()]) {
            let mut drive = drive("plus", medium);
            let doomed = drive.create(attributes.clone()).unwrap();
            let other = drive.create(index("lsm")).unwrap();
            for number in 0..200 {
                drive.store(other, &key_of(number), 700).unwrap();
            }
            let fill = |drive: &mut NamespacedDrive, namespace| {
                let mut stored = 0u32;
                while drive.store(namespace, &stored.to_be_bytes(), 9000).is_ok() {
                    stored += 1;
                }
                stored
            };
            let stored = fill(&mut drive, doomed);
            assert_eq!(drive.store(NamespaceId::FIRST, b"one more", 9000), Err(KvError::CapacityExceeded));
            drive.delete_namespace(doomed);
            let gone = drive.run(doomed, Command::Exist { key: Key::new(b"a").unwrap() });
            assert_eq!(gone, Err(KvError::NoSuchNamespace(doomed)));
            // Its number is not another's before the journal has forgotten it.
            let again = drive.create(index("rhik")).unwrap();
            assert_ne!(again, doomed);
            let restored = fill(&mut drive, again);
            assert!(restored * 10 >= stored * 8, "{attributes:?}: {stored} pairs had room, and now {restored} have");
            drive.verify_all();
        }
    }
}

#[test]
fn a_namespace_writes_to_its_logs_and_to_others_when_that_is_changed() {
    let mut drive = NamespacedDrive::of(many_logs(&named("plus")), Medium::Ropes);
    let one = drive.create(NamespaceAttributes { logs: Some(1), ..NamespaceAttributes::PLAIN }).unwrap();
    let store = |drive: &mut NamespacedDrive| {
        let before = programs(drive);
        for number in 0..60 {
            drive.store(one, &key_of(number), 3000).unwrap();
        }
        let after = programs(drive);
        before.iter().zip(after).map(|(before, after)| after - before).filter(|&count| count > 2).count()
    };
    assert_eq!(store(&mut drive), 1, "one log is one die");
    let (_, assigned) = drive.engine.set_logs(one, Some(3), drive.clock);
    assert_eq!((assigned, store(&mut drive)), (Ok(()), 3));
    let (_, assigned) = drive.engine.set_logs(one, None, drive.clock);
    assert_eq!((assigned, store(&mut drive)), (Ok(()), 4), "all of them");
    drive.verify_all();
}

#[test]
fn what_a_namespace_cannot_be_is_said() {
    let mut drive = drive("plus", Medium::Ropes);
    let refused = |drive: &mut NamespacedDrive, attributes: NamespaceAttributes| match drive.create(attributes) {
        Err(KvError::InvalidNamespace(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(refused(&mut drive, index("b-tree")).contains("there are: "));
    let ordered = |name: &str| NamespaceAttributes { is_ordered: true, ..index(name) };
    assert!(refused(&mut drive, ordered("rhik")).contains("no order"));
    let mut odd = index("lsm");
    odd.parameters.push(("pinned_levels".to_owned(), "many".to_owned()));
    assert!(refused(&mut drive, odd).contains("whole number"));
    let ordered = NamespaceAttributes { is_ordered: true, ..NamespaceAttributes::PLAIN };
    let tree = drive.create(ordered).unwrap();
    assert_eq!(drive.engine.namespaces().iter().find(|info| info.id == tree).unwrap().index, "lsm");
    for _ in 0..4 {
        drive.create(NamespaceAttributes::PLAIN).unwrap();
    }
    assert_eq!(drive.create(NamespaceAttributes::PLAIN), Err(KvError::TooManyNamespaces { namespaces: 6 }));
    let absent = NamespaceId(99);
    assert_eq!(drive.run(absent, Command::Flush), Err(KvError::NoSuchNamespace(absent)));
}

#[test]
fn a_name_is_one_namespaces_until_it_is_deleted() {
    let mut drive = drive("plus", Medium::Ropes);
    let called = |name: &str| NamespaceAttributes { name: Some(name.to_owned()), ..NamespaceAttributes::PLAIN };
    let cannot_be = |drive: &mut NamespacedDrive, name: &str| {
        let created = drive.create(called(name));
        assert!(matches!(created, Err(KvError::InvalidNamespace(_))), "{name:?}: {created:?}");
    };
    for name in ["", "12", "two\nlines", &"n".repeat(65)] {
        cannot_be(&mut drive, name);
    }
    let first = drive.create(called("a")).unwrap();
    drive.create(called(&"n".repeat(64))).unwrap();
    cannot_be(&mut drive, "a");
    drive.delete_namespace(first);
    drive.create(called("a")).unwrap();
    cannot_be(&mut drive, "a");
}

#[test]
fn a_quota_bounds_one_namespace_and_no_other() {
    let mut drive = drive("plus", Medium::Ropes);
    let quota_bytes = 100_000;
    let bounded =
        drive.create(NamespaceAttributes { quota_bytes: Some(quota_bytes), ..NamespaceAttributes::PLAIN }).unwrap();
    let mut stored = 0u32;
    while drive.store(bounded, &stored.to_be_bytes(), 1000).is_ok() {
        stored += 1;
    }
    assert!((80..100).contains(&stored), "{stored}");
    drive.store(NamespaceId::FIRST, b"another's", 1000).unwrap();
    drive.store(bounded, &0u32.to_be_bytes(), 1000).expect("an overwrite is always welcome");
    let info = drive.engine.namespaces().into_iter().find(|info| info.id == bounded).unwrap();
    assert_eq!(info.utilization.capacity_bytes, quota_bytes);
    assert!(info.utilization.record_bytes <= quota_bytes);
}

#[test]
fn a_batch_that_cannot_be_changes_nothing() {
    let mut drive = drive("plus", Medium::Ropes);
    let other = drive.create(index("lsm")).unwrap();
    drive.store(NamespaceId::FIRST, b"a", 100).unwrap();
    let (a, b) = (Key::new(b"a").unwrap(), Key::new(b"b").unwrap());
    let value = |length| Some(Value::Pattern(Pattern { seed: 1, offset: 0, length }));
    let change = |namespace, key, value| BatchChange { namespace, key, value };
    let first = NamespaceId::FIRST;
    let too_large = drive.engine.value_bytes_max() as u32;
    let batches = [
        vec![change(first, a, value(5)), change(first, a, None)],
        vec![change(first, a, value(5)), change(NamespaceId(77), b, value(5))],
        vec![change(first, a, value(5)), change(other, b, value(too_large))],
    ];
    for (number, changes) in batches.iter().enumerate() {
        let reply = drive.run(first, Command::Batch { changes });
        assert!(reply.is_err(), "batch {number}: {reply:?}");
        drive.verify(first, b"a");
        drive.verify(other, b"b");
    }
    let many: Vec<Vec<u8>> = (0..2000).map(key_of).collect();
    let changes: Vec<_> = many.iter().map(|key| change(first, Key::new(key).unwrap(), value(1))).collect();
    assert!(matches!(drive.run(first, Command::Batch { changes: &changes }), Err(KvError::BatchTooLarge { .. })));
    // A drive that is full takes none of a batch whose first change alone would have room.
    let mut stored = 0u32;
    while drive.store(first, &stored.to_be_bytes(), 9000).is_ok() {
        stored += 1;
    }
    let changes = [change(first, a, None), change(other, a, value(60_000)), change(other, b, value(60_000))];
    assert_eq!(drive.run(first, Command::Batch { changes: &changes }), Err(KvError::CapacityExceeded));
    drive.verify(first, b"a");
    drive.verify(other, b"a");
    drive.verify_all();
    // What one namespace frees is room for another.
    let gone = 0u32.to_be_bytes();
    let changes = [change(first, Key::new(&gone).unwrap(), None), change(other, a, value(5000))];
    assert_eq!(drive.run(first, Command::Batch { changes: &changes }), Ok(Reply::Batched));
}

#[test]
fn who_comes_before_a_batch_is_done_waits_for_it() {
    let mut drive = drive("plus", Medium::Ropes);
    let key = Key::new(b"a").unwrap();
    let value = Some(Value::Pattern(Pattern { seed: 1, offset: 0, length: 20_000 }));
    let changes = [BatchChange { namespace: NamespaceId::FIRST, key, value }];
    let (done, reply) = drive.engine.execute_in(NamespaceId::FIRST, Command::Batch { changes: &changes }, Nanos(100));
    assert_eq!(reply, Ok(Reply::Batched));
    let (answered, _) = drive.engine.execute(Command::Exist { key }, Nanos(101));
    assert!(answered > done, "{answered} is before {done}");
}

/// A table of a megabyte.
fn large_table() -> NamespaceAttributes {
    let parameters = vec![("flash_bytes_per_slot".to_owned(), "128".to_owned())];
    NamespaceAttributes { parameters, ..index("dram-hash") }
}

/// DRAM of a namespace's index.
fn held(drive: &NamespacedDrive, id: NamespaceId) -> u64 {
    let info = drive.engine.namespaces().into_iter().find(|info| info.id == id).unwrap();
    info.dram.total_bytes()
}

/// Nobody uses the drive for two seconds.
fn idle(drive: &mut NamespacedDrive) {
    drive.clock.0 += 2_000_000_000;
    drive.engine.advance(drive.clock).unwrap();
}

#[test]
fn a_table_that_nobody_uses_makes_room_for_one_in_use_and_comes_back() {
    // With DRAM for one.
    let mut drive = NamespacedDrive::of(few_logs(&named("kaml"), "ignored"), Medium::Ropes);
    let (first, second) = (drive.create(large_table()).unwrap(), drive.create(large_table()).unwrap());
    let fill = |drive: &mut NamespacedDrive, namespace| {
        for number in 0..400 {
            drive.store(namespace, &key_of(number), 300).unwrap();
        }
    };
    fill(&mut drive, first);
    idle(&mut drive);
    fill(&mut drive, second);
    idle(&mut drive);
    let (before, all) = (held(&drive, first), held(&drive, second));
    assert!(before < all * 2 / 3, "{before} of {all} bytes are still there");
    fill(&mut drive, second);
    idle(&mut drive);
    drive.verify(first, &key_of(7));
    idle(&mut drive);
    drive.verify(first, &key_of(8));
    assert!(held(&drive, second) < all && held(&drive, first) > before, "they have changed places");
    drive.verify_all();
}

/// Hosts send a batch to the first namespace, whatever its changes are of.
#[test]
fn a_batch_uses_the_namespaces_of_its_changes_alone() {
    let (mut design, profile) = few_logs(&named("kaml"), "ignored");
    design.set("flash_bytes_per_slot", "128").unwrap();
    let mut drive = NamespacedDrive::of((design, profile), Medium::Ropes);
    let second = drive.create(large_table()).unwrap();
    for number in 0..400 {
        drive.store(NamespaceId::FIRST, &key_of(number), 300).unwrap();
    }
    idle(&mut drive);
    for number in 0..400 {
        let (key, (seed, value)) = (key_of(number), drive.value(300));
        let changes = [BatchChange { namespace: second, key: Key::new(&key).unwrap(), value: Some(value) }];
        drive.run(NamespaceId::FIRST, Command::Batch { changes: &changes }).unwrap();
        drive.models.get_mut(&second).unwrap().insert(key, (seed, 300));
        drive.clock.0 += 10_000_000;
    }
    let (first, second) = (held(&drive, NamespaceId::FIRST), held(&drive, second));
    assert!(first < second * 2 / 3, "{first} bytes of a table that nobody uses stay beside {second}");
    drive.verify_all();
}

/// A section that is nowhere on flash counts as taking a page while it is in DRAM.
#[test]
fn look_ups_take_no_room_from_stores() {
    for name in ["multilevel", "original"] {
        let mut drive = drive(name, Medium::Ropes);
        let other = drive.create(index("hash-fixed")).unwrap();
        let key = |number: u32| number.to_be_bytes();
        let store = |drive: &mut NamespacedDrive, number| drive.store(NamespaceId::FIRST, &key(number), 1500);
        let pairs = (0u32..).find(|&number| store(&mut drive, number).is_err()).unwrap();
        let gone = pairs / 4;
        (0..gone).for_each(|number| drive.delete(NamespaceId::FIRST, &key(number)));
        (0..400).for_each(|number| drive.verify(other, &key(number)));
        let again = (0..gone).filter(|&number| store(&mut drive, number).is_ok()).count() as u32;
        // Whatever is deleted, `multilevel` takes a little less again.
        assert!(again * 100 >= gone * 96, "{name}: {again} of {gone}");
        drive.engine.check_invariants();
        assert!(drive.engine.check().is_clean(), "{name}");
    }
}

/// What was only looked at takes no DRAM once it was given up: a table that is whole in DRAM stays there, and other sections stay in the cache.
#[test]
fn stores_that_are_refused_put_no_sections_out_of_dram() {
    for (name, of_other) in [("kaml", "dram-hash"), ("original", "hash-fixed")] {
        let mut drive = drive(name, Medium::Ropes);
        let other = drive.create(index(of_other)).unwrap();
        let key = |number: u32| u64::from(number).to_be_bytes();
        (0..4).for_each(|number| drive.store(other, &key(number), 9000).unwrap());
        _ = (0..).find(|&number| drive.store(NamespaceId::FIRST, &key(number), 9000).is_err());
        for number in 0..500 {
            drive.store(other, &key(1000 + number % 10), 9000).unwrap_err();
            drive.verify(NamespaceId::FIRST, &key(number % 10));
            drive.verify(other, &key(number % 4));
        }
        let counters = drive.engine.index_counters();
        assert_eq!((counters.section_misses, counters.bytes_written.commands), (0, 0), "{name}");
        drive.engine.check_invariants();
        assert!(drive.engine.check().is_clean(), "{name}");
    }
}

/// What others looked at, and what is left of others, is nothing that it lacks.
#[test]
fn a_store_beyond_a_quota_waits_for_no_removal() {
    let mut drive = drive("plus", Medium::Ropes);
    let quota_bytes = Some(100_000);
    let bounded = drive.create(NamespaceAttributes { quota_bytes, ..NamespaceAttributes::PLAIN }).unwrap();
    let doomed = drive.create(index("hash-compact")).unwrap();
    (0..2000).for_each(|number| drive.store(doomed, &key_of(number), 100).unwrap());
    _ = (0..).find(|&number| drive.store(bounded, &key_of(number), 1000).is_err());
    drive.delete_namespace(doomed);
    drive.verify(NamespaceId::FIRST, b"absent");
    let (begun, (_, value)) = (drive.clock, drive.value(1000));
    let command = Command::Store { key: Key::new(b"one more").unwrap(), value, condition: StoreCondition::Always };
    let (done, refused) = drive.engine.execute_in(bounded, command, begun);
    assert_eq!(refused, Err(KvError::CapacityExceeded));
    assert!(drive.engine.is_removing() && (done - begun).0 < 10_000_000, "{} ns", (done - begun).0);
}
