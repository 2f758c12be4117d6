//! One drive of a campaign, from mount to cut.

use super::model::{Model, Step};
use super::open_iterators::OpenIterators;
use super::spaces::Spaces;
use super::turn::{End, go_on, run, run_in};
use super::{CrashReport, check, words_of};
use crate::CampaignError;
use kvssd_flash::{FaultCounts, FaultRates, FaultyMedium, PowerCut, PowerLoss, Profile};
use kvssd_ftl::{Design, DesignError, Engine, IteratorPlan};
use kvssd_measure::Observer;
use kvssd_types::{BatchChange, Command, Key, KvError, Nanos, Pattern, Random, Reply, StoreCondition, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a drive is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairs {
    /// Few pairs, now and then large ones.
    OfAllSizes,
    /// Many, all small, and a part of them from the beginning.
    Small,
    /// Few, half of them over many pages.
    Large,
    /// Few and tiny, changed in batches that often end in another page of the journal than they begin in.
    InBatches,
    /// So many and so tiny that the drive is full of them: one may be stored where another died.
    Full,
}

impl Pairs {
    /// Keys of a drive: enough to fill it.
    fn keys(self) -> usize {
        match self {
            Pairs::OfAllSizes => 1000,
            Pairs::Small => 4000,
            Pairs::Large => 200,
            Pairs::InBatches => 600,
            Pairs::Full => 60_000,
        }
    }

    /// The bytes of a value. Each design takes the largest.
    fn length(self, random: &mut Random) -> u64 {
        match (self, random.below(40)) {
            (Pairs::Small | Pairs::InBatches, _) => random.below(100),
            (Pairs::Full, _) => random.below(10),
            (Pairs::OfAllSizes, 0) | (Pairs::Large, 0..20) => random.below(60_000),
            (Pairs::OfAllSizes, 1..6) => random.below(9000),
            (Pairs::OfAllSizes | Pairs::Large, _) => random.below(2500),
        }
    }

    /// Lives of a drive before it is replaced by a new one. Each looks at all pairs.
    pub(crate) fn cuts(self) -> u32 {
        if self == Pairs::Full { 10 } else { 100 }
    }

    /// The power goes within this much virtual time of work.
    fn work_ns_max(self) -> u64 {
        if self == Pairs::Full { 400_000_000 } else { 40_000_000 }
    }

    /// Of [`ACTIONS`] so many are batches, which have 2 changes and fewer than so many more.
    fn batches(self) -> (u64, u64) {
        if self == Pairs::InBatches { (30, 60) } else { (3, 8) }
    }
}

/// The power goes within this much virtual time of the mount.
const MOUNT_NS_MAX: u64 = 8_000_000;
/// Kinds of steps, of which one flushes.
const ACTIONS: u64 = 40;
/// Of so many steps one is an iterator's, where the keys of a namespace have an order.
const VISITS: u64 = 12;
/// In one of so many lives the power goes during the mount, or soon after.
const MOUNT_CUTS: u64 = 8;
/// Before one of so many lives the whole drive is looked at.
const CHECKS: u64 = 8;
/// One of so many drives has a checkpoint behind every commit, or every second or third.
const WITH_CHECKPOINTS: u64 = 5;

/// One that fails often enough for a drive of a hundred lives to use its spares.
const FAULTY: FaultRates = FaultRates {
    flips_per_million: 2000,
    disturb_reads: 1000,
    uncorrectable_per_million: 300,
    program_failures_per_million: 2000,
    erase_failures_per_million: 2000,
};
/// Enough for as many failures, also of a drive of small pairs, which is read most: a die without spares fails for good, and so
/// does the second page of a row whose first cannot move.
const SPARES_PER_DIE: u32 = 512;

/// A drive and what must be on it.
pub(crate) struct Drive<'a> {
    design: &'a Design,
    profile: &'a Profile,
    pairs: Pairs,
    spaces: Spaces,
    medium: Arc<Mutex<FaultyMedium>>,
    rates: FaultRates,
    random: Random,
    model: Model,
    seed: u64,
    /// Commits that bring a checkpoint ([`Engine::checkpoint_every`]).
    checkpoint_every: u64,
}

