//! Terminals: who runs the transactions of a workload on an engine, in virtual time.
//!
//! ```text
//!            turns: the next terminal in time                        the engine's background, when it is earlier
//!              |
//!   terminal   draw a transaction -> begin -> step -> step -> .. -> commit -> acknowledged -> draw the next
//!                                      ^        |  Again: a later turn
//!                                      |        |  Wait: a turn when the engine says `woken`
//!                                      +--------+  Aborted: the same transaction as a new attempt
//! ```
//!
//! A closed loop: a terminal has one transaction under way, and draws the next when the last was answered, without time to think
//! (KAML, section V-A: threads that issue requests continuously). A transaction counts when the turn of its answer comes, so that
//! what is stopped in between, by a limit of time or a power cut, has promised nothing that it did not.
//!
//! What it does not do: wait before it tries again. An engine must be fair to who waits, or its victims come back for ever.

use super::broken::{all_wait, broken_row};
use super::consistency::Acknowledged;
use super::engine::{Request, Step, TransactionEngine};
use super::program::{Action, End, Script, Stop, Transaction, Workload};
use super::report::{Tally, TransactionReport};
use super::row::Stamp;
use super::witness::{Access, Attempt, Witness};
use kvssd_measure::Observer;
use kvssd_sim::SimError;
use kvssd_transactions::TransactionId;
use kvssd_types::{Nanos, Random, Value};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// How often the observer is told, in transactions.
const REPORT_EVERY: u64 = 1 << 10;

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many transactions are begun, and all are answered.
    Transactions(u64),
    /// The next turn would come later: transactions stay under way, and go on with the next run.
    Until(Nanos),
}

/// A transaction under way at a terminal.
struct Active {
    transaction: Transaction,
    /// When it was begun for the first time.
    began: Nanos,
    attempt: u64,
    id: Option<TransactionId>,
    answers: Vec<Option<Value>>,
    accesses: Vec<Access>,
    stage: Stage,
}

/// What comes at the next turn of a transaction.
enum Stage {
    /// The program says what it wants.
    Run,
    /// The engine is asked this, once more perhaps.
    Ask(Action),
    /// The engine is asked for the end.
    Finish(End),
    /// The answer arrives.
    Ended(End),
}

struct Terminal {
    random: Random,
    active: Option<Active>,
}

/// The terminals of a workload. See the module.
pub struct Terminals<'w> {
    workload: &'w mut dyn Workload,
    terminals: Vec<Terminal>,
    turns: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    turns_given: u64,
    by_transaction: BTreeMap<TransactionId, u32>,
    attempts: u64,
    /// Transactions that may yet be begun.
    to_begin: u64,
    clock: Nanos,
    acknowledged: Acknowledged,
    tally: Tally,
}

impl<'w> Terminals<'w> {
    /// So many terminals, which begin at `start`; `seed` names what they draw.
    #[must_use]
    pub fn new(workload: &'w mut dyn Workload, terminals: u32, seed: u64, start: Nanos) -> Self {
        let kinds = workload.kinds();
        Terminals {
            terminals: (0..terminals)
                .map(|terminal| Terminal { random: Random::stream(seed, u64::from(terminal)), active: None })
                .collect(),
            acknowledged: Acknowledged::none(terminals, kinds.len()),
            tally: Tally::new(kinds),
            workload,
            turns: BinaryHeap::new(),
            turns_given: 0,
            by_transaction: BTreeMap::new(),
            attempts: 0,
            to_begin: 0,
            clock: start,
        }
    }

    /// When the last turn was.
    #[must_use]
    pub fn clock(&self) -> Nanos {
        self.clock
    }

    /// The commits that were answered since the beginning.
    #[must_use]
    pub fn acknowledged(&self) -> &Acknowledged {
        &self.acknowledged
    }

