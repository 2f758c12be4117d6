//! Hosts, a network that breaks, and a service that is killed and comes again: all of the program that is between two processes.

use kvssd_device::{CreateDrive, Drive, image_design, image_profile};
use kvssd_flash::OpenOptions;
use kvssd_host::{Error, Store, connect};
use kvssd_nvme_target::{Subsystem, SubsystemOptions};
use kvssd_runtime::thread;
use kvssd_runtime::time::{Duration, Instant};
use kvssd_world::{Failure, NetworkFaults, Options, Process, Run, World, service};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

const URL: &str = "nvme+tcp://10.0.0.1:4420/nqn.2025-01.org.kvssd:test?timeout=20";
const NQN: &str = "nqn.2025-01.org.kvssd:test";
const SERVICE: Process = Process(1);

fn create(path: &Path) {
    let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
    Drive::create(path, &profile, &design, CreateDrive::default()).unwrap().close().unwrap();
}

/// Opens the drive and serves it, until `stop` is set.
fn serve(world: &World, path: PathBuf, stop: Rc<Cell<bool>>) {
    let inner = world.clone();
    drop(world.spawn(SERVICE, "service", move || {
        let drive = Drive::open(&path, OpenOptions::default()).unwrap();
        let subsystem = Arc::new(Subsystem::new(drive, SubsystemOptions::new(NQN)));
        let listener = inner.listen("10.0.0.1:4420".parse().unwrap()).unwrap();
        service::serve(&inner, &subsystem, listener, &stop);
        subsystem.close().unwrap();
    }));
}

/// What a host knows of its own keys.
#[derive(Debug, Default)]
struct Known {
    acknowledged: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Changes that may have been made or not.
    in_doubt: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    doubts: u32,
}

impl Known {
    fn check(&self, key: &[u8], found: Option<&[u8]>) {
        let allowed = self.acknowledged.get(key).map(Vec::as_slice);
        let is_it = found == allowed
            || self.in_doubt.get(key).is_some_and(|values| values.iter().any(|value| found == Some(&value[..])));
        assert!(is_it, "{key:?}: found {found:?}, acknowledged {allowed:?}, in doubt {:?}", self.in_doubt.get(key));
    }
}

