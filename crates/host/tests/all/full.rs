//! Stores of tiny pairs that are full and go on: each pair is a part of a page, and each change dirties a section of its own.

use kvssd_host::{Error, KeyCursor, NamespaceId, Options, Store};
use std::path::Path;

fn open(path: &Path, design: &str) -> Store {
    Store::open(path, Options { create_bytes: 64 << 20, design: design.to_owned(), ..Options::default() }).unwrap()
}

/// Stores a pair without a value; returns whether there was room.
fn has_room(store: &Store, number: u32) -> bool {
    match store.store(&number.to_be_bytes(), b"") {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error, Error::Full, "pair {number}");
            false
        }
    }
}

/// A checkpoint takes many superblocks at once, and what it replaces is erased only then: collection has to leave them.
#[test]
fn a_full_store_of_tiny_pairs_takes_changes_and_opens_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let store = open(&path, "plus");
    let filled = (0..).find(|&number| !has_room(&store, number)).unwrap();
    let mut pairs = filled;
    for number in 0..60_000u32 {
        let old = (number.wrapping_mul(7919) % filled).to_be_bytes();
        pairs -= u32::from(store.delete(&old).unwrap());
        pairs += u32::from(has_room(&store, 1 << 30 | number));
    }
    assert!(store.stats().unwrap().firmware.unwrap().pairs_moved > 0, "nothing was collected");
    // As if the process were killed.
    drop(store);
    assert_eq!(open(&path, "plus").keys(None).map(Result::unwrap).count(), pairs as usize);
}

/// What collection moves makes a tree larger, and so does a delete, until its tables are merged.
#[test]
fn a_full_tree_takes_deletes_and_opens_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let store = open(&path, "pink");
    let key = |number: u32| [&number.to_be_bytes()[..], &[b'.'; 196]].concat();
    let filled = (0..).find(|&number| store.store(&key(number), b"").is_err_and(|error| error == Error::Full)).unwrap();
    let deleted = filled / 3;
    for number in 0..deleted {
        assert!(store.delete(&key((u64::from(number) * 7919 % u64::from(filled)) as u32)).unwrap());
    }
    drop(store);
    assert_eq!(open(&path, "pink").keys(None).map(Result::unwrap).count(), (filled - deleted) as usize);
}

/// From a key that was deleted a hash index goes on at some place of its path, which may be far behind.
#[test]
fn who_deletes_all_that_he_meets_meets_all() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("drive.kv"), "original");
    let namespace = store.namespace_at(NamespaceId::FIRST);
    (0..60_000u32).for_each(|number| store.store(&number.to_be_bytes(), b"").unwrap());
    // All get other keys, a page at a time, until the table is full.
    let (mut cursor, mut next, mut is_full) = (KeyCursor::new(None), 1 << 30, false);
    while let Some(page) = Some(cursor.next_page(namespace).unwrap()).filter(|page| !page.is_empty()) {
        for key in page {
            if key[0] == 0 {
                assert!(store.delete(&key).unwrap());
            }
            is_full |= !has_room(&store, next);
            next += 1;
        }
    }
    assert!(is_full);
    let there = store.keys(None).count();
    let met = store.keys(None).inspect(|key| assert!(store.delete(key.as_ref().unwrap()).unwrap())).count();
    assert_eq!((met, store.keys(None).count()), (there, 0));
}
