//! A namespace as a cache: over several lives, on a drive that is full, with threads side by side, and past it.

use crate::designs;
use kvssd_host::{CachePlan, Error, EvictionPolicy, NamespaceAttributes, Options, PairCache, Store};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{scope, yield_now};
use tempfile::TempDir;

const FLASH_BYTES: u64 = 64 << 20;

fn options(design: &str) -> Options {
    Options { design: design.to_owned(), create_bytes: FLASH_BYTES, ..Options::default() }
}

fn plan(budget_bytes: u64, eviction: EvictionPolicy) -> CachePlan {
    CachePlan { budget_bytes, eviction, admission: Vec::new() }
}

/// The value of a key: as long as it says, and another for each key.
fn value(key: u32) -> Vec<u8> {
    vec![key as u8; 1000 + key as usize * 7919 % 30_000]
}

/// What is in has the value that it was stored with. Gives how many are.
fn check(cache: &PairCache, store: &Store, keys: u32) -> usize {
    let found = (0..keys).filter_map(|key| Some((key, cache.retrieve(store, &key.to_be_bytes()).unwrap()?)));
    found.map(|(key, found)| assert!(found == value(key), "of key {key}")).count()
}

#[test]
fn a_cache_on_a_full_drive_takes_everything_over_several_lives() {
    let folder = TempDir::new().unwrap();
    for (number, design) in designs().enumerate() {
        let path = folder.path().join(design);
        let eviction = EvictionPolicy::ALL[number % EvictionPolicy::ALL.len()];
        let plan = plan(2 * FLASH_BYTES, eviction);
        for life in 0..3 {
            let store = Store::open(&path, options(design)).unwrap();
            let cache = PairCache::open(store.own_namespace(), &plan).unwrap();
            let before = cache.stats();
            assert_eq!(before.pairs, store.own_namespace().count().unwrap(), "{design}");
            assert_eq!(before.pairs > 0, life > 0, "{design}");
            for key in 0..5_000u32 {
                assert!(cache.store(&store, &key.to_be_bytes(), &value(key)).unwrap(), "{design}, key {key}");
            }
            let stats = cache.stats();
            assert!(
                stats.budget_bytes < plan.budget_bytes && stats.held_bytes > FLASH_BYTES / 4,
                "{design}: {stats:?}"
            );
            assert_eq!(check(&cache, &store, 5_000) as u64, stats.pairs, "{design}");
            store.close().unwrap();
        }
    }
}

#[test]
fn threads_share_a_cache_and_no_value_is_anothers() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path().join("drive.kv"), options("plus")).unwrap();
    let cache = PairCache::open(store.own_namespace(), &plan(4 << 20, EvictionPolicy::S3_FIFO)).unwrap();
    scope(|scope| {
        for thread in 0..4u32 {
            let (cache, store) = (&cache, &store);
            scope.spawn(move || {
                for step in 0..3_000u32 {
                    let key = (step.wrapping_mul(2_654_435_761) + thread) % 700;
                    match cache.retrieve(store, &key.to_be_bytes()).unwrap() {
                        Some(found) => assert!(found == value(key)),
                        None => assert!(cache.store(store, &key.to_be_bytes(), &value(key)).unwrap()),
                    }
                }
            });
        }
    });
    let stats = cache.stats();
    assert!(stats.held_bytes <= 4 << 20 && stats.hits > 0 && stats.counts.evicted > 100, "{stats:?}");
    assert_eq!(
        store.own_namespace().count().unwrap(),
        stats.pairs,
        "what left while another thread stored it is known"
    );
    assert_eq!(check(&cache, &store, 700) as u64, stats.pairs);
}

/// Who asks for a pair that is being stored may learn that it is not there after it is: the cache knows better by then.
#[test]
fn a_miss_that_comes_late_makes_no_pair_unknown() {
    const KEYS: u32 = 500;
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path().join("drive.kv"), options("plus")).unwrap();
    let cache = PairCache::open(store.own_namespace(), &plan(32 << 20, EvictionPolicy::LRU)).unwrap();
    let next = AtomicU32::new(0);
    scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let key @ ..KEYS = next.load(Ordering::Relaxed) {
                    cache.retrieve(&store, &key.to_be_bytes()).unwrap();
                }
            });
        }
        for key in 0..KEYS {
            next.store(key, Ordering::Relaxed);
            yield_now();
            assert!(cache.store(&store, &key.to_be_bytes(), b"value").unwrap());
        }
        next.store(KEYS, Ordering::Relaxed);
    });
    assert_eq!((store.own_namespace().count().unwrap(), cache.stats().pairs), (KEYS.into(), KEYS.into()));
}

