//! Threads of one program on one store, killed at any call of its disk, closed while they call, and opened again.
//!
//! ```text
//!   thread 1   Caller: stores, deletes, conditions, lists ... ---\                      Book: each key by itself
//!   thread 2   batches over namespaces, namespaces come and go ---+--- Store ---> disk  batches: all or none after a kill
//!   thread 3   Bank: transfers, sums ... -------------------------/      |              transactions: a serial order explains all
//!   main       kills, stops the machine, or closes -----------------------
//! ```

mod bank;
mod batches;
mod caches;
mod spaces;

use self::bank::Bank;
use self::batches::Batched;
use self::spaces::IDS;
use super::book::{EXISTS, SharedBook};
use super::caller::{Caller, Step, key};
use super::hardware::Hardware;
use super::image::{self, PATH};
use super::machine::Machine;
use super::report::{Loss, Report};
use super::strikes::Strikes;
use crate::linear::Found;
use crate::{Options, Process, World};
use kvssd_device::CreateDrive;
use kvssd_flash::SimulatedDisk;
use kvssd_ftl::Design;
use kvssd_host::tx::{TransactionOptions, Transactions};
use kvssd_host::{Missing, Options as StoreOptions, Store};
use kvssd_runtime::sync::{PoisonError, RwLock};
use kvssd_runtime::thread;
use kvssd_runtime::time::{Duration, Instant};
use kvssd_types::Random;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

const PROGRAM: Process = Process(1);
/// Lives of a drive before there is another one.
const LIVES: u64 = 24;
/// The next call of the disk that is struck is among so many.
const HORIZONS: [u64; 3] = [60, 300, 1500];
/// A close makes about so many calls.
const CLOSE_CALLS: u64 = 90;
/// After one of so many lives the whole drive is checked.
const CHECKS: u64 = 6;
/// Steps of a thread at the most.
const ACTS: u64 = 60;
/// Between two reads of a thread that only reads.
const PAUSE_NS_MAX: u64 = 30_000;
/// The largest value where values are large.
const LARGE_BYTES: u64 = 400_000;

/// What all threads know, in all lives.
pub(super) struct Common {
    world: World,
    pub(super) hardware: Hardware,
    machine: Machine,
    has_large_values: bool,
    /// Namespaces beside the first are caches.
    pub(super) has_caches: bool,
    pub(super) keys: usize,
    book: SharedBook,
    bank: RefCell<Bank>,
    pub(super) batches: RefCell<Vec<Batched>>,
    report: RefCell<Report>,
    /// The life's store is closed in order.
    is_closing: Cell<bool>,
    has_opened: Cell<bool>,
    has_ended: Cell<bool>,
}

/// A store that one of its threads may close.
type Shared = Arc<RwLock<Option<Arc<Store>>>>;

/// Lets the drive with that seed live.
///
/// # Errors
/// What was lost.
pub fn run(design: &Design, seed: u64, report: &mut Report) -> Result<(), Loss> {
    run_with(design, seed, report, false)
}

/// The same, where namespaces beside the first are caches.
///
/// # Errors
/// What was lost.
pub fn run_with_caches(design: &Design, seed: u64, report: &mut Report) -> Result<(), Loss> {
    run_with(design, seed, report, true)
}

fn run_with(design: &Design, seed: u64, report: &mut Report, has_caches: bool) -> Result<(), Loss> {
    let mut random = Random::new(seed);
    let (sync, has_large_values) = (random.below(2) == 0, random.below(4) == 0);
    let hardware = Hardware::tiny(design, sync, has_large_values, random.below(3) == 0);
    let hardware = hardware.cached_or_not(&mut random).with_indexes(&mut random).in_partitions(&mut random);
    let disk = SimulatedDisk::new(random.bits());
    let machine = Machine::new(disk.clone(), vec![PROGRAM]);
    let book = SharedBook::default();
    book.borrow_mut().has_caches = has_caches;
    let loses_turn_one_in = [2, 8, 30][random.below(3) as usize];
    let options = Options { loses_turn_one_in, turns_max: 20_000_000, ..Options::of_seed(random.bits()) };
    let keys = 4 + random.below(20) as usize;
    let (its_book, told) = (book.clone(), Rc::new(Cell::new(Report::default())));
    let its_report = told.clone();
    let run = World::run(options, move |world| {
        let common = Rc::new(Common {
            world: world.clone(),
            hardware,
            machine,
            has_large_values,
            has_caches,
            keys,
            book: its_book,
            bank: RefCell::default(),
            batches: RefCell::default(),
            report: RefCell::default(),
            is_closing: Cell::new(false),
            has_opened: Cell::new(false),
            has_ended: Cell::new(false),
        });
        live(&common, &mut random);
        its_report.set(*common.report.borrow());
    });
    *report += told.get();
    book.borrow_mut().conclude(run, &disk, seed, report)
}

