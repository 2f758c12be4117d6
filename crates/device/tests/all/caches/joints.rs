//! Caches where they meet others: a full drive, quotas, batches, large values, iterators, and changes of what they are.

use super::*;
use kvssd_flash::OpenOptions;
use kvssd_types::{BatchChange, IteratorOptions};

/// Budgets of more than the drive: each store is done, whoever holds what.
#[test]
fn a_drive_that_is_fuller_than_its_budgets_refuses_no_cache() {
    let folder = tempfile::tempdir().unwrap();
    for (design, large) in [("plus", None), ("tessera", None), ("pink", None), ("plus", Some(8 << 20))] {
        let path = folder.path().join(format!("{design} {large:?}.kv"));
        let mut drive = create(&path, design, large);
        let one = create_cache(&mut drive, "one", "lru budget=1000000000");
        let other = create_cache(&mut drive, "other", "fifo budget=1000000000");
        let mut last = Vec::new();
        for round in 0..600u64 {
            let bytes = if large.is_some() && round % 7 == 0 { 1_500_000 } else { 150_000 };
            let name = format!("{round}").into_bytes();
            // The second one comes to a drive that the first one has filled.
            let id = if round < 300 { one } else { other };
            assert_eq!(store(&mut drive, id, &name, &value_of(round, bytes)), Ok(Reply::Stored), "{design} {round}");
            last = value_of(round, bytes);
        }
        assert_eq!(retrieve(&mut drive, other, b"599"), Some(last));
        let [first, second] = [one, other].map(|id| drive.cache(id).unwrap());
        assert!(first.held_bytes.abs_diff(second.held_bytes) < 4_000_000, "{first:?} {second:?}");
        assert!(first.budget_bytes < 64 << 20, "it has learnt what the drive holds");
        // Who is no cache is refused as ever, and takes nothing from them.
        let mut refused = 0;
        for number in 0..300u64 {
            let stored = store(&mut drive, FIRST, &number.to_le_bytes(), &[3; 150_000]);
            refused += u64::from(stored == Err(KvError::CapacityExceeded));
        }
        assert!(refused > 200, "{refused}");
        assert_eq!(store(&mut drive, one, b"again", &[1; 150_000]), Ok(Reply::Stored));
        drive.close().unwrap();
        assert_eq!(Drive::check(&path).unwrap().findings, []);
    }
}

#[test]
fn with_a_quota_below_its_budget_a_cache_keeps_to_the_quota() {
    let folder = tempfile::tempdir().unwrap();
    for large in [None, Some(8 << 20)] {
        let mut drive = create(&folder.path().join(format!("{large:?}.kv")), "plus", large);
        let attributes = NamespaceAttributes {
            name: Some("a".to_owned()),
            quota_bytes: Some(3_000_000),
            cache: Some(cache("lru budget=1000000000")),
            ..NamespaceAttributes::PLAIN
        };
        let id = drive.create_namespace(attributes).unwrap();
        for round in 0..100u64 {
            assert_eq!(store(&mut drive, id, &round.to_le_bytes(), &[1; 200_000]), Ok(Reply::Stored), "{round}");
            assert!(retrieve(&mut drive, id, &round.to_le_bytes()).is_some());
        }
        // What no quota lets in makes nobody leave, neither here nor elsewhere.
        let other = create_cache(&mut drive, "other", "lru budget=1000000000");
        store(&mut drive, other, b"stays", &[1; 200_000]).unwrap();
        let narrow = NamespaceAttributes {
            name: Some("narrow".to_owned()),
            quota_bytes: Some(200_000),
            cache: Some(cache("lru budget=1000000000")),
            ..NamespaceAttributes::PLAIN
        };
        let narrow = drive.create_namespace(narrow).unwrap();
        store(&mut drive, narrow, b"stays", &[1; 20_000]).unwrap();
        assert_eq!(store(&mut drive, narrow, b"wide", &[1; 190_000]), Err(KvError::CapacityExceeded));
        assert!(retrieve(&mut drive, narrow, b"stays").is_some() && retrieve(&mut drive, other, b"stays").is_some());
        let info = drive.cache(id).unwrap();
        assert!((1_500_000..3_000_000).contains(&info.held_bytes), "{}", info.held_bytes);
    }
}

