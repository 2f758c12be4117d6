//! What is refused anyway takes nothing from any cache, and says nothing to any policy.

use super::*;
use kvssd_types::BatchChange;

fn named(name: &str) -> NamespaceAttributes {
    NamespaceAttributes { name: Some(name.to_owned()), ..NamespaceAttributes::PLAIN }
}

fn change<'c>(namespace: NamespaceId, name: &'c [u8], bytes: usize) -> BatchChange<'c> {
    BatchChange { namespace, key: key(name), value: Some(Value::from(&vec![7; bytes][..])) }
}

/// Two caches that hold the same, 9 pairs of 10 kB with room for one more.
fn twins(drive: &mut Drive, policy: &str) -> [NamespaceId; 2] {
    ["one", "other"].map(|name| {
        let id = create_cache(drive, name, &format!("{policy} budget=100000"));
        (0..9u8).for_each(|name| drop(store(drive, id, &[name], &[name; 9_999]).unwrap()));
        id
    })
}

/// What a cache holds and may hold, and how many left it.
fn known(drive: &Drive, id: NamespaceId) -> (u64, u64, u64, u64) {
    let info = drive.cache(id).unwrap();
    (info.held_bytes, info.budget_bytes, info.kept_bytes, info.counts.evicted)
}

/// A batch is refused, and behind that both of two caches do the same, whoever was in it.
fn assert_keeps_all(drive: &mut Drive, [one, other]: [NamespaceId; 2], refused: &[BatchChange<'_>]) {
    let reply = drive.execute(Command::Batch { changes: refused });
    assert!(matches!(reply, Err(KvError::CapacityExceeded | KvError::BatchTooLarge { .. })), "{reply:?}");
    assert_eq!((keys(drive, one).len(), known(drive, one)), (9, known(drive, other)), "{reply:?}");
    for name in 20..24u8 {
        [one, other].iter().for_each(|id| drop(store(drive, *id, &[name], &[name; 9_999]).unwrap()));
        assert_eq!(keys(drive, one), keys(drive, other));
    }
    for id in [one, other] {
        keys(drive, id).iter().for_each(|name| drop(drive.execute_in(id, Command::Delete { key: key(name) }).unwrap()));
        (0..9u8).for_each(|name| drop(store(drive, id, &[name], &[name; 9_999]).unwrap()));
    }
}

#[test]
fn nobody_leaves_for_a_batch_that_another_namespace_or_the_drive_refuses() {
    let folder = tempfile::tempdir().unwrap();
    for large in [None, Some(8 << 20)] {
        let mut drive = create(&folder.path().join(format!("{large:?}.kv")), "kaml", large);
        let quota_bytes = Some(100_000);
        let bounded = drive.create_namespace(NamespaceAttributes { quota_bytes, ..named("bounded") }).unwrap();
        store(&mut drive, bounded, b"there", &[1; 60_000]).unwrap();
        let few = NamespaceAttributes {
            index: Some("dram-hash".to_owned()),
            parameters: vec![("flash_bytes_per_slot".to_owned(), "65535".to_owned())],
            ..named("few")
        };
        let few = drive.create_namespace(few).unwrap();
        let mut fits = |number: u64| store(&mut drive, few, &number.to_le_bytes(), b"1") == Ok(Reply::Stored);
        assert!((0..100_000).any(|number| !fits(number)), "an index with a fixed number of places");
        let gone = NamespaceId(99);
        let most = drive.batch_bytes_max() as usize;
        let inline = if large.is_some() { most / 2 } else { most };
        for policy in POLICIES {
            let twins = twins(&mut drive, policy);
            let of_cache = [change(twins[0], b"a", 9_999), change(twins[0], b"b", 9_999)];
            for other in [change(bounded, b"more", 60_000), change(few, b"more", 1)] {
                assert_keeps_all(&mut drive, twins, &[of_cache[0].clone(), other, of_cache[1].clone()]);
            }
            let nobody = [of_cache[0].clone(), of_cache[1].clone(), change(gone, b"a", 1)];
            assert_eq!(drive.execute(Command::Batch { changes: &nobody }), Err(KvError::NoSuchNamespace(gone)));
            assert_eq!(known(&drive, twins[0]), known(&drive, twins[1]));
            // With their stamps they are too large.
            let rest = change(FIRST, b"rest", inline - 1);
            let rest = if large.is_some() {
                vec![rest, change(FIRST, b"more", most - inline - 20_017)]
            } else {
                vec![change(FIRST, b"rest", most - 20_010)]
            };
            let wide: Vec<BatchChange<'_>> = of_cache.iter().cloned().chain(rest).collect();
            assert_keeps_all(&mut drive, twins, &wide);
            twins.iter().for_each(|id| drive.delete_namespace(*id).unwrap());
        }
    }
}

/// Plain pairs fill nearly all of the drive. A pair that would not fit in an empty cache evicts nobody.
#[test]
fn nobody_leaves_for_what_a_drive_that_is_full_of_others_has_no_room_for() {
    let folder = tempfile::tempdir().unwrap();
    for large in [None, Some(16 << 20)] {
        let mut drive = create(&folder.path().join(format!("{large:?}.kv")), "plus", large);
        let id = create_cache(&mut drive, "cache", "lru budget=1000000000");
        (0..9u8).for_each(|name| drop(store(&mut drive, id, &[name], &[name; 9_999]).unwrap()));
        let mut number = 0u64;
        for bytes in [1_000_000, 100_000, 10_000] {
            while store(&mut drive, FIRST, &number.to_le_bytes(), &vec![1; bytes]) == Ok(Reply::Stored) {
                number += 1;
            }
        }
        let most = drive.batch_bytes_max() as usize;
        let wide = if large.is_some() { 12 << 20 } else { most - 8 };
        for bytes in [most / 3, wide] {
            assert_eq!(store(&mut drive, id, b"wide", &vec![2; bytes]), Err(KvError::CapacityExceeded), "{bytes}");
            assert_eq!(keys(&mut drive, id).len(), 9, "{bytes}");
        }
        let batch = [change(id, b"a", 9_999), change(FIRST, b"wide", most / 3)];
        assert_eq!(drive.execute(Command::Batch { changes: &batch }), Err(KvError::CapacityExceeded));
        assert_eq!(keys(&mut drive, id).len(), 9);
        // What has room when some have left comes in; also when the cache has learnt that the drive holds little.
        (10..40u8).for_each(|name| drop(store(&mut drive, id, &[name], &[name; 9_999]).unwrap()));
        let before = keys(&mut drive, id).len();
        assert!(drive.cache(id).unwrap().budget_bytes < 1_000_000);
        assert_eq!(store(&mut drive, id, b"wide", &vec![2; most / 3]), Err(KvError::CapacityExceeded));
        assert_eq!(keys(&mut drive, id).len(), before);
        let batch = [change(id, b"a", 19_999), change(FIRST, b"narrow", 9_999)];
        assert_eq!(drive.execute(Command::Batch { changes: &batch }), Ok(Reply::Batched));
        assert!(retrieve(&mut drive, id, b"a").is_some() && keys(&mut drive, id).len() < before);
    }
}