/// The main actor: life after life.
fn live(common: &Rc<Common>, random: &mut Random) {
    let disk = common.machine.disk().clone();
    common.hardware.make_on(&disk);
    for life in 0..=LIVES {
        disk.kill();
        if random.below(CHECKS) == 0 || life == LIVES {
            common.report.borrow_mut().checks += 1;
            common.book.borrow_mut().must(image::check(&disk));
        }
        if life < LIVES && random.below(4) > 0 {
            let horizon = HORIZONS[random.below(3) as usize];
            strikes(common).plan(&disk, random, horizon);
        }
        common.book.borrow_mut().lives += 1;
        begin(common, random.bits(), life == LIVES);
        let until = Instant::now() + Duration::from_secs(3600);
        while common.world.is_alive(PROGRAM) {
            thread::sleep(Duration::from_micros(500));
            if Instant::now() > until {
                common.book.borrow_mut().fail("a life has no end");
            }
            if common.book.borrow().has_failed() {
                return;
            }
        }
        note(common);
        if common.book.borrow().has_failed() {
            return;
        }
    }
    if let Err(words) = common.bank.borrow().check() {
        common.book.borrow_mut().fail(words);
    }
    let (commits, aborts) = common.bank.borrow().ends();
    let mut report = common.report.borrow_mut();
    (report.commits, report.aborts) = (commits, aborts);
}

/// Counts how a life has ended.
fn note(common: &Common) {
    let mut report = common.report.borrow_mut();
    report.lives += 1;
    report.power_losses = common.machine.disk().stops();
    if common.has_ended.get() {
        report.closes += u64::from(common.is_closing.get());
        return;
    }
    report.kills += 1;
    report.kills_in_open += u64::from(!common.has_opened.get());
    report.kills_in_close += u64::from(common.is_closing.get());
}

fn strikes(common: &Common) -> Strikes {
    Strikes { sync: common.hardware.create.sync, fails_one_in: 0 }
}

/// Starts a life of the program.
fn begin(common: &Rc<Common>, seed: u64, is_last: bool) {
    common.is_closing.set(false);
    common.has_opened.set(false);
    common.has_ended.set(false);
    let inner = common.clone();
    drop(common.world.spawn(PROGRAM, "program", move || {
        let mut random = Random::new(seed);
        let CreateDrive { sync, cache_bytes, .. } = inner.hardware.create;
        let options = StoreOptions { missing: Missing::Fail, sync, cache_bytes, ..StoreOptions::default() };
        let store = match Store::open_in(&inner.machine.files(), Path::new(PATH), &options) {
            Ok(store) => Arc::new(store),
            Err(error) => return inner.book.borrow_mut().fail(format!("the store cannot be opened: {error}")),
        };
        inner.has_opened.set(true);
        look(&inner, &store, random.bits());
        let bank = Rc::new(Transactions::new(store.clone(), &TransactionOptions::default()));
        inner.bank.borrow_mut().open(&bank, &inner.book);
        if !is_last && !inner.book.borrow().has_failed() {
            work(&inner, store, bank, &mut random);
        }
        inner.has_ended.set(true);
    }));
}

