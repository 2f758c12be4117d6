//! The tree of a namespace that wants an order and names no index, in a drive in a file: no design has its filters, or gathers as much, so that it
//! passes the suite here.

use kvssd_conformance::power_cuts::Campaign;
use kvssd_conformance::{SUITE, run_check};
use kvssd_designs::PINK;
use kvssd_flash::PowerLoss;
use kvssd_ftl::Design;
use kvssd_measure::Quiet;

fn filtered() -> Design {
    let design = Design { index: PINK.indexes.ordered().unwrap(), gathers: true, ..PINK };
    assert_ne!(design.index.parameters(), PINK.index.parameters());
    design
}

#[test]
fn a_tree_with_filters_passes_the_suite() {
    let design = filtered();
    let failures = SUITE.iter().flat_map(|check| run_check(check, &design).failures);
    let failures: Vec<String> = failures.map(|failure| failure.to_string()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_tree_with_filters_loses_nothing() {
    for power_loss in [PowerLoss::Protected, PowerLoss::Volatile] {
        for media_faults in [false, true] {
            let campaign = Campaign { design: filtered(), power_loss, seed: 7, cuts: 150, media_faults };
            assert_eq!(campaign.run(&mut Quiet).unwrap().losses, []);
        }
    }
}