    /// Runs transactions until the limit is reached, and reports on those that ended in this run.
    ///
    /// # Errors
    /// When the drive fails or loses its power, the engine lets all wait for ever or gives back what was never written, or the
    /// observer interrupts. What was acknowledged until then stays.
    pub fn run(
        &mut self,
        engine: &mut dyn TransactionEngine,
        limit: Limit,
        witness: &mut dyn Witness,
        observer: &mut dyn Observer,
    ) -> Result<TransactionReport, SimError> {
        let start = self.clock;
        let (count, end) = match limit {
            Limit::Transactions(count) => (count, Nanos::MAX),
            Limit::Until(end) => (u64::MAX, end),
        };
        let total = if count == u64::MAX { (end - start).0 } else { count };
        observer.begin(&format!("{} {}", engine.name(), self.workload.name()), total);
        self.to_begin = count;
        self.tally = Tally::new(self.workload.kinds());
        let idle = (0..self.terminals.len() as u32).filter(|&at| self.terminals[at as usize].active.is_none());
        for terminal in idle.collect::<Vec<_>>() {
            self.give_turn(start, terminal);
        }
        while let Some(at) = self.next_turn(engine)? {
            if at > end {
                self.forget_idle();
                self.clock = end;
                break;
            }
            let Reverse((at, _, terminal)) = self.turns.pop().expect("there is a turn");
            self.clock = self.clock.max(at);
            let ended = self.turn(engine, terminal, witness)?;
            if ended && self.tally.ended().is_multiple_of(REPORT_EVERY) {
                observer.progress(if count == u64::MAX { (self.clock - start).0 } else { self.tally.ended() });
                if observer.is_interrupted() {
                    return Err(SimError::Interrupted);
                }
            }
        }
        observer.progress(total);
        let (engine, workload) = (engine.name(), self.workload.name());
        Ok(self.tally.report(engine, workload, self.terminals.len() as u32, self.clock - start))
    }

    /// When the next turn is, after the engine has done what it wants to do before; none when every terminal is idle.
    fn next_turn(&mut self, engine: &mut dyn TransactionEngine) -> Result<Option<Nanos>, SimError> {
        loop {
            let turn = self.turns.peek().map(|Reverse((at, ..))| *at);
            match (engine.background_at(), turn) {
                (Some(background), _) if turn.map_or(self.is_busy(), |turn| background <= turn) => {
                    engine.background(background.max(self.clock))?;
                    self.clock = self.clock.max(background);
                    self.wake(engine);
                }
                (_, Some(turn)) => return Ok(Some(turn)),
                (_, None) if self.is_busy() => {
                    let waiting = self.terminals.iter().filter(|terminal| terminal.active.is_some()).count();
                    return Err(all_wait(waiting as u64));
                }
                (_, None) => return Ok(None),
            }
        }
    }

    fn is_busy(&self) -> bool {
        self.terminals.iter().any(|terminal| terminal.active.is_some())
    }

    fn give_turn(&mut self, at: Nanos, terminal: u32) {
        self.turns_given += 1;
        self.turns.push(Reverse((at, self.turns_given, terminal)));
    }

    /// Takes back the turns of terminals that have nothing under way: the next run gives them others.
    fn forget_idle(&mut self) {
        let terminals = &self.terminals;
        self.turns.retain(|Reverse((_, _, terminal))| terminals[*terminal as usize].active.is_some());
    }

    fn wake(&mut self, engine: &mut dyn TransactionEngine) {
        for (transaction, at) in engine.woken() {
            let terminal = *self.by_transaction.get(&transaction).expect("who is woken has a transaction under way");
            self.give_turn(at.max(self.clock), terminal);
        }
    }

    /// One turn of a terminal; gives whether a transaction ended with it.
    fn turn(
        &mut self,
        engine: &mut dyn TransactionEngine,
        terminal: u32,
        witness: &mut dyn Witness,
    ) -> Result<bool, SimError> {
        let at = self.clock;
        let has_ended = self.acknowledge(terminal, at, witness);
        let Terminal { random, active } = &mut self.terminals[terminal as usize];
        if active.is_none() && self.to_begin > 0 {
            self.to_begin -= 1;
            let transaction = self.workload.next(terminal, random);
            *active = Some(Active {
                transaction,
                began: at,
                attempt: 0,
                id: None,
                answers: Vec::new(),
                accesses: Vec::new(),
                stage: Stage::Run,
            });
        }
        let Some(active) = active else { return Ok(has_ended) };
        let id = *active.id.get_or_insert_with(|| {
            self.attempts += 1;
            active.attempt = self.attempts;
            let id = engine.begin(at);
            self.by_transaction.insert(id, terminal);
            id
        });
        active.run()?;
        match active.ask(engine, id, at)? {
            Step::Again(again) => self.give_turn(again.max(at), terminal),
            Step::Wait => {}
            Step::Done(done, value) => {
                if active.answered(value)? {
                    self.by_transaction.remove(&id);
                }
                self.give_turn(done.max(at), terminal);
            }
            Step::Aborted(done) => {
                self.by_transaction.remove(&id);
                self.tally.refused(active.transaction.kind);
                witness.ended(&active.attempt(terminal, None));
                active.restart();
                self.give_turn(done.max(at), terminal);
            }
        }
        self.wake(engine);
        Ok(has_ended)
    }

