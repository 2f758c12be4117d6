//! What a thread has read of a store with `sync` outlives the machine: it was not shown before it was on the disk.

use kvssd_designs::ORIGINAL;
use kvssd_flash::SimulatedDisk;
use kvssd_host::{
    CacheAttributes, CachePlan, EvictionPolicy, Missing, NamespaceAttributes, Options as StoreOptions, Store,
};
use kvssd_runtime::thread;
use kvssd_runtime::time::Duration;
use kvssd_types::NamespaceId;
use kvssd_world::lives::{Hardware, Machine, PATH};
use kvssd_world::{Options, Process, World};
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

const PROGRAM: Process = Process(1);

fn open(machine: &Machine) -> Store {
    let options = StoreOptions { missing: Missing::Fail, sync: true, ..StoreOptions::default() };
    Store::open_in(&machine.files(), Path::new(PATH), &options).unwrap()
}

/// What a reader may look at.
type Look = fn(&Store) -> bool;

const LOOKS: [Look; 4] = [
    |store| store.retrieve(b"key").unwrap().is_some(),
    |store| store.exist(b"key").unwrap(),
    |store| !store.list(None, 10).unwrap().is_empty(),
    |store| store.namespace_at(NamespaceId::FIRST).count().unwrap() > 0 && store.exist(b"key").unwrap(),
];

/// What happens to a store, and how a reader comes to know of it.
#[derive(Clone, Copy)]
struct Story {
    before: fn(&Store),
    change: fn(&Store),
    is_seen: Look,
    lasts: Look,
}

