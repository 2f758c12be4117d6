//! Many transactions at once on a drive that takes its time, in any order of events: what was committed must be what one after
//! the other, in the order of their commits, would have read and left.

use kvssd_transactions::{
    Access, AccessStep, CommitStep, Granularity, Isolation, PlantedBug, PutOutcome, Record, Refusal,
    TransactionCounters, TransactionId, TransactionManager, TransactionOptions, ViewStep, WriteSet,
};
use kvssd_types::{Key, NamespaceId, Random, Value};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

type RecordKey = (u32, Box<[u8]>);
type State = BTreeMap<RecordKey, Vec<u8>>;

/// What happened in a transaction, step by step.
#[derive(Clone, Debug)]
struct Event {
    record: RecordKey,
    access: Access,
    answer: AccessStep,
}

/// Where one that runs transactions is.
enum Phase {
    Ready,
    Waits,
    /// The drive reads: at some moment until it answers.
    Fetches(Option<Option<Value>>),
    /// The drive writes: at some moment until it answers.
    Puts(Arc<WriteSet>, bool),
    /// The drive makes a view, which is there at once.
    Views(State),
}

struct Terminal {
    transaction: TransactionId,
    isolation: Isolation,
    phase: Phase,
    accesses_left: u64,
    next: Option<(RecordKey, Access)>,
    events: Vec<Event>,
    view: Option<State>,
}

struct World {
    random: Random,
    manager: TransactionManager,
    mix: Vec<Isolation>,
    records: u64,
    drive: State,
    /// Where each transaction belongs in the serial order, and what it did, once that is sure.
    order: Vec<TransactionId>,
    committed: BTreeMap<TransactionId, Vec<Event>>,
    values: u64,
    cache_bytes: u64,
}

#[derive(Clone, Debug)]
struct Setup {
    seed: u64,
    mix: Vec<Isolation>,
    records: u64,
    records_per_lock: u64,
    cache_bytes: u64,
    planted: Option<PlantedBug>,
}

const TERMINALS: usize = 6;
const COMMITS: usize = 60;

impl World {
    fn new(setup: &Setup) -> World {
        let granularity = Granularity::records(setup.records_per_lock);
        let options = TransactionOptions { cache_bytes: setup.cache_bytes, granularity, planted: setup.planted };
        World {
            random: Random::new(setup.seed),
            manager: TransactionManager::new(&options),
            mix: setup.mix.clone(),
            records: setup.records,
            drive: State::new(),
            order: Vec::new(),
            committed: BTreeMap::new(),
            values: 0,
            cache_bytes: setup.cache_bytes,
        }
    }

    fn begin(&mut self) -> Terminal {
        let isolation = self.mix[self.random.below(self.mix.len() as u64) as usize];
        let transaction = self.manager.begin(isolation);
        let accesses_left = self.random.below(6);
        let phase = Phase::Ready;
        Terminal { transaction, isolation, phase, accesses_left, next: None, events: Vec::new(), view: None }
    }

    fn draw(&mut self, is_snapshot: bool) -> (RecordKey, Access) {
        let number = self.random.below(self.records);
        let record = (1 + (number % 2) as u32, Box::from(number.to_be_bytes()));
        self.values += 1;
        let value = Value::from(&self.values.to_be_bytes()[..1 + self.values as usize % 8]);
        let access = match self.random.below(if is_snapshot { 4 } else { 10 }) {
            0..4 => Access::Read,
            4 => Access::ReadForUpdate,
            5 => Access::Update(value),
            6 => Access::Insert(value),
            7 | 8 => Access::Write(value),
            _ => Access::Delete,
        };
        (record, access)
    }

    /// Does one thing for a terminal; gives whether its transaction has ended.
    fn step(&mut self, terminal: &mut Terminal) -> bool {
        let id = terminal.transaction;
        match std::mem::replace(&mut terminal.phase, Phase::Ready) {
            Phase::Ready if terminal.isolation == Isolation::Snapshot && terminal.view.is_none() => {
                match self.manager.view(id) {
                    ViewStep::Make => terminal.phase = Phase::Views(self.drive.clone()),
                    ViewStep::Wait => terminal.phase = Phase::Waits,
                }
                false
            }
            Phase::Ready if terminal.next.is_some() || terminal.accesses_left > 0 => self.access(terminal),
            Phase::Ready => {
                let step = self.manager.commit(id);
                self.commit_step(terminal, step)
            }
            Phase::Waits => panic!("who waits does nothing"),
            Phase::Views(state) => {
                terminal.view = Some(state);
                self.manager.viewed(id, true);
                self.order.push(id);
                false
            }
            Phase::Fetches(value) => {
                let record = terminal.next.as_ref().expect("it is for an access").0.clone();
                let value = value.unwrap_or_else(|| self.read(terminal, &record));
                self.manager.fetched(id, name(&record), value);
                false
            }
            Phase::Puts(writes, false) if self.random.below(2) == 0 => {
                apply(&mut self.drive, &writes);
                terminal.phase = Phase::Puts(writes, true);
                false
            }
            Phase::Puts(writes, is_applied) => {
                let is_refused = !is_applied && self.random.below(8) == 0;
                if !is_applied && !is_refused {
                    apply(&mut self.drive, &writes);
                }
                let outcome = if is_refused { PutOutcome::Refused } else { PutOutcome::Done };
                let step = self.manager.put_done(id, outcome);
                self.commit_step(terminal, step)
            }
        }
    }

