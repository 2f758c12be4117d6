//! Exactly once, or told: hosts through connections that are cut, and a service that is killed and started again.
//!
//! Every call of every host is written down with its begin and its end; per key they are linearizable ([`kvssd_world::linear`]), where what is in doubt takes
//! effect once at any later moment, or never.

mod proxy;
mod service;

use kvssd_host::{Batch, Error, Store, connect};
use kvssd_types::Random;
use kvssd_world::linear::{Call, Content, check_all};
use proxy::{Cut, Proxy};
use service::Service;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

const HOSTS: u64 = 8;

/// What is done to hosts, and how much of it.
#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    calls: u64,
    keys: u64,
    /// Between two cuts.
    cut_ms: u64,
    /// Between two kills.
    kill_ms: u64,
    /// By TLS.
    is_secure: bool,
}

/// What was seen.
#[derive(Debug, Default)]
struct Seen {
    calls: AtomicU64,
    cuts: AtomicU64,
    kills: AtomicU64,
    recognized: AtomicU64,
    in_doubt: AtomicU64,
    /// Calls that the service was not reached for: nothing was done.
    unreachable: AtomicU64,
}

/// A value with its number in it, of a length of its own.
fn value(number: u64) -> Vec<u8> {
    let length = match number % 100 {
        0 => 150_000,
        1..10 => 5_000,
        few => 8 + few as usize,
    };
    number.to_le_bytes().into_iter().chain((8..length).map(|at| (at as u64 ^ number) as u8)).collect()
}

/// The number of a value, which is whole.
fn number_of(found: Option<Vec<u8>>) -> Content {
    let found = found?;
    let number = u64::from_le_bytes(found[..8].try_into().unwrap());
    assert!(found == value(number), "a value that nobody has stored");
    Some(number)
}

/// A host, and what it has seen.
struct Host<'r> {
    store: Store,
    random: Random,
    /// The first of its values, counted up.
    next: u64,
    keys: u64,
    began: Instant,
    calls: Vec<(u64, Call)>,
    seen: &'r Seen,
}

impl Host<'_> {
    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Writes calls down that began at `began` and ended now.
    fn note(&mut self, calls: impl IntoIterator<Item = (u64, Call)>, error: Option<Error>) {
        let before = self.calls.len();
        match error {
            None => self.calls.extend(calls),
            Some(Error::InDoubt { .. }) => {
                self.seen.in_doubt.fetch_add(1, Ordering::Relaxed);
                self.calls.extend(calls.into_iter().map(|(key, call)| (key, call.in_doubt())));
            }
            Some(Error::Unreachable { .. }) => {
                self.seen.unreachable.fetch_add(1, Ordering::Relaxed);
            }
            Some(error) => panic!("{error}"),
        }
        self.seen.calls.fetch_add((self.calls.len() - before) as u64, Ordering::Relaxed);
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn step(&mut self) {
        let key = self.random.below(self.keys);
        let began = self.now();
        match self.random.below(100) {
            0..40 => {
                let number = self.number();
                let error = self.store.store(&key.to_le_bytes(), &value(number)).err();
                self.note([(key, Call::store(number, began, self.now()))], error);
            }
            40..85 => {
                let found = self.store.retrieve(&key.to_le_bytes());
                let (found, error) = (found.clone().ok(), found.err());
                self.note(found.map(|found| (key, Call::retrieve(number_of(found), began, self.now()))), error);
            }
            85..97 => {
                let deleted = self.store.delete(&key.to_le_bytes());
                let (was_there, error) = (*deleted.as_ref().unwrap_or(&true), deleted.err());
                self.note([(key, Call::delete(was_there, began, self.now()))], error);
            }
            _ => self.bulk(key, began),
        }
    }

    /// Stores under way side by side. When one is in doubt all are, for nobody says which ones were done.
    fn bulk(&mut self, key: u64, began: u64) {
        let pairs: Vec<(u64, u64)> = (0..8).map(|more| ((key + more) % self.keys, self.number())).collect();
        let mut batch = Batch::new();
        for (key, number) in &pairs {
            batch.store(&key.to_le_bytes(), &value(*number));
        }
        let error = match self.store.bulk(&batch).err() {
            Some(Error::Unreachable { why }) => Some(Error::InDoubt { why }),
            other => other,
        };
        let ended = self.now();
        self.note(pairs.into_iter().map(|(key, number)| (key, Call::store(number, began, ended))), error);
    }
}