impl<'a> Drive<'a> {
    pub(crate) fn format(
        design: &'a Design,
        profile: &'a Profile,
        pairs: Pairs,
        spaces: Spaces,
        media_faults: bool,
        seed: u64,
    ) -> Result<Self, CampaignError> {
        let mut random = Random::new(seed);
        let (rates, spares) = if media_faults { (FAULTY, SPARES_PER_DIE) } else { (FaultRates::NONE, 0) };
        let faults = Random::new(random.below(u64::MAX));
        let medium = Arc::new(Mutex::new(FaultyMedium::new(profile.geometry, spares, rates, faults)));
        let model = Model::new(pairs.keys());
        let is_with_checkpoints = seed % WITH_CHECKPOINTS == WITH_CHECKPOINTS - 1;
        let checkpoint_every = if is_with_checkpoints { 1 + seed / WITH_CHECKPOINTS % 3 } else { 0 };
        let mut drive =
            Drive { design, profile, pairs, spaces, medium, rates, random, model, seed: 0, checkpoint_every };
        let backing = drive.powered(Nanos::MAX);
        let mut engine = design.build(profile, Box::new(backing))?;
        if matches!(pairs, Pairs::Small | Pairs::Full) {
            drive.fill(&mut engine).map_err(DesignError::Drive)?;
        }
        Ok(drive)
    }

    /// Stores pairs of a quarter of the keys, so that the index has more to grow to, or until the drive is full, and flushes.
    fn fill(&mut self, engine: &mut Engine) -> Result<(), KvError> {
        let mut clock = Nanos::ZERO;
        let keys = if self.pairs == Pairs::Full { self.pairs.keys() } else { self.pairs.keys() / 4 };
        for number in 0..keys {
            if self.spaces.of(number).is_none() {
                continue;
            }
            let (room, length) = key_of(number);
            let (seed, bytes) = self.new_value();
            let value = Value::Pattern(Pattern { seed, offset: 0, length: bytes });
            let command = Command::Store { key: key(&room[..length]), value, condition: StoreCondition::Always };
            match run(engine, &mut clock, command) {
                Ok(_) => self.model.step(vec![(number, Some((seed, bytes)))]),
                Err(KvError::CapacityExceeded) => break,
                Err(error) => return Err(error),
            }
        }
        run(engine, &mut clock, Command::Flush)?;
        self.model.settle();
        Ok(())
    }

    /// What failed in the medium so far.
    pub(crate) fn faults(&self) -> FaultCounts {
        self.medium.lock().unwrap_or_else(PoisonError::into_inner).counts()
    }

    fn powered(&mut self, cut_at: Nanos) -> PowerCut<FaultyMedium> {
        let random = Random::new(self.random.below(u64::MAX));
        PowerCut::new(Arc::clone(&self.medium), self.profile.geometry, self.profile.memory.power_loss, cut_at, random)
    }

    /// Mounts, checks every key, and works until the cut, or until the observer interrupts, which ends the campaign; says what was wrong. A
    /// panic of the firmware is wrong, too.
    pub(crate) fn life(&mut self, report: &mut CrashReport, observer: &dyn Observer) -> Result<(), String> {
        let ended = catch_unwind(AssertUnwindSafe(|| self.until_cut(report, observer)));
        report.cuts += 1;
        match ended {
            Ok(Err(End::Cut | End::Interrupted) | Ok(())) => Ok(()),
            Ok(Err(End::Wrong(what))) => Err(what),
            Err(panic) => Err(format!("the firmware panicked: {}", words_of(panic.as_ref()))),
        }
    }

    fn until_cut(&mut self, report: &mut CrashReport, observer: &dyn Observer) -> Result<(), End> {
        // What a medium loses is found when it is asked for.
        if self.rates == FaultRates::NONE && report.cuts.is_multiple_of(CHECKS) {
            let semantics = self.profile.memory.power_loss;
            let medium = Arc::clone(&self.medium);
            let backing = PowerCut::new(medium, self.profile.geometry, semantics, Nanos::MAX, Random::new(0));
            check(self.design, self.profile, backing).map_err(End::Wrong)?;
            report.checks += 1;
        }
        let in_mount = self.random.below(MOUNT_CUTS) == 0;
        let cut_at = if in_mount { self.random.below(MOUNT_NS_MAX) } else { u64::MAX };
        let backing = self.powered(Nanos(cut_at));
        let (broken, moment, is_cut) = (backing.broken(), backing.moment(), backing.is_cut());
        let ended = self.powered_until(backing, &moment, &is_cut, report, observer);
        report.operations_broken += broken.load(Ordering::Relaxed);
        ended
    }

