//! Namespaces on a drive of the design: indexes of all kinds beside it, logs of their own, numbers that come back.

use crate::namespaced::{NamespacedDrive, few_logs, key_of, many_logs};
use crate::trial::Trial;
use kvssd_designs::indexes;
use kvssd_ftl::NamespaceAttributes;
use kvssd_ftl::index::BytesFor;
use kvssd_types::{Command, NamespaceId, Reply};

fn index(name: &str) -> NamespaceAttributes {
    NamespaceAttributes { index: Some(name.to_owned()), ..NamespaceAttributes::PLAIN }
}

/// Programs by die.
fn programs(drive: &NamespacedDrive) -> Vec<u64> {
    drive.engine.flash_counters().die_programs.clone()
}

/// Namespaces with these attributes, but plain ones where the design's pages are not those of that index.
fn create(drive: &mut NamespacedDrive, attributes: NamespaceAttributes) -> NamespaceId {
    let plain = NamespaceAttributes { index: None, ..attributes.clone() };
    drive.create(attributes).or_else(|_| drive.create(plain)).expect("a namespace of the drive's own index fits")
}

pub(super) fn indexes_of_all_kinds_share_a_drive_and_its_batches(trial: &Trial) {
    let mut drive = trial.namespaced(few_logs(trial.design(), "ignored"));
    for name in indexes() {
        if drive.models.len() < 6 {
            create(&mut drive, index(name));
        }
    }
    drive.life(&mut trial.random(5), 12_000);
    assert!(drive.engine.gc_counters().pairs_moved > 100, "garbage collection had pairs to move");
    drive.verify_all();
}

pub(super) fn many_logs_share_a_drive_that_is_nearly_full(trial: &Trial) {
    let mut drive = trial.namespaced(many_logs(trial.design()));
    create(&mut drive, NamespaceAttributes { logs: Some(1), ..index("lsm") });
    create(&mut drive, NamespaceAttributes { logs: Some(2), ..index("hash-compact") });
    drive.life(&mut trial.random(2), 20_000);
    assert!(drive.engine.gc_counters().pairs_moved > 100, "garbage collection had pairs to move");
    drive.verify_all();
    let programs = programs(&drive);
    assert!(programs.iter().all(|&count| count > 100), "{programs:?}");
}

/// What is free on other targets is no good to it.
pub(super) fn a_namespace_keeps_to_its_logs_however_often_they_are_written_over(trial: &Trial) {
    let mut drive = trial.namespaced(many_logs(trial.design()));
    let two = drive.create(NamespaceAttributes { logs: Some(2), ..NamespaceAttributes::PLAIN }).unwrap();
    let before = programs(&drive);
    for number in 0..8000 {
        drive.store(two, &key_of(number % 60), 3000).unwrap();
        if trial.design().compares_later {
            // As long as a look-up takes: stores that read nothing leave collection no time before they find no room there.
            drive.clock.0 += 100_000;
        }
    }
    let after = programs(&drive);
    let mut written: Vec<u64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    written.sort_unstable();
    assert!(drive.engine.gc_counters().superblocks > 100, "they were written over");
    assert!(written[..2].iter().sum::<u64>() * 10 < written[2..].iter().sum(), "{written:?}");
    drive.verify_all();
}

/// No more is to be kept free than the capacity leaves, or the collector moves what lives around for nothing. A tree of tables has no
/// such bound: what it merges dies, and what lies beside that is moved. At rest a drive as full as this one moves 1.1 to 1.4 pairs a
/// store, and up to 2.2 where its index is written to flash, since that opens a superblock on each target; one that keeps four superblocks free
/// too many moves 1.9 to 2.4, and 5.7.
pub(super) fn the_collector_of_many_logs_comes_to_rest_on_a_full_drive(trial: &Trial) {
    const STORES: u64 = 3000;
    if trial.is_ordered() {
        return;
    }
    let mut drive = trial.namespaced(many_logs(trial.design()));
    let pairs = (0..).take_while(|&number| drive.store(NamespaceId::FIRST, &key_of(number), 3000).is_ok()).count();
    let mut random = trial.random(1);
    let before = drive.engine.gc_counters().pairs_moved;
    for _ in 0..STORES {
        // Time enough for whatever it wants to do.
        drive.clock.0 += 20_000_000;
        drive.store(NamespaceId::FIRST, &key_of(random.below(pairs as u64)), 3000).unwrap();
    }
    let moved = drive.engine.gc_counters().pairs_moved - before;
    let written = drive.engine.index_counters().bytes_written;
    let pairs_a_store_max = if written == BytesFor::default() { 2 } else { 3 };
    assert!(
        moved < STORES * pairs_a_store_max,
        "{moved} pairs were moved for {STORES} stores, and the index wrote {written:?}: is its footprint in the capacity?"
    );
    drive.verify_all();
}

pub(super) fn a_number_comes_back_as_often_as_it_is_given_back(trial: &Trial) {
    for power_loss in ["ignored", "volatile", "protected"] {
        let mut drive = trial.namespaced(few_logs(trial.design(), power_loss));
        let Ok(other) = drive.create(NamespaceAttributes::PLAIN) else { continue };
        let held = (0..100).take_while(|&number| drive.store(other, &key_of(number), 300).is_ok()).count();
        // So small a drive may have no room for pairs beside the design's reserve.
        if held == 0 {
            continue;
        }
        assert!(held > 10, "{power_loss}: {held} pairs");
        for round in 0..40u64 {
            let made = drive.create(NamespaceAttributes::PLAIN).unwrap_or_else(|error| panic!("{power_loss}: {error}"));
            let listed = drive.run(made, Command::List { from: None, keys_max: 10 });
            assert!(matches!(listed, Ok(Reply::Listed(keys)) if keys.is_empty()), "{made} is not empty");
            (0..round % 7 * 20).for_each(|number| drive.store(made, &key_of(number), 100).unwrap());
            drive.delete_namespace(made);
        }
        drive.verify_all();
    }
}