/// Waits until the hosts have made so many more calls, but not for longer than that. On a busy machine nothing would get through
/// otherwise, between one cut and the next.
fn wait_for_calls(seen: &Seen, calls: u64, at_most: Duration, is_over: &dyn Fn() -> bool) {
    let (begin, wanted) = (Instant::now(), seen.calls.load(Ordering::Relaxed) + calls);
    while !is_over() && seen.calls.load(Ordering::Relaxed) < wanted && begin.elapsed() < at_most {
        sleep(Duration::from_millis(1));
    }
}

/// Cuts connections until the hosts are through.
fn cut(plan: &Plan, proxy: &Proxy, seen: &Seen, is_over: &dyn Fn() -> bool) {
    let mut random = Random::new(plan.seed);
    while !is_over() {
        wait_for_calls(seen, 20, Duration::from_secs(1), is_over);
        sleep(Duration::from_millis(1 + random.below(2 * plan.cut_ms)));
        let how = Cut::ALL[random.below(3) as usize];
        let was_there = proxy.cut(random.below(1 << 20) as usize, how);
        seen.cuts.fetch_add(was_there.into(), Ordering::Relaxed);
    }
}

/// Kills the service and starts it again until the hosts are through; gives the last one.
fn kill(plan: &Plan, folder: &Path, proxy: &Proxy, seen: &Seen, is_over: &dyn Fn() -> bool) -> Service {
    let mut random = Random::new(plan.seed + 1);
    let mut service = Service::start(folder);
    proxy.lead_to(Some(service.address));
    loop {
        wait_for_calls(seen, 300, Duration::from_secs(10), is_over);
        let until = Instant::now() + Duration::from_millis(1 + random.below(2 * plan.kill_ms));
        while Instant::now() < until {
            if is_over() {
                seen.recognized.fetch_add(service.recognized(), Ordering::Relaxed);
                return service;
            }
            sleep(Duration::from_millis(5));
        }
        seen.recognized.fetch_add(service.recognized(), Ordering::Relaxed);
        service.kill();
        seen.kills.fetch_add(1, Ordering::Relaxed);
        proxy.lead_to(None);
        // Now and then it is away for longer than some hosts wait.
        if random.below(8) == 0 {
            sleep(Duration::from_millis(1300));
        }
        service = Service::start(folder);
        proxy.lead_to(Some(service.address));
    }
}

fn run(plan: Plan) -> Seen {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    Service::create(folder, "--size 256MiB");
    let more = if plan.is_secure { Service::secure(folder) } else { String::new() };
    let (proxy, seen) = (Proxy::new(), Seen::default());
    let began = Instant::now();
    let is_over = || seen.calls.load(Ordering::Relaxed) >= plan.calls;
    let url =
        |timeout: u64| format!("nvme+tcp://{}/nqn.2025-01.org.kvssd:drive?timeout={timeout}{more}", proxy.address);
    let mut calls = scope(|scope| {
        let killer = scope.spawn(|| kill(&plan, folder, &proxy, &seen, &is_over));
        scope.spawn(|| cut(&plan, &proxy, &seen, &is_over));
        let host = |number: u64| {
            // Two of them do not wait for long.
            let url = url(if number < 2 { 1 } else { 30 });
            let store = loop {
                match connect(&url) {
                    Ok(store) => break store,
                    Err(_) => sleep(Duration::from_millis(20)),
                }
            };
            let (random, next) = (Random::new(plan.seed * 100 + number), (number + 1) << 40);
            let mut host = Host { store, random, next, keys: plan.keys, began, calls: Vec::new(), seen: &seen };
            while !is_over() {
                host.step();
            }
            host.calls
        };
        let hosts: Vec<_> = (0..HOSTS).map(|number| scope.spawn(move || host(number))).collect();
        let calls: Vec<(u64, Call)> = hosts.into_iter().flat_map(|host| host.join().unwrap()).collect();
        killer.join().unwrap().kill();
        calls
    });
    // What is there in the end, after one more life.
    let mut service = Service::start(folder);
    let store = connect(&format!("nvme+tcp://{}/?ns=1{more}", service.address)).unwrap();
    for key in 0..plan.keys {
        let began_call = began.elapsed().as_nanos() as u64;
        let found = number_of(store.retrieve(&key.to_le_bytes()).unwrap());
        calls.push((key, Call::retrieve(found, began_call, began.elapsed().as_nanos() as u64)));
    }
    drop(store);
    service.kill();
    Service::check(folder);
    println!("{plan:?}: {seen:?} in {:.1} s", began.elapsed().as_secs_f64());
    let (violations, checked) = check_all(&calls);
    for (key, history, violation) in violations.iter().take(3) {
        println!("key {key}: {violation:?}");
        for &number in &violation.under_way {
            println!("  {:?}", history[number]);
        }
    }
    assert_eq!(violations.len(), 0, "keys that are not linearizable");
    assert!(checked as u64 >= plan.calls);
    seen
}

