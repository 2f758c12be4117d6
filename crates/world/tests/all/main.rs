//! The world, and what lives in it. One program: each that is linked costs as much as many tests.

mod campaign;
mod durable_reads;
mod golden;
mod mutants;
mod network;
mod scenarios;
mod sweep;
mod transactions;
mod turns;
mod wire;

use kvssd_designs::DESIGNS;
use kvssd_ftl::Design;
use kvssd_world::lives::{SCENARIOS, Scenario};
use std::panic::resume_unwind;
use std::{env, thread};

/// What comes of each design, side by side: the longest does not keep the others waiting.
fn of_each_design<T: Send>(work: impl Fn(&Design) -> T + Sync) -> Vec<T> {
    let (designs, work) = (&DESIGNS, &work);
    thread::scope(|scope| {
        let running: Vec<_> = designs.iter().map(|design| scope.spawn(move || work(design))).collect();
        running.into_iter().map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// What an environment variable says.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// The number that an environment variable says.
fn number(name: &str) -> Option<u64> {
    variable(name).map(|text| text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

fn scenario(name: &str) -> &'static Scenario {
    SCENARIOS.iter().find(|scenario| scenario.name == name).unwrap_or_else(|| panic!("there is no scenario {name:?}"))
}
