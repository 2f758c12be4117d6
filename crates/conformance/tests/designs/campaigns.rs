//! Trees with filters, which no design has, so that they pass the suite here: as a namespace of a drive in a file has them that wants an order
//! and names no index, and filters alone, as a simulated drive may have them.

use kvssd_conformance::power_cuts::Campaign;
use kvssd_conformance::{SUITE, run_check};
use kvssd_designs::PINK;
use kvssd_flash::PowerLoss;
use kvssd_ftl::Design;
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
            let campaign = Campaign { design: filtered(true), power_loss, seed: 7, cuts: 150, media_faults };
            assert_eq!(campaign.run(&mut Quiet).unwrap().losses, []);
        }
    }
}
