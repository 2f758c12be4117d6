//! The scenarios, each for a while, on every design.
//!
//! DESIGN, WORLD_DRIVES and WORLD_SEED choose others, as a line of a loss says.

use crate::{number, of_each_design, scenario, variable};
use kvssd_designs::PLUS;
use kvssd_world::lives::Report;
use std::time::Instant;

/// Drives of each design with several programs or threads.
const DRIVES: u64 = 3;
/// The same, where they have caches.
const DRIVES_CACHES: u64 = 1;
/// Drives of each design with one program, which are soon over.
const DRIVES_SOLO: u64 = 6;

/// Lets so many drives of all designs live, if nothing else is said.
fn live(name: &str, drives: u64) {
    let (drives, first) = (number("WORLD_DRIVES").unwrap_or(drives), number("WORLD_SEED").unwrap_or(1));
    let only = variable("DESIGN");
    let losses = of_each_design(|design| {
        let mut losses = Vec::new();
        if only.as_deref().is_some_and(|only| only != design.name) {
            return losses;
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
        losses
    });
    let losses = losses.concat();
    assert!(losses.is_empty(), "{} losses\n{}", losses.len(), losses[..losses.len().min(3)].join("\n"));
}

/// The same seed gives the same run.
fn repeat(name: &str) {
    let reports = [4, 4, 5].map(|seed| {
        let mut report = Report::default();
        (scenario(name).run)(&PLUS, seed, &mut report).unwrap_or_else(|loss| panic!("{loss:?}"));
        report
    });
    assert_eq!(reports[0], reports[1]);
    assert_ne!(reports[0].trace, reports[2].trace);
}

/// Through kills, stops and failures at every call of the disk.
#[test]
fn one_program_loses_nothing() {
    live("solo", DRIVES_SOLO);
}

#[test]
fn threads_on_one_store_are_linearizable_and_serializable() {
    live("threads", DRIVES);
    repeat("threads");
}

#[test]
fn caches_give_the_newest_or_nothing_and_plain_namespaces_lose_nothing() {
    live("caches", DRIVES_CACHES);
    repeat("caches");
}

#[test]
fn an_image_has_one_owner_who_finds_everything() {
    live("owners", DRIVES);
    repeat("owners");
}

/// A batch may be refused for one of its values; and whoever makes an image may find one over which another was killed.
#[test]
fn a_refusal_with_a_reason_is_no_loss() {
    let design = kvssd_designs::named("rhik").unwrap();
    for (name, seed) in [("threads", 77_000_000), ("owners", 77_000_016)] {
        let lived = (scenario(name).run)(&design, seed, &mut Report::default());
        lived.unwrap_or_else(|loss| panic!("{name}: {}", loss.what));
    }
}

mod campaigns {
    use super::*;

    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn hosts_and_a_killed_service_are_linearizable() {
        live("hosts", DRIVES);
        repeat("hosts");
    }

    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn what_a_disk_lies_about_is_told_and_never_served() {
        live("liar", DRIVES);
    }
}