/// Changes and reads keys of its own for a while.
fn host(world: &World, number: u8, calls: u32) -> Known {
    let store = reach();
    let mut known = Known::default();
    for call in 0..calls {
        let key = vec![number, (world.random_u64() % 8) as u8];
        if world.random_u64().is_multiple_of(3) {
            match store.retrieve(&key) {
                Ok(found) => known.check(&key, found.as_deref()),
                Err(Error::Unreachable { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            continue;
        }
        let length = [10, 300, 20_000][world.random_u64() as usize % 3];
        let mut value = vec![number; length];
        value[..4].copy_from_slice(&call.to_le_bytes());
        match store.store(&key, &value) {
            Ok(()) => {
                known.in_doubt.remove(&key);
                known.acknowledged.insert(key, value);
            }
            Err(Error::InDoubt { .. } | Error::Unreachable { .. }) => {
                known.doubts += 1;
                known.in_doubt.entry(key).or_default().push(value);
            }
            Err(error) => panic!("{error}"),
        }
    }
    known
}

fn reach() -> Store {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match connect(URL) {
            Ok(store) => return store,
            Err(Error::Unreachable { .. }) if Instant::now() < until => thread::sleep(Duration::from_millis(20)),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A run of two hosts and a service that is killed some times. Gives the changes in doubt and the pairs at the end.
fn life(seed: u64, faults: NetworkFaults, kills: u32, calls: u32) -> Run<(u32, usize)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    create(&path);
    World::run(Options { network: faults, ..Options::of_seed(seed) }, move |world| {
        let stop = Rc::new(Cell::new(false));
        serve(world, path.clone(), stop.clone());
        let hosts = [2, 3].map(|number| {
            let inner = world.clone();
            world.spawn(Process(number), "host", move || host(&inner, number as u8, calls))
        });
        for _ in 0..kills {
            thread::sleep(Duration::from_nanos(2_000_000 + world.random_u64() % 20_000_000));
            world.kill(SERVICE);
            thread::sleep(Duration::from_nanos(world.random_u64() % 50_000_000));
            serve(world, path.clone(), stop.clone());
        }
        let known = hosts.map(|host| host.join().unwrap());
        world.set_network(NetworkFaults::default());
        let (store, mut pairs) = (reach(), 0);
        for known in &known {
            for key in known.acknowledged.keys().chain(known.in_doubt.keys()) {
                let found = store.retrieve(key).unwrap();
                known.check(key, found.as_deref());
                world.trace(found.as_deref().unwrap_or_default());
                pairs += usize::from(found.is_some());
            }
        }
        store.close().unwrap();
        stop.set(true);
        while world.is_alive(SERVICE) {
            thread::sleep(Duration::from_millis(100));
        }
        drop(folder);
        (known.iter().map(|known| known.doubts).sum(), pairs)
    })
}

fn breaking() -> NetworkFaults {
    NetworkFaults { cut_one_in: 60, stall_one_in: 200, refuse_one_in: 10, ..NetworkFaults::default() }
}

#[test]
fn hosts_and_a_service_meet_in_a_world() {
    let run = life(1, NetworkFaults::default(), 0, 60);
    assert_eq!(run.result.unwrap().0, 0, "nothing breaks, nothing is in doubt");
}

#[test]
fn what_was_acknowledged_is_there_after_cuts_and_kills() {
    let (mut doubts, mut pairs) = (0, 0);
    for seed in 0..20 {
        let (in_doubt, found) =
            life(seed, breaking(), 3, 60).result.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        doubts += in_doubt;
        pairs += found;
    }
    assert!(pairs > 20 * 8, "{pairs} pairs, {doubts} in doubt");
}

/// Threads that share a store ask for many values at a time, while connections break under them.
fn readers(seed: u64) -> Run<()> {
    const KEYS: u8 = 16;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    create(&path);
    World::run(Options::of_seed(seed), move |world| {
        let stop = Rc::new(Cell::new(false));
        serve(world, path, stop);
        let store = Rc::new(reach());
        (0..KEYS).for_each(|key| store.store(&[key], &[key; 3000]).unwrap());
        world.set_network(NetworkFaults { cut_one_in: 80, ..NetworkFaults::default() });
        let threads: Vec<_> = (0..6)
            .map(|_| {
                let (inner, store) = (world.clone(), store.clone());
                world.spawn(world.process(), "a reader", move || {
                    for _ in 0..60 {
                        let asked: Vec<[u8; 1]> = (0..12).map(|_| [(inner.random_u64() % 16) as u8]).collect();
                        let keys: Vec<&[u8]> = asked.iter().map(<[u8; 1]>::as_slice).collect();
                        let values = store.retrieve_many(&keys).unwrap();
                        let wanted: Vec<_> = asked.iter().map(|key| Some(vec![key[0]; 3000])).collect();
                        assert_eq!(values, wanted);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(folder);
    })
}

#[test]
fn an_answer_is_never_taken_for_that_of_a_command_on_an_older_connection() {
    for seed in 0..40 {
        readers(seed).result.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
}

#[test]
fn the_same_seed_gives_the_same_life() {
    let lives = [5, 5, 6].map(|seed| life(seed, breaking(), 2, 40));
    let told = lives.map(|life| (life.trace, life.turns, life.time, life.result.unwrap()));
    assert_eq!(told[0], told[1]);
    assert_ne!(told[0].0, told[2].0);
}

#[test]
fn a_service_that_waits_for_itself_is_told() {
    let run = World::run(Options::of_seed(1), |world| {
        let listener = world.listen("10.0.0.1:4420".parse().unwrap()).unwrap();
        let lock = Arc::new(kvssd_runtime::sync::Mutex::new(()));
        drop(world.spawn(SERVICE, "service", move || {
            let _socket = listener.accept(Duration::from_secs(100)).unwrap();
            let _first = lock.lock();
            let _second = lock.lock();
        }));
        drop(world.spawn(Process(2), "host", || {
            let socket = kvssd_runtime::net::TcpStream::connect_timeout(
                &"10.0.0.1:4420".parse().unwrap(),
                Duration::from_secs(1),
            );
            let read = std::io::Read::read(&mut socket.unwrap(), &mut [0; 8]);
            unreachable!("{read:?}");
        }));
        thread::park();
    });
    let Err(Failure::Deadlock { waiting }) = run.result else { panic!("{:?}", run.result) };
    let what: Vec<_> = waiting.iter().map(|waiting| (waiting.actor.as_str(), waiting.what)).collect();
    assert_eq!(what, [("main", "an unpark"), ("service", "a lock"), ("host", "its peer on the network")]);
}

/// cargo test -p kvssd-world --test all wire::how_fast -- --ignored --nocapture
#[test]
#[ignore = "it measures"]
fn how_fast_it_is() {
    let (begin, mut turns, mut seconds) = (std::time::Instant::now(), 0, 0.0);
    let lives = 2000;
    for seed in 100..100 + lives {
        let run = life(seed, breaking(), 2, 60);
        run.result.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        turns += run.turns;
        seconds += run.time.as_secs_f64();
    }
    let took = begin.elapsed().as_secs_f64();
    println!(
        "{:.1} lives/s, {:.2} M turns/s, {:.0} s of the world in {took:.1} s",
        f64::from(lives as u32) / took,
        turns as f64 / took / 1e6,
        seconds
    );
}
