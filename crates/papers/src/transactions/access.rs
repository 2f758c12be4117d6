//! Access to an engine's tables from outside of the benchmark: loading before it, reading after it.

use super::broken::all_wait;
use super::consistency::{Acknowledged, Consistency};
use super::engine::{Request, Step, TransactionEngine};
use super::program::Workload;
use super::row::{RowId, Rows};
use kvssd_sim::SimError;
use kvssd_transactions::TransactionId;
use kvssd_types::{Nanos, Value};

/// Puts a workload's rows into an engine's empty tables; gives when transactions may begin.
///
/// # Errors
/// When the drive is full or fails.
pub fn load(engine: &mut dyn TransactionEngine, workload: &dyn Workload, start: Nanos) -> Result<Nanos, SimError> {
    let mut clock = start;
    workload.load(&mut |row, value| {
        clock = engine.load(row.record(&row.key_bytes()), value, clock)?;
        Ok(())
    })?;
    engine.end_load(clock)
}

/// Verifies a workload's tables through the reads of an engine that has nothing else to do.
///
/// # Errors
/// When the drive fails, or rows cannot be read.
pub fn check(
    engine: &mut dyn TransactionEngine,
    workload: &dyn Workload,
    acknowledged: &Acknowledged,
    start: Nanos,
) -> Result<Consistency, SimError> {
    let mut clock = start;
    let mut read = |row| {
        let (done, value) = read(engine, row, clock)?;
        clock = done;
        Ok(value)
    };
    workload.check(&mut Rows(&mut read), acknowledged)
}

/// Reads a row in a transaction of its own, while there is no other; gives when that is over, and the value.
///
/// # Errors
/// When the drive fails, or the engine lets the only transaction wait for ever.
pub fn read(engine: &mut dyn TransactionEngine, row: RowId, start: Nanos) -> Result<(Nanos, Option<Value>), SimError> {
    let key_bytes = row.key_bytes();
    let read = Request::Read { record: row.record(&key_bytes), for_update: false };
    let mut alone = Alone { engine, clock: start };
    loop {
        let transaction = alone.engine.begin(alone.clock);
        let Some(value) = alone.ask(transaction, &read)? else { continue };
        if alone.ask(transaction, &Request::Commit)?.is_some() {
            return Ok((alone.clock, value));
        }
    }
}

/// The only one at an engine.
struct Alone<'e> {
    engine: &'e mut dyn TransactionEngine,
    clock: Nanos,
}

impl Alone<'_> {
    /// Asks until it is answered; none when the engine refuses the transaction.
    fn ask(&mut self, id: TransactionId, request: &Request<'_>) -> Result<Option<Option<Value>>, SimError> {
        loop {
            while let Some(background) = self.engine.background_at().filter(|background| *background <= self.clock) {
                self.engine.background(background)?;
            }
            match self.engine.step(id, request, self.clock)? {
                Step::Again(again) => self.clock = self.clock.max(again),
                Step::Wait => self.wait(id)?,
                Step::Done(done, value) => {
                    self.clock = self.clock.max(done);
                    return Ok(Some(value));
                }
                Step::Aborted(done) => {
                    self.clock = self.clock.max(done);
                    return Ok(None);
                }
            }
        }
    }

    /// Lets the engine work in the background until it wakes the transaction.
    fn wait(&mut self, id: TransactionId) -> Result<(), SimError> {
        loop {
            if let Some((_, at)) = self.engine.woken().into_iter().find(|(woken, _)| *woken == id) {
                self.clock = self.clock.max(at);
                return Ok(());
            }
            let background = self.engine.background_at().ok_or(all_wait(1))?;
            self.clock = self.clock.max(background);
            self.engine.background(self.clock)?;
        }
    }
}
