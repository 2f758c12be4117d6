//! Threads that look go side by side, and one that changes goes between them.

use crate::designs;
use kvssd_host::{Missing, Options, Store};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const KEYS: u64 = 300;
/// Fewer than the pairs take, so that some are read from the file and others leave.
const CACHE_BYTES: u64 = 1 << 20;

/// A value that tells whose it is and how often it was written, in every piece; large ones have several segments.
fn value_of(key: u64, round: u64) -> Vec<u8> {
    let words = [40, 700, 1_300, 9_000][(key % 4) as usize];
    let words = if key == 3 { 400_000 } else { words };
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
        let keys: Vec<u64> = (0..KEYS).filter(|&key| key != 3 || value_bytes_max.is_some()).collect();
        let write =
            |round| keys.iter().for_each(|&key| store.store(&key.to_be_bytes(), &value_of(key, round)).unwrap());
        write(0);
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            for reader in 0..3 {
                let (store, keys, is_done) = (&store, &keys, &is_done);
                scope.spawn(move || {
                    let mut last = vec![0; KEYS as usize];
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
