//! Hosts on a network that breaks, and a service that is killed at any call of its disk and comes again.
//!
//! ```text
//!   host 10   threads: Caller -> kvssd_host ---\   cut, late,      service: kvssd_nvme_target -> Drive -> image -> Machine -> SimulatedDisk
//!   host 11   ...                            ---- refused, ------     ^ killed at a call or a moment, its machine stopped, or ended in order
//!   host 12   killed now and then            ---/  stalled            |
//!                |                                                  main: starts it again, checks the image now and then
//!                +---> Book: each key by itself must be explained at the end
//! ```

mod host;
mod served;

use self::host::{CROWD, JUDGE};
use self::served::SERVICE;
use super::book::SharedBook;
use super::conditions::Conditions;
use super::excuses::Excuses;
use super::hardware::Hardware;
use super::image;
use super::machine::Machine;
use super::report::{Loss, Report};
use super::strikes::Strikes;
use crate::{NetworkFaults, Options, Process, World};
use kvssd_flash::SimulatedDisk;
use kvssd_ftl::Design;
use kvssd_nvme_target::Subsystem;
use kvssd_runtime::thread;
use kvssd_runtime::time::{Duration, Instant};
use kvssd_types::Random;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Weak;

/// Hosts are from here on.
const FIRST_HOST: u32 = 10;
/// Lives of a service before there is another drive.
const LIVES: u64 = 12;
/// The next call of the disk that is struck is among so many.
const HORIZONS: [u64; 3] = [60, 600, 3000];
/// How long a life of the service may be, and where a crowd comes.
const MOMENTS_MS: [u64; 4] = [8, 20, 20, 60];
const CROWDED_MS: u64 = 400;
/// A close makes about so many calls.
const CLOSE_CALLS: u64 = 90;
/// After one of so many lives the whole drive is checked.
const CHECKS: u64 = 5;
/// A service whose disk has failed goes on for about so many looks at it.
const FAILED_LOOKS: u64 = 6;
/// How long an orderly end may take.
const END_MAX: Duration = Duration::from_secs(60);
pub(super) const MILLISECOND: u64 = 1_000_000;

/// What all of a world know.
pub(super) struct Common {
    pub(super) world: World,
    pub(super) book: SharedBook,
    pub(super) machine: Machine,
    pub(super) conditions: Conditions,
    pub(super) report: Rc<RefCell<Report>>,
    pub(super) subsystem: RefCell<Weak<Subsystem>>,
    /// Changes that this life of the service recognized.
    pub(super) recognized: Cell<u64>,
    /// What hosts may be told.
    pub(super) excuses: Rc<Excuses>,
    /// Stores that were opened.
    pub(super) stores: Cell<u64>,
    /// Hosts end.
    pub(super) is_over: Cell<bool>,
}

/// Lets the drive with that seed live.
///
/// # Errors
/// What was lost.
pub fn run(design: &Design, seed: u64, report: &mut Report) -> Result<(), Loss> {
    // Designs that differ little do not live the same lives.
    let mut random = Random::stream(seed, design.name.bytes().map(u64::from).sum());
    let conditions = Conditions::random(&mut random);
    let Conditions { sync, has_large_values, network, .. } = conditions;
    let hardware = Hardware::tiny(design, sync, has_large_values, random.below(3) == 0);
    let hardware = hardware.in_partitions(&mut random);
    let machine = Machine::new(SimulatedDisk::new(random.bits()), vec![SERVICE]);
    let disk = machine.disk().clone();
    let (book, told) = (SharedBook::default(), Rc::new(RefCell::new(Report::default())));
    let options = Options { network, turns_max: 30_000_000, ..Options::of_seed(random.bits()) };
    let excuses = Rc::new(Excuses::new(disk.clone()));
    let (its_book, its_report, its_excuses) = (book.clone(), told.clone(), excuses.clone());
    let run = World::run(options, move |world| {
        let common = Rc::new(Common {
            world: world.clone(),
            book: its_book,
            machine,
            conditions,
            report: its_report,
            subsystem: RefCell::default(),
            recognized: Cell::default(),
            excuses: its_excuses,
            stores: Cell::new(0),
            is_over: Cell::new(false),
        });
        hardware.make_on(common.machine.disk());
        direct(&common, &mut random);
    });
    let ((told_of_failures, forgotten), told) = (excuses.counts(), told.take());
    *report += Report { told: told_of_failures, forgotten, failures: disk.failures(), ..told };
    book.borrow_mut().conclude(run, &disk, seed, report)
}

/// The main actor: what befalls the service and the hosts, and the look at everything in the end.
fn direct(common: &Rc<Common>, random: &mut Random) {
    let world = common.world.clone();
    for host in 0..common.conditions.hosts {
        host::begin(common, Process(FIRST_HOST + host), random.bits());
    }
    if common.conditions.is_crowded {
        host::begin_crowd(common, random);
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
            host::begin(common, host, random.bits());
        }
    }
    world.set_network(NetworkFaults::default());
    common.is_over.set(true);
    let stop = served::begin(common);
    let hosts = || (0..common.conditions.hosts).any(|host| world.is_alive(Process(FIRST_HOST + host)));
    while (hosts() || world.is_alive(CROWD)) && !common.book.borrow().has_failed() {
        thread::sleep(Duration::from_millis(1));
    }
    let (inner, seed) = (common.clone(), random.bits());
    let judged = world.spawn(JUDGE, "judge", move || host::judge(&inner, seed));
    let _ = judged.join();
    stop.set(true);
    await_end(common);
    common.machine.disk().kill();
    check(common);
}

/// A life of the service, to its end.
fn befall(common: &Rc<Common>, random: &mut Random, is_last: bool) {
    let disk = common.machine.disk().clone();
    let strikes = Strikes { sync: common.conditions.sync, fails_one_in: 3 };
    let kind = random.below(10);
    if kind < 6 {
        let horizon = HORIZONS[random.below(3) as usize];
        strikes.plan(&disk, random, horizon);
    }
    let stop = served::begin(common);
    let most = match random.below(200) {
        0 => 20_000,
        _ if common.conditions.is_crowded => CROWDED_MS,
        kind => MOMENTS_MS[kind as usize % MOMENTS_MS.len()],
    };
    let until = Instant::now() + Duration::from_nanos(MILLISECOND / 4 + random.below(MILLISECOND * most));
    while common.world.is_alive(SERVICE) && Instant::now() < until && !common.book.borrow().has_failed() {
        thread::sleep(Duration::from_micros(500));
        if random.below(150) == 0 {
            common.world.cut_connections();
        }
        // It takes nothing any more: hosts see that for a while, and somebody serves the drive anew.
        if common.excuses.has_failed() && random.below(FAILED_LOOKS) == 0 {
            break;
        }
    }
    if kind >= 8 && !is_last {
        if random.below(2) == 0 {
            strikes.plan(&disk, random, CLOSE_CALLS);
        }
        stop.set(true);
        await_end(common);
    } else {
        common.world.kill(SERVICE);
    }
    disk.kill();
    common.excuses.end_life();
    let recognized = common.recognized.take();
    common.report.borrow_mut().recognized += recognized;
}

fn await_end(common: &Common) {
    let until = Instant::now() + END_MAX;
    while common.world.is_alive(SERVICE) {
        if Instant::now() > until {
            common.book.borrow_mut().fail("the service does not end");
            return;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Looks at the image of a service that is not there.
fn check(common: &Common) {
    common.report.borrow_mut().checks += 1;
    common.book.borrow_mut().must(image::check(common.machine.disk()));
}