/// Lets the machine stop just when a reader has seen the change.
fn stops(seed: u64, Story { before, change, is_seen, lasts }: Story) {
    let machine = Machine::new(SimulatedDisk::new(seed), vec![PROGRAM]);
    let hardware = Hardware::tiny(&ORIGINAL, true, false, false);
    let Hardware { design, profile, create, .. } = hardware;
    drop(kvssd_device::Drive::create_in(&machine.disk().files(), Path::new(PATH), &profile, &design, create).unwrap());
    machine.disk().kill();
    let run = World::run(Options { loses_turn_one_in: 2, ..Options::of_seed(seed) }, move |world| {
        let (inner, seen, of) = (world.clone(), Rc::new(Cell::new(false)), machine.clone());
        let has_seen = seen.clone();
        drop(world.spawn(PROGRAM, "program", move || {
            let store = Rc::new(open(&of));
            before(&store);
            let its = store.clone();
            drop(inner.spawn(PROGRAM, "writer", move || change(&its)));
            while !is_seen(&store) {
                thread::yield_now();
            }
            has_seen.set(true);
            of.disk().lose_power();
            inner.kill(PROGRAM);
        }));
        while world.is_alive(PROGRAM) {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(seen.get());
        assert!(lasts(&open(&machine)), "it was seen, and is lost");
    });
    run.result.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
}

#[test]
fn what_was_read_is_there_after_the_machine_stopped() {
    for is_seen in LOOKS {
        let story = Story {
            // The first commit keeps the partition while it waits for the disk, and later ones do not.
            before: |store| {
                store.store(b"another", b"").unwrap();
                assert!(store.delete(b"another").unwrap());
            },
            change: |store| store.store(b"key", &[7; 3000]).unwrap(),
            is_seen,
            lasts: |store| store.retrieve(b"key").unwrap() == Some(vec![7; 3000]),
        };
        (0..60).for_each(|seed| stops(seed, story));
    }
}

/// The cache of a store.
const CACHE: NamespaceId = NamespaceId(2);

/// Ways to see that a key has left it.
const HAS_LEFT: [Look; 2] = [
    |store| store.namespace_at(CACHE).retrieve(b"old").unwrap().is_none(),
    |store| !store.namespace_at(CACHE).exist(b"old").unwrap(),
];

#[test]
fn who_was_seen_to_have_left_a_cache_does_not_come_back() {
    for is_seen in HAS_LEFT {
        let story = Story {
            before: |store| {
                let plan = CachePlan { budget_bytes: 4000, eviction: EvictionPolicy::FIFO, admission: Vec::new() };
                let cache = Some(CacheAttributes { plan, time_to_live_ms: None });
                let made = store.create_namespace(NamespaceAttributes { cache, ..NamespaceAttributes::PLAIN }).unwrap();
                assert_eq!(made.id(), CACHE);
                made.store(b"old", &[7; 3000]).unwrap();
            },
            change: |store| store.namespace_at(CACHE).store(b"new", &[8; 3000]).unwrap(),
            is_seen,
            lasts: HAS_LEFT[0],
        };
        (0..60).for_each(|seed| stops(seed, story));
    }
}

/// Another, where lists are.
const IS_NOT_LISTED: Look =
    |store| !store.namespace_at(CACHE).list(None, 10).unwrap().iter().any(|key| **key == *b"old");

/// Makes a cache of that budget and that time to live of what there is.
fn set(store: &Store, budget_bytes: u64, time_to_live_ms: Option<u64>) {
    let plan = CachePlan { budget_bytes, eviction: EvictionPolicy::FIFO, admission: Vec::new() };
    store.namespace_at(CACHE).set_cache(Some(&CacheAttributes { plan, time_to_live_ms })).unwrap();
}

/// Behind a command that makes a cache smaller the first read looks which pairs are there, and lets some leave.
#[test]
fn who_has_left_a_cache_by_a_read_does_not_come_back() {
    let smaller: fn(&Store) = |store| set(store, 4000, None);
    let older: fn(&Store) = |store| {
        set(store, 100_000, Some(5));
        thread::sleep(Duration::from_millis(10));
    };
    for change in [smaller, older] {
        for is_seen in HAS_LEFT.into_iter().chain([IS_NOT_LISTED]) {
            let story = Story {
                before: |store| {
                    let made = store.create_namespace(NamespaceAttributes::PLAIN).unwrap();
                    assert_eq!(made.id(), CACHE);
                    set(store, 100_000, None);
                    made.store(b"old", &[7; 3000]).unwrap();
                    made.store(b"new", &[8; 3000]).unwrap();
                },
                change,
                is_seen,
                lasts: |store| {
                    set(store, 100_000, None);
                    HAS_LEFT[0](store)
                },
            };
            (0..20).for_each(|seed| stops(seed, story));
        }
    }
}

/// What there is of the key when the program that stores it was killed at a call of its disk, and the image is opened again; then after the machine
/// stopped.
fn found_twice(seed: u64, call: u64, read_only: bool) -> [Option<Vec<u8>>; 2] {
    let disk = SimulatedDisk::new(seed);
    let Hardware { design, profile, create, .. } = Hardware::tiny(&ORIGINAL, true, false, false);
    drop(kvssd_device::Drive::create_in(&disk.files(), Path::new(PATH), &profile, &design, create).unwrap());
    disk.kill();
    let open = |read_only| {
        let options = StoreOptions { missing: Missing::Fail, sync: true, read_only, ..StoreOptions::default() };
        Store::open_in(&disk.files(), Path::new(PATH), &options)
    };
    let store = open(false).unwrap();
    disk.strike(disk.calls() + call, kvssd_flash::Strike::KillAfter);
    let _ = store.store(b"key", &[7; 3000]);
    disk.kill();
    let first = open(read_only).unwrap().retrieve(b"key").unwrap();
    disk.lose_power();
    [first, open(false).unwrap().retrieve(b"key").unwrap()]
}

#[test]
fn what_a_killed_program_left_is_durable_before_the_next_one_shows_it() {
    let mut seen = 0;
    for (seed, call) in (0..20).flat_map(|seed| (0..40).map(move |call| (seed, call))) {
        let read_only = seed % 2 == 0;
        let [first, second] = found_twice(seed, call, read_only);
        assert!(
            first == second,
            "seed {seed}, killed after call {call}, read only {read_only}: it was shown, and is lost"
        );
        seen += u32::from(first.is_some());
    }
    assert!(seen > 0);
}