/// What the policies keep has a bound in the DRAM: beyond that pairs leave, whatever the budget.
#[test]
fn small_pairs_leave_when_the_memory_for_them_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let mut drive = create(&folder.path().join("drive.kv"), "plus", None);
    drive.set_cache(FIRST, Some(cache("s3-fifo budget=1000000000 asked=1"))).unwrap();
    let most = drive.engine().dram_budget_bytes() / 4;
    let sections = |drive: &Drive| drive.engine().dram().total_bytes();
    for number in 0..40_000u64 {
        store(&mut drive, FIRST, format!("a key of many bytes, so that fewer do {number:60}").as_bytes(), b"").unwrap();
    }
    let info = drive.cache(FIRST).unwrap();
    assert!(info.counts.evicted > 0 && info.kept_bytes <= most && info.kept_bytes > most * 3 / 4, "{info:?} {most}");
    assert!(sections(&drive) <= drive.engine().dram_budget_bytes());
    drive.set_cache(FIRST, Some(cache("lru budget=1000"))).unwrap();
    retrieve(&mut drive, FIRST, b"x");
    assert!(keys(&mut drive, FIRST).len() < 20);
    keys(&mut drive, FIRST).iter().for_each(|name| drop(drive.execute(Command::Delete { key: key(name) }).unwrap()));
    drive.set_cache(FIRST, None).unwrap();
    assert!(!drive.engine().dram().parts().contains_key("cache"));
}

#[test]
fn a_batch_lets_others_go_for_it_and_is_all_there_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for large in [None, Some(8 << 20)] {
        let mut drive = create(&folder.path().join(format!("{large:?}.kv")), "plus", large);
        let id = create_cache(&mut drive, "a", "fifo budget=100000 at-most=20000");
        (0..9u8).for_each(|name| drop(store(&mut drive, id, &[name], &[name; 10_000]).unwrap()));
        let names: Vec<[u8; 1]> = (100..104).map(|name| [name]).collect();
        let change = |number: usize, namespace, bytes: usize| BatchChange {
            namespace,
            key: key(&names[number]),
            value: Some(Value::from(&vec![number as u8; bytes][..])),
        };
        let gone = BatchChange { namespace: id, key: key(&[8]), value: None };
        let changes = [change(0, id, 15_000), change(1, FIRST, 15_000), change(2, id, 25_000), gone];
        assert_eq!(drive.execute(Command::Batch { changes: &changes }), Ok(Reply::Batched));
        let there: Vec<Vec<u8>> = [1u8, 2, 3, 4, 5, 6, 7, 100].iter().map(|name| vec![*name]).collect();
        // The first left, 102 was kept out, 8 was deleted.
        assert_eq!(keys(&mut drive, id)[..], there[..]);
        assert_eq!(retrieve(&mut drive, id, &[100]).unwrap(), vec![0; 15_000]);
        assert_eq!(retrieve(&mut drive, FIRST, &[101]).unwrap(), vec![1; 15_000], "no stamp where there is no cache");
        // What the drive does not take lets nobody go, and what is larger than the budget neither.
        let twice = [change(0, id, 15_000), change(0, id, 15_000)];
        assert!(drive.execute(Command::Batch { changes: &twice }).is_err());
        let wide: Vec<Vec<u8>> = (0..8).map(|name| vec![name, 1]).collect();
        let wide: Vec<BatchChange<'_>> =
            wide.iter().map(|name| BatchChange { key: key(name), ..change(0, id, 15_000) }).collect();
        assert_eq!(drive.execute(Command::Batch { changes: &wide }), Err(KvError::CapacityExceeded));
        assert_eq!(keys(&mut drive, id)[..], there[..]);
        assert_eq!(drive.cache(id).unwrap().held_bytes, 7 * 10_001 + 15_001);
    }
}

