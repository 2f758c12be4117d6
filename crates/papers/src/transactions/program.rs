//! Programs of transactions, and workloads made of them.
//!
//! ```text
//!   Workload::next -> Program                      what one transaction does, and its input, which stays the same when it is
//!                        | run(script)             tried again
//!                        v
//!   Script   read -> answer 0    write -> answer 1    read -> Stop::Ask: the next request
//!            ------------- known by now -----------   ------- to be asked now ----------
//! ```
//!
//! A program is written as if every request were answered at once. It is run from its beginning again and again: what was answered
//! before is taken from the script, and the first request without an answer ends the run with `?`. So it must be a function of its
//! input and the answers alone. A transaction of n requests takes n^2 / 2 steps of a script, of some nanoseconds each, and no state
//! machine of its own.

use super::consistency::{Acknowledged, Consistency};
use super::row::{Row, RowId, Rows, Stamp};
use kvssd_sim::SimError;
use kvssd_types::{NamespaceId, Random, Value};

/// What a program asks for.
#[derive(Clone, Debug)]
pub enum Action {
    /// A row.
    Read {
        /// Which.
        row: RowId,
        /// It will be written.
        for_update: bool,
    },
    /// A new value of a row, which may not be there yet.
    Write {
        /// Which.
        row: RowId,
        /// The value.
        value: Value,
    },
}

/// How a program ends its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All that it wrote is to be there.
    Commit,
    /// Nothing of it is to be there.
    RollBack,
}

/// Why a program has not come to its end.
#[derive(Clone, Debug)]
pub enum Stop {
    /// This has to be answered first.
    Ask(Action),
    /// A row is not there that must be, or is not whole.
    Broken(RowId),
}

/// What a transaction does.
pub trait Program {
    /// Runs as far as the script's answers go.
    ///
    /// # Errors
    /// [`Stop`], to be passed on.
    fn run(&self, script: &mut Script<'_>) -> Result<End, Stop>;
}

/// The answers that a transaction got so far.
pub struct Script<'a> {
    answers: &'a [Option<Value>],
    position: usize,
    writes: u64,
    attempt: u64,
}

impl<'a> Script<'a> {
    pub(super) fn new(attempt: u64, answers: &'a [Option<Value>]) -> Self {
        Script { answers, position: 0, writes: 0, attempt }
    }

    /// Reads a row, if it is there.
    ///
    /// # Errors
    /// [`Stop`], to be passed on.
    pub fn find<R: Row>(&mut self, number: u64) -> Result<Option<R>, Stop> {
        self.typed(RowId::of::<R>(number), false)
    }

    /// Reads a row that is there.
    ///
    /// # Errors
    /// [`Stop`], to be passed on.
    pub fn read<R: Row>(&mut self, number: u64) -> Result<R, Stop> {
        let row = RowId::of::<R>(number);
        self.typed(row, false)?.ok_or(Stop::Broken(row))
    }

    /// Reads a row that is there and will be written.
    ///
    /// # Errors
    /// [`Stop`], to be passed on.
    pub fn read_for_update<R: Row>(&mut self, number: u64) -> Result<R, Stop> {
        let row = RowId::of::<R>(number);
        self.typed(row, true)?.ok_or(Stop::Broken(row))
    }

    /// Updates or inserts a row.
    ///
    /// # Errors
    /// [`Stop`], to be passed on.
    pub fn write<R: Row>(&mut self, number: u64, row: &R) -> Result<(), Stop> {
        self.store(RowId::of::<R>(number), |stamp| row.to_value(stamp))
    }

    /// Reads a value, whatever it holds; gives whether it is there.
    ///
    /// # Errors
    /// [`Stop`], to be passed on.
    pub fn look(&mut self, row: RowId, for_update: bool) -> Result<bool, Stop> {
        Ok(self.answer(|| Action::Read { row, for_update })?.is_some())
    }

    /// Writes a value that holds nothing but its stamp.
    ///
    /// # Errors
    /// [`Stop`], to be passed on.
    pub fn fill(&mut self, row: RowId, value_bytes: u32) -> Result<(), Stop> {
        self.store(row, |stamp| stamp.filler(value_bytes))
    }

    fn typed<R: Row>(&mut self, row: RowId, for_update: bool) -> Result<Option<R>, Stop> {
        let Some(value) = self.answer(|| Action::Read { row, for_update })? else { return Ok(None) };
        R::of_value(value).map(Some).ok_or(Stop::Broken(row))
    }

    fn store(&mut self, row: RowId, value: impl FnOnce(Stamp) -> Value) -> Result<(), Stop> {
        let stamp = Stamp::written(self.attempt, self.writes);
        self.writes += 1;
        self.answer(|| Action::Write { row, value: value(stamp) })?;
        Ok(())
    }

    fn answer(&mut self, action: impl FnOnce() -> Action) -> Result<Option<&'a Value>, Stop> {
        let answer = self.answers.get(self.position);
        self.position += 1;
        answer.map(Option::as_ref).ok_or_else(|| Stop::Ask(action()))
    }
}

/// A transaction of a workload.
pub struct Transaction {
    /// Which of [`Workload::kinds`] it is.
    pub kind: usize,
    /// What it does.
    pub program: Box<dyn Program>,
}

/// A table of a workload, so that an engine can be made for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The namespace: they are numbered from 1 on without gaps.
    pub id: NamespaceId,
    /// The name in reports.
    pub name: &'static str,
    /// The rows that are loaded.
    pub rows: u64,
    /// Bytes of each value.
    pub value_bytes: u32,
}

impl Table {
    /// The table of `R`.
    #[must_use]
    pub fn of<R: Row>(name: &'static str, rows: u64) -> Table {
        Table { id: R::TABLE, name, rows, value_bytes: R::VALUE_BYTES }
    }
}

/// Takes the rows that are loaded, one after the other.
pub type Loader<'l> = dyn FnMut(RowId, Value) -> Result<(), SimError> + 'l;

/// Tables, transactions on them, and what must hold whatever happened.
pub trait Workload {
    /// The name in reports.
    fn name(&self) -> &str;

    /// The tables, in the order of their numbers.
    fn tables(&self) -> Vec<Table>;

    /// Gives every row that there is in the beginning.
    ///
    /// # Errors
    /// Those of the loader.
    fn load(&self, loader: &mut Loader<'_>) -> Result<(), SimError>;

    /// The kinds of its transactions.
    fn kinds(&self) -> &'static [&'static str];

    /// The next transaction of a terminal.
    fn next(&mut self, terminal: u32, random: &mut Random) -> Transaction;

    /// Verifies all that must hold while no transaction is under way, or after a power cut: then of those that were under way some
    /// may have been committed.
    ///
    /// # Errors
    /// When the rows cannot be read. That they are wrong is no error here.
    fn check(&self, rows: &mut Rows<'_>, acknowledged: &Acknowledged) -> Result<Consistency, SimError>;

    /// Goes on behind a power cut with what the tables hold, which was verified: of the transactions that were under way, those that
    /// were committed are acknowledged from now on, and the others were never drawn.
    ///
    /// # Errors
    /// When the rows cannot be read.
    fn resume(&mut self, rows: &mut Rows<'_>, acknowledged: &mut Acknowledged) -> Result<(), SimError>;
}
