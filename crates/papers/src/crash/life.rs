//! A bench of a campaign: a host, its drive and the workload on it, from one cut to the next.

use super::TransactionCrashReport;
use super::host::{self, Host, Powered};
use crate::transactions::{
    Acknowledged, Limit, Rows, Terminals, TpcB, TpcBScale, TpcC, TpcCScale, TransactionEngine, Workload, load, read,
};
use kvssd_conformance::power_cuts::{check, words_of};
use kvssd_device::Device;
use kvssd_flash::{FaultRates, FaultyMedium, PowerCut, PowerLoss, Profile};
use kvssd_ftl::{Design, DesignError};
use kvssd_measure::Quiet;
use kvssd_sim::SimError;
use kvssd_types::{KvError, Nanos, Random};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

const TERMINALS: u32 = 6;
/// The power goes within this much virtual time of work.
const WORK_NS_MAX: u64 = 30_000_000;
/// In one of so many lives the whole drive is looked at before.
const CHECKS: u64 = 4;

/// Small, so that all conflicts, and all can be read after each cut.
const BANK: TpcBScale = TpcBScale { branches: 2, accounts_per_branch: 50 };
const SUPPLIER: TpcCScale = TpcCScale { warehouses: 1, items: 60, customers_per_district: 4 };
const PAYMENTS_PERCENT: u64 = 50;

pub(super) struct Bench {
    design: Design,
    profile: Profile,
    medium: Arc<Mutex<FaultyMedium>>,
    host: Host,
    workload: Box<dyn Workload>,
    random: Random,
    acknowledged: Acknowledged,
    is_full: bool,
}

impl Bench {
    /// Fills a new drive.
    pub(super) fn load(design: &Design, power_loss: PowerLoss, seed: u64) -> Result<Self, SimError> {
        let (mut design, mut random) = (design.clone(), Random::new(seed));
        let workload: Box<dyn Workload> = if seed.is_multiple_of(2) {
            Box::new(TpcB::new(BANK, TERMINALS)?)
        } else {
            Box::new(TpcC::new(SUPPLIER, PAYMENTS_PERCENT, TERMINALS, seed)?)
        };
        let profile = host::profile(&mut design, power_loss, workload.tables().len())?;
        let (faults, host) = (Random::new(random.bits()), Host::draw(&design, &mut random));
        let medium = Arc::new(Mutex::new(FaultyMedium::new(profile.geometry, 0, FaultRates::NONE, faults)));
        let acknowledged = Acknowledged::none(TERMINALS, workload.kinds().len());
        let mut bench = Bench { design, profile, medium, host, workload, random, acknowledged, is_full: false };
        let backing = Box::new(bench.power());
        let device = Device::new(&bench.design, &bench.profile, backing)?;
        let (mut powered, start) = bench.host.begin(device, &bench.workload.tables())?;
        load(powered.engine(), bench.workload.as_ref(), start)?;
        bench.host.end(powered);
        Ok(bench)
    }

    /// What it is, in a few words.
    pub(super) fn subject(&self) -> String {
        format!("{}, {}", self.workload.name(), self.host.name())
    }

    /// Whether the drive has no room left.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Power that goes when its moment has been said.
    fn power(&mut self) -> PowerCut<FaultyMedium> {
        let random = Random::new(self.random.bits());
        let semantics = self.profile.memory.power_loss;
        PowerCut::new(Arc::clone(&self.medium), self.profile.geometry, semantics, Nanos::MAX, random)
    }

    /// Mounts, verifies all, and works until the cut; says what was wrong. A panic is wrong, too.
    pub(super) fn life(&mut self, report: &mut TransactionCrashReport) -> Result<(), String> {
        let ended = catch_unwind(AssertUnwindSafe(|| self.until_cut(report)));
        report.cuts += 1;
        ended.unwrap_or_else(|panic| Err(format!("a panic: {}", words_of(panic.as_ref()))))
    }

    fn until_cut(&mut self, report: &mut TransactionCrashReport) -> Result<(), String> {
        if self.random.below(CHECKS) == 0 {
            let backing = self.power();
            check(&self.design, &self.profile, backing)?;
        }
        let backing = self.power();
        let (moment, broken) = (backing.moment(), backing.broken());
        let mounted = Device::mount(&self.design, &self.profile, Box::new(backing));
        let (device, mount) = mounted.map_err(|error| error.to_string())?;
        report.changes_redone += mount.changes;
        report.batches_torn += u64::from(mount.has_torn_batch);
        let resumed = self.host.resume(device, mount.took);
        let (mut powered, clock, losers) = resumed.map_err(|error| error.to_string())?;
        report.losers_undone += losers;
        let clock = self.verify(powered.engine(), clock, report)?;
        let cut_at = clock + Nanos(self.random.below(WORK_NS_MAX));
        moment.store(cut_at.0, Ordering::Relaxed);
        let worked = self.work(&mut powered, clock, cut_at, report);
        report.superblocks_collected += powered.engine().device().engine().gc_counters().superblocks;
        self.host.end(powered);
        report.operations_broken += broken.load(Ordering::Relaxed);
        worked
    }

    /// Reads every table; gives when that is done.
    fn verify(
        &mut self,
        engine: &mut dyn TransactionEngine,
        start: Nanos,
        report: &mut TransactionCrashReport,
    ) -> Result<Nanos, String> {
        let mut clock = start;
        let mut read = |row| {
            let (done, value) = read(engine, row, clock)?;
            clock = done;
            Ok(value)
        };
        let rows = &mut Rows(&mut read);
        let found = self.workload.check(rows, &self.acknowledged).map_err(|error| error.to_string())?;
        report.conditions += found.conditions;
        if !found.holds() {
            return Err(format!("{} conditions do not hold: {}", found.violations, found.examples.join("; ")));
        }
        let before = total(&self.acknowledged, self.workload.as_ref());
        self.workload.resume(rows, &mut self.acknowledged).map_err(|error| error.to_string())?;
        report.committed_unanswered += total(&self.acknowledged, self.workload.as_ref()) - before;
        Ok(clock)
    }

    /// Runs the workload until the power goes, or the drive is full.
    fn work(
        &mut self,
        powered: &mut Powered,
        start: Nanos,
        cut_at: Nanos,
        report: &mut TransactionCrashReport,
    ) -> Result<(), String> {
        let seed = self.random.bits();
        let mut terminals = Terminals::new(self.workload.as_mut(), TERMINALS, seed, start);
        let ended = terminals.run(powered.engine(), Limit::Until(cut_at), &mut (), &mut Quiet);
        let acknowledged = terminals.acknowledged().clone();
        report.committed += total(&acknowledged, self.workload.as_ref());
        self.acknowledged.include(&acknowledged);
        match ended {
            Ok(run) => report.refused += run.refused,
            Err(SimError::Drive(KvError::CapacityExceeded)) => self.is_full = true,
            Err(error) if is_power_loss(&error) => {}
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    }
}

/// Commits of all kinds.
fn total(acknowledged: &Acknowledged, workload: &dyn Workload) -> u64 {
    (0..workload.kinds().len()).map(|kind| acknowledged.commits_of_kind(kind)).sum()
}

fn is_power_loss(error: &SimError) -> bool {
    match error {
        SimError::Drive(error) | SimError::Design(DesignError::Drive(error)) => error.is_power_loss(),
        _ => false,
    }
}
