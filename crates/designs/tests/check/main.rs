//! The check: nothing to say of a drive that lived through cuts, something of every kind of damage, and never a panic.

mod damage;
mod drive;
mod half_made;
mod identity;
mod interrupted;
mod parts;
mod random;
mod trees;
mod unreadable;

use drive::{Mortal, each, overlay_check};
use kvssd_designs::PLUS;
use kvssd_flash::PowerLoss;
use kvssd_types::Nanos;
use std::collections::BTreeSet;

#[test]
fn a_drive_that_lived_through_cuts_has_no_findings() {
    lives_without_findings(0);
}

mod campaigns {
    use super::*;

    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn drives_of_more_seeds_that_lived_through_cuts_have_no_findings() {
        (1..5).for_each(lives_without_findings);
    }

    /// Mounts that are cut when they are nearly done, one after the other, use nothing up.
    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn a_mount_may_be_cut_as_often_as_one_likes() {
        each(|design, power_loss| {
            let mut drive = Mortal::new(design, power_loss, 3);
            for _ in 0..6 {
                drive.life(300_000_000, |_| {});
            }
            let took = |drive: &Mortal| {
                let report = overlay_check(design, power_loss, &drive.medium);
                assert!(report.is_clean(), "{} {power_loss:?}: {report}", design.name);
                report.mount.unwrap().took
            };
            for _ in 0..40 {
                let took = took(&drive);
                (0..7).for_each(|part| drive.mount_until(Nanos(took.0 - 1 - took.0 / 20 * part)));
            }
            drive::overwrite(design, power_loss, &drive.medium, 500);
        });
    }
}

/// Looks at a drive of each design within twelve lives and between them.
fn lives_without_findings(seed: u64) {
    each(|design, power_loss| {
        let mut drive = Mortal::new(design, power_loss, seed);
        for life in 0..12 {
            drive.life(300_000_000, |engine| {
                let report = engine.check();
                assert!(report.is_clean(), "{design:?} {power_loss:?} seed {seed} life {life}:\n{report}");
                assert!(report.pairs > 0 || life == 0);
            });
            let report = overlay_check(design, power_loss, &drive.medium);
            assert!(report.is_clean(), "{design:?} {power_loss:?} seed {seed}, after cut {life}:\n{report}");
            assert!(report.mount.is_some());
        }
        assert!(drive.moved > 0, "garbage collection had pairs to move");
    });
}

#[test]
fn a_check_changes_nothing() {
    each(|design, power_loss| {
        let mut drive = Mortal::new(design, power_loss, 7);
        drive.life(200_000_000, |engine| {
            let before =
                (engine.flash_counters().clone(), engine.index_counters(), engine.utilization(), engine.dram());
            let first = engine.check().to_string();
            assert_eq!(first, engine.check().to_string());
            let after = (engine.flash_counters().clone(), engine.index_counters(), engine.utilization(), engine.dram());
            assert_eq!(before, after);
        });
        let before = drive::Snapshot::of(design, &drive.medium);
        overlay_check(design, power_loss, &drive.medium);
        assert!(before == drive::Snapshot::of(design, &drive.medium), "the medium is as it was");
    });
}

#[test]
fn a_drive_that_is_not_prepared_for_cuts_is_checked_too() {
    each(|design, power_loss| {
        if power_loss == PowerLoss::Protected {
            let report = drive::unprepared(design, 3000).check();
            assert!(report.is_clean() && report.pairs > 0, "{report}");
        }
    });
}

/// A record whose note was lost with the power is nobody's. Garbage collection comes by it and goes on.
#[test]
fn records_whose_notes_were_lost_are_collected() {
    let mut seen = 0;
    for seed in 10..14 {
        let mut drive = Mortal::new(&PLUS, PowerLoss::Protected, seed);
        for _ in 0..26 {
            drive.life(300_000_000, |_| {});
            if overlay_check(&drive.design, drive.power_loss, &drive.medium).orphans > 0 {
                seen += 1;
                let snapshot = drive::Snapshot::of(&drive.design, &drive.medium);
                drive::overwrite(&drive.design, drive.power_loss, &snapshot.medium(&drive.design), 3000);
            }
        }
    }
    assert!(seen > 0, "there are such records");
}

/// Lists say what is there, also when the power went while the index had not told itself of all keys.
#[test]
fn after_a_cut_each_key_is_listed_once() {
    each(|design, power_loss| {
        if power_loss != PowerLoss::Protected {
            return;
        }
        let mut drive = Mortal::new(design, power_loss, 21);
        for life in 0..20 {
            drive.life(150_000_000, |_| {});
            let listed = drive::list(design, &drive.medium);
            let keys: BTreeSet<_> = listed.iter().map(|key| key.to_vec()).collect();
            assert_eq!(keys.len(), listed.len(), "{}, life {life}: a key is listed twice", design.name);
            let missing = drive.pairs.keys().find(|key| !keys.contains(*key));
            assert_eq!(missing, None, "{}, life {life}", design.name);
        }
        assert!(drive.pairs.len() > 100);
    });
}
