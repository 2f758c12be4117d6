//! Concurrent random transactions on few records: what an engine's isolation is judged by.
//!
//! ```text
//!   2 to 6 times   a record of one of two tables:   read | read, write | read for update, write
//!   1 in 20 rolls back in the end
//! ```
//!
//! Every write follows a read of the same record in the same transaction, so that the order of versions is seen (see
//! [`History`](super::History)). Reads that become writes make locks that are upgraded, and with them deadlocks.
//!
//! What it does not do: inserts, and writes without a read.

use super::access::load;
use super::consistency::{Acknowledged, Consistency};
use super::engine::TransactionEngine;
use super::history::{History, Verdict};
use super::program::{End, Loader, Program, Script, Stop, Table, Transaction, Workload};
use super::report::TransactionReport;
use super::row::{RowId, Rows, Stamp};
use super::terminals::{Limit, Terminals};
use kvssd_measure::Observer;
use kvssd_sim::SimError;
use kvssd_types::{NamespaceId, Nanos, Random};

const TABLES: u64 = 2;
/// Of a hundred transactions, those that roll back.
const ROLL_BACK_PERCENT: u64 = 5;

/// The workload.
pub struct HotRecords {
    records: u64,
    value_bytes: u32,
}

impl HotRecords {
    /// So many records, in two tables.
    ///
    /// # Panics
    /// When there are fewer than two records, or a value has no room for a stamp.
    #[must_use]
    pub fn new(records: u64, value_bytes: u32) -> Self {
        assert!(records >= TABLES && value_bytes >= 16);
        HotRecords { records, value_bytes }
    }

    /// Runs so many transactions on an empty engine, and says whether what they saw is serializable.
    ///
    /// # Errors
    /// When the drive is full or fails, the engine lets all wait for ever, or the observer interrupts.
    pub fn judge(
        mut self,
        engine: &mut dyn TransactionEngine,
        terminals: u32,
        transactions: u64,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<(TransactionReport, Verdict), SimError> {
        let start = load(engine, &self, Nanos::ZERO)?;
        let mut history = History::new();
        let mut terminals = Terminals::new(&mut self, terminals, seed, start);
        let report = terminals.run(engine, Limit::Transactions(transactions), &mut history, observer)?;
        Ok((report, history.verdict()))
    }

    fn row(record: u64) -> RowId {
        RowId { table: NamespaceId(1 + (record % TABLES) as u32), number: record / TABLES }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touch {
    Read,
    ReadThenWrite,
    ReadForUpdate,
}

/// The transaction, with its input.
struct RandomTransaction {
    touches: Vec<(RowId, Touch)>,
    value_bytes: u32,
    end: End,
}

impl Program for RandomTransaction {
    fn run(&self, script: &mut Script<'_>) -> Result<End, Stop> {
        for &(row, touch) in &self.touches {
            if !script.look(row, touch == Touch::ReadForUpdate)? {
                return Err(Stop::Broken(row));
            }
            if touch != Touch::Read {
                script.fill(row, self.value_bytes)?;
            }
        }
        Ok(self.end)
    }
}

impl Workload for HotRecords {
    fn name(&self) -> &str {
        "hot records"
    }

    fn tables(&self) -> Vec<Table> {
        let table = |table| Table {
            id: NamespaceId(1 + table as u32),
            name: ["even", "odd"][table as usize],
            rows: (self.records + TABLES - 1 - table) / TABLES,
            value_bytes: self.value_bytes,
        };
        (0..TABLES).map(table).collect()
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<(), SimError> {
        (0..self.records)
            .map(HotRecords::row)
            .try_for_each(|row| loader(row, Stamp::loaded(row).filler(self.value_bytes)))
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["Random"]
    }

    fn next(&mut self, _terminal: u32, random: &mut Random) -> Transaction {
        let touches = (0..2 + random.below(5)).map(|_| {
            let row = HotRecords::row(random.below(self.records));
            let touch =
                [Touch::Read, Touch::Read, Touch::ReadThenWrite, Touch::ReadForUpdate][random.below(4) as usize];
            (row, touch)
        });
        let touches = touches.collect();
        let end = if random.below(100) < ROLL_BACK_PERCENT { End::RollBack } else { End::Commit };
        let value_bytes = self.value_bytes;
        Transaction { kind: 0, program: Box::new(RandomTransaction { touches, value_bytes, end }) }
    }

    /// Every record is there and whole. What it holds is for the history to judge.
    fn check(&self, rows: &mut Rows<'_>, _acknowledged: &Acknowledged) -> Result<Consistency, SimError> {
        let mut found = Consistency::default();
        for row in (0..self.records).map(HotRecords::row) {
            let stamp = (rows.0)(row)?.as_ref().and_then(Stamp::of);
            found.verify(stamp.is_some(), || format!("record {row} is gone or damaged"));
        }
        Ok(found)
    }

    /// No transaction goes by what others did.
    fn resume(&mut self, _rows: &mut Rows<'_>, _acknowledged: &mut Acknowledged) -> Result<(), SimError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::reference::{Planted, Reference};
    use super::*;
    use kvssd_measure::Quiet;

    #[test]
    fn a_seed_tells_everything() {
        let judge = |seed| {
            let mut engine = Reference::quick(Planted::Nothing);
            HotRecords::new(50, 64).judge(&mut engine, 6, 2_000, seed, &mut Quiet).unwrap()
        };
        assert_eq!(judge(1), judge(1));
        assert_ne!(judge(1), judge(2));
        assert!(judge(1).1.is_serializable() && judge(1).0.refused > 0);
    }
}
