//! KVbench's workloads in a session: population, then a run.

use super::{DELETED, Limit, Session};
use crate::baseline::Baseline;
use crate::error::SimError;
use crate::host::HostPlan;
use crate::report::Run;
use crate::setup::{Bed, Setup};
use crate::workload::{Distribution, KvBench, Operation, PairShape, RunLength};
use kvssd_flash::Profile;
use kvssd_ftl::Design;
use kvssd_measure::Observer;
use kvssd_types::Nanos;

/// The operations that a run of so many seconds is expected to have at most, in a second: popular records are chosen among those that
/// there may be in the end.
const OPERATIONS_PER_SECOND_MAX: u64 = 1_000_000;

impl Session {
    /// Runs a workload of KVbench on what was populated: the report of that, if it is measured, and of the run.
    ///
    /// # Errors
    /// When the drive is full or fails, or the observer interrupts.
    pub(crate) fn run_kvbench(
        &mut self,
        bench: &KvBench,
        population: Run,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Run>, SimError> {
        let records = self.versions.len() as u64;
        let run = self.run_kvbench_mix(bench, records + inserts_max(bench), observer)?;
        Ok(bench.is_population_measured.then_some(population).into_iter().chain([run]).collect())
    }

    /// Finds what is impossible in a workload of KVbench, without running anything.
    ///
    /// # Errors
    /// [`SimError::Setup`], in one line.
    pub fn check_kvbench(design: &Design, profile: &Profile, bench: &KvBench, seed: u64) -> Result<(), SimError> {
        let session = Session::of_kvbench(design, profile, bench, seed)?;
        if bench.records.saturating_add(inserts_max(bench)) > session.keys.records_max() {
            return Err(SimError::Setup("the keys are too short for the records that may be inserted".to_owned()));
        }
        Ok(())
    }

    /// A new drive for a workload of KVbench.
    ///
    /// # Errors
    /// When the workload is impossible.
    pub fn of_kvbench(design: &Design, profile: &Profile, bench: &KvBench, seed: u64) -> Result<Session, SimError> {
        if !design.takes_keys() && bench.percents.deletes > 0 {
            return Err(SimError::Setup(format!(
                "it deletes, and design {} has no deletes: it takes blocks",
                design.name
            )));
        }
        let (keys, sizes) = (bench.keys(seed)?, bench.sizes(seed)?);
        let setup = Setup {
            bed: Bed { design: design.clone(), profile: profile.clone(), seed },
            records: bench.records,
            pairs: PairShape::constant(keys.key_bytes_max(), sizes.bytes_max()),
            hosts: HostPlan::closed(bench.population_threads, bench.queue_depth),
        };
        Session::with(&setup, keys, sizes, 0)
    }

    /// Runs the operations of a workload, which may bring the records to `records_max`, and measures them.
    ///
    /// # Errors
    /// When the drive is full or fails, or the observer interrupts.
    pub fn run_kvbench_mix(
        &mut self,
        bench: &KvBench,
        records_max: u64,
        observer: &mut dyn Observer,
    ) -> Result<Run, SimError> {
        self.setup.hosts = HostPlan::closed(bench.threads, bench.queue_depth);
        // What does not fit is told when it does not, but what has no key would be our own mistake.
        self.setup.check(0, false)?;
        let mut operations = bench.operations(self.versions.len() as u64, records_max);
        if bench.warmup_seconds > 0 {
            let limit = Limit::Time(seconds(bench.warmup_seconds));
            self.phase("warming up", limit, observer, |random| operations.next(random))?;
            // Operations that were drawn ahead and not done are inserts that did not happen.
            operations = bench.operations(self.versions.len() as u64, records_max);
        }
        let limit = match bench.length {
            RunLength::Operations(operations) => Limit::Operations(operations),
            RunLength::Seconds(length) => Limit::Time(seconds(length)),
        };
        let (records, baseline) = (self.present(), Baseline::of(&self.device));
        let measured = self.phase("kvbench-run", limit, observer, |random| operations.next(random))?;
        Ok(self.report("kvbench-run", bench.distribution, records, &baseline, &measured))
    }

    /// The records that are there: those that were inserted and not deleted, of which a run may have had some before.
    fn present(&self) -> u64 {
        self.versions.iter().filter(|version| **version & DELETED == 0).count() as u64
    }

    /// Inserts the records, and measures it.
    ///
    /// # Errors
    /// When the drive is full or fails, or the observer interrupts.
    pub fn populate(&mut self, observer: &mut dyn Observer) -> Result<Run, SimError> {
        self.populate_to(self.setup.records, observer)
    }

    /// Inserts records until there are so many, and measures it.
    ///
    /// # Errors
    /// As [`Session::populate`].
    pub fn populate_to(&mut self, records: u64, observer: &mut dyn Observer) -> Result<Run, SimError> {
        let there = self.versions.len() as u64;
        let (mut next, baseline) = (there, Baseline::of(&self.device));
        let measured = self.phase("kvbench-insert", Limit::Operations(records - there), observer, |_| {
            next += 1;
            Operation::Insert { record: next - 1 }
        })?;
        Ok(self.report("kvbench-insert", Distribution::Sequential, there, &baseline, &measured))
    }
}

/// The most records that the run inserts.
fn inserts_max(bench: &KvBench) -> u64 {
    let operations_max = match bench.length {
        RunLength::Operations(operations) => operations,
        RunLength::Seconds(seconds) => u64::from(seconds) * OPERATIONS_PER_SECOND_MAX,
    };
    operations_max * u64::from(bench.percents.inserts) / 100
}

fn seconds(seconds: u32) -> Nanos {
    Nanos(u64::from(seconds) * 1_000_000_000)
}