    fn read(&self, terminal: &Terminal, record: &RecordKey) -> Option<Value> {
        terminal.view.as_ref().unwrap_or(&self.drive).get(record).map(|bytes| Value::from(&bytes[..]))
    }

    fn access(&mut self, terminal: &mut Terminal) -> bool {
        if self.random.below(40) == 0 {
            self.manager.abort(terminal.transaction);
            return true;
        }
        let (record, access) =
            terminal.next.take().unwrap_or_else(|| self.draw(terminal.isolation == Isolation::Snapshot));
        match self.manager.access(terminal.transaction, name(&record), &access) {
            answer @ (AccessStep::Ready(_) | AccessStep::Refused(_)) => {
                terminal.events.push(Event { record, access, answer });
                terminal.accesses_left = terminal.accesses_left.saturating_sub(1);
                return false;
            }
            AccessStep::Fetch => {
                let now = (self.random.below(2) == 0).then(|| self.read(terminal, &record));
                terminal.phase = Phase::Fetches(now);
            }
            AccessStep::Wait => terminal.phase = Phase::Waits,
            AccessStep::Aborted(_) => return true,
        }
        terminal.next = Some((record, access));
        false
    }

    fn commit_step(&mut self, terminal: &mut Terminal, step: CommitStep) -> bool {
        let id = terminal.transaction;
        match step {
            CommitStep::Put(writes) => {
                self.order.push(id);
                terminal.phase = Phase::Puts(writes, false);
                false
            }
            CommitStep::Wait => {
                terminal.phase = Phase::Waits;
                false
            }
            CommitStep::Done => {
                if !self.order.contains(&id) {
                    self.order.push(id);
                }
                self.committed.insert(id, terminal.events.clone());
                true
            }
            CommitStep::Aborted(_) => true,
        }
    }

    fn run(&mut self) -> Result<(), String> {
        let mut terminals: Vec<Terminal> = (0..TERMINALS).map(|_| self.begin()).collect();
        while self.committed.len() < COMMITS {
            let able: Vec<usize> =
                (0..TERMINALS).filter(|&index| !matches!(terminals[index].phase, Phase::Waits)).collect();
            if able.is_empty() {
                return Err("everybody waits, and nobody is woken".to_owned());
            }
            let index = able[self.random.below(able.len() as u64) as usize];
            if self.step(&mut terminals[index]) {
                check_own(&terminals[index])?;
                self.manager.free(terminals[index].transaction);
                terminals[index] = self.begin();
            }
            for woken in self.manager.woken() {
                if let Some(terminal) = terminals.iter_mut().find(|terminal| terminal.transaction == woken) {
                    assert!(matches!(terminal.phase, Phase::Waits), "who did not wait is woken");
                    terminal.phase = Phase::Ready;
                }
            }
            assert!(self.manager.cache_bytes() <= self.cache_bytes);
        }
        // Puts that are under way are to be seen to their end.
        for terminal in &mut terminals {
            while matches!(terminal.phase, Phase::Puts(..)) {
                self.step(terminal);
            }
        }
        self.check()
    }

    /// Runs the committed transactions one after the other on a plain map.
    fn check(&self) -> Result<(), String> {
        let mut state = State::new();
        let committed = self.order.iter().filter_map(|id| Some((id, self.committed.get(id)?)));
        for (id, events) in committed {
            for Event { record, access, answer } in events {
                let before = state.get(record).map(|bytes| Value::from(&bytes[..]));
                let expected = match access {
                    Access::Read | Access::ReadForUpdate => AccessStep::Ready(before.clone()),
                    Access::Update(_) if before.is_none() => AccessStep::Refused(Refusal::NoSuchRecord),
                    Access::Insert(_) if before.is_some() => AccessStep::Refused(Refusal::RecordExists),
                    _ => AccessStep::Ready(None),
                };
                if *answer != expected {
                    return Err(format!("{id} got {answer:?} for {access:?} of {record:?}, and not {expected:?}"));
                }
                match (access, answer) {
                    (Access::Update(value) | Access::Insert(value) | Access::Write(value), AccessStep::Ready(_)) => {
                        state.insert(record.clone(), value.to_vec());
                    }
                    (Access::Delete, _) => {
                        state.remove(record);
                    }
                    _ => {}
                }
            }
        }
        if state == self.drive { Ok(()) } else { Err(format!("{:?} is left, and not {state:?}", self.drive)) }
    }
}

