//! What takes minutes: power cuts of every design, the bugs that they must find, and trees with filters. No design has those, so that they pass
//! the suite here: as a namespace of a drive in a file has them that wants an order and names no index, and filters alone, as a simulated drive may
//! have them.

use crate::of_every_design;
use crate::power_cuts::run;
use kvssd_conformance::power_cuts::Campaign;
use kvssd_conformance::{SUITE, run_check};
use kvssd_designs::PINK;
use kvssd_flash::PowerLoss;
use kvssd_ftl::{Design, PlantedBug};
use kvssd_measure::Quiet;

fn filtered(merges_by_ranges: bool) -> Design {
    let design = Design { index: PINK.indexes.ordered().unwrap(), merges_by_ranges, ..PINK };
    assert_ne!(design.index.parameters(), PINK.index.parameters());
    design
}

fn passes_the_suite(design: &Design) {
    let failures = SUITE.iter().flat_map(|check| run_check(check, design).failures);
    let failures: Vec<String> = failures.map(|failure| failure.to_string()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
#[ignore = "a campaign: .ci/run has it"]
fn a_tree_with_filters_passes_the_suite() {
    passes_the_suite(&filtered(true));
}

#[test]
#[ignore = "a campaign: .ci/run has it"]
fn filters_alone_pass_the_suite() {
    passes_the_suite(&filtered(false));
}

#[test]
#[ignore = "a campaign: .ci/run has it"]
fn a_tree_with_filters_loses_nothing() {
    for power_loss in [PowerLoss::Protected, PowerLoss::Volatile] {
        for media_faults in [false, true] {
            let campaign = Campaign { design: filtered(true), power_loss, seed: 8, cuts: 150, media_faults };
            assert_eq!(campaign.run(&mut Quiet).unwrap().losses, []);
        }
    }
}

#[test]
#[ignore = "a campaign: .ci/run has it"]
fn no_design_loses_anything() {
    of_every_design(|design| {
        for power_loss in [PowerLoss::Protected, PowerLoss::Volatile] {
            let report = run(design, power_loss, 200, 300);
            assert_eq!((report.losses.as_slice(), report.cuts), (&[][..], 300));
            assert!(report.pairs_moved > 1000 && report.operations_broken > 10, "{report:?}");
            // The first drive is one of small pairs, the second one of namespaces: so many keys split sections.
            assert!(report.splits_redone > 0 || !design.index.plan().splits(), "{report:?}");
            assert_eq!(report.spills_redone > 0, design.name == "plus", "{report:?}");
            assert!(report.checks > 30, "{report:?}");
            // Where all keys have an order, glances come again to what they have seen.
            let is_ordered = design.index.plan().is_ordered();
            assert!(report.pairs_glanced > 500 && report.kept_values_shown > 0 || !is_ordered, "{report:?}");
            // A protected mount writes nothing: no cut can end it.
            assert!(report.mounts_cut > 0 || power_loss == PowerLoss::Protected, "{report:?}");
        }
    });
}

/// Of a hundred cuts some few find a batch that they have cut in two: up to ten drives are tried.
#[test]
#[ignore = "a campaign: .ci/run has it"]
fn every_planted_bug_is_found() {
    of_every_design(|design| {
        for bug in PlantedBug::ALL {
            let design = Design { planted: Some(bug), ..design.clone() };
            let is_lost = |power_loss, seed| !run(&design, power_loss, seed, 100).losses.is_empty();
            let is_found =
                (9..19).any(|seed| is_lost(PowerLoss::Protected, seed) || is_lost(PowerLoss::Volatile, seed));
            assert!(is_found, "{bug:?} was not found in {}", design.name);
        }
    });
}
