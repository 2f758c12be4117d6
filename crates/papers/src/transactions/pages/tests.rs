//! The engine against a map: transactions of several terminals are as if one had run after the other, in the order of their commits.

use super::{LockedUnit, PageCounters, PageEngine, PageOptions};
use crate::transactions::{RecordId, Request, Step, TransactionEngine};
use kvssd_device::Device;
use kvssd_flash::{Profile, RopeBacking};
use kvssd_ftl::Design;
use kvssd_sim::SimError;
use kvssd_transactions::TransactionId;
use kvssd_types::{Key, NamespaceId, Nanos, Pattern, Random, Value, mix64};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const OPTIONS: PageOptions =
    PageOptions { pool_pages: 8, log_bytes: 256 << 10, locked_unit: LockedUnit::Record };

/// A table and a number in it.
pub(super) type Name = (u32, u64);
pub(super) type Model = BTreeMap<Name, Value>;

pub(super) fn key_of(name: Name) -> [u8; 8] {
    mix64(name.1).to_be_bytes()
}

#[derive(Clone, Debug)]
enum Action {
    Read(Name, bool),
    Write(Name, Value),
    Delete(Name),
    Commit,
    Abort,
}

/// What runs at a terminal.
#[derive(Debug, Default)]
struct Terminal {
    transaction: Option<TransactionId>,
    actions: Vec<Action>,
    next: usize,
    reads: Vec<Option<Value>>,
}

/// Several terminals, each with one transaction after the other.
pub(super) struct Terminals {
    terminals: Vec<Terminal>,
    events: BTreeSet<(Nanos, u64, usize)>,
    waiting: BTreeMap<TransactionId, usize>,
    calls: u64,
    random: Random,
    source: Source,
    /// What those that committed left.
    pub(super) model: Model,
    pub(super) sum: u64,
}

impl Terminals {
    /// Transactions of any kind on so many keys of two tables.
    pub(super) fn new(terminals: usize, keys: u64, model: Model, seed: u64, at: Nanos) -> Self {
        let mut values = seed << 32;
        let source = move |random: &mut Random| any_actions(random, keys, &mut values);
        Terminals::of(terminals, Box::new(source), model, seed, at)
    }

    fn of(terminals: usize, source: Source, model: Model, seed: u64, at: Nanos) -> Self {
        Terminals {
            terminals: (0..terminals).map(|_| Terminal::default()).collect(),
            events: (0..terminals).map(|number| (at, number as u64, number)).collect(),
            waiting: BTreeMap::new(),
            calls: terminals as u64,
            random: Random::new(seed),
            source,
            model,
            sum: 0,
        }
    }

    /// Runs until the time is up.
    pub(super) fn run(&mut self, engine: &mut PageEngine, until: Nanos) -> Result<(), SimError> {
        while let Some((at, order, number)) = self.events.pop_first() {
            if at > until {
                return Ok(());
            }
            if let Some(background) = engine.background_at().filter(|background| *background <= at) {
                self.events.insert((at, order, number));
                engine.background(background)?;
            } else {
                self.step(engine, number, at)?;
            }
            for (transaction, at) in engine.woken() {
                let number = self.waiting.remove(&transaction).expect("only those that wait are woken");
                self.call(number, at);
            }
        }
        panic!("all wait for ever");
    }

    /// Writes of the transactions that asked to commit and were not answered.
    pub(super) fn committing(&self) -> Vec<BTreeMap<Name, Option<Value>>> {
        let committing = |terminal: &&Terminal| {
            terminal.transaction.is_some() && matches!(terminal.actions.get(terminal.next), Some(Action::Commit))
        };
        self.terminals.iter().filter(committing).map(writes).collect()
    }

    fn call(&mut self, number: usize, at: Nanos) {
        self.calls += 1;
        self.events.insert((at, self.calls, number));
    }

