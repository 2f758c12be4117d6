//! Threads of one program on one store, killed at any call of its disk, closed while they call, and opened again.
//!
//! ```text
//!   thread 1   Caller: stores, deletes, conditions, lists ... ---\                      Book: each key by itself
//!   thread 2   batches over namespaces, namespaces come and go ---+--- Store ---> disk  batches: all or none after a kill
//!   thread 3   Bank: transfers, sums ... -------------------------/      |              transactions: a serial order explains all
//!   main       kills, stops the machine, or closes -----------------------
//! ```

use super::bank::Bank;
use super::book::{Line, Place, SharedBook};
use super::caller::{Caller, Step, key};
use super::hardware::Hardware;
use super::machine::Machine;
use super::program::PATH;
use super::report::{Loss, Report};
use crate::linear::Found;
use crate::{Options, Process, World};
use kvssd_device::Drive;
use kvssd_flash::{SimulatedDisk, Strike};
use kvssd_ftl::Design;
use kvssd_host::tx::{TransactionOptions, Transactions};
use kvssd_host::{Batch, Error, Missing, NamespaceAttributes, NamespaceId, Options as StoreOptions, Store};
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
/// Names of namespaces.
const NAMES: [&str; 2] = ["s1", "s2"];
/// Where the book has which namespaces there are, by their numbers.
const EXISTS: u32 = 1000;
/// Numbers of namespaces are below.
const IDS: usize = 9;
/// Changes of a batch.
const BATCH_CHANGES: u64 = 6;
/// The largest value where values are large.
const LARGE_BYTES: u64 = 400_000;

/// A batch that was not answered yet: of each key its line, and the value it gets.
type Batched = Vec<(Place, Line, Option<u64>)>;

/// What all threads know, in all lives.
struct Common {
    world: World,
    hardware: Hardware,
    machine: Machine,
    has_large_values: bool,
    keys: usize,
    book: SharedBook,
    bank: RefCell<Bank>,
    batches: RefCell<Vec<Batched>>,
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
    let mut random = Random::new(seed);
    let (sync, has_large_values) = (random.below(2) == 0, random.below(4) == 0);
    let hardware = Hardware::tiny(design, sync, has_large_values, random.below(3) == 0);
    let hardware = hardware.expect("every design fits the drives of the world");
    let disk = SimulatedDisk::new(random.bits());
    let machine = Machine::new(disk.clone(), vec![PROGRAM]);
    let book = SharedBook::default();
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
    *report += Report {
        trace: run.trace,
        doubts: book.borrow().doubts(),
        acts: book.borrow().calls(),
        calls: disk.calls(),
        ..told.get()
    };
    if let Err(failure) = run.result {
        book.borrow_mut().fail(failure.to_string());
    }
    book.borrow().check(seed)?;
    report.drives += 1;
    Ok(())
}

