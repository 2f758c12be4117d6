//! Namespaces over many lives: they come, go and are as many as there can be, under iterators and batches, on nearly full drives that are
//! closed or lose their power.

use crate::namespaced::{NamespacedDrive, few_logs, key_of, many_logs};
use crate::trial::Trial;
use kvssd_designs::indexes;
use kvssd_flash::{ByteBacking, PowerCut, PowerLoss, Profile};
use kvssd_ftl::{Design, NamespaceAttributes};
use kvssd_types::{Command, IteratorId, IteratorOptions, KvError, NamespaceId, Nanos, Random, Reply};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

const LIVES: u32 = 12;

/// What happens to the namespaces of a drive besides commands.
struct Crowd {
    random: Random,
    /// Indexes of the namespaces that come.
    indexes: Vec<&'static str>,
    iterators: Vec<(NamespaceId, IteratorId)>,
}

impl Crowd {
    fn act(&mut self, drive: &mut NamespacedDrive) {
        match self.random.below(10) {
            0 => self.fill_up(drive),
            1..3 => self.delete(drive),
            3..5 => drop(self.create(drive)),
            5..7 => self.look(drive),
            _ => self.go_on(drive),
        }
    }

    fn create(&mut self, drive: &mut NamespacedDrive) -> bool {
        let index = self.indexes[self.random.below(self.indexes.len() as u64) as usize];
        let logs = (self.random.below(2) == 0).then(|| 1 + self.random.below(4) as u32);
        let attributes = NamespaceAttributes { index: Some(index.to_owned()), logs, ..NamespaceAttributes::PLAIN };
        match drive.create(attributes) {
            Ok(_) => true,
            // There are enough, or the design's pages are not those of that index.
            Err(KvError::TooManyNamespaces { .. } | KvError::InvalidNamespace(_)) => false,
            Err(other) => panic!("{index}: {other}"),
        }
    }

    /// As many as there can be.
    fn fill_up(&mut self, drive: &mut NamespacedDrive) {
        while self.create(drive) {}
    }

    /// Deletes one, with the iterators that are in it.
    fn delete(&mut self, drive: &mut NamespacedDrive) {
        let others: Vec<NamespaceId> = drive.models.keys().copied().filter(|id| *id != NamespaceId::FIRST).collect();
        if others.is_empty() {
            return;
        }
        let gone = others[self.random.below(others.len() as u64) as usize];
        drive.delete_namespace(gone);
        for (namespace, iterator) in self.iterators.extract_if(.., |(namespace, _)| *namespace == gone) {
            let next = drive.run(namespace, Command::Next { iterator, pairs_max: 3 });
            assert_eq!(next, Err(KvError::NoSuchNamespace(gone)));
        }
    }

    fn look(&mut self, drive: &mut NamespacedDrive) {
        let ordered = drive.engine.namespaces().into_iter().filter(|info| info.is_ordered).map(|info| info.id);
        for namespace in ordered.collect::<Vec<_>>() {
            match drive.run(namespace, Command::CreateIterator { options: IteratorOptions::default() }) {
                Ok(Reply::IteratorCreated(iterator)) => self.iterators.push((namespace, iterator)),
                Err(KvError::TooManyIterators { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Iterators of the namespaces that are left go on, whatever became of others.
    fn go_on(&mut self, drive: &mut NamespacedDrive) {
        self.iterators.retain(|&(namespace, iterator)| {
            match drive.run(namespace, Command::Next { iterator, pairs_max: 5 }) {
                Ok(Reply::Pairs(_)) => true,
                Err(KvError::IteratorExpired(_)) => false,
                other => panic!("{other:?}"),
            }
        });
    }
}

/// Lives of a drive, each ended in order or by a cut; gives how many namespaces there were at the most.
fn lives(trial: &Trial, (design, mut profile): (Design, Profile), seed: u64) -> usize {
    profile.memory.power_loss = PowerLoss::Protected;
    let mut random = trial.random(seed);
    let medium = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
    let power = |random: &mut Random| {
        let dice = Random::new(random.bits());
        PowerCut::new(Arc::clone(&medium), profile.geometry, PowerLoss::Protected, Nanos::MAX, dice)
    };
    let backing = power(&mut random);
    let mut moment = backing.moment();
    let built = design.build(&profile, Box::new(backing)).unwrap();
    let mut drive = NamespacedDrive::around(built).noted(trial.position().clone());
    let mut most = 0;
    for life in 0..LIVES {
        let random_of_life = Random::stream(seed, life.into());
        let mut crowd = Crowd { random: random_of_life, indexes: indexes(), iterators: Vec::new() };
        for _ in 0..60 {
            crowd.act(&mut drive);
            drive.life(&mut random, 40);
            most = most.max(drive.models.len());
        }
        drive.verify_all();
        let NamespacedDrive { engine, clock, models, seed: values, .. } = drive;
        if random.below(2) == 0 {
            engine.close().unwrap();
        } else {
            moment.store(clock.0, Ordering::Relaxed);
            drop(engine);
        }
        let report = design.check(&profile, Box::new(power(&mut random)));
        assert!(report.is_clean(), "life {life}: {report}");
        let backing = power(&mut random);
        moment = backing.moment();
        let (engine, mounted) = design.mount(&profile, Box::new(backing)).unwrap();
        let found: Vec<NamespaceId> = engine.namespaces().iter().map(|info| info.id).collect();
        assert!(found.iter().eq(models.keys()), "life {life}: {found:?} for {:?}", models.keys());
        drive = NamespacedDrive::around(engine).noted(trial.position().clone());
        (drive.clock, drive.models, drive.seed) = (mounted.took, models, values);
        drive.verify_all();
    }
    most
}

pub(super) fn namespaces_come_and_go_over_many_lives(trial: &Trial) {
    let most = lives(trial, few_logs(trial.design(), "protected"), 0);
    assert!(most >= 4, "at most {most} namespaces");
    lives(trial, many_logs(trial.design()), 0);
}

/// A drive that is full takes a batch whole or not at all, while there is room for a part of it.
pub(super) fn a_nearly_full_drive_takes_all_of_a_batch_or_nothing(trial: &Trial) {
    for drive in [few_logs(trial.design(), "ignored"), many_logs(trial.design())] {
        let mut drive = trial.namespaced(drive);
        let mut random = trial.random(3);
        for index in indexes() {
            let plain = NamespaceAttributes::PLAIN;
            drop(drive.create(NamespaceAttributes { index: Some(index.to_owned()), ..plain }));
        }
        let ids: Vec<NamespaceId> = drive.models.keys().copied().collect();
        let mut stored = 0u64;
        while drive.store(ids[stored as usize % ids.len()], &key_of(1000 + stored), 3000).is_ok() {
            stored += 1;
        }
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..2000 {
            // Room comes back now and then.
            if random.below(8) == 0 {
                let number = random.below(stored);
                let id = ids[number as usize % ids.len()];
                if drive.models[&id].contains_key(&key_of(1000 + number)) {
                    drive.delete(id, &key_of(1000 + number));
                }
            }
            match drive.batch(&mut random, 6) {
                Ok(()) => taken += 1,
                Err(KvError::CapacityExceeded) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert!(taken > 50 && refused > 50, "{taken} batches taken, {refused} refused");
        drive.verify_all();
        for number in 0..stored {
            drive.verify(ids[number as usize % ids.len()], &key_of(1000 + number));
        }
    }
}