    fn powered_until(
        &mut self,
        backing: PowerCut<FaultyMedium>,
        moment: &AtomicU64,
        is_cut: &AtomicBool,
        report: &mut CrashReport,
        observer: &dyn Observer,
    ) -> Result<(), End> {
        let (mut engine, mounted) = match self.design.mount(self.profile, Box::new(backing)) {
            Ok(mounted) => mounted,
            Err(DesignError::Drive(error)) if error.is_power_loss() => {
                report.mounts_cut += 1;
                return Ok(());
            }
            Err(error) => return Err(End::Wrong(error.to_string())),
        };
        report.mounts += 1;
        report.changes_redone += mounted.changes;
        report.batches_torn += u64::from(mounted.has_torn_batch);
        report.splits_redone += mounted.splits;
        report.spills_redone += mounted.spills;
        let mut clock = mounted.took;
        engine.check_invariants();
        self.verify(&mut engine, &mut clock, observer)?;
        let cut_at = Nanos(moment.load(Ordering::Relaxed).min(clock.0 + self.random.below(self.pairs.work_ns_max())));
        moment.store(cut_at.0, Ordering::Relaxed);
        // Not before: work that is done ahead of the moment that was just set would be torn.
        engine.checkpoint_every(self.checkpoint_every);
        let worked = self.work(&mut engine, &mut clock, cut_at, is_cut, report, observer);
        let gc = engine.gc_counters();
        report.superblocks_collected += gc.superblocks;
        report.victims_beside += gc.victims_beside;
        report.pairs_moved += gc.pairs_moved;
        report.kept_values_shown += engine.kept_values_shown();
        worked
    }

    fn verify(&mut self, engine: &mut Engine, clock: &mut Nanos, observer: &dyn Observer) -> Result<(), End> {
        self.spaces.find(engine)?;
        let found = self.find_all(engine, clock, observer)?;
        self.model.adopt(&found).map_err(End::Wrong)?;
        if engine.has_uncompared() {
            let (done, compared) = engine.compare(*clock);
            *clock = done;
            match compared {
                Err(error) if error.is_power_loss() => return Err(End::Cut),
                compared => compared.map_err(|error| End::Wrong(format!("pairs cannot be compared: {error}")))?,
            }
            if self.find_all(engine, clock, observer)? != found {
                return Err(End::Wrong("a key has another value when all are compared".to_owned()));
            }
        }
        let (pairs, counted) = (found.iter().flatten().count() as u64, self.spaces.find(engine)?);
        if pairs == counted {
            Ok(())
        } else {
            Err(End::Wrong(format!("{pairs} pairs are there, {counted} are counted")))
        }
    }

    /// The values of all keys.
    fn find_all(
        &self,
        engine: &mut Engine,
        clock: &mut Nanos,
        observer: &dyn Observer,
    ) -> Result<Vec<Option<Value>>, End> {
        let mut found = vec![None; self.pairs.keys()];
        for (number, found) in found.iter_mut().enumerate() {
            go_on(observer)?;
            let Some(space) = self.spaces.of(number) else { continue };
            let (room, length) = key_of(number);
            let key = key(&room[..length]);
            match run_in(engine, clock, space, Command::Retrieve { key, offset_bytes: 0, length_bytes: u32::MAX }) {
                Ok(Reply::Retrieved { value, .. }) => *found = Some(value),
                Err(KvError::KeyNotFound) => {}
                Ok(other) => return Err(End::Wrong(format!("a retrieve was answered by {other:?}"))),
                Err(error) if error.is_power_loss() => return Err(End::Cut),
                Err(error) => return Err(End::Wrong(format!("key {number} of namespace {space}: {error}"))),
            }
        }
        Ok(found)
    }

    fn work(
        &mut self,
        engine: &mut Engine,
        clock: &mut Nanos,
        cut_at: Nanos,
        is_cut: &AtomicBool,
        report: &mut CrashReport,
        observer: &dyn Observer,
    ) -> Result<(), End> {
        // Along those that read ahead nobody glances.
        if self.random.below(2) == 0 {
            engine.set_iterator_plan(IteratorPlan::NONE);
        }
        let mut open_iterators = OpenIterators::new(self.pairs.keys());
        while *clock < cut_at && !is_cut.load(Ordering::Relaxed) {
            go_on(observer)?;
            if self.random.below(VISITS) == 0 {
                open_iterators.act(engine, clock, &mut self.random, report)?;
                continue;
            }
            let action = self.random.below(ACTIONS);
            let (reply, step) = match action {
                0 => (run(engine, clock, Command::Flush).map(|_| ()), Step::new()),
                _ if action <= self.pairs.batches().0 => self.batch(engine, clock),
                4 if self.spaces.count() > 1 => self.come_and_go(engine, clock),
                action => self.change(engine, clock, action < 13),
            };
            if matches!(reply, Err(KvError::CapacityExceeded | KvError::BatchTooLarge { .. })) {
                continue;
            }
            let accepted = reply.is_ok() && *clock <= cut_at && !is_cut.load(Ordering::Relaxed);
            self.happened(step, accepted, action == 0);
            reply?;
            report.operations += u64::from(accepted);
        }
        Ok(())
    }