#[test]
fn nobody_leaves_for_what_no_drive_takes() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path().join("drive.kv"), options("plus")).unwrap();
    let cache = PairCache::open(store.own_namespace(), &plan(16 << 20, EvictionPolicy::LRU)).unwrap();
    (0..100u32).for_each(|key| assert!(cache.store(&store, &key.to_be_bytes(), &[1; 100_000]).unwrap()));
    let before = cache.stats();
    assert!(matches!(cache.store(&store, &[0; 4], &vec![0; 15 << 20]), Err(Error::InvalidValue { .. })));
    assert!(matches!(cache.store(&store, &[0; 400], b"value"), Err(Error::InvalidKey { .. })));
    assert_eq!((cache.stats(), store.own_namespace().count().unwrap()), (before, before.pairs));
}

#[test]
fn a_pair_that_is_larger_than_the_whole_cache_leaves_as_it_is_opened() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path().join("drive.kv"), options("plus")).unwrap();
    (0..10u32).for_each(|key| store.store(&key.to_be_bytes(), &[1; 100_000]).unwrap());
    store.store(b"small", b"value").unwrap();
    let cache = PairCache::open(store.own_namespace(), &plan(1_000, EvictionPolicy::FIFO)).unwrap();
    assert_eq!((cache.stats().pairs, store.own_namespace().count().unwrap()), (1, 1));
    assert!(cache.stats().held_bytes <= 1_000 && cache.stats().budget_bytes == 1_000);
}

#[test]
fn a_cache_opens_on_an_image_with_a_damaged_page_with_the_pairs_of_all_others() {
    let folder = tempfile::tempdir().unwrap();
    for design in ["plus", "tessera", "pink"] {
        let path = folder.path().join(design);
        let store = Store::open(&path, options(design)).unwrap();
        let cache = PairCache::open(store.own_namespace(), &plan(1 << 24, EvictionPolicy::LRU)).unwrap();
        (0..300u32).for_each(|key| assert!(cache.store(&store, &key.to_be_bytes(), &value(key)).unwrap()));
        store.close().unwrap();
        let mut image = std::fs::read(&path).unwrap();
        let at = image.windows(64).rposition(|bytes| *bytes == [100; 64]).unwrap();
        image[at] ^= 1;
        std::fs::write(&path, image).unwrap();
        let store = Store::open(&path, options(design)).unwrap();
        let cache = PairCache::open(store.own_namespace(), &plan(1 << 24, EvictionPolicy::LRU)).unwrap();
        let read = |key: u32| cache.retrieve(&store, &key.to_be_bytes());
        let whole = (0..300).filter(|&key| read(key).is_ok_and(|found| found == Some(value(key)))).count();
        assert!((200..300).contains(&whole) && matches!(read(100), Err(Error::Damaged { .. })), "{design}: {whole}");
        assert!(cache.store(&store, b"new", b"1").unwrap());
        drop(cache);
        // Where most have to leave, and once more.
        for _ in 0..2 {
            let cache = PairCache::open(store.own_namespace(), &plan(1 << 18, EvictionPolicy::FIFO)).unwrap();
            (300..320u32).for_each(|key| assert!(cache.store(&store, &key.to_be_bytes(), &value(key)).unwrap()));
            assert!(cache.stats().held_bytes <= 1 << 18, "{design}");
            let last = cache.retrieve(&store, &319u32.to_be_bytes()).unwrap();
            assert_eq!(last, Some(value(319)), "{design}");
        }
    }
}

