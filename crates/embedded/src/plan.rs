//! What is measured.

use crate::records::{HEAD_BYTES, KEY_BYTES};
use crate::stores::memory_bytes;
use crate::{Durability, EmbeddedError};

const RECORDS_MAX: u64 = 1_000_000_000;
const OPERATIONS_MAX: u64 = 1_000_000_000_000;
/// Reads by default, at least: records that are synced one by one are few, and a few reads take no time that can be measured.
const READS_MIN: u64 = 100_000;
const THREADS_MAX: u32 = 256;
const ROUNDS_MAX: u32 = 1000;
/// The largest value of the smallest image that is made for a run.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// A measurement: every durability with every size of value and every number of threads is a cell of it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Pairs that the stores are filled with; where there is none, [`Plan::default_records`].
    pub records: Option<u64>,
    /// Operations of each workload but the fill; where there is none, as many as records, and 100 000 reads at least.
    pub operations: Option<u64>,
    /// Bytes of a value.
    pub values_bytes: Vec<usize>,
    /// Threads that call the store at a time.
    pub threads: Vec<u32>,
    /// What a returned write outlives.
    pub durabilities: Vec<Durability>,
    /// How often everything is done, with fresh stores each time.
    pub rounds: u32,
    /// Of everything that is random.
    pub seed: u64,
    /// Memory of each store for its cache; where none is said, what kvssd takes by default.
    pub cache_bytes: Option<u64>,
}

/// A part of a plan, in which stores can be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) durability: Durability,
    pub(crate) value_bytes: usize,
    pub(crate) threads: u32,
    pub(crate) records: u64,
    pub(crate) operations: u64,
    /// Operations of a workload that only reads.
    pub(crate) reads: u64,
    pub(crate) round: u32,
    pub(crate) seed: u64,
    /// Memory of each store for its cache.
    pub(crate) cache_bytes: u64,
}

impl Plan {
    /// Pairs by default: few enough that a measurement takes a minute or two. Small ones fit into the write buffers of RocksDB.
    #[must_use]
    pub fn default_records(durability: Durability, value_bytes: usize) -> u64 {
        match durability {
            Durability::Process if value_bytes < 1000 => 200_000,
            Durability::Process => 20_000,
            Durability::Sync => 2_000,
        }
    }

    /// # Errors
    /// [`EmbeddedError::Plan`] names the number that cannot be.
    pub(crate) fn check(&self) -> Result<(), EmbeddedError> {
        let wrong = |why: String| Err(EmbeddedError::Plan(why));
        if let Some(&bytes) = self.values_bytes.iter().find(|bytes| !(HEAD_BYTES..=VALUE_BYTES_MAX).contains(bytes)) {
            return wrong(format!("--value-bytes {bytes}: a value has {HEAD_BYTES} to {VALUE_BYTES_MAX} bytes here"));
        }
        if let Some(threads) = self.threads.iter().find(|threads| !(1..=THREADS_MAX).contains(threads)) {
            return wrong(format!("--threads {threads}: there are 1 to {THREADS_MAX} threads"));
        }
        if !(1..=ROUNDS_MAX).contains(&self.rounds) {
            return wrong(format!("--rounds {}: there are 1 to {ROUNDS_MAX} rounds", self.rounds));
        }
        for cell in self.cells() {
            let Cell { records, operations, threads, .. } = cell;
            if !(u64::from(threads)..=RECORDS_MAX).contains(&records) {
                return wrong(format!(
                    "--records {records}: {threads} threads change {threads} to {RECORDS_MAX} records"
                ));
            }
            if !(1..=OPERATIONS_MAX).contains(&operations) {
                return wrong(format!("--operations {operations}: there are 1 to {OPERATIONS_MAX} operations"));
            }
            match memory_bytes(cell.pair_bytes()) {
                Err(why) => return wrong(format!("--records {records} of {} bytes: {why}", cell.value_bytes)),
                Ok(memory) if cell.cache_bytes < memory.firmware => {
                    let least = memory.firmware.div_ceil(1 << 20);
                    let (bytes, pairs) = (cell.cache_bytes, cell.pair_bytes());
                    return wrong(format!(
                        "--cache {bytes}: the firmware of a drive for {pairs} bytes of pairs takes {least}MiB of it"
                    ));
                }
                Ok(_) => {}
            }
        }
        Ok(())
    }

    pub(crate) fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for round in 1..=self.rounds {
            for &durability in &self.durabilities {
                for &value_bytes in &self.values_bytes {
                    for &threads in &self.threads {
                        let records = self.records.unwrap_or(Plan::default_records(durability, value_bytes));
                        let operations = self.operations.unwrap_or(records);
                        let reads = self.operations.unwrap_or(records.max(READS_MIN));
                        let (seed, cache_bytes) = (self.seed, 0);
                        let mut cell = Cell {
                            durability,
                            value_bytes,
                            threads,
                            records,
                            operations,
                            reads,
                            round,
                            seed,
                            cache_bytes,
                        };
                        // A size that cannot be has none; the check says so.
                        let by_default =
                            memory_bytes(cell.pair_bytes()).map_or(0, |memory| memory.firmware + memory.pages);
                        cell.cache_bytes = self.cache_bytes.unwrap_or(by_default);
                        cells.push(cell);
                    }
                }
            }
        }
        cells
    }
}

impl Cell {
    pub(crate) fn name(&self) -> String {
        let Cell { durability, value_bytes, threads, round, .. } = self;
        format!("{durability}-{value_bytes}-bytes-{threads}-threads-{round}")
    }

    /// Bytes of all keys and values.
    pub(crate) fn pair_bytes(&self) -> u64 {
        self.records.saturating_mul((KEY_BYTES + self.value_bytes) as u64)
    }
}