/// An iterator shows what was there when it was made, without stamps; who leaves meanwhile takes no room for ever.
#[test]
fn iterators_show_who_has_left_and_what_they_had() {
    let folder = tempfile::tempdir().unwrap();
    for (design, large, bytes) in [("pink", None, 5000), ("tessera", None, 5000), ("plus", Some(8 << 20), 1_200_000)] {
        let path = folder.path().join(format!("{design}.kv"));
        let mut drive = create(&path, design, large);
        let attributes = NamespaceAttributes {
            name: Some("tree".to_owned()),
            is_ordered: true,
            cache: Some(cache(&format!("fifo budget={}", 5 * (bytes + 1)))),
            ..NamespaceAttributes::PLAIN
        };
        let id = drive.create_namespace(attributes).unwrap();
        (0..5u8).for_each(|name| drop(store(&mut drive, id, &[name], &value_of(name.into(), bytes)).unwrap()));
        let options = IteratorOptions::default();
        let Ok(Reply::IteratorCreated(iterator)) = drive.execute_in(id, Command::CreateIterator { options }) else {
            panic!("no iterator")
        };
        (10..13u8).for_each(|name| drop(store(&mut drive, id, &[name], &value_of(name.into(), bytes)).unwrap()));
        let (mut seen, mut glances) = (Vec::new(), 0);
        let mut ask = Command::Seek { iterator, key: None, pairs_max: 2 };
        loop {
            let command = std::mem::replace(&mut ask, Command::Next { iterator, pairs_max: 2 });
            // Beside others where that can be, and alone, in turn.
            let glance = if seen.len() % 4 == 0 { drive.glance(id, &command) } else { None };
            glances += u32::from(glance.is_some());
            match glance.unwrap_or_else(|| drive.execute_in(id, command)) {
                Ok(Reply::Pairs(pairs)) if pairs.is_empty() => break,
                Ok(Reply::Pairs(pairs)) => seen.extend(pairs),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((seen.len(), glances > 0), (5, design == "pink"), "{design}");
        for (number, (name, value)) in seen.into_iter().enumerate() {
            assert_eq!((&*name, value.unwrap().to_vec()), (&[number as u8][..], value_of(number as u64, bytes)));
        }
        drive.execute_in(id, Command::DestroyIterator { iterator }).unwrap();
        assert_eq!(keys(&mut drive, id), [[3], [4], [10], [11], [12]]);
        drive.close().unwrap();
        assert_eq!(Drive::check(&path).unwrap().findings, []);
    }
}

#[test]
fn values_come_back_in_part_as_whole_ones_do_and_glances_see_none_of_the_stamps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let mut drive = create(&path, "plus", Some(8 << 20));
    let [fifo, lru] = ["fifo", "lru"].map(|name| create_cache(&mut drive, name, &format!("{name} budget=50000000")));
    for (id, bytes) in [fifo, lru].into_iter().flat_map(|id| [0, 1, 7, 8, 9, 4096, 3_000_000].map(|bytes| (id, bytes)))
    {
        let whole = value_of(1, bytes);
        store(&mut drive, id, b"a", &whole).unwrap();
        for (offset, length) in
            [(0, 0), (0, 3), (2, 5), (bytes as u32, 9), (bytes as u32 + 4, 9), (0, u32::MAX), (5, u32::MAX)]
        {
            let command = Command::Retrieve { key: key(b"a"), offset_bytes: offset, length_bytes: length };
            let begin = (offset as usize).min(bytes);
            let end = begin + (length as usize).min(bytes - begin);
            let expected = Ok(Reply::Retrieved { value: Value::from(&whole[begin..end]), value_bytes: bytes as u32 });
            assert_eq!(drive.execute_in(id, command.clone()), expected, "{bytes} from {offset}");
            let glanced = drive.glance(id, &command);
            assert!(glanced.is_none() || id == fifo && glanced == Some(expected), "a policy must know of its hits");
        }
    }
    drive.close().unwrap();
    let read_only = OpenOptions { read_only: true, ..OpenOptions::default() };
    let mut drive = Drive::open(&path, read_only).unwrap();
    assert_eq!(retrieve(&mut drive, lru, b"a"), Some(value_of(1, 3_000_000)));
}

/// Who is called as one before, with its number, is another one, in every later life.
#[test]
fn a_namespace_has_a_birth_that_nobody_had_before_it() {
    let folder = tempfile::tempdir().unwrap();
    for large in [None, Some(8 << 20)] {
        let path = folder.path().join(format!("{large:?}.kv"));
        let mut drive = create(&path, "plus", large);
        let born = |drive: &Drive, id| drive.namespaces().into_iter().find(|info| info.id == id).map(|info| info.birth);
        assert_eq!(born(&drive, FIRST), Some(0), "nobody made it");
        let mut births: Vec<(NamespaceId, u64)> = Vec::new();
        let parameters = vec![("dram_bytes".to_owned(), "1".to_owned())];
        let plain = NamespaceAttributes { name: Some("a".to_owned()), ..NamespaceAttributes::PLAIN };
        assert!(drive.create_namespace(NamespaceAttributes { parameters, ..plain.clone() }).is_err());
        for life in 0..6 {
            let id = match life % 3 {
                0 => create_cache(&mut drive, "a", "lru budget=100000"),
                _ => drive.create_namespace(plain.clone()).unwrap(),
            };
            let birth = born(&drive, id).unwrap();
            assert!(birth > 0 && !births.contains(&(id, birth)), "{id} {birth} of {births:?}");
            births.push((id, birth));
            if life % 2 == 0 {
                drive.close().unwrap();
            } else {
                drop(drive);
            }
            drive = Drive::open(&path, OpenOptions::default()).unwrap();
            let info = drive.namespaces().into_iter().find(|info| info.id == id).unwrap();
            assert_eq!((info.birth, info.attributes.parameters.len()), (birth, 0), "what was chosen is as it was");
            drive.delete_namespace(id).unwrap();
        }
        assert!(births.iter().any(|(id, _)| births.iter().filter(|(other, _)| other == id).count() > 1), "{births:?}");
    }
}

/// Another namespace gets the number: it has nothing of the one before, whatever the two are.
#[test]
fn a_cache_that_was_deleted_leaves_nothing_to_who_gets_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let mut drive = create(&path, "plus", None);
    let id = create_cache(&mut drive, "a", "lru budget=100000");
    (0..5u8).for_each(|name| drop(store(&mut drive, id, &[name], &[name; 1000]).unwrap()));
    drive.delete_namespace(id).unwrap();
    assert_eq!(store(&mut drive, id, b"x", b""), Err(KvError::NoSuchNamespace(id)));
    assert_eq!((drive.cache(id), drive.wants_time()), (None, false));
    drive.close().unwrap();
    let mut drive = Drive::open(&path, OpenOptions::default()).unwrap();
    let plain = NamespaceAttributes { name: Some("b".to_owned()), ..NamespaceAttributes::PLAIN };
    assert_eq!(drive.create_namespace(plain).unwrap(), id);
    store(&mut drive, id, b"x", b"whole").unwrap();
    assert_eq!(retrieve(&mut drive, id, b"x").as_deref(), Some(&b"whole"[..]));
    drive.delete_namespace(id).unwrap();
    let again = create_cache(&mut drive, "a", "fifo budget=3000");
    (0..5u8).for_each(|name| drop(store(&mut drive, again, &[name], &[name; 999]).unwrap()));
    assert_eq!(keys(&mut drive, again), [[2], [3], [4]]);
}

