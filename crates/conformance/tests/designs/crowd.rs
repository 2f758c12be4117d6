//! Several namespaces of the drive's own index, which all begin small and grow at once, over power cuts.

use kvssd_conformance::{NamespacedDrive, few_logs, key_of, selected};
use kvssd_flash::{ByteBacking, PowerCut, PowerLoss};
use kvssd_ftl::{Design, NamespaceAttributes};
use kvssd_types::{Command, Key, KvError, NamespaceId, Nanos, Random, Reply};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

const LIVES: u64 = 6;
const NAMESPACES: usize = 4;
/// Pairs that come to each namespace in a life.
const PAIRS: u64 = 100;

/// The keys that a list from `from` on names.
fn list(drive: &mut NamespacedDrive, namespace: NamespaceId, from: Option<&[u8]>) -> Vec<Vec<u8>> {
    let from = from.map(|key| Key::new(key).unwrap());
    match drive.run(namespace, Command::List { from, keys_max: usize::MAX }) {
        Ok(Reply::Listed(keys)) => keys.into_iter().map(|key| key.to_vec()).collect(),
        other => panic!("{other:?}"),
    }
}

fn verify(drive: &mut NamespacedDrive, ids: &[NamespaceId]) {
    drive.verify_all();
    for &id in ids {
        // Absent and present ones.
        (0..2 * LIVES * PAIRS).step_by(3).for_each(|number| drive.verify(id, &key_of(1000 + number)));
        let mut listed = list(drive, id, None);
        listed.sort();
        assert!(listed.iter().eq(drive.models[&id].keys()), "namespace {id} lists other keys than it has");
    }
}

/// Gives how many splits mounts made again.
fn grow_together(design: &Design, seed: u64) -> u64 {
    let (design, mut profile) = few_logs(design, "protected");
    profile.memory.power_loss = PowerLoss::Protected;
    let medium = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
    let power = |dice: u64| {
        PowerCut::new(Arc::clone(&medium), profile.geometry, PowerLoss::Protected, Nanos::MAX, Random::new(dice))
    };
    let mut random = Random::new(seed);
    let backing = power(seed);
    let mut moment = backing.moment();
    let mut drive = NamespacedDrive::around(design.build(&profile, Box::new(backing)).unwrap());
    while drive.models.len() < NAMESPACES {
        drive.create(NamespaceAttributes::PLAIN).unwrap();
    }
    let ids: Vec<NamespaceId> = drive.models.keys().copied().collect();
    let mut splits = 0;
    for life in 0..LIVES {
        for number in life * PAIRS..(life + 1) * PAIRS {
            for &id in &ids {
                drive.store(id, &key_of(1000 + number), 40).unwrap();
            }
            if random.below(16) == 0 {
                let reply = drive.batch(&mut random, 20);
                assert!(matches!(reply, Ok(()) | Err(KvError::CapacityExceeded)), "{reply:?}");
            }
            if random.below(4) == 0 {
                let id = ids[random.below(ids.len() as u64) as usize];
                let gone = key_of(1000 + random.below(number + 1));
                if drive.models[&id].contains_key(&gone) {
                    let before = list(&mut drive, id, Some(&gone));
                    assert_eq!(before[0], gone);
                    drive.delete(id, &gone);
                    assert_eq!(list(&mut drive, id, Some(&gone)), before[1..], "from a key that is gone");
                }
            }
        }
        verify(&mut drive, &ids);
        let NamespacedDrive { engine, clock, models, seed: values, .. } = drive;
        moment.store(clock.0, Ordering::Relaxed);
        drop(engine);
        let backing = power(random.bits());
        moment = backing.moment();
        let (engine, mounted) = design.mount(&profile, Box::new(backing)).unwrap();
        splits += mounted.splits;
        drive = NamespacedDrive::around(engine);
        (drive.clock, drive.models, drive.seed) = (mounted.took, models, values);
        verify(&mut drive, &ids);
    }
    splits
}

#[test]
fn namespaces_of_one_index_grow_at_once_over_power_cuts() {
    for mut design in selected().into_iter().filter(|design| design.index.plan().splits()) {
        design.index.begin_small();
        let splits: u64 = (0..3).map(|seed| grow_together(&design, seed)).sum();
        assert!(splits > 20, "{}: mounts made {splits} splits again", design.name);
    }
}