/// The threads of a life.
fn work(common: &Rc<Common>, store: Arc<Store>, bank: Rc<Transactions<Arc<Store>>>, random: &mut Random) {
    let shared: Shared = Arc::new(RwLock::new(Some(store)));
    let mut threads = Vec::new();
    for _ in 0..1 + random.below(4) {
        let (inner, shared, seed) = (common.clone(), shared.clone(), random.bits());
        threads.push(common.world.spawn(PROGRAM, "a thread", move || act(&inner, &shared, seed)));
    }
    for _ in 0..random.below(3) {
        let (inner, bank, seed) = (common.clone(), bank.clone(), random.bits());
        threads.push(common.world.spawn(PROGRAM, "a teller", move || {
            Bank::work(&inner.bank, &bank, &inner.book, seed);
        }));
    }
    drop(bank);
    let is_soon = random.below(3) == 0;
    if is_soon {
        thread::sleep(Duration::from_nanos(random.below(2_000_000)));
    } else {
        for thread in threads.drain(..) {
            let _ = thread.join();
        }
        if let Some(store) = shared.read().unwrap_or_else(PoisonError::into_inner).as_deref()
            && common.has_caches
        {
            caches::look(&mut caller(common, random.bits()), store);
        }
    }
    if random.below(3) > 0 {
        close(common, &shared, random);
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// Closes the store while threads may call it; where transactions hold it, it is only dropped.
fn close(common: &Common, shared: &Shared, random: &mut Random) {
    let taken = shared.write().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Ok(store)) = taken.map(Arc::try_unwrap) else { return };
    common.is_closing.set(true);
    if random.below(2) == 0 {
        strikes(common).plan(common.machine.disk(), random, CLOSE_CALLS);
    }
    if let Err(error) = store.close() {
        common.book.borrow_mut().fail(format!("the store cannot be closed: {error}"));
    }
}

fn caller(common: &Common, seed: u64) -> Caller {
    Caller {
        book: common.book.clone(),
        random: Random::new(seed),
        keys: common.keys,
        large_one_in: if common.has_large_values { 24 } else { 0 },
        large_bytes: LARGE_BYTES,
        wire: None,
    }
}

/// A thread: calls at random, until the store is closed. One in three only reads what the others change, and so never waits for the disk itself.
fn act(common: &Common, shared: &Shared, seed: u64) {
    let mut caller = caller(common, seed);
    let only_reads = caller.random.below(3) == 0;
    for _ in 0..caller.random.below(ACTS) {
        if only_reads {
            thread::sleep(Duration::from_nanos(caller.random.below(PAUSE_NS_MAX)));
        }
        let store = shared.read().unwrap_or_else(PoisonError::into_inner);
        let Some(store) = store.as_deref() else { return };
        if common.book.borrow().has_failed() {
            return;
        }
        let taken = if only_reads { caller.look_beside(store) } else { step(common, &mut caller, store) };
        if let Step::Ended(error) = taken {
            common.book.borrow_mut().fail(format!("a thread is told: {error}"));
        }
    }
}

fn step(common: &Common, caller: &mut Caller, store: &Store) -> Step {
    let of_caches = common.has_caches && caller.random.below(8) == 0;
    match caller.random.below(100) {
        _ if of_caches => match spaces::some(caller, store) {
            Ok(id) => caches::step(caller, store, id),
            Err(error) => Step::Ended(error),
        },
        0..12 => batches::make(common, caller, store),
        12..14 => spaces::create(common, caller, store),
        14..16 => spaces::delete(caller, store),
        16..18 => iterate(caller, store),
        _ => match spaces::some(caller, store) {
            Ok(id) => caller.step(store, store.namespace_at(id)),
            Err(error) => Step::Ended(error),
        },
    }
}

/// Keys and values as they come while others write: each is one that the key had, and none comes twice.
fn iterate(caller: &mut Caller, store: &Store) -> Step {
    let namespace = store.own_namespace();
    let mut met = vec![false; caller.keys];
    for pair in namespace.pairs() {
        let (name, value) = match pair {
            Ok(pair) => pair,
            Err(error) => return Step::Ended(error),
        };
        let Some(number) = super::caller::number_of(&name).filter(|number| *number < met.len()) else {
            // An account.
            continue;
        };
        if std::mem::replace(&mut met[number], true) {
            return caller.wrong(&format!("key {number} comes twice"));
        }
        let known = caller.book.borrow().number_of((namespace.id().0, number), &value);
        if let Err(words) = known {
            return caller.wrong(&words);
        }
    }
    Step::Answered
}

/// Looks at everything that a life has left.
fn look(common: &Common, store: &Store, seed: u64) {
    let mut caller = caller(common, seed);
    let infos = match store.namespaces() {
        Ok(infos) => infos,
        Err(error) => return common.book.borrow_mut().fail(format!("a namespace cannot be listed: {error}")),
    };
    let mut found = BTreeMap::new();
    // The first is always there.
    for id in 2..IDS {
        let is_there = infos.iter().any(|info| info.id.0 as usize == id);
        let line = caller.look_at((EXISTS, id));
        let what = if is_there { Found::Something } else { Found::Exactly(None) };
        caller.book.borrow_mut().end_with(line, what, None);
    }
    for info in &infos {
        let namespace = store.namespace_at(info.id);
        for number in 0..common.keys {
            let (place, line) = ((info.id.0, number), caller.look_at((info.id.0, number)));
            match namespace.retrieve(&key(number)) {
                Ok(value) => {
                    caller.saw(line, place, value.as_deref());
                    let value = value.and_then(|value| caller.book.borrow().number_of(place, &value).ok());
                    found.insert(place, value);
                }
                Err(error) => caller.book.borrow_mut().fail(format!("{place:?} cannot be read: {error}")),
            }
        }
        if let Step::Ended(error) = caller.list(namespace) {
            caller.book.borrow_mut().fail(format!("keys cannot be listed: {error}"));
        }
    }
    for batched in common.batches.take() {
        batches::look(&common.book, &batched, &found);
    }
}
