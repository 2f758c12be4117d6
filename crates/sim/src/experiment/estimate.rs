//! An experiment on paper: what `kvssd-model` says of it.

use super::{DbBenchWork, Experiment, Work, YcsbWork};
use crate::dbbench::DbBenchmark;
use crate::error::SimError;
use crate::rounds::Rounds;
use crate::workload::{Distribution, RANKS_OF_YCSB, Shares, SizeDistribution};
use kvssd_model::{Estimate, EstimateError, Load, Mix, estimate};

/// The exponent of YCSB's distributions.
const THETA: f64 = 0.99;

/// A check builds the drive; one of so many bytes is built in less time than an estimate takes.
const CHECKED_BYTES: u64 = 1 << 30;
/// And of so many superblocks, however large: the reserve of garbage collection is no less on a small drive.
const CHECKED_SUPERBLOCKS: u32 = 128;

impl Experiment {
    /// As [`Experiment::check`], for an estimate: of a large drive, a small one of the same kind is built, with as much less DRAM and as many
    /// fewer records, since to build that of 128 GB takes a thousand times as long as to reckon it.
    pub fn check_on_paper(&self) -> Result<(), SimError> {
        let geometry = self.bed()?.profile.geometry;
        let by_bytes = CHECKED_BYTES as f64 / geometry.raw_bytes() as f64;
        let part = by_bytes.max(f64::from(CHECKED_SUPERBLOCKS) / f64::from(geometry.superblocks()));
        let Work::Ycsb(work) = &self.work else { return self.check() };
        if part >= 1.0 {
            return self.check();
        }
        let records = ((work.records as f64 * part) as u64).max(1);
        let small = Work::Ycsb(YcsbWork { records, ..work.clone() });
        Experiment { scale: self.scale * part, work: small, ..self.clone() }.check()
    }

    /// What it will show, reckoned and not run.
    ///
    /// # Errors
    /// As [`Experiment::check`], and [`SimError::Estimate`] where the model has no answer.
    pub fn estimate(&self) -> Result<Estimate, SimError> {
        let bed = self.bed()?;
        let load = match &self.work {
            Work::Ycsb(work) => work.load()?,
            Work::DbBench(work) => work.load()?,
            Work::Kvbench(_) => return Err(EstimateError::Load("workloads of KVbench").into()),
        };
        Ok(estimate(&bed.profile, &bed.design, &load)?)
    }
}

/// The clients that have something to do.
fn clients_of(clients: u32, operations: u64) -> u32 {
    operations.min(clients.into()) as u32
}

impl YcsbWork {
    fn load(&self) -> Result<Load, EstimateError> {
        let core = self.workload;
        if core.inserts() || core.scans() {
            return Err(EstimateError::Load("inserts and scans of YCSB"));
        }
        let Shares { updates, modifies, .. } = core.shares();
        let part = |percent: u64| percent as f64 / 100.0;
        if self.hosts.rate_per_s.is_some() {
            return Err(EstimateError::Load("an open loop"));
        }
        if self.rounds != Rounds::ONE || self.series_ns.is_some() {
            return Err(EstimateError::Load("rounds and the course of a run"));
        }
        if self.pairs.value_distribution != SizeDistribution::Constant {
            return Err(EstimateError::Load("values of several sizes"));
        }
        Ok(Load {
            pairs: self.records,
            key_bytes: self.pairs.key_bytes as u32,
            value_bytes: self.pairs.value_bytes,
            overwrites: self.overwrites,
            operations: self.operations,
            mix: Mix::Points {
                retrieves: part(100 - updates),
                stores: part(updates + modifies),
                modifies: modifies > 0,
            },
            skew: match self.distribution {
                Distribution::Zipfian | Distribution::Latest => THETA,
                Distribution::Uniform | Distribution::Sequential => 0.0,
            },
            ranks: match self.distribution {
                Distribution::Zipfian => RANKS_OF_YCSB,
                _ => self.records,
            },
            clients: clients_of(self.hosts.threads.saturating_mul(self.hosts.queue_depth), self.operations),
            batch_pairs: self.batch_pairs,
        })
    }
}

impl DbBenchWork {
    fn load(&self) -> Result<Load, EstimateError> {
        let (fill, last) = match self.benchmarks[..] {
            [fill, last] => (fill, last),
            _ => {
                return Err(EstimateError::Load(
                    "other than two benchmarks of db_bench, a fill and what comes behind it",
                ));
            }
        };
        let in_order = match fill {
            DbBenchmark::FillSeq => true,
            DbBenchmark::FillRandom => false,
            _ => return Err(EstimateError::Load("other fills than fillseq and fillrandom")),
        };
        let mix = match last {
            DbBenchmark::SeekRandom => Mix::Ranges { nexts: self.scan_length, in_order },
            DbBenchmark::ReadRandom => Mix::Points { retrieves: 1.0, stores: 0.0, modifies: false },
            _ => return Err(EstimateError::Load("other benchmarks than seekrandom and readrandom")),
        };
        Ok(Load {
            pairs: self.records,
            key_bytes: self.key_bytes as u32,
            value_bytes: self.value_bytes,
            overwrites: 0,
            operations: self.operations,
            mix,
            skew: 0.0,
            ranks: self.records,
            clients: clients_of(self.threads, self.operations),
            batch_pairs: 1,
        })
    }
}
