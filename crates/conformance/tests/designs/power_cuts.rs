//! Short campaigns, and the proof that they find what is wrong.

use crate::of_every_design;
use kvssd_conformance::power_cuts::{Campaign, CrashReport, survives};
use kvssd_flash::PowerLoss;
use kvssd_ftl::{Design, PlantedBug};
use kvssd_measure::Quiet;

fn run(design: &Design, power_loss: PowerLoss, seed: u64, cuts: u32) -> CrashReport {
    Campaign { design: design.clone(), power_loss, seed, cuts, media_faults: false }.run(&mut Quiet).unwrap()
}

#[test]
fn no_design_loses_anything() {
    of_every_design(|design| {
        for power_loss in [PowerLoss::Protected, PowerLoss::Volatile] {
            let report = run(design, power_loss, 7, 300);
            assert_eq!((report.losses.as_slice(), report.cuts), (&[][..], 300));
            assert!(report.pairs_moved > 1000 && report.operations_broken > 10, "{report:?}");
            // The second drive is one of small pairs, the third one of namespaces; so many keys split sections, and those of the
            // iterators of multilevel.
            let splits = design.index.plan().splits();
            assert!(report.splits_redone == 0 || splits || design.name == "multilevel", "{report:?}");
            assert!(report.splits_redone > 0 || !splits, "{report:?}");
            assert_eq!(report.spills_redone > 0, design.name == "plus", "{report:?}");
            assert!(report.checks > 30, "{report:?}");
            // Where all keys have an order, glances come again to what they have seen.
            let is_ordered = design.index.plan().is_ordered();
            assert!(report.pairs_glanced > 500 && report.kept_values_shown > 0 || !is_ordered, "{report:?}");
            // A protected mount writes nothing: no cut can end it.
            assert!(report.mounts_cut > 0 || power_loss == PowerLoss::Protected, "{report:?}");
            let short = || run(design, power_loss, 7, 20);
            assert_eq!(short(), short(), "the same seed gives the same campaign");
        }
    });
}

/// On drives whose dies have logs of their own, and little room.
#[test]
fn nothing_is_lost_where_several_superblocks_are_emptied_at_once() {
    let design = kvssd_designs::TESSERA;
    for power_loss in [PowerLoss::Protected, PowerLoss::Volatile] {
        let reports = [5, 21].map(|seed| run(&design, power_loss, seed, 50));
        assert!(reports.iter().all(|report| report.losses.is_empty()), "{reports:?}");
        let beside: u64 = reports.iter().map(|report| report.victims_beside).sum();
        assert!(beside > 5, "{beside} beside others: {reports:?}");
    }
}

#[test]
fn media_faults_are_caught_and_mended() {
    of_every_design(|design| {
        for power_loss in [PowerLoss::Protected, PowerLoss::Volatile] {
            let campaign = Campaign { design: design.clone(), power_loss, seed: 1, cuts: 100, media_faults: true };
            let report = campaign.run(&mut Quiet).unwrap();
            assert_eq!(report.losses, []);
            assert!(report.flips_caught > 100 && report.pages_rebuilt > 10 && report.blocks_retired > 3, "{report:?}");
        }
    });
}

/// What filled a superblock, and was moved out of it before it was erased and opened again, was in the write buffer's memory with what came
/// next: a second mount put the old units behind the new ones.
#[test]
fn a_superblock_that_was_opened_twice_is_put_back_as_it_was_last() {
    let report = run(kvssd_designs::named("original").as_ref().unwrap(), PowerLoss::Protected, 6, 100);
    assert_eq!((report.losses.as_slice(), report.cuts), (&[][..], 100));
}

/// Of a hundred cuts some few find a batch that they have cut in two: up to ten drives are tried.
#[test]
fn every_planted_bug_is_found() {
    of_every_design(|design| {
        for bug in PlantedBug::ALL {
            let design = Design { planted: Some(bug), ..design.clone() };
            let is_lost = |power_loss, seed| !run(&design, power_loss, seed, 100).losses.is_empty();
            let is_found =
                (7..17).any(|seed| is_lost(PowerLoss::Protected, seed) || is_lost(PowerLoss::Volatile, seed));
            assert!(is_found, "{bug:?} was not found in {}", design.name);
        }
    });
}

#[test]
fn what_a_test_is_told_names_design_semantics_seed_and_cut() {
    let sound = kvssd_designs::named("kaml").unwrap();
    assert_eq!(survives(&sound, 20), Ok(()));
    // So few cuts end before any table has split, and prove nothing of that.
    let proves_nothing = survives(&kvssd_designs::RHIK, 2).unwrap_err();
    assert!(proves_nothing.contains("no mount had a split to make again"), "{proves_nothing}");
    let lost = survives(&Design { planted: Some(PlantedBug::LostRelocation), ..sound }, 100).unwrap_err();
    assert!(lost.starts_with("power_cuts: kaml, protected, seed 1, cut "), "{lost}");
}
