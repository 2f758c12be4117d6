//! Thousands of synced puts in each life of a store, and a look at all of them in the next. What a life is, the test says.

use kvssd_host::Store;
use kvssd_types::Random;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::thread;

/// Lives of each design, where there is time.
pub const LIVES_LONG: u32 = 200;

const PUTS: u64 = 3000;
const KEYS: u64 = 3000;
const SIZES: [usize; 3] = [10, 100, 1000];

/// How the lives of a store begin and end.
pub trait Life {
    /// The store, as it is found.
    fn begin(&mut self) -> Store;
    /// Ends the life in order.
    fn end(&mut self, store: Store);
}

/// Lets a store live so often, and once more to be looked at.
pub fn outlive(lives: u32, life: &mut impl Life) {
    let mut pairs: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut random = Random::new(16);
    for number in 0..=lives {
        let store = life.begin();
        let keys: Vec<&[u8]> = pairs.keys().map(Vec::as_slice).collect();
        let found = store.retrieve_many(&keys).unwrap_or_else(|error| panic!("life {number}: {error}"));
        for ((key, value), found) in pairs.iter().zip(found) {
            assert!(found.as_ref() == Some(value), "life {number}: {} is not as it was", key.escape_ascii());
        }
        assert_eq!(store.keys(None).count(), pairs.len(), "life {number}: there are others");
        for _ in 0..if number < lives { PUTS } else { 0 } {
            let key = format!("k{:05}", random.below(KEYS)).into_bytes();
            let length = SIZES[random.below(SIZES.len() as u64) as usize];
            let value: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            store.store(&key, &value).unwrap_or_else(|error| panic!("life {number}: {error}"));
            pairs.insert(key, value);
        }
        life.end(store);
    }
}

/// Every design that takes keys, side by side; a failure names it.
pub fn of_every_design(live: impl Fn(&'static str) + Sync) {
    let (designs, live) = (kvssd_designs::DESIGNS.map(|design| design.name), &live);
    thread::scope(|scope| {
        let running = designs.map(|name| {
            let thread = thread::Builder::new().name(name.to_owned());
            thread.spawn_scoped(scope, move || live(name)).expect("a thread starts")
        });
        running.into_iter().for_each(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic)));
    });
}
