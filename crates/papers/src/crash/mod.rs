//! The crash campaign of engines with transactions: the power of their drives goes in the middle of TPC-B and TPC-C.
//!
//! ```text
//!   format, load -> [ mount, recover -> check every table -> terminals ... cut ] -> [ mount -> ... cut ] ...     until it is full
//! ```
//!
//! Drives of keys are under a cache ([`CachedDrive`](crate::transactions::CachedDrive)), with a namespace for each table; the block
//! drive is under a [`PageEngine`](crate::transactions::PageEngine). Each drive has another workload, isolation, size of cache and
//! granularity of locks than the one before.
//!
//! The tables are read through an engine whose cache is empty. What must hold is what the workload says ([`Workload::check`]):
//! invariants of the benchmarks, which a part of a transaction would break, and every commit that was answered. So must the drive
//! itself, which is looked at as a whole now and then ([`Design::check`]). A transaction that was under way is there or not; what was found once
//! stays.
//!
//! [`Workload::check`]: crate::transactions::Workload::check
//!
//! What it does not do: cut the power during the mount, which the campaign of the drives alone does, or during the recovery of a
//! page-based engine.

mod host;
mod life;

use kvssd_conformance::power_cuts::{FAILURES_MAX, Loss};
use kvssd_flash::PowerLoss;
use kvssd_ftl::Design;
use kvssd_measure::Observer;
use kvssd_sim::SimError;
use life::Bench;
use serde::Serialize;

/// Lives of a drive before it is replaced by a new one.
const CUTS_PER_DRIVE: u32 = 20;

/// A campaign.
#[derive(Clone, Debug)]
pub struct TransactionCampaign {
    /// The firmware; one of blocks is under the page-based engine.
    pub design: Design,
    /// What it does for the day when the power goes.
    pub power_loss: PowerLoss,
    /// Of the first drive; the next ones follow.
    pub seed: u64,
    /// How often the power goes.
    pub cuts: u32,
}

/// What a campaign saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TransactionCrashReport {
    /// The firmware.
    pub design: String,
    /// What it does for the day when the power goes.
    pub semantics: &'static str,
    /// Of the first drive.
    pub seed: u64,
    /// How often the power went.
    pub cuts: u64,
    /// Drives that were loaded.
    pub drives: u64,
    /// Drives that were full before they had lived as often as the others.
    pub drives_full: u64,
    /// Commits that were answered.
    pub committed: u64,
    /// Attempts that an engine refused, and that were tried again.
    pub refused: u64,
    /// Commits that were not answered and were found behind the cut.
    pub committed_unanswered: u64,
    /// Conditions of workloads that were verified.
    pub conditions: u64,
    /// Changes that mounts made again.
    pub changes_redone: u64,
    /// Mounts that found a batch cut in two, and took its first part back.
    pub batches_torn: u64,
    /// Transactions that recoveries of page-based engines undid.
    pub losers_undone: u64,
    /// Programs and erases that were under way when the power went and did not come to their end.
    pub operations_broken: u64,
    /// Superblocks that garbage collection erased.
    pub superblocks_collected: u64,
    /// Tables that did not hold, drives that were not sound: must be none.
    pub losses: Vec<Loss>,
}

impl TransactionCampaign {
    /// Runs it.
    ///
    /// # Errors
    /// When the design does not fit the drive or has no way to say what is there for good, or the observer interrupts. Losses are no
    /// errors: they are in the report.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<TransactionCrashReport, SimError> {
        let (design, semantics) = (self.design.name.to_owned(), self.power_loss.name());
        if self.power_loss == PowerLoss::Ignored {
            return Err(SimError::Setup(format!("a drive of {design} whose power loss is ignored cannot be mounted")));
        }
        observer.begin(&format!("{design} {semantics}, transactions"), self.cuts.into());
        let mut report = TransactionCrashReport { design, semantics, seed: self.seed, ..Default::default() };
        for seed in self.seed.. {
            let left = u64::from(self.cuts).saturating_sub(report.cuts);
            if left == 0 || report.losses.len() >= FAILURES_MAX {
                break;
            }
            let mut bench = Bench::load(&self.design, self.power_loss, seed)?;
            report.drives += 1;
            for cut in 1..=CUTS_PER_DRIVE.min(left as u32) {
                if let Err(what) = bench.life(&mut report) {
                    report.losses.push(Loss { seed, cut, what: format!("{}: {what}", bench.subject()) });
                    break;
                }
                observer.progress(report.cuts);
                if observer.is_interrupted() {
                    return Err(SimError::Interrupted);
                }
                if bench.is_full() {
                    report.drives_full += 1;
                    break;
                }
            }
        }
        Ok(report)
    }
}
