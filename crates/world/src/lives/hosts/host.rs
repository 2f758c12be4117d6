//! A host: threads that call one store for a while, and then another. And a crowd of them, each of which comes, makes a change, and is gone.

use super::{Common, MILLISECOND};
use crate::Process;
use crate::lives::caller::{Caller, Step, Wire};
use crate::lives::conditions::Conditions;
use kvssd_host::{Error, NamespaceId, Store, connect};
use kvssd_runtime::thread;
use kvssd_runtime::time::{Duration, Instant};
use kvssd_types::Random;
use std::rc::Rc;

/// The last host.
pub(super) const JUDGE: Process = Process(9);
/// Those who come for one change.
pub(super) const CROWD: Process = Process(8);
/// How many of them are there at a time.
const CROWD_SIZE: u64 = 16;
/// Stores that are opened where all clients are remembered, and where not. Who tries twice to open one is two clients.
const CLIENTS: u64 = 200;
const CROWDED_CLIENTS: u64 = 1500;
/// How long a list of keys may be, beyond what values may take.
const LIST_BYTES: u64 = 128 << 10;
/// The largest value where values are large.
const LARGE_BYTES: u64 = 200_000;

/// Starts a host.
pub(super) fn begin(common: &Rc<Common>, process: Process, seed: u64) {
    common.report.borrow_mut().lives += 1;
    let (inner, mut random) = (common.clone(), Random::new(seed));
    drop(common.world.spawn(process, "host", move || {
        let threads = 1 + random.below(3);
        while !inner.is_over.get() {
            let Some(store) = reach(&inner) else { return };
            use_store(&inner, store, threads, &mut random);
        }
    }));
}

/// Starts those who come for one change, so that the drive forgets others.
pub(super) fn begin_crowd(common: &Rc<Common>, random: &mut Random) {
    for _ in 0..CROWD_SIZE {
        let (inner, seed) = (common.clone(), random.bits());
        drop(common.world.spawn(CROWD, "one of a crowd", move || {
            let mut random = Random::new(seed);
            while !inner.is_over.get() {
                let Some(store) = reach(&inner) else { return };
                call(&inner, &store, random.bits(), 1);
                end(&inner, store);
            }
        }));
    }
}

/// Ends a store in order.
fn end(common: &Common, store: Store) {
    let began = Instant::now();
    match store.close() {
        Ok(()) => {}
        Err(Error::Io { .. }) if common.excuses.is_failure(began) => {}
        Err(error) => common.book.borrow_mut().fail(format!("a store cannot be closed: {error}")),
    }
}

/// Several threads of a host call a store for a while.
fn use_store(common: &Rc<Common>, store: Store, threads: u64, random: &mut Random) {
    let (store, acts) = (Rc::new(store), 10 + random.below(300));
    let mut others = Vec::new();
    for _ in 1..threads {
        let (inner, store, seed) = (common.clone(), store.clone(), random.bits());
        let world = &common.world;
        others.push(world.spawn(world.process(), "a thread of a host", move || call(&inner, &store, seed, acts)));
    }
    call(common, &store, random.bits(), acts);
    for other in others {
        let _ = other.join();
    }
    if random.below(2) == 0
        && let Ok(store) = Rc::try_unwrap(store)
    {
        end(common, store);
    }
}

fn call(common: &Common, store: &Store, seed: u64, acts: u64) {
    let mut caller = caller(common, seed);
    for _ in 0..acts {
        if common.is_over.get() || common.book.borrow().has_failed() {
            return;
        }
        if let Step::Ended(error) = caller.step(store, store.own_namespace()) {
            common.book.borrow_mut().fail(format!("a host is told: {error}"));
        }
        look_at_memory(common);
        if caller.random.below(16) == 0 {
            thread::sleep(Duration::from_nanos(caller.random.below(2 * MILLISECOND)));
        }
    }
}

fn caller(common: &Common, seed: u64) -> Caller {
    let Conditions { keys, has_large_values, time_max, .. } = common.conditions;
    let wire = Wire { time_max, excuses: common.excuses.clone() };
    Caller {
        book: common.book.clone(),
        random: Random::new(seed),
        keys,
        large_one_in: if has_large_values { 48 } else { 0 },
        large_bytes: LARGE_BYTES,
        wire: Some(wire),
    }
}

/// Whether the target holds to its bounds.
fn look_at_memory(common: &Common) {
    let Some(subsystem) = common.subsystem.borrow().upgrade() else { return };
    let ((taken, given), value_bytes_max) = (subsystem.values_bytes(), subsystem.value_bytes_max());
    let bytes_max = subsystem.limits().values_bytes_max;
    if taken > bytes_max.max(value_bytes_max) || given > bytes_max + value_bytes_max.max(LIST_BYTES) {
        common.book.borrow_mut().fail(format!("the target holds {taken} and {given} B of {bytes_max}"));
    }
    common.recognized.set(subsystem.recognized());
}

/// A store on the wire; none when it is over before there is one.
fn reach(common: &Common) -> Option<Store> {
    let is_judge = common.world.process() == JUDGE;
    let clients_max = if common.conditions.is_crowded { CROWDED_CLIENTS } else { CLIENTS };
    common.stores.set(common.stores.get() + 1);
    if common.stores.get() > clients_max && !is_judge {
        return None;
    }
    while (!common.is_over.get() || is_judge) && !common.book.borrow().has_failed() {
        let began = Instant::now();
        common.excuses.come();
        match connect(&common.conditions.url) {
            Ok(store) => return Some(store),
            Err(Error::Unreachable { .. }) => thread::sleep(Duration::from_millis(5)),
            Err(Error::Io { .. }) if common.excuses.is_failure(began) => thread::sleep(Duration::from_millis(5)),
            Err(error) => {
                common.book.borrow_mut().fail(format!("a host is not let in: {error}"));
                return None;
            }
        }
    }
    None
}

/// The last host: it looks at everything.
pub(super) fn judge(common: &Rc<Common>, seed: u64) {
    let Some(store) = reach(common) else { return };
    let (mut caller, namespace) = (caller(common, seed), store.own_namespace());
    for number in 0..common.conditions.keys {
        caller.retrieve(namespace, (NamespaceId::FIRST.0, number));
    }
    caller.list(namespace);
    look_at_memory(common);
    end(common, store);
}
