//! YCSB through an engine with transactions: each operation is one.
//!
//! ```text
//!   read                 read                       commit
//!   update, insert                write             commit
//!   read-modify-write    read for update -> write   commit
//! ```
//!
//! Source: KAML, section V-E and table III: workloads A, B, C, D and F on records of 1024 bytes, through a cache that does not hold
//! all of them. [`cache_records`] tells how many it must hold for a hit ratio.
//!
//! What it does not do: workload E, since engines have no ranges.

use super::consistency::{Acknowledged, Consistency};
use super::lru::StackDistances;
use super::program::{End, Loader, Program, Script, Stop, Table, Transaction, Workload};
use super::row::{RowId, Rows, Stamp};
use kvssd_sim::SimError;
use kvssd_sim::workload::{Operation, Ycsb, YcsbCore};
use kvssd_types::{NamespaceId, Random, mix64};

const TABLE: NamespaceId = NamespaceId::FIRST;
const KINDS: [&str; 4] = ["Read", "Update", "Insert", "ReadModifyWrite"];
const INSERT: usize = 2;

/// Operations of [`cache_records`] for each record: so many that most records were asked for before.
const OPERATIONS_PER_RECORD: u64 = 8;

/// The workload.
pub struct YcsbTransactions {
    core: YcsbCore,
    operations: Ycsb,
    records: u64,
    value_bytes: u32,
}

impl YcsbTransactions {
    /// `core` on so many records; about so many transactions will be asked for.
    ///
    /// # Errors
    /// [`SimError::Setup`] for workload E, for no records and for values without room for a stamp.
    pub fn new(core: YcsbCore, records: u64, value_bytes: u32, transactions: u64) -> Result<Self, SimError> {
        let fail = |why: &str| Err(SimError::Setup(why.to_owned()));
        if core.scans() {
            return fail(&format!("{core} scans ranges, and transactions have none: choose another workload"));
        }
        if records == 0 || value_bytes < 16 {
            return fail("YCSB has a record at least, and values of 16 bytes");
        }
        Ok(YcsbTransactions { core, operations: Ycsb::new(core, None, records, transactions), records, value_bytes })
    }

    /// Neighbours in the order of insertion are none in the order of keys (YCSB core property `insertorder=hashed`).
    fn row(record: u64) -> RowId {
        RowId { table: TABLE, number: mix64(record) >> 8 }
    }
}

/// The records that a cache of the least recently used must hold, so that it has `hit_ratio` of the reads and writes of the workload.
///
/// # Errors
/// [`SimError::Setup`] for a ratio that is not 0 to 1.
///
/// # Panics
/// When there are no records.
pub fn cache_records(core: YcsbCore, records: u64, hit_ratio: f64, seed: u64) -> Result<u64, SimError> {
    if !(0.0..=1.0).contains(&hit_ratio) {
        return Err(SimError::Setup(format!("a hit ratio is 0 to 1, not {hit_ratio}")));
    }
    let count = records.saturating_mul(OPERATIONS_PER_RECORD);
    let mut operations = Ycsb::new(core, None, records, count);
    let mut random = Random::new(seed);
    let accesses = (0..count).map(|_| operations.next(&mut random).record());
    let counted = (0..).zip(accesses).map(|(at, access)| (access, at >= count / 2));
    Ok(StackDistances::of(counted).records_for(hit_ratio))
}

/// The transaction, with its input.
struct Single {
    operation: Operation,
    value_bytes: u32,
}

impl Program for Single {
    fn run(&self, script: &mut Script<'_>) -> Result<End, Stop> {
        let row = YcsbTransactions::row(self.operation.record());
        if matches!(self.operation, Operation::Read { .. } | Operation::ReadModifyWrite { .. }) {
            let for_update = matches!(self.operation, Operation::ReadModifyWrite { .. });
            // An inserted record may be asked for before its transaction has committed.
            script.look(row, for_update)?;
        }
        if !matches!(self.operation, Operation::Read { .. }) {
            script.fill(row, self.value_bytes)?;
        }
        Ok(End::Commit)
    }
}

impl Workload for YcsbTransactions {
    fn name(&self) -> &str {
        self.core.name()
    }