    fn step(&mut self, engine: &mut PageEngine, number: usize, at: Nanos) -> Result<(), SimError> {
        let transaction = match self.terminals[number].transaction {
            Some(transaction) => transaction,
            None => {
                let transaction = engine.begin(at);
                let actions = (self.source)(&mut self.random);
                self.terminals[number] = Terminal { transaction: Some(transaction), actions, ..Terminal::default() };
                transaction
            }
        };
        let terminal = &mut self.terminals[number];
        let action = terminal.actions[terminal.next].clone();
        let step = ask(engine, transaction, &action, at)?;
        match step {
            Step::Again(again) => {
                assert!(again > at, "time goes on");
                self.call(number, again);
            }
            Step::Wait => assert!(self.waiting.insert(transaction, number).is_none()),
            Step::Aborted(done) => {
                self.terminals[number] = Terminal::default();
                self.call(number, done);
            }
            Step::Done(done, value) => {
                assert!(done > at, "everything takes time");
                terminal.next += 1;
                if matches!(action, Action::Read(..)) {
                    terminal.reads.push(value);
                }
                if matches!(action, Action::Commit | Action::Abort) {
                    let ended = std::mem::take(terminal);
                    self.ended(&ended);
                }
                self.sum = mix64(self.sum ^ done.0);
                self.call(number, done);
            }
        }
        Ok(())
    }

    /// What it read is what was there when it committed, and what it wrote is there now.
    fn ended(&mut self, terminal: &Terminal) {
        if !matches!(terminal.actions.last(), Some(Action::Commit)) {
            return;
        }
        let mut reads = terminal.reads.iter();
        for action in &terminal.actions {
            match action {
                Action::Read(name, _) => assert_eq!(reads.next().unwrap().as_ref(), self.model.get(name), "{name:?}"),
                Action::Write(name, value) => drop(self.model.insert(*name, value.clone())),
                Action::Delete(name) => drop(self.model.remove(name)),
                Action::Commit | Action::Abort => {}
            }
        }
    }
}

/// Makes the actions of a transaction.
type Source = Box<dyn FnMut(&mut Random) -> Vec<Action>>;

fn any_actions(random: &mut Random, keys: u64, values: &mut u64) -> Vec<Action> {
    let count = random.below(8);
    let mut actions: Vec<_> = (0..count).map(|_| any_action(random, keys, values)).collect();
    actions.push(if random.below(8) == 0 { Action::Abort } else { Action::Commit });
    actions
}

fn any_action(random: &mut Random, keys: u64, values: &mut u64) -> Action {
    // Half of all goes to a few.
    let keys = if random.below(2) == 0 { keys } else { 1 + keys / 8 };
    let name = (1 + random.below(2) as u32, random.below(keys));
    match random.below(10) {
        0..3 => Action::Read(name, false),
        3 => Action::Read(name, true),
        4..9 => {
            *values += 1;
            let length = if random.below(20) == 0 { 3000 } else { random.below(700) as u32 };
            Action::Write(name, Value::Pattern(Pattern { seed: *values, offset: 0, length }))
        }
        _ => Action::Delete(name),
    }
}

fn writes(terminal: &Terminal) -> BTreeMap<Name, Option<Value>> {
    let write = |action: &Action| match action {
        Action::Write(name, value) => Some((*name, Some(value.clone()))),
        Action::Delete(name) => Some((*name, None)),
        _ => None,
    };
    terminal.actions.iter().filter_map(write).collect()
}

fn ask(engine: &mut PageEngine, transaction: TransactionId, action: &Action, at: Nanos) -> Result<Step, SimError> {
    let (Action::Read(name, _) | Action::Write(name, _) | Action::Delete(name)) = action else {
        let end = if matches!(action, Action::Commit) { Request::Commit } else { Request::Abort };
        return engine.step(transaction, &end, at);
    };
    let key = key_of(*name);
    let record = RecordId { table: NamespaceId(name.0), key: Key::new(&key).unwrap() };
    let request = match action {
        Action::Read(_, for_update) => Request::Read { record, for_update: *for_update },
        Action::Write(_, value) => Request::Write { record, value: value.clone() },
        _ => Request::Delete { record },
    };
    engine.step(transaction, &request, at)
}

