//! The power goes in the middle of the run: what committed is there, of the rest nothing, and of those that were being committed all or
//! nothing.

use super::log::LogWaiter;
use super::tests::{Model, Name, OPTIONS, Terminals, load, read_all};
use super::{LockedUnit, PageEngine, PageOptions, Recovery, Remains};
use kvssd_device::Device;
use kvssd_flash::{ByteBacking, PowerCut, PowerLoss, Profile};
use kvssd_ftl::{Design, DesignError};
use kvssd_sim::SimError;
use kvssd_types::{Nanos, Random, Value};
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

const KEYS: u64 = 120;
const LIVES: u32 = 20;
/// The power goes within this much virtual time of work.
const WORK_NS_MAX: u64 = 30_000_000;

struct Life {
    design: Design,
    profile: Profile,
    medium: Arc<Mutex<ByteBacking>>,
    options: PageOptions,
    planted: Option<LogWaiter>,
    random: Random,
    model: Model,
    committing: Vec<BTreeMap<Name, Option<Value>>>,
    remains: Remains,
    recoveries: Vec<Recovery>,
    commits: u64,
}

fn is_power_loss(error: &SimError) -> bool {
    match error {
        SimError::Drive(error) | SimError::Design(DesignError::Drive(error)) => error.is_power_loss(),
        _ => false,
    }
}

impl Life {
    fn begin(power_loss: PowerLoss, options: PageOptions, planted: Option<LogWaiter>, seed: u64) -> Self {
        let design = kvssd_designs::named("block").unwrap();
        let profile = design.tiny_profile(&[("memory.power_loss", power_loss.name())]).unwrap();
        let medium = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
        let random = Random::new(seed);
        let backing = PowerCut::new(Arc::clone(&medium), profile.geometry, power_loss, Nanos::MAX, random.clone());
        let device = Device::new(&design, &profile, Box::new(backing)).unwrap();
        let mut engine = PageEngine::new(device, options).unwrap();
        let (_, model) = load(&mut engine, KEYS).unwrap();
        let remains = engine.into_remains();
        let (committing, recoveries, commits) = (Vec::new(), Vec::new(), 0);
        Life { design, profile, medium, options, planted, random, model, committing, remains, recoveries, commits }
    }

    /// Recovers, looks at all, works until the power goes; says what was wrong.
    fn live(mut self) -> Result<Self, String> {
        let semantics = self.profile.memory.power_loss;
        let cuts = Random::new(self.random.bits());
        let backing = PowerCut::new(Arc::clone(&self.medium), self.profile.geometry, semantics, Nanos::MAX, cuts);
        let moment = backing.moment();
        let (device, mounted) = Device::mount(&self.design, &self.profile, Box::new(backing)).unwrap();
        let (mut engine, recovery) =
            PageEngine::recover(device, self.remains, self.options, mounted.took).map_err(|error| error.to_string())?;
        self.recoveries.push(recovery);
        let (clock, found) = read_all(&mut engine, KEYS, recovery.done).map_err(|error| error.to_string())?;
        adopt(&mut self.model, std::mem::take(&mut self.committing), &found)?;
        engine.store.log.planted = self.planted;
        let cut_at = clock + Nanos(self.random.below(WORK_NS_MAX));
        moment.store(cut_at.0, Ordering::Relaxed);
        let mut terminals = Terminals::new(6, KEYS, self.model, self.random.bits() >> 40, clock);
        match terminals.run(&mut engine, cut_at) {
            Err(error) if !is_power_loss(&error) => return Err(error.to_string()),
            _ => {}
        }
        self.commits += engine.counters().commits;
        self.remains = engine.into_remains();
        self.committing = terminals.committing();
        self.model = terminals.model;
        Ok(self)
    }
}

/// Of the transactions that were being committed each counts or does not, by what was found; all else must be as it was.
fn adopt(model: &mut Model, committing: Vec<BTreeMap<Name, Option<Value>>>, found: &Model) -> Result<(), String> {
    for writes in committing {
        if writes.iter().all(|(name, value)| found.get(name) == value.as_ref()) {
            for (name, value) in writes {
                match value {
                    Some(value) => drop(model.insert(name, value)),
                    None => drop(model.remove(&name)),
                }
            }
        }
    }
    let wrong = found.keys().chain(model.keys()).filter(|name| found.get(*name) != model.get(*name)).count();
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} records are not what committed transactions left")) }
}

/// So many lives of a drive; the last of them, or what was wrong.
fn lives(
    power_loss: PowerLoss,
    options: PageOptions,
    planted: Option<LogWaiter>,
    seed: u64,
    count: u32,
) -> Result<Life, String> {
    (0..count).try_fold(Life::begin(power_loss, options, planted, seed), |life, _| life.live())
}

#[test]
fn committed_transactions_outlive_the_power_and_others_leave_nothing() {
    let mut total = Recovery::default();
    for power_loss in [PowerLoss::Protected, PowerLoss::Volatile] {
        for (seed, pool_pages) in [(1, 4), (2, 16), (3, 1000)] {
            for locked_unit in [LockedUnit::Record, LockedUnit::Page] {
                let options = PageOptions { pool_pages, locked_unit, ..OPTIONS };
                let life = lives(power_loss, options, None, seed, LIVES).unwrap();
                assert!(life.commits > u64::from(LIVES) * 10, "{} commits", life.commits);
                total.redone += life.recoveries.iter().map(|recovery| recovery.redone).sum::<u64>();
                total.losers += life.recoveries.iter().map(|recovery| recovery.losers).sum::<u64>();
            }
        }
    }
    assert!(total.redone > 1000 && total.losers > 100, "{total:?}");
}

#[test]
fn planted_bugs_are_found() {
    for (power_loss, bug) in [
        (PowerLoss::Protected, LogWaiter::Commit),
        (PowerLoss::Volatile, LogWaiter::Commit),
        (PowerLoss::Protected, LogWaiter::Page),
        (PowerLoss::Volatile, LogWaiter::Page),
    ] {
        let options = PageOptions { pool_pages: 4, ..OPTIONS };
        assert!((0..5).all(|seed| lives(power_loss, options, None, seed, LIVES).is_ok()), "it is there without a bug");
        // A panic finds it, too.
        let found = (0..5).any(|seed| {
            !matches!(catch_unwind(|| lives(power_loss, options, Some(bug), seed, LIVES).map(drop)), Ok(Ok(())))
        });
        assert!(found, "{bug:?} on a drive that is {} was not found", power_loss.name());
    }
}

#[test]
#[ignore = "takes a minute: a campaign"]
fn a_campaign_of_cuts() {
    let mut total = Recovery::default();
    for seed in 0..400 {
        let power_loss = if seed % 2 == 0 { PowerLoss::Protected } else { PowerLoss::Volatile };
        let locked_unit = if seed / 2 % 2 == 0 { LockedUnit::Record } else { LockedUnit::Page };
        let options = PageOptions { pool_pages: [2, 4, 12, 1000][seed as usize / 4 % 4], locked_unit, ..OPTIONS };
        let life = lives(power_loss, options, None, seed, LIVES).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        for recovery in &life.recoveries {
            total.redone += recovery.redone;
            total.losers += recovery.losers;
            total.torn += recovery.torn;
        }
    }
    eprintln!("{} cuts: {total:?}", 400 * LIVES);
    assert!(total.torn > 0, "{total:?}");
}