#[test]
fn who_is_kept_out_leaves_nothing_old_behind() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path().join("drive.kv"), options("plus")).unwrap();
    let admission = vec!["at-most=100".parse().unwrap()];
    let plan = CachePlan { admission, ..plan(1 << 20, EvictionPolicy::LRU) };
    let cache = PairCache::open(store.own_namespace(), &plan).unwrap();
    assert!(cache.store(&store, b"key", b"small").unwrap() && cache.contains(b"key") && !cache.contains(b"none"));
    assert!(!cache.store(&store, b"key", &[7; 200]).unwrap());
    assert_eq!(cache.retrieve(&store, b"key").unwrap(), None);
    assert!(!cache.contains(b"key") && !cache.delete(&store, b"key").unwrap());
    assert_eq!((cache.stats().pairs, cache.stats().counts.kept_out), (0, 1));
}

#[test]
fn a_drive_that_is_full_of_others_pairs_is_full() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path().join("drive.kv"), options("plus")).unwrap();
    let cache = store.create_namespace(kvssd_host::NamespaceAttributes::PLAIN).unwrap();
    let cache = PairCache::open(cache, &plan(1 << 30, EvictionPolicy::FIFO)).unwrap();
    let mut number = 0u32;
    while store.store(&number.to_be_bytes(), &[1; 30_000]).is_ok() {
        number += 1;
    }
    assert_eq!(cache.store(&store, b"key", &[7; 30_000]), Err(Error::Full));
    assert_eq!(cache.retrieve(&store, b"key").unwrap(), None);
}

/// On an image numbers come again at once: a cache never follows them into another namespace.
#[test]
fn a_cache_whose_namespace_was_deleted_is_refused_also_when_another_one_has_its_number() {
    let folder = TempDir::new().unwrap();
    for design in designs() {
        let store = Store::open(folder.path().join(design), options(design)).unwrap();
        let named = |name: &str| NamespaceAttributes { name: Some(name.to_owned()), ..NamespaceAttributes::PLAIN };
        let blocks = store.create_namespace(named("blocks")).unwrap();
        let (id, plan) = (blocks.id(), plan(1 << 20, EvictionPolicy::LRU));
        let cache = PairCache::open(blocks, &plan).unwrap();
        assert!(cache.store(&store, b"key", b"value").unwrap());
        store.delete_namespace("blocks").unwrap();
        let refused = || {
            let stored = cache.store(&store, b"key", b"value").map(drop);
            let others = [cache.retrieve(&store, b"key").map(drop), cache.delete(&store, b"key").map(drop)];
            for error in [stored].into_iter().chain(others).map(Result::unwrap_err) {
                let said = error.to_string();
                assert!(matches!(error, Error::NoNamespace { .. }), "{design}: {said}");
                assert!(
                    said.contains("it was deleted") && said.contains("open a cache in one that is there"),
                    "{said}"
                );
            }
        };
        refused();
        // Numbers come again when none is left that nobody had.
        let other = (0..40).map(|round| format!("other {round}")).find_map(|name| {
            let made = store.create_namespace(named(&name)).unwrap();
            if made.id() != id {
                store.delete_namespace(&name).unwrap();
            }
            Some(made).filter(|made| made.id() == id)
        });
        let other = other.unwrap_or_else(|| panic!("{design}: nobody gets the number"));
        refused();
        assert_eq!(other.keys(None).count(), 0, "{design}");
        let anew = PairCache::open(other, &plan).unwrap();
        assert!(anew.store(&store, b"key", b"another").unwrap());
        refused();
        assert_eq!(other.retrieve(b"key").unwrap().as_deref(), Some(&b"another"[..]), "{design}");
    }
}

/// Two would each count what the other one deletes.
#[test]
fn a_namespace_has_one_cache_at_a_time() {
    let folder = TempDir::new().unwrap();
    let plan = plan(1 << 20, EvictionPolicy::LRU);
    for design in designs() {
        let store = Store::open(folder.path().join(design), options(design)).unwrap();
        let other = store.create_namespace(NamespaceAttributes::PLAIN).unwrap();
        let first = PairCache::open(store.own_namespace(), &plan).unwrap();
        let _another = PairCache::open(other, &plan).unwrap();
        for namespace in [store.own_namespace(), other] {
            let said = PairCache::open(namespace, &plan).unwrap_err();
            assert!(matches!(said, Error::Refused { .. }), "{design}: {said}");
            assert!(said.to_string().contains("a cache open in it already"), "{design}: {said}");
            let said = namespace.set_cache(Some(&"lru budget=100000".parse().unwrap())).unwrap_err();
            assert!(said.to_string().contains("close that one first"), "{design}: {said}");
        }
        assert!(first.store(&store, b"key", b"value").unwrap(), "{design}");
        drop(first);
        assert_eq!(PairCache::open(store.own_namespace(), &plan).unwrap().stats().pairs, 1, "{design}");
    }
}