/// The main actor: life after life.
fn live(common: &Rc<Common>, random: &mut Random) {
    let Hardware { design, profile, create, .. } = &common.hardware;
    let disk = common.machine.disk().clone();
    let made = Drive::create_in(&disk.files(), Path::new(PATH), profile, design, *create);
    drop(made.expect("an empty disk has room for a drive"));
    for life in 0..=LIVES {
        disk.kill();
        if random.below(CHECKS) == 0 || life == LIVES {
            check(common);
        }
        if life < LIVES && random.below(4) > 0 {
            let horizon = HORIZONS[random.below(3) as usize];
            plan(common, random, horizon);
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

/// Has something happen to one of the next calls of the disk.
fn plan(common: &Common, random: &mut Random, horizon: u64) {
    let disk = common.machine.disk();
    let strike = match random.below(8) {
        0..2 => Strike::KillBefore,
        2..4 => Strike::KillWithin,
        4..6 => Strike::KillAfter,
        _ if common.hardware.create.sync => Strike::PowerBefore,
        _ => Strike::KillWithin,
    };
    disk.strike(disk.calls() + random.below(horizon), strike);
}

fn check(common: &Common) {
    common.report.borrow_mut().checks += 1;
    match Drive::check_in(&common.machine.disk().files(), Path::new(PATH)) {
        Ok(checked) if checked.is_clean() => {}
        Ok(checked) => common.book.borrow_mut().fail(format!("the check says: {checked}")),
        Err(error) => common.book.borrow_mut().fail(format!("the check says: {error}")),
    }
}

/// Starts a life of the program.
fn begin(common: &Rc<Common>, seed: u64, is_last: bool) {
    common.is_closing.set(false);
    common.has_opened.set(false);
    common.has_ended.set(false);
    let inner = common.clone();
    drop(common.world.spawn(PROGRAM, "program", move || {
        let mut random = Random::new(seed);
        let sync = inner.hardware.create.sync;
        let options = StoreOptions { missing: Missing::Fail, sync, ..StoreOptions::default() };
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
        common.machine.disk().spare();
        plan(common, random, CLOSE_CALLS);
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
        time_max: None,
    }
}

/// A thread: calls at random, until the store is closed.
fn act(common: &Common, shared: &Shared, seed: u64) {
    let mut caller = caller(common, seed);
    for _ in 0..caller.random.below(ACTS) {
        let store = shared.read().unwrap_or_else(PoisonError::into_inner);
        let Some(store) = store.as_deref() else { return };
        if common.book.borrow().has_failed() {
            return;
        }
        if let Step::Ended(error) = step(common, &mut caller, store) {
            common.book.borrow_mut().fail(format!("a thread is told: {error}"));
        }
    }
}

fn step(common: &Common, caller: &mut Caller, store: &Store) -> Step {
    match caller.random.below(100) {
        0..12 => batch(common, caller, store),
        12..14 => create_namespace(common, caller, store),
        14..16 => delete_namespace(caller, store),
        16..18 => iterate(caller, store),
        _ => match some_namespace(caller, store) {
            Ok(id) => caller.step(store, store.namespace_at(id)),
            Err(error) => Step::Ended(error),
        },
    }
}

/// A batch over namespaces: a call on each of its keys.
fn batch(common: &Common, caller: &mut Caller, store: &Store) -> Step {
    let (mut batch, mut lines) = (Batch::new(), Batched::new());
    let ids: Vec<NamespaceId> = match store.namespaces() {
        Ok(infos) => infos.into_iter().map(|info| info.id).collect(),
        Err(error) => return Step::Ended(error),
    };
    for _ in 0..2 + caller.random.below(BATCH_CHANGES) {
        let id = ids[caller.random.below(ids.len() as u64) as usize];
        let place = (id.0, caller.random.below(common.keys as u64) as usize);
        if lines.iter().any(|(other, ..)| *other == place) {
            continue;
        }
        if caller.random.below(4) == 0 {
            batch.delete_in(id, &key(place.1));
            lines.push((place, caller.change(place, None), None));
        } else {
            let (value, bytes) = caller.value(place, true);
            batch.store_in(id, &key(place.1), &bytes);
            lines.push((place, caller.change(place, Some(value)), Some(value)));
        }
    }
    let began = Instant::now();
    common.batches.borrow_mut().push(lines.clone());
    let batched = store.batch(&batch);
    common.batches.borrow_mut().retain(|other| other[0].1 != lines[0].1);
    let lines: Vec<Line> = lines.into_iter().map(|(_, line, _)| line).collect();
    match batched {
        Ok(()) => {
            lines.into_iter().for_each(|line| caller.book.borrow_mut().end(line));
            Step::Answered
        }
        Err(error) => caller.not_done(&lines, began, error),
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

/// Makes a namespace. Which number it gets is not known before: one of them, in doubt.
fn create_namespace(common: &Common, caller: &mut Caller, store: &Store) -> Step {
    let which = caller.random.below(NAMES.len() as u64) as usize;
    let (name, index) = (Some(NAMES[which].to_owned()), Some(common.hardware.indexes[which].to_owned()));
    let attributes = NamespaceAttributes { name, index, ..NamespaceAttributes::PLAIN };
    let (value, _) = caller.book.borrow_mut().new_value((EXISTS, 0), 0);
    let begin = |id| caller.book.borrow_mut().begin((EXISTS, id), Found::Exactly(None), Some(Some(value)));
    let lines: Vec<Line> = (0..IDS).map(begin).collect();
    let created = store.create_namespace(attributes).map(|namespace| namespace.id());
    let mut book = caller.book.borrow_mut();
    let is_it = |index: usize| created.as_ref().is_ok_and(|id| id.0 as usize == index);
    for (index, line) in lines.into_iter().enumerate() {
        if is_it(index) {
            book.end(line);
        } else {
            book.cancel(line);
        }
    }
    match created {
        Ok(_) | Err(Error::InvalidOptions { .. } | Error::Refused { .. } | Error::Full) => Step::Answered,
        Err(error) => Step::Ended(error),
    }
}

/// Deletes a namespace, and with it all keys in it.
fn delete_namespace(caller: &mut Caller, store: &Store) -> Step {
    let id = match some_namespace(caller, store) {
        Ok(id) if id != NamespaceId::FIRST => id,
        Ok(_) => return Step::Answered,
        Err(error) => return Step::Ended(error),
    };
    let itself = caller.book.borrow_mut().begin((EXISTS, id.0 as usize), Found::Something, Some(None));
    let lines: Vec<Line> = (0..caller.keys).map(|number| caller.change((id.0, number), None)).collect();
    let deleted = store.delete_namespace(&id.to_string());
    let mut book = caller.book.borrow_mut();
    match deleted {
        Ok(()) => {
            book.end(itself);
            lines.into_iter().for_each(|line| book.end(line));
        }
        Err(Error::NoNamespace { .. }) => {
            book.end_with(itself, Found::Exactly(None), None);
            lines.into_iter().for_each(|line| book.cancel(line));
        }
        Err(error) => return Step::Ended(error),
    }
    Step::Answered
}

fn some_namespace(caller: &mut Caller, store: &Store) -> Result<NamespaceId, Error> {
    let infos = store.namespaces()?;
    Ok(infos[caller.random.below(infos.len() as u64) as usize].id)
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
        look_at_batch(&common.book, &batched, &found);
    }
}

/// Whether a batch that was not answered was made as a whole or not at all.
fn look_at_batch(book: &SharedBook, batched: &Batched, found: &BTreeMap<Place, Option<u64>>) {
    let is_made = |(place, _, value): &&(Place, Line, Option<u64>)| {
        value.is_some() && found.get(place).is_some_and(|found| found == value)
    };
    // What was stored before the batch began is there no more when that was made.
    let is_not_made = |(place, line, value): &&(Place, Line, Option<u64>)| match found.get(place) {
        Some(Some(found)) if Some(*found) != *value => {
            let book = book.borrow();
            book.stored(*found).is_some_and(|stored| stored < book.began(*line))
        }
        _ => false,
    };
    if let (Some(made), Some(not_made)) = (batched.iter().find(is_made), batched.iter().find(is_not_made)) {
        book.borrow_mut().fail(format!("a batch is made at {:?} and not at {:?}", made.0, not_made.0));
    }
}