#[test]
fn what_has_pairs_stays_a_cache_or_none_and_another_policy_holds_for_those_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let mut drive = create(&path, "plus", None);
    store(&mut drive, FIRST, b"plain", b"value").unwrap();
    let refused = drive.set_cache(FIRST, Some(cache("lru budget=1000")));
    assert!(matches!(refused, Err(KvError::InvalidNamespace(_))), "{refused:?}");
    drive.execute(Command::Delete { key: key(b"plain") }).unwrap();
    drive.set_cache(FIRST, Some(cache("lru budget=1000000"))).unwrap();
    (0..9u8).for_each(|name| drop(store(&mut drive, FIRST, &[name], &[name; 9999]).unwrap()));
    assert!(drive.set_cache(FIRST, None).is_err());
    let nobody = NamespaceId(9);
    assert_eq!(drive.set_cache(nobody, None), Err(KvError::NoSuchNamespace(nobody)));
    for in_order in [true, false] {
        drive.set_cache(FIRST, Some(cache("fifo budget=50000"))).unwrap();
        if in_order {
            drive.close().unwrap();
        } else {
            drop(drive);
        }
        drive = Drive::open(&path, OpenOptions::default()).unwrap();
        assert_eq!(drive.namespaces()[0].attributes.cache, Some(cache("fifo budget=50000")));
        assert_eq!(retrieve(&mut drive, FIRST, &[8]), Some(vec![8; 9999]));
        assert_eq!(keys(&mut drive, FIRST), [[4], [5], [6], [7], [8]]);
    }
    (4..9u8).for_each(|name| drop(drive.execute(Command::Delete { key: key(&[name]) }).unwrap()));
    drive.set_cache(FIRST, None).unwrap();
    store(&mut drive, FIRST, b"plain", b"value").unwrap();
    drop(drive);
    let mut drive = Drive::open(&path, OpenOptions::default()).unwrap();
    assert_eq!(retrieve(&mut drive, FIRST, b"plain").as_deref(), Some(&b"value"[..]));
    let wrong = CacheAttributes { time_to_live_ms: Some(0), ..cache("lru budget=1") };
    let attributes = NamespaceAttributes { cache: Some(wrong), ..NamespaceAttributes::PLAIN };
    assert!(matches!(drive.create_namespace(attributes), Err(KvError::InvalidNamespace(_))));
}

