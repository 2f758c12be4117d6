//! What is done with a drive, family by family: YCSB, KVbench, db_bench.

use super::filled::Begun;
use crate::chrome_trace::TraceWindow;
use crate::dbbench::{DbBench, DbBenchSession, DbBenchmark};
use crate::error::SimError;
use crate::report::Run;
use crate::rounds::Rounds;
use crate::session::{Session, YcsbWork};
use crate::setup::{Bed, Setup};
use crate::workload::{Distribution, KvBench, RunLength, YcsbCore};
use kvssd_measure::Observer;
use serde::{Deserialize, Serialize};

/// What is done with a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "kebab-case")]
pub enum Work {
    /// Fill, overwrite, a workload of YCSB.
    Ycsb(YcsbWork),
    /// A population and a run of KVbench.
    Kvbench(KvBenchWork),
    /// Benchmarks of db_bench, one after the other.
    DbBench(DbBenchWork),
}

/// A population and a run of KVbench.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KvBenchWork {
    /// The text of the ini file.
    pub ini: String,
}

/// Benchmarks of db_bench, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DbBenchWork {
    /// Which, in their order.
    pub benchmarks: Vec<DbBenchmark>,
    /// Records that there may be.
    pub records: u64,
    /// Operations of each benchmark that does not go over all records.
    pub operations: u64,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Calls of Next behind a Seek.
    pub scan_length: u32,
    /// Threads.
    pub threads: u32,
}

impl Work {
    pub(super) fn check(&self, bed: &Bed) -> Result<(), SimError> {
        match self {
            Work::Ycsb(work) => work.session(bed).map(|_| ()),
            Work::Kvbench(work) => Session::check_kvbench(&bed.design, &bed.profile, &work.parsed()?, bed.seed),
            Work::DbBench(work) => work.session(bed).map(|_| ()),
        }
    }

    /// All that decides the drive as it is when the run begins.
    pub(super) fn filling(&self) -> String {
        match self {
            Work::Ycsb(work) => format!("{:?}", work.filling()),
            Work::Kvbench(work) => {
                work.parsed().map_or_else(|_| work.ini.clone(), |bench| format!("{:?}", bench.population()))
            }
            Work::DbBench(work) => format!("{:?}", work.filling()),
        }
    }

    /// A new drive, brought to where the run begins.
    pub(super) fn fill(&self, bed: &Bed, observer: &mut dyn Observer) -> Result<Begun, SimError> {
        match self {
            Work::Ycsb(work) => {
                let mut session = work.session(bed)?;
                session.fill(observer)?;
                session.overwrite(work.overwrites, observer)?;
                Ok(Begun::Ycsb(Box::new(session)))
            }
            Work::Kvbench(work) => {
                let mut session = Session::of_kvbench(&bed.design, &bed.profile, &work.parsed()?, bed.seed)?;
                let population = session.populate(observer)?;
                Ok(Begun::Kvbench(Box::new(session), Box::new(population)))
            }
            Work::DbBench(work) => {
                let mut session = work.session(bed)?;
                let (fills, _) = work.fills();
                let runs = work.run(&mut session, fills, observer)?;
                Ok(Begun::DbBench(Box::new(session), runs))
            }
        }
    }

    /// All its runs, on a drive of its own filling. YCSB alone records what a window asks for.
    pub(super) fn run_on(
        &self,
        begun: Begun,
        trace: Option<TraceWindow>,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Run>, SimError> {
        match (self, begun) {
            (Work::Ycsb(work), Begun::Ycsb(mut session)) => Ok(vec![session.run_work(work, trace, observer)?]),
            (Work::Kvbench(work), Begun::Kvbench(mut session, population)) => {
                session.run_kvbench(&work.parsed()?, *population, observer)
            }
            (Work::DbBench(work), Begun::DbBench(mut session, mut runs)) => {
                session.set(work.scan_length, work.threads);
                let (_, others) = work.fills();
                runs.extend(work.run(&mut session, others, observer)?);
                Ok(runs)
            }
            _ => unreachable!("drives of one filling are of one family"),
        }
    }

    /// Operations that its observer will be told of, roughly.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations_of_fill().saturating_add(self.operations_of_run())
    }