/// A transaction, committed or not, sees nothing that contradicts what it saw or wrote before.
fn check_own(terminal: &Terminal) -> Result<(), String> {
    let mut known: BTreeMap<&RecordKey, Option<Value>> = BTreeMap::new();
    for Event { record, access, answer } in &terminal.events {
        let seen = match (access, answer) {
            (Access::Read | Access::ReadForUpdate, AccessStep::Ready(value)) => value.clone(),
            (Access::Update(_), AccessStep::Refused(_)) => None,
            (Access::Write(value) | Access::Update(value) | Access::Insert(value), AccessStep::Ready(_)) => {
                let before = known.insert(record, Some(value.clone()));
                match (access, before) {
                    (Access::Update(_), Some(None)) | (Access::Insert(_), Some(Some(_))) => {
                        return Err(format!("{} could {access:?} {record:?}", terminal.transaction));
                    }
                    _ => continue,
                }
            }
            (Access::Delete, _) => None,
            _ => continue,
        };
        let before = known.insert(record, seen.clone());
        if !matches!(access, Access::Delete) && before.is_some_and(|before| before != seen) {
            return Err(format!("{} saw {record:?} change to {seen:?}", terminal.transaction));
        }
    }
    Ok(())
}

fn name(record: &RecordKey) -> Record<'_> {
    Record { namespace: NamespaceId(record.0), key: Key::new(&record.1).expect("eight bytes are a key") }
}

fn apply(drive: &mut State, writes: &WriteSet) {
    for change in writes.changes() {
        let record = (change.namespace.0, Box::from(change.key.bytes()));
        match change.value {
            Some(value) => drive.insert(record, value.to_vec()),
            None => drive.remove(&record),
        };
    }
}

fn run(setup: &Setup) -> Result<TransactionCounters, String> {
    let mut world = World::new(setup);
    world.run()?;
    Ok(world.manager.counters())
}

const LOCKING: Isolation = Isolation::TwoPhaseLocking;
const OPTIMISTIC: Isolation = Isolation::Optimistic;
const SNAPSHOT: Isolation = Isolation::Snapshot;

fn mixes() -> [Vec<Isolation>; 4] {
    [vec![LOCKING], vec![OPTIMISTIC], vec![LOCKING, OPTIMISTIC], vec![LOCKING, OPTIMISTIC, SNAPSHOT]]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn what_is_committed_is_what_one_after_the_other_would_have_been(
        seed: u64, mix in 0usize..4, records in 1u64..12, records_per_lock in 1u64..4, cache_bytes in 0u64..1500,
    ) {
        let mix = mixes()[mix].clone();
        let setup = Setup { seed, mix, records, records_per_lock, cache_bytes, planted: None };
        if let Err(why) = run(&setup) {
            return Err(TestCaseError::fail(why));
        }
    }
}

#[test]
fn the_runs_reach_what_they_are_about() {
    for mix in mixes() {
        let mut sums = [0; 6];
        for seed in 0..20 {
            let setup =
                Setup { seed, mix: mix.clone(), records: 8, records_per_lock: 1, cache_bytes: 600, planted: None };
            let counters = run(&setup).unwrap();
            let TransactionCounters { deadlocks, conflicts, locks, cache, .. } = counters;
            let reached = [deadlocks, conflicts, locks.waits, cache.hits, cache.misses, cache.evictions];
            reached.iter().zip(&mut sums).for_each(|(count, sum)| *sum += count);
        }
        assert_eq!(sums[0] > 0, mix.contains(&LOCKING), "deadlocks with {mix:?}: {sums:?}");
        assert_eq!(sums[1] > 0, mix.contains(&OPTIMISTIC), "conflicts with {mix:?}: {sums:?}");
        assert!(sums[2..].iter().all(|&sum| sum > 0), "{mix:?}: {sums:?}");
    }
}

#[test]
fn planted_bugs_are_found() {
    for (planted, mix) in [
        (PlantedBug::UnlockedRead, vec![LOCKING]),
        (PlantedBug::UncheckedRead, vec![OPTIMISTIC]),
        (PlantedBug::NewerSnapshot, vec![LOCKING, SNAPSHOT]),
    ] {
        let setup = |seed| Setup {
            seed,
            mix: mix.clone(),
            records: 4,
            records_per_lock: 1,
            cache_bytes: 1000,
            planted: Some(planted),
        };
        assert!((0..20).any(|seed| run(&setup(seed)).is_err()), "{planted:?} is not found");
    }
}
