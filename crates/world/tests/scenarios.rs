//! The scenarios with several programs or threads, each for a while, on every design.
//!
//! DESIGN, WORLD_DRIVES and WORLD_SEED choose others, as a line of a loss says.

use kvssd_designs::DESIGNS;
use kvssd_world::lives::{Report, SCENARIOS, Scenario};
use std::time::Instant;

/// Drives of each design.
const DRIVES: u64 = 3;

fn variable(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn scenario(name: &str) -> &'static Scenario {
    SCENARIOS.iter().find(|scenario| scenario.name == name).expect("there is such a scenario")
}

/// Lets drives of all designs live.
fn live(name: &str) {
    let (drives, first) = (variable("WORLD_DRIVES", DRIVES), variable("WORLD_SEED", 1));
    let only = std::env::var("DESIGN").ok();
    let mut losses = Vec::new();
    for design in DESIGNS.iter().filter(|design| design.takes_keys()) {
        if only.as_deref().is_some_and(|only| only != design.name) {
            continue;
        }
        let (mut report, began) = (Report::default(), Instant::now());
        for seed in first..first + drives {
            if let Err(loss) = (scenario(name).run)(design, seed, &mut report) {
                let (what, history) = (loss.what, loss.history.join("\n  "));
                println!("{name} {} seed {seed} life {}: {what}", design.name, loss.life);
                losses.push(format!("{name} {} seed {seed} life {}: {what}\n  {history}", design.name, loss.life));
            }
        }
        let rate = report.lives as f64 / began.elapsed().as_secs_f64();
        println!("{name} {}: {rate:.0} lives/s, {report:?}", design.name);
    }
    assert!(losses.is_empty(), "{} losses\n{}", losses.len(), losses[..losses.len().min(3)].join("\n"));
}

/// The same seed gives the same run.
fn repeat(name: &str) {
    let reports = [4, 4, 5].map(|seed| {
        let mut report = Report::default();
        (scenario(name).run)(&DESIGNS[1], seed, &mut report).unwrap_or_else(|loss| panic!("{loss:?}"));
        report
    });
    assert_eq!(reports[0], reports[1]);
    assert_ne!(reports[0].trace, reports[2].trace);
}

#[test]
fn hosts_and_a_killed_service_are_linearizable() {
    live("hosts");
    repeat("hosts");
}

#[test]
fn threads_on_one_store_are_linearizable_and_serializable() {
    live("threads");
    repeat("threads");
}

#[test]
fn an_image_has_one_owner_who_finds_everything() {
    live("owners");
    repeat("owners");
}

#[test]
fn what_a_disk_lies_about_is_told_and_never_served() {
    live("liar");
}