/// Reads all keys in one transaction; gives when that is done.
pub(super) fn read_all(engine: &mut PageEngine, keys: u64, at: Nanos) -> Result<(Nanos, Model), SimError> {
    let (mut clock, mut found) = (at, Model::new());
    let transaction = engine.begin(at);
    let names = (1..=2).flat_map(|table| (0..keys).map(move |number| (table, number)));
    let reads = names.map(|name| Action::Read(name, false));
    for action in reads.chain([Action::Commit]) {
        loop {
            while let Some(background) = engine.background_at().filter(|background| *background <= clock) {
                engine.background(background)?;
            }
            match ask(engine, transaction, &action, clock)? {
                Step::Again(again) => clock = again,
                Step::Done(done, value) => {
                    clock = done;
                    if let (Action::Read(name, _), Some(value)) = (&action, value) {
                        found.insert(*name, value);
                    }
                    break;
                }
                other => panic!("nobody else is there: {other:?}"),
            }
        }
    }
    Ok((clock, found))
}

/// Loads a part of the keys.
pub(super) fn load(engine: &mut PageEngine, keys: u64) -> Result<(Nanos, Model), SimError> {
    let (mut clock, mut model) = (Nanos::ZERO, Model::new());
    for name in (0..keys / 2).map(|number| (1, number * 2)) {
        let key = key_of(name);
        let record = RecordId { table: NamespaceId(name.0), key: Key::new(&key).unwrap() };
        let value = Value::Pattern(Pattern { seed: name.1, offset: 0, length: 300 });
        clock = engine.load(record, value.clone(), clock)?;
        model.insert(name, value);
    }
    Ok((engine.end_load(clock)?, model))
}

fn engine(options: PageOptions, power_loss: &str) -> PageEngine {
    let design = kvssd_designs::named("block").unwrap();
    let profile = design.tiny_profile(&[("memory.power_loss", power_loss)]).unwrap();
    PageEngine::new(device(&design, &profile), options).unwrap()
}

fn device(design: &Design, profile: &Profile) -> Device {
    Device::new(design, profile, Box::new(RopeBacking::new(profile.geometry))).unwrap()
}

/// A life of so many terminals; gives what it did and all that it did mixed.
fn live(options: PageOptions, power_loss: &str, terminals: usize, seed: u64) -> (PageCounters, u64) {
    const KEYS: u64 = 200;
    let mut engine = engine(options, power_loss);
    let (clock, model) = load(&mut engine, KEYS).unwrap();
    let mut terminals = Terminals::new(terminals, KEYS, model, seed, clock);
    terminals.run(&mut engine, clock + Nanos(1_000_000_000)).unwrap();
    engine.device().engine().check_invariants();
    (engine.counters(), terminals.sum)
}

#[test]
fn transactions_are_as_if_one_ran_after_the_other() {
    for locked_unit in [LockedUnit::Record, LockedUnit::Page] {
        for (pool_pages, power_loss) in [(2, "protected"), (8, "volatile"), (1000, "protected"), (8, "ignored")] {
            let (counters, _) = live(PageOptions { pool_pages, locked_unit, ..OPTIONS }, power_loss, 8, 1);
            assert!(counters.commits > 500 && counters.aborts > 50 && counters.victims > 10, "{counters:?}");
            assert!(counters.checkpoints > 5, "{counters:?}");
            assert_eq!(counters.evictions > 100, pool_pages < 100, "{counters:?}");
        }
    }
}

#[test]
fn a_seed_tells_everything() {
    let run = |seed| live(OPTIONS, "protected", 5, seed);
    let once = run(1);
    assert_eq!(once, run(1));
    assert!(once.1 != run(2).1);
}

#[test]
fn one_flush_of_the_log_serves_all_that_wait() {
    let options = PageOptions { pool_pages: 1000, ..OPTIONS };
    let commits_a_flush = |terminals| {
        let (counters, _) = live(options, "protected", terminals, 1);
        counters.commits as f64 / counters.log_flushes as f64
    };
    let (one, many) = (commits_a_flush(1), commits_a_flush(16));
    assert!(one < 1.3 && many > 2.0, "{one} and {many} commits a flush");
}

#[test]
fn transactions_that_hold_a_full_log_are_undone() {
    for power_loss in ["protected", "volatile"] {
        let (counters, _) = live(PageOptions { log_bytes: 128 << 10, ..OPTIONS }, power_loss, 16, 1);
        assert!(counters.commits > 500 && counters.victims > counters.locks.victims, "{counters:?}");
    }
}