/// The answer was lost, and the host asks again.
#[test]
fn the_same_cache_again_takes_nothing_from_the_policy() {
    let folder = tempfile::tempdir().unwrap();
    let mut drive = create(&folder.path().join("drive.kv"), "plus", None);
    let id = create_cache(&mut drive, "cache", "lru budget=100000");
    for name in [b"a", b"b", b"a"] {
        store(&mut drive, id, name, &[1; 100]).unwrap();
        retrieve(&mut drive, id, name).unwrap();
    }
    let before = drive.cache(id).unwrap();
    assert!(before.hits == 3 && before.held_bytes > 200);
    drive.set_cache(id, Some(cache("lru budget=100000"))).unwrap();
    assert_eq!(drive.cache(id), Some(before));
}

/// Each has its part of the memory as soon as it is there, with what its rules remember.
#[test]
fn caches_that_come_later_take_memory_from_those_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut drive = create(&folder.path().join("drive.kv"), "plus", None);
    let most = drive.engine().dram_budget_bytes() / 4;
    let kept =
        |drive: &Drive, ids: &[NamespaceId]| -> u64 { ids.iter().map(|id| drive.cache(*id).unwrap().kept_bytes).sum() };
    let mut ids = Vec::new();
    for number in 0..6 {
        ids.push(create_cache(&mut drive, &format!("cache {number}"), "fifo budget=1000000000 asked=1"));
        assert!(kept(&drive, &ids) <= most, "{number}: {} of {most}", kept(&drive, &ids));
        assert_eq!(drive.engine().dram().parts()["cache"], kept(&drive, &ids).next_multiple_of(4096));
        let filled = |drive: &Drive| drive.cache(ids[number]).unwrap().counts.evicted > 0;
        let mut name = 0u64;
        while !filled(&drive) {
            store(&mut drive, ids[number], &name.to_le_bytes(), b"").unwrap();
            name += 1;
        }
        let of_pairs = drive.cache(ids[number]).unwrap().held_bytes;
        let share = most / (number as u64 + 1);
        assert!(of_pairs * 8 > share, "{of_pairs} of {share}: it holds pairs, and not only a sketch");
    }
    drive.engine().check_invariants();
}

#[test]
fn a_clock_at_the_end_of_time_stops_no_drive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let mut drive = create(&path, "plus", None);
    let id = create_cache(&mut drive, "cache", "fifo budget=100000");
    drive.tell_time(Nanos(u64::MAX));
    for number in 0..10u8 {
        store(&mut drive, id, &[number], &[number; 100]).unwrap();
    }
    drive.close().unwrap();
    let mut drive = Drive::open(&path, OpenOptions::default()).unwrap();
    drive.tell_time(Nanos(u64::MAX));
    store(&mut drive, id, b"one more", b"1").unwrap();
    assert_eq!(keys(&mut drive, id).len(), 11);
}
