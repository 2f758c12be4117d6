//! Hosts on a network that breaks, and a service that is killed at any call of its disk and comes again.
//!
//! ```text
//!   host 10   threads: Caller -> kvssd_host ---\   cut, late,      service: kvssd_nvme_target -> Drive -> image -> Machine -> SimulatedDisk
//!   host 11   ...                            ---- refused, ------     ^ killed at a call or a moment, its machine stopped, or ended in order
//!   host 12   killed now and then            ---/  stalled            |
//!                |                                                  main: starts it again, checks the image now and then
//!                +---> Book: each key by itself must be explained at the end
//! ```

use super::book::SharedBook;
use super::caller::{Caller, Step};
use super::hardware::Hardware;
use super::machine::Machine;
use super::program::PATH;
use super::report::{Loss, Report};
use crate::{NetworkFaults, Options, Process, World, service};
use kvssd_device::Drive;
use kvssd_flash::{OpenOptions, SimulatedDisk, Strike};
use kvssd_ftl::Design;
use kvssd_host::{Error, NamespaceId, Store, connect};
use kvssd_nvme_target::{Limits, Subsystem, SubsystemOptions};
use kvssd_runtime::thread;
use kvssd_runtime::time::{Duration, Instant};
use kvssd_types::Random;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Weak};

const NQN: &str = "nqn.2025-01.org.kvssd:test";
const ADDRESS: &str = "10.0.0.1:4420";
const SERVICE: Process = Process(1);
/// The last host; hosts come before.
const JUDGE: Process = Process(9);
const FIRST_HOST: u32 = 10;
/// Lives of a service before there is another drive.
const LIVES: u64 = 12;
/// The next call of the disk that is struck is among so many.
const HORIZONS: [u64; 3] = [60, 600, 3000];
/// How long a life of the service may be.
const MOMENTS_MS: [u64; 4] = [8, 20, 20, 60];
/// A close makes about so many calls.
const CLOSE_CALLS: u64 = 90;
/// After one of so many lives the whole drive is checked.
const CHECKS: u64 = 5;
/// Clients that a drive remembers for sure.
const CLIENTS: u64 = 200;
/// How long a list of keys may be, beyond what values may take.
const LIST_BYTES: u64 = 128 << 10;
/// The largest value where values are large.
const LARGE_BYTES: u64 = 200_000;
const MILLISECOND: u64 = 1_000_000;

/// What a world is like.
#[derive(Clone, Debug)]
struct Conditions {
    sync: bool,
    has_large_values: bool,
    hosts: u32,
    keys: usize,
    time_max: Duration,
    url: String,
    network: NetworkFaults,
    limits: Limits,
}

/// What all of a world know.
struct Common {
    world: World,
    book: SharedBook,
    machine: Machine,
    conditions: Conditions,
    report: Rc<RefCell<Report>>,
    subsystem: RefCell<Weak<Subsystem>>,
    /// Changes that this life of the service recognized.
    recognized: Cell<u64>,
    /// Hosts end.
    is_over: Cell<bool>,
    connects: Cell<u64>,
}

/// Lets the drive with that seed live.
///
/// # Errors
/// What was lost.
pub fn run(design: &Design, seed: u64, report: &mut Report) -> Result<(), Loss> {
    let mut random = Random::new(seed);
    let conditions = Conditions::random(&mut random);
    let Conditions { sync, has_large_values, network, .. } = conditions;
    let hardware = Hardware::tiny(design, sync, has_large_values, random.below(3) == 0);
    let hardware = hardware.expect("every design fits the drives of the world");
    let machine = Machine::new(SimulatedDisk::new(random.bits()), vec![SERVICE]);
    let disk = machine.disk().clone();
    let (book, told) = (SharedBook::default(), Rc::new(RefCell::new(Report::default())));
    let options = Options { network, turns_max: 30_000_000, ..Options::of_seed(random.bits()) };
    let (its_book, its_report) = (book.clone(), told.clone());
    let run = World::run(options, move |world| {
        let common = Rc::new(Common {
            world: world.clone(),
            book: its_book,
            machine,
            conditions,
            report: its_report,
            subsystem: RefCell::default(),
            recognized: Cell::default(),
            is_over: Cell::new(false),
            connects: Cell::new(0),
        });
        let Hardware { design, profile, create, .. } = &hardware;
        let made = Drive::create_in(&common.machine.disk().files(), Path::new(PATH), profile, design, *create);
        drop(made.expect("an empty disk has room for a drive"));
        direct(&common, &mut random);
    });
    let told = told.take();
    *report += Report {
        trace: run.trace,
        doubts: book.borrow().doubts(),
        acts: book.borrow().calls(),
        calls: disk.calls(),
        ..told
    };
    if let Err(failure) = run.result {
        book.borrow_mut().fail(failure.to_string());
    }
    book.borrow().check(seed)?;
    report.drives += 1;
    Ok(())
}