    /// Counts the transaction whose end is answered now, if there is one.
    fn acknowledge(&mut self, terminal: u32, at: Nanos, witness: &mut dyn Witness) -> bool {
        let active = &mut self.terminals[terminal as usize].active;
        let Some(Active { stage: Stage::Ended(end), .. }) = active else { return false };
        let end = *end;
        let ended = active.take().expect("it has just ended");
        let kind = ended.transaction.kind;
        self.tally.ended_with(kind, end, at - ended.began);
        if end == End::Commit {
            self.acknowledged.add(terminal, kind, 1);
        }
        witness.ended(&ended.attempt(terminal, Some(end)));
        true
    }
}

impl Active {
    /// Asks the program what comes next, when that is not known.
    fn run(&mut self) -> Result<(), SimError> {
        if matches!(self.stage, Stage::Run) {
            self.stage = match self.transaction.program.run(&mut Script::new(self.attempt, &self.answers)) {
                Ok(end) => Stage::Finish(end),
                Err(Stop::Ask(action)) => Stage::Ask(action),
                Err(Stop::Broken(row)) => return Err(broken_row(&row)),
            };
        }
        Ok(())
    }

    fn ask(&self, engine: &mut dyn TransactionEngine, id: TransactionId, at: Nanos) -> Result<Step, SimError> {
        let key_bytes = match &self.stage {
            Stage::Ask(Action::Read { row, .. } | Action::Write { row, .. }) => row.key_bytes(),
            _ => [0; 8],
        };
        let request = match &self.stage {
            Stage::Ask(Action::Read { row, for_update }) => {
                Request::Read { record: row.record(&key_bytes), for_update: *for_update }
            }
            Stage::Ask(Action::Write { row, value }) => {
                Request::Write { record: row.record(&key_bytes), value: value.clone() }
            }
            Stage::Finish(End::Commit) => Request::Commit,
            Stage::Finish(End::RollBack) => Request::Abort,
            Stage::Run | Stage::Ended(_) => unreachable!("there is something to ask for"),
        };
        engine.step(id, &request, at)
    }

    /// Takes the answer to what was asked; gives whether it was to the end.
    fn answered(&mut self, value: Option<Value>) -> Result<bool, SimError> {
        let access = match &self.stage {
            Stage::Finish(end) => {
                self.stage = Stage::Ended(*end);
                return Ok(true);
            }
            Stage::Ask(Action::Read { row, .. }) => {
                let stamp = value.as_ref().map(|value| Stamp::of(value).ok_or_else(|| broken_row(row)));
                Access::Read { row: *row, stamp: stamp.transpose()? }
            }
            Stage::Ask(Action::Write { row, value }) => {
                Access::Write { row: *row, stamp: Stamp::of(value).ok_or_else(|| broken_row(row))? }
            }
            Stage::Run | Stage::Ended(_) => unreachable!("there was something asked for"),
        };
        self.accesses.push(access);
        self.answers.push(value);
        self.stage = Stage::Run;
        Ok(false)
    }

    fn attempt(&self, terminal: u32, end: Option<End>) -> Attempt<'_> {
        Attempt { number: self.attempt, terminal, kind: self.transaction.kind, end, accesses: &self.accesses }
    }

    fn restart(&mut self) {
        self.id = None;
        self.answers.clear();
        self.accesses.clear();
        self.stage = Stage::Run;
    }
}
