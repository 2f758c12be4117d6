//! Threads that look go side by side, and one that changes goes between them.

use crate::designs;
use kvssd_host::{Missing, Options, Store};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const KEYS: u64 = 300;
/// The key that has a value of more than a record.
const LARGE: u64 = 303;
/// Fewer than the pairs take, so that some are read from the file and others leave.
const CACHE_BYTES: u64 = 1 << 20;

/// A value that tells whose it is and how often it was written, in every piece; large ones have several segments.
fn value_of(key: u64, round: u64) -> Vec<u8> {
    let words = [40, 700, 1_300, 9_000][(key % 4) as usize];
    let words = if key == LARGE { 400_000 } else { words };
    std::iter::repeat_n([key, round], words / 2).flatten().flat_map(u64::to_le_bytes).collect()
}

/// The key and the round of a value that is whole.
fn told_by(value: &[u8]) -> (u64, u64) {
    let word = |at: usize| u64::from_le_bytes(value[at..at + 8].try_into().unwrap());
    let (key, round) = (word(0), word(8));
    assert_eq!(value, value_of(key, round), "key {key}, round {round}");
    (key, round)
}

#[test]
fn threads_that_look_see_whole_values_in_order_while_one_changes_them() {
    for (design, value_bytes_max) in designs().map(|design| (design, None)).chain([("plus", Some(4 << 20))]) {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            missing: Missing::CreateNew,
            design: design.to_owned(),
            create_bytes: 256 << 20,
            cache_bytes: CACHE_BYTES,
            value_bytes_max,
            ..Options::default()
        };
        let store = Store::open(folder.path().join("drive.kv"), options).unwrap();
        let keys: Vec<u64> = (0..KEYS).chain(value_bytes_max.map(|_| LARGE)).collect();
        let write =
            |round| keys.iter().for_each(|&key| store.store(&key.to_be_bytes(), &value_of(key, round)).unwrap());
        write(0);
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            for reader in 0..3 {
                let (store, keys, is_done) = (&store, &keys, &is_done);
                scope.spawn(move || {
                    let mut last = vec![0; LARGE as usize + 1];
                    for step in 0.. {
                        let key = keys[(step * 7 + reader * 101) % keys.len()];
                        let value =
                            store.retrieve(&key.to_be_bytes()).unwrap().expect("it is overwritten, and never gone");
                        let (found, round) = told_by(&value);
                        assert!(found == key && round >= last[key as usize], "{design}: key {key} went back");
                        last[key as usize] = round;
                        assert!(store.exist(&key.to_be_bytes()).unwrap() && !store.exist(b"none").unwrap());
                        if is_done.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            (1..=5).for_each(write);
            is_done.store(true, Ordering::Relaxed);
        });
        store.close().unwrap();
    }
}

#[test]
fn what_a_store_shows_that_is_only_read_is_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let options = |read_only| Options { read_only, cache_bytes: CACHE_BYTES, ..Options::default() };
    let store = Store::open(&path, options(false)).unwrap();
    (0..KEYS).for_each(|key| store.store(&key.to_be_bytes(), &value_of(key, 1)).unwrap());
    (0..KEYS).step_by(5).for_each(|key| assert!(store.delete(&key.to_be_bytes()).unwrap()));
    // As a kill does: what the write buffer holds is written by the next mount, and here only in memory.
    drop(store);
    let store = Store::open(&path, options(true)).unwrap();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for key in 0..KEYS {
                    let found = store.retrieve(&key.to_be_bytes()).unwrap();
                    assert_eq!(found, (key % 5 != 0).then(|| value_of(key, 1)), "key {key}");
                }
            });
        }
    });
    assert!(store.stats().unwrap().firmware.unwrap().pages_read > 0);
}
