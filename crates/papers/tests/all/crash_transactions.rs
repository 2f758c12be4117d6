//! Short campaigns of engines with transactions, and the proof that they find what is wrong.

use kvssd_flash::PowerLoss;
use kvssd_ftl::PlantedBug;
use kvssd_measure::Quiet;
use kvssd_papers::crash::{TransactionCampaign, TransactionCrashReport};
use std::thread;

fn run(name: &str, power_loss: PowerLoss, planted: Option<PlantedBug>, cuts: u32) -> TransactionCrashReport {
    let mut design = kvssd_designs::named(name).unwrap();
    design.planted = planted;
    TransactionCampaign { design, power_loss, seed: 1, cuts }.run(&mut Quiet).unwrap()
}

#[test]
fn committed_transactions_outlive_the_power_and_tables_stay_whole() {
    let outlive = |name: &str, power_loss| {
        let report = run(name, power_loss, None, 80);
        assert_eq!((report.losses.as_slice(), report.cuts), (&[][..], 80));
        assert!(report.committed > 200 && report.conditions > 5_000, "{report:?}");
        assert!(report.committed_unanswered > 0, "{report:?}");
        assert_eq!(report.losers_undone > 0, name == "block", "{report:?}");
    };
    thread::scope(|scope| {
        for name in ["kaml", "plus", "iter", "block"] {
            for power_loss in [PowerLoss::Protected, PowerLoss::Volatile] {
                scope.spawn(move || outlive(name, power_loss));
            }
        }
    });
    assert_eq!(run("kaml", PowerLoss::Protected, None, 10), run("kaml", PowerLoss::Protected, None, 10));
}

#[test]
fn a_torn_batch_is_found() {
    let report = run("kaml", PowerLoss::Protected, Some(PlantedBug::TornBatch), 200);
    assert!(!report.losses.is_empty(), "{report:?}");
}