    /// Stores a pair, or deletes one.
    fn change(&mut self, engine: &mut Engine, clock: &mut Nanos, deletes: bool) -> (Result<(), KvError>, Step) {
        let number = self.random.below(self.pairs.keys() as u64) as usize;
        let Some(space) = self.spaces.of(number) else { return (Err(KvError::CapacityExceeded), Vec::new()) };
        let (room, length) = key_of(number);
        let key = key(&room[..length]);
        let (command, content) = if deletes && self.model.get(number).is_some() {
            (Command::Delete { key }, None)
        } else {
            let content = self.new_value();
            let condition = StoreCondition::Always;
            (Command::Store { key, value: value_of(content), condition }, Some(content))
        };
        (run_in(engine, clock, space, command).map(|_| ()), vec![(number, content)])
    }

    /// Changes several pairs at once, of all namespaces.
    fn batch(&mut self, engine: &mut Engine, clock: &mut Nanos) -> (Result<(), KvError>, Step) {
        let mut step = Step::new();
        for _ in 0..2 + self.random.below(self.pairs.batches().1) {
            let number = self.random.below(self.pairs.keys() as u64) as usize;
            let is_new = step.iter().all(|&(other, _)| other != number) && self.spaces.of(number).is_some();
            if is_new {
                let content = (self.random.below(4) > 0).then(|| self.new_value());
                step.push((number, content));
            }
        }
        let keys: Vec<_> = step.iter().map(|&(number, _)| key_of(number)).collect();
        let changes: Vec<BatchChange<'_>> = (step.iter().zip(&keys))
            .filter_map(|(&(number, content), (room, length))| {
                let namespace = self.spaces.of(number)?;
                Some(BatchChange { namespace, key: key(&room[..*length]), value: content.map(value_of) })
            })
            .collect();
        (run(engine, clock, Command::Batch { changes: &changes }).map(|_| ()), step)
    }

    /// Deletes a namespace, gives one other logs, or makes one that is not there.
    fn come_and_go(&mut self, engine: &mut Engine, clock: &mut Nanos) -> (Result<(), KvError>, Step) {
        let action = self.random.below(4);
        let space = 1 + self.random.below(self.spaces.count() as u64 - 1) as usize;
        match action {
            0 => {}
            1 => {
                let logs = Some(1 + self.random.below(2) as u32);
                return (self.spaces.set_logs(engine, clock, space, logs), Vec::new());
            }
            _ => return (self.spaces.create(engine, clock), Vec::new()),
        }
        let step = self.spaces.keys(space, self.pairs.keys()).map(|key| (key, None)).collect();
        (self.spaces.delete(engine, clock, space), step)
    }

    /// A command was executed; the host knows of it if it was accepted.
    fn happened(&mut self, step: Step, accepted: bool, is_flush: bool) {
        let is_step = !step.is_empty();
        if is_step {
            self.model.step(step);
        }
        match (self.profile.memory.power_loss, accepted) {
            (PowerLoss::Protected, true) => self.model.settle(),
            (PowerLoss::Protected, false) if is_step => self.model.settle_all_but_last(),
            (_, true) if is_flush => self.model.settle(),
            _ => {}
        }
    }

    /// Seed and length of a value.
    fn new_value(&mut self) -> (u64, u32) {
        self.seed += 1;
        (self.seed, self.pairs.length(&mut self.random) as u32)
    }
}

fn value_of((seed, length): (u64, u32)) -> Value {
    Value::Pattern(Pattern { seed, offset: 0, length })
}

/// Keys of 3 to 34 bytes.
fn key_of(number: usize) -> ([u8; 34], usize) {
    let mut room = [b'.'; 34];
    room[..2].copy_from_slice(&(number as u16).to_be_bytes());
    (room, 3 + number % 32)
}

fn key(bytes: &[u8]) -> Key<'_> {
    Key::new(bytes).expect("the keys of a campaign have 3 to 34 bytes")
}