#[test]
#[should_panic(expected = "a page is written after its log")]
fn no_page_is_written_before_its_log() {
    let mut engine = engine(OPTIONS, "protected");
    let (clock, _) = load(&mut engine, 50).unwrap();
    let transaction = engine.begin(clock);
    let value = Value::Pattern(Pattern { seed: 1, offset: 0, length: 10 });
    ask(&mut engine, transaction, &Action::Write((1, 0), value), clock).unwrap();
    let (_, page) = engine.store.pool.dirty().next().unwrap();
    let copied = engine.store.copy(page);
    let _ = engine.store.write(&copied, clock);
}

const MEASURED_NS: u64 = 200_000_000;

/// Three records read and written, one inserted, 512 bytes each, as an update of TPC-B does, on a drive of which all is in the pool.
fn update_transactions(locked_unit: LockedUnit, power_loss: &str, terminals: usize) -> PageCounters {
    const ACCOUNTS: u64 = 20_000;
    const TELLERS: u64 = 200;
    const BRANCHES: u64 = 20;
    let design = kvssd_designs::named("block").unwrap();
    let keys = [("memory.power_loss".to_owned(), power_loss.to_owned())];
    let profile = Profile::load("kvvirt", &keys).unwrap().scaled(1.0 / 128.0).unwrap();
    let options = PageOptions { pool_pages: 20_000, log_bytes: 64 << 20, locked_unit };
    let mut engine = PageEngine::new(device(&design, &profile), options).unwrap();
    let value = |seed| Value::Pattern(Pattern { seed, offset: 0, length: 512 });
    let (mut clock, mut model) = (Nanos::ZERO, Model::new());
    for (table, records) in [(1, ACCOUNTS), (2, TELLERS), (3, BRANCHES)] {
        for name in (0..records).map(|number| (table, number)) {
            let key = key_of(name);
            let record = RecordId { table: NamespaceId(table), key: Key::new(&key).unwrap() };
            clock = engine.load(record, value(0), clock).unwrap();
            model.insert(name, value(0));
        }
    }
    let clock = engine.end_load(clock).unwrap();
    let mut number = 0;
    let source = move |random: &mut Random| {
        number += 1;
        let teller = random.below(TELLERS);
        let names = [(1, random.below(ACCOUNTS)), (2, teller), (3, teller * BRANCHES / TELLERS)];
        let updates = names.into_iter().flat_map(|name| [Action::Read(name, true), Action::Write(name, value(number))]);
        updates.chain([Action::Write((4, number), value(number)), Action::Commit]).collect()
    };
    Terminals::of(terminals, Box::new(source), model, 1, clock).run(&mut engine, clock + Nanos(MEASURED_NS)).unwrap();
    engine.counters()
}

#[test]
fn updates_pay_for_the_log_and_page_locks_for_their_neighbours() {
    let measure = |locked_unit, power_loss, terminals| {
        let counters = update_transactions(locked_unit, power_loss, terminals);
        let each = |count: u64| count as f64 / counters.commits as f64;
        eprintln!(
            "{locked_unit:?} {power_loss} {terminals}: {} commits/s, each {:.1} us of cores, {:.0} B of log, {:.0} B of log blocks, \
             {:.0} B of pages, {:.2} flushes of the log, {:.2} waits",
            counters.commits * 1_000_000_000 / MEASURED_NS,
            each(counters.cpu.0) / 1e3,
            each(counters.log_bytes),
            each(counters.traffic.log_bytes_written),
            each(counters.traffic.page_bytes_written),
            each(counters.log_flushes),
            each(counters.locks.waits),
        );
        counters.commits
    };
    let records = [1, 8, 32].map(|terminals| measure(LockedUnit::Record, "protected", terminals));
    let pages = measure(LockedUnit::Page, "protected", 32);
    let volatile = measure(LockedUnit::Record, "volatile", 32);
    assert!(records[0] < records[1], "{records:?}");
    assert!(pages < records[2] && volatile < records[2], "{pages} and {volatile} of {records:?}");
}