#[test]
fn hosts_through_cut_connections_and_a_killed_service_are_linearizable() {
    let seen = run(Plan { seed: 1, calls: 60_000, keys: 40, cut_ms: 10, kill_ms: 200, is_secure: false });
    assert!(seen.cuts.load(Ordering::Relaxed) > 20 && seen.kills.load(Ordering::Relaxed) > 0, "{seen:?}");
    assert!(seen.recognized.load(Ordering::Relaxed) > 0, "no change came again: {seen:?}");
}

#[test]
fn hosts_by_tls_through_cut_connections_and_a_killed_service_are_linearizable() {
    let seen = run(Plan { seed: 3, calls: 20_000, keys: 40, cut_ms: 20, kill_ms: 200, is_secure: true });
    assert!(seen.cuts.load(Ordering::Relaxed) > 20 && seen.kills.load(Ordering::Relaxed) > 0, "{seen:?}");
    assert!(seen.recognized.load(Ordering::Relaxed) > 0, "no change came again: {seen:?}");
}

#[test]
#[ignore = "10^6 calls take minutes"]
fn a_million_calls_through_cut_connections_and_a_killed_service_are_linearizable() {
    run(Plan { seed: 2, calls: 1_000_000, keys: 200, cut_ms: 15, kill_ms: 3000, is_secure: false });
}

#[test]
fn a_put_whose_answer_is_lost_is_not_made_again_behind_a_newer_one() {
    let folder = tempfile::tempdir().unwrap();
    Service::create(folder.path(), "--size 64MiB --value-bytes-max 8MiB");
    let mut service = Service::start(folder.path());
    let proxy = Proxy::new();
    let (large, small) = (vec![7; 5 << 20], b"old".to_vec());
    for (is_killed, old) in [(false, &small), (true, &small), (false, &large), (true, &large)] {
        proxy.lead_to(Some(service.address));
        let first = connect(&format!("nvme+tcp://{}/nqn.2025-01.org.kvssd:drive", proxy.address)).unwrap();
        let other = connect(&format!("nvme+tcp://{}", service.address)).unwrap();
        other.store(b"key", b"before").unwrap();
        scope(|scope| {
            // No answer comes back, and nobody gets through, until another host has stored something newer.
            proxy.hush();
            let put = scope.spawn(|| first.store(b"key", old));
            let begin = Instant::now();
            while other.retrieve(b"key").unwrap().as_ref() != Some(old) {
                assert!(begin.elapsed() < Duration::from_secs(120), "it was never made");
            }
            other.store(b"key", b"newer").unwrap();
            if is_killed {
                service.kill();
                service = Service::start(folder.path());
                proxy.lead_to(Some(service.address));
            }
            proxy.release();
            put.join().unwrap().unwrap();
        });
        let again = connect(&format!("nvme+tcp://{}", service.address)).unwrap();
        assert_eq!(again.retrieve(b"key").unwrap().unwrap(), b"newer", "killed: {is_killed}, {} bytes", old.len());
        assert_eq!(service.recognized(), 1 + u64::from(!is_killed && old.len() > 3));
    }
}