/// Larger than the drive, or than what other data leaves: the cache keeps what it has, as the drive's own does.
#[test]
fn nobody_leaves_for_a_pair_that_the_drive_could_not_hold() {
    let folder = TempDir::new().unwrap();
    let options = Options { create_bytes: FLASH_BYTES, value_bytes_max: Some(256 << 20), ..Options::default() };
    let store = Store::open(folder.path().join("drive.kv"), options).unwrap();
    let named = |name: String| {
        store.create_namespace(NamespaceAttributes { name: Some(name), ..NamespaceAttributes::PLAIN }).unwrap()
    };
    for (budget_bytes, of_others, huge_bytes) in [(1u64 << 30, 0, 50 << 20), (30 << 20, 30, 25 << 20)] {
        let (namespace, others) = (named(format!("cache {of_others}")), named(format!("others {of_others}")));
        let cache = PairCache::open(namespace, &plan(budget_bytes, EvictionPolicy::LRU)).unwrap();
        (0..200u32).for_each(|key| assert!(cache.store(&store, &key.to_be_bytes(), &[7; 50_000]).unwrap()));
        (0..of_others).for_each(|key: u32| others.store(&key.to_be_bytes(), &[1; 1 << 20]).unwrap());
        let before = cache.stats();
        assert_eq!(before.pairs, 200);
        let refused = cache.store(&store, b"huge", &vec![1; huge_bytes]).unwrap_err();
        assert!(matches!(refused, Error::Full), "{refused}");
        let after = cache.stats();
        assert_eq!((after.pairs, after.budget_bytes, after.counts.evicted), (200, budget_bytes, before.counts.evicted));
        assert!(cache.store(&store, b"small", &[1; 50_000]).unwrap());
        store.delete_namespace(&format!("cache {of_others}")).unwrap();
        store.delete_namespace(&format!("others {of_others}")).unwrap();
    }
}

/// Others have filled the drive to the brim: what the cache has is less than the pair, and would leave for nothing.
#[test]
fn nobody_leaves_for_a_pair_that_all_of_them_would_not_make_room_for() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path().join("drive.kv"), options("plus")).unwrap();
    let blocks = store.create_namespace(NamespaceAttributes::PLAIN).unwrap();
    let cache = PairCache::open(blocks, &plan(1 << 30, EvictionPolicy::LRU)).unwrap();
    (0..100u32).for_each(|key| assert!(cache.store(&store, &key.to_be_bytes(), &[7; 1000]).unwrap()));
    let mut number = 0u32;
    while store.own_namespace().store(&number.to_be_bytes(), &[1; 4000]).is_ok() {
        number += 1;
    }
    let refused = cache.store(&store, b"big", &[1; 500_000]).unwrap_err();
    assert!(matches!(refused, Error::Full), "{refused}");
    assert_eq!((cache.stats().pairs, cache.stats().counts.evicted), (100, 0));
    (200..250u32).for_each(|key| assert!(cache.store(&store, &key.to_be_bytes(), &[7; 1000]).unwrap()));
    assert!(cache.stats().counts.evicted > 0, "for pairs like them some leave");
}

#[test]
fn a_cache_of_the_drives_own_takes_no_other_one() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path().join("drive.kv"), options("plus")).unwrap();
    let cache = Some("lru budget=1000000".parse().unwrap());
    let blocks = store.create_namespace(NamespaceAttributes { cache, ..NamespaceAttributes::PLAIN }).unwrap();
    let plan = plan(1 << 20, EvictionPolicy::LRU);
    for _ in 0..2 {
        let said = PairCache::open(blocks, &plan).unwrap_err();
        assert!(matches!(said, Error::Refused { .. }) && said.to_string().contains("the drive keeps it"), "{said}");
    }
    blocks.set_cache(None).unwrap();
    assert_eq!(PairCache::open(blocks, &plan).unwrap().stats().pairs, 0);
}