impl Conditions {
    fn random(random: &mut Random) -> Conditions {
        let (sync, has_large_values) = (random.below(2) == 0, random.below(4) == 0);
        let one_of = |random: &mut Random, some: &[u32]| some[random.below(some.len() as u64) as usize];
        let seconds = one_of(random, &[1, 2, 5, 20]);
        let (depth, digest) =
            (one_of(random, &[1, 2, 8, 128]), ["none", "header", "header,data"][random.below(3) as usize]);
        let network = NetworkFaults {
            cut_one_in: one_of(random, &[0, 40, 150, 600]),
            stall_one_in: one_of(random, &[0, 150, 600]),
            stall_ns: MILLISECOND * u64::from(one_of(random, &[20, 1000, 20_000])),
            refuse_one_in: one_of(random, &[0, 3, 10]),
            ..NetworkFaults::default()
        };
        let values_bytes_max = [32 << 10, 1 << 20, 1 << 30][random.below(3) as usize];
        let connections_max = one_of(random, &[24, 128]) as usize;
        let limits = Limits { values_bytes_max, connections_max, ..Limits::default() };
        Conditions {
            sync,
            has_large_values,
            hosts: 2 + random.below(7) as u32,
            keys: 4 + random.below(20) as usize,
            time_max: Duration::from_secs(seconds.into()),
            url: format!("nvme+tcp://{ADDRESS}/{NQN}?timeout={seconds}&depth={depth}&digest={digest}"),
            network,
            limits,
        }
    }
}

/// The main actor: what befalls the service and the hosts, and the look at everything in the end.
fn direct(common: &Rc<Common>, random: &mut Random) {
    let world = common.world.clone();
    for host in 0..common.conditions.hosts {
        begin_host(common, Process(FIRST_HOST + host), random.bits());
    }
    for life in 0..LIVES {
        befall(common, random, life + 1 == LIVES);
        if common.book.borrow().has_failed() {
            return;
        }
        if random.below(CHECKS) == 0 {
            check(common);
        }
        thread::sleep(Duration::from_nanos(random.below(30 * MILLISECOND)));
        if random.below(3) == 0 {
            let host = Process(FIRST_HOST + random.below(common.conditions.hosts.into()) as u32);
            world.kill(host);
            common.report.borrow_mut().kills += 1;
            begin_host(common, host, random.bits());
        }
    }
    world.set_network(NetworkFaults::default());
    common.is_over.set(true);
    let stop = begin_service(common);
    let hosts = || (0..common.conditions.hosts).any(|host| world.is_alive(Process(FIRST_HOST + host)));
    while hosts() && !common.book.borrow().has_failed() {
        thread::sleep(Duration::from_millis(1));
    }
    let (inner, seed) = (common.clone(), random.bits());
    let judged = world.spawn(JUDGE, "judge", move || judge(&inner, seed));
    let _ = judged.join();
    stop.set(true);
    end_of_service(common, Duration::from_secs(60), "the service does not end");
    common.machine.disk().kill();
    check(common);
}

/// A life of the service, to its end.
fn befall(common: &Rc<Common>, random: &mut Random, is_last: bool) {
    let disk = common.machine.disk().clone();
    let kind = random.below(10);
    if kind < 6 {
        let horizon = HORIZONS[random.below(3) as usize];
        plan(common, random, horizon);
    }
    let stop = begin_service(common);
    let most = MILLISECOND * if random.below(200) == 0 { 20_000 } else { MOMENTS_MS[random.below(4) as usize] };
    let until = Instant::now() + Duration::from_nanos(MILLISECOND / 4 + random.below(most));
    while common.world.is_alive(SERVICE) && Instant::now() < until && !common.book.borrow().has_failed() {
        thread::sleep(Duration::from_micros(500));
        if random.below(150) == 0 {
            common.world.cut_connections();
        }
    }
    if kind >= 8 && !is_last {
        if random.below(2) == 0 {
            disk.spare();
            plan(common, random, CLOSE_CALLS);
        }
        stop.set(true);
        end_of_service(common, Duration::from_secs(60), "the service does not end");
    } else {
        common.world.kill(SERVICE);
    }
    disk.kill();
    let recognized = common.recognized.take();
    common.report.borrow_mut().recognized += recognized;
}