    fn tables(&self) -> Vec<Table> {
        vec![Table { id: TABLE, name: "usertable", rows: self.records, value_bytes: self.value_bytes }]
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<(), SimError> {
        (0..self.records)
            .map(YcsbTransactions::row)
            .try_for_each(|row| loader(row, Stamp::loaded(row).filler(self.value_bytes)))
    }

    fn kinds(&self) -> &'static [&'static str] {
        &KINDS
    }

    fn next(&mut self, _terminal: u32, random: &mut Random) -> Transaction {
        let operation = self.operations.next(random);
        let kind = match operation {
            Operation::Read { .. } => 0,
            Operation::Update { .. } => 1,
            Operation::Insert { .. } => INSERT,
            Operation::ReadModifyWrite { .. } => 3,
            Operation::Delete { .. } | Operation::Scan { .. } => unreachable!("refused in the beginning"),
        };
        Transaction { kind, program: Box::new(Single { operation, value_bytes: self.value_bytes }) }
    }

    /// Every record is there and whole; of those inserted, as many as were acknowledged.
    fn check(&self, rows: &mut Rows<'_>, acknowledged: &Acknowledged) -> Result<Consistency, SimError> {
        let mut found = Consistency::default();
        let mut inserted = 0;
        for record in 0..self.operations.records_now() {
            let row = YcsbTransactions::row(record);
            let value = (rows.0)(row)?;
            let is_whole = value.as_ref().is_some_and(|value| Stamp::of(value).is_some());
            if record < self.records || value.is_some() {
                found.verify(is_whole, || format!("record {record} is gone or damaged"));
            }
            inserted += u64::from(record >= self.records && value.is_some());
        }
        let (promised, under_way) = (acknowledged.commits_of_kind(INSERT), u64::from(acknowledged.terminals()));
        found.verify((promised..=promised + under_way).contains(&inserted), || {
            format!("{inserted} records were inserted, and {promised} were acknowledged")
        });
        Ok(found)
    }

    fn resume(&mut self, rows: &mut Rows<'_>, acknowledged: &mut Acknowledged) -> Result<(), SimError> {
        let mut inserted = 0;
        for record in self.records..self.operations.records_now() {
            inserted += u64::from((rows.0)(YcsbTransactions::row(record))?.is_some());
        }
        // Whose they were nobody asks.
        acknowledged.add(0, INSERT, inserted.saturating_sub(acknowledged.commits_of_kind(INSERT)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::reference::{Planted, Reference};
    use super::super::tests::live;
    use super::*;

    #[test]
    fn every_operation_is_a_transaction() {
        for core in YcsbCore::ALL.into_iter().filter(|core| *core != YcsbCore::E) {
            let mut workload = YcsbTransactions::new(core, 500, 1024, 2_000).unwrap();
            let life = live(&mut workload, &mut Reference::quick(Planted::Nothing), 8, 2_000);
            assert!(life.consistency.holds(), "{core}: {:?}", life.consistency);
            let committed: Vec<u64> = life.report.kinds.iter().map(|kind| kind.committed).collect();
            assert_eq!(committed.iter().sum::<u64>(), 2_000);
            assert_eq!(committed[2] > 0, core == YcsbCore::D);
            assert_eq!(committed[3] > 0, core == YcsbCore::F);
        }
        assert!(YcsbTransactions::new(YcsbCore::E, 500, 1024, 1).is_err());
    }

    #[test]
    fn a_larger_hit_ratio_takes_a_larger_cache() {
        let sizes = [0.0, 0.5, 0.8, 1.0].map(|ratio| cache_records(YcsbCore::C, 10_000, ratio, 1).unwrap());
        assert!(sizes.is_sorted() && sizes[0] == 0 && sizes[3] <= 10_000, "{sizes:?}");
        // YCSB spreads the ranks beyond the number of records evenly: of 10 000 records that is 62 of 100 requests.
        assert!((2_500..4_500).contains(&sizes[1]), "{sizes:?}");
        assert!(cache_records(YcsbCore::C, 10, 1.5, 1).is_err());
    }
}