    /// Those until the run begins.
    #[must_use]
    pub fn operations_of_fill(&self) -> u64 {
        match self {
            Work::Ycsb(work) => work.records.saturating_add(work.overwrites),
            Work::Kvbench(work) => work.parsed().map_or(0, |bench| bench.records),
            Work::DbBench(work) => work.records.saturating_mul(work.fills().0.len() as u64),
        }
    }

    /// Those of the run.
    #[must_use]
    pub fn operations_of_run(&self) -> u64 {
        match self {
            Work::Ycsb(work) => work.operations_max(),
            Work::Kvbench(work) => work.parsed().map_or(0, |bench| match bench.length {
                RunLength::Operations(operations) => operations,
                // What a drive does in a second, within a factor of a few.
                RunLength::Seconds(seconds) => u64::from(seconds) * 100_000,
            }),
            Work::DbBench(work) => {
                let operations = work.fills().1.iter().map(|&benchmark| work.operations_of(benchmark));
                operations.fold(0, u64::saturating_add)
            }
        }
    }
}

/// The batches of each thread that a round has at the least: then the updates that are gathered in one round and sent in the next are few.
const BATCHES_OF_ROUND_MIN: u64 = 20;

impl YcsbWork {
    fn session(&self, bed: &Bed) -> Result<Session, SimError> {
        let (hosts, core) = (self.hosts, self.workload);
        let setup = Setup { bed: bed.clone(), records: self.records, pairs: self.pairs, hosts };
        self.rounds.check(self.operations, hosts.at_once())?;
        let batches_of_round = u64::from(hosts.threads) * u64::from(self.batch_pairs) * BATCHES_OF_ROUND_MIN;
        if self.batch_pairs > 1 && self.rounds != Rounds::ONE && self.operations < batches_of_round {
            return Err(SimError::Setup(format!(
                "rounds with --batch-pairs {} need --operations {batches_of_round} at least: what threads gather at the end of one goes in the next",
                self.batch_pairs
            )));
        }
        if self.series_ns == Some(0) {
            return Err(SimError::Setup("--series must be above 0, such as 10ms".to_owned()));
        }
        setup.check(self.operations_max(), core.inserts())?;
        let session = Session::new(&setup, if core.inserts() { self.operations_max() } else { 0 })?;
        session.check_workload(core)?;
        session.check_batches(core, self.batch_pairs)?;
        Ok(session)
    }

    /// The same with another run: all else decides the drive before it.
    fn filling(&self) -> YcsbWork {
        YcsbWork {
            workload: YcsbCore::A,
            distribution: Distribution::Uniform,
            operations: 0,
            rounds: Rounds::ONE,
            series_ns: None,
            batch_pairs: 1,
            ..self.clone()
        }
    }
}

impl KvBenchWork {
    pub(super) fn parsed(&self) -> Result<KvBench, SimError> {
        Ok(KvBench::parse(&self.ini)?)
    }
}

impl DbBenchWork {
    fn session(&self, bed: &Bed) -> Result<DbBenchSession, SimError> {
        let bench = DbBench {
            records: self.records,
            key_bytes: self.key_bytes,
            value_bytes: self.value_bytes,
            scan_length: self.scan_length,
            threads: self.threads,
            seed: bed.seed,
        };
        let session = DbBenchSession::new(&bed.design, &bed.profile, &bench)?;
        self.benchmarks.iter().try_for_each(|&benchmark| session.check_benchmark(benchmark))?;
        Ok(session)
    }

    /// The benchmarks that fill the drive, and those behind them.
    fn fills(&self) -> (&[DbBenchmark], &[DbBenchmark]) {
        let first = self.benchmarks.iter().position(|benchmark| !benchmark.writes());
        self.benchmarks.split_at(first.unwrap_or(self.benchmarks.len()))
    }

    /// The same without what comes behind the fill.
    fn filling(&self) -> DbBenchWork {
        DbBenchWork { benchmarks: self.fills().0.to_vec(), operations: 0, scan_length: 1, ..self.clone() }
    }

    fn run(
        &self,
        session: &mut DbBenchSession,
        benchmarks: &[DbBenchmark],
        observer: &mut dyn Observer,
    ) -> Result<Vec<Run>, SimError> {
        let run = |&benchmark| session.run(benchmark, self.operations_of(benchmark), observer);
        benchmarks.iter().map(run).collect()
    }

    fn operations_of(&self, benchmark: DbBenchmark) -> u64 {
        if benchmark.writes() { self.records } else { self.operations }
    }
}