fn end_of_service(common: &Common, time_max: Duration, words: &str) {
    let until = Instant::now() + time_max;
    while common.world.is_alive(SERVICE) {
        if Instant::now() > until {
            common.book.borrow_mut().fail(words);
            return;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Has something happen to one of the next calls of the disk.
fn plan(common: &Common, random: &mut Random, horizon: u64) {
    let disk = common.machine.disk();
    let strike = match random.below(8) {
        0..2 => Strike::KillBefore,
        2..4 => Strike::KillWithin,
        4..6 => Strike::KillAfter,
        _ if common.conditions.sync => Strike::PowerBefore,
        _ => Strike::KillWithin,
    };
    disk.strike(disk.calls() + random.below(horizon), strike);
}

/// Starts the service; gives what ends it in order.
fn begin_service(common: &Rc<Common>) -> Rc<Cell<bool>> {
    common.book.borrow_mut().lives += 1;
    common.report.borrow_mut().lives += 1;
    let (stop, inner) = (Rc::new(Cell::new(false)), common.clone());
    let (given, ended) = (stop.clone(), Rc::new(Cell::new(false)));
    let noted = Noted { common: common.clone(), has_ended: ended.clone(), stops: common.machine.disk().stops() };
    drop(common.world.spawn(SERVICE, "service", move || {
        let _noted = noted;
        serve(&inner, &given);
        ended.set(true);
    }));
    stop
}

/// Counts how a life of the service ended.
struct Noted {
    common: Rc<Common>,
    has_ended: Rc<Cell<bool>>,
    stops: u64,
}

impl Drop for Noted {
    fn drop(&mut self) {
        let mut report = self.common.report.borrow_mut();
        report.power_losses += self.common.machine.disk().stops() - self.stops;
        report.kills += u64::from(!self.has_ended.get());
        report.closes += u64::from(self.has_ended.get());
    }
}

fn serve(common: &Rc<Common>, stop: &Rc<Cell<bool>>) {
    let options = OpenOptions { sync: common.conditions.sync, read_only: false };
    let drive = match Drive::open_in(&common.machine.files(), Path::new(PATH), options) {
        Ok(drive) => drive,
        Err(error) => return common.book.borrow_mut().fail(format!("the drive cannot be opened: {error}")),
    };
    let options = SubsystemOptions { limits: common.conditions.limits, ..SubsystemOptions::new(NQN) };
    let subsystem = Arc::new(Subsystem::new(drive, options));
    *common.subsystem.borrow_mut() = Arc::downgrade(&subsystem);
    match common.world.listen(ADDRESS.parse().expect("an address")) {
        Ok(listener) => service::serve(&common.world, &subsystem, listener, stop),
        Err(error) => return common.book.borrow_mut().fail(format!("nobody can listen: {error}")),
    }
    if let Err(error) = subsystem.close() {
        common.book.borrow_mut().fail(format!("the drive cannot be closed: {error}"));
    }
}

/// Looks at the image of a service that is not there.
fn check(common: &Common) {
    common.report.borrow_mut().checks += 1;
    match Drive::check_in(&common.machine.disk().files(), Path::new(PATH)) {
        Ok(checked) if checked.is_clean() => {}
        Ok(checked) => common.book.borrow_mut().fail(format!("the check says: {checked}")),
        Err(error) => common.book.borrow_mut().fail(format!("the check says: {error}")),
    }
}

fn begin_host(common: &Rc<Common>, process: Process, seed: u64) {
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
        && let Err(error) = store.close()
    {
        common.book.borrow_mut().fail(format!("a store cannot be closed: {error}"));
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
    Caller {
        book: common.book.clone(),
        random: Random::new(seed),
        keys,
        large_one_in: if has_large_values { 48 } else { 0 },
        large_bytes: LARGE_BYTES,
        time_max: Some(time_max),
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
    common.connects.set(common.connects.get() + 1);
    if common.connects.get() > CLIENTS && common.world.process() != JUDGE {
        return None;
    }
    while !common.is_over.get() || common.world.process() == JUDGE {
        match connect(&common.conditions.url) {
            Ok(store) => return Some(store),
            Err(Error::Unreachable { .. }) => thread::sleep(Duration::from_millis(5)),
            Err(error) => {
                common.book.borrow_mut().fail(format!("a host is not let in: {error}"));
                return None;
            }
        }
    }
    None
}

/// The last host: it looks at everything.
fn judge(common: &Rc<Common>, seed: u64) {
    let Some(store) = reach(common) else { return };
    let (mut caller, namespace) = (caller(common, seed), store.own_namespace());
    for number in 0..common.conditions.keys {
        caller.retrieve(namespace, (NamespaceId::FIRST.0, number));
    }
    caller.list(namespace);
    look_at_memory(common);
    if let Err(error) = store.close() {
        common.book.borrow_mut().fail(format!("the last store cannot be closed: {error}"));
    }
}
