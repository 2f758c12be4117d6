//! Bounds the error of the calendars: closed loops of the same requests, once over [`Clockwork`], which reserves everything
//! when a request arrives, and once through an event-driven simulation of the same hardware.

use crate::closed_loop::{self, Figures};
use crate::reference::{self, Operation, Request};
use kvssd_flash::timing::Clockwork;
use kvssd_flash::{DieId, Geometry, NandTimes, Profile};
use kvssd_types::Random;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::fmt;

const REQUESTS: u64 = 40_000;
const SEED: u64 = 1;

/// The shares of requests in a load; the rest are erases.
#[derive(Clone, Copy, Debug)]
struct Load {
    reads_percent: u64,
    programs_percent: u64,
    /// Each request reads this many times, one after another.
    reads_in_a_row: u32,
    pages_per_read: u32,
}

/// The profiles with pages of 4 KiB, several to a unit.
const SMALL_PAGES: [&str; 2] = ["970pro", "kvvirt"];

const READS: Load = Load { reads_percent: 100, programs_percent: 0, reads_in_a_row: 1, pages_per_read: 1 };

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Load { reads_percent, programs_percent, reads_in_a_row, pages_per_read } = self;
        let erases_percent = 100 - reads_percent - programs_percent;
        write!(f, "{reads_percent} % {reads_in_a_row} reads of {pages_per_read} pages, ")?;
        write!(f, "{programs_percent} % programs, {erases_percent} % erases")
    }
}

impl Load {
    /// The sequence of requests of a seed: reads at random, programs in the order of a log.
    fn requests(self, geometry: &Geometry, seed: u64) -> impl FnMut() -> Request {
        let mut random = Random::new(seed);
        let (dies, rows) = (geometry.dies(), geometry.units_per_block());
        let mut units_programmed = 0;
        move || {
            let draw = random.below(100);
            let mut any = |bound: u32| random.below(u64::from(bound)) as u32;
            if draw < self.reads_percent {
                let pages = self.pages_per_read;
                (0..self.reads_in_a_row).map(|_| Operation::Read { die: any(dies), row: any(rows), pages }).collect()
            } else if draw < self.reads_percent + self.programs_percent {
                units_programmed += 1;
                vec![Operation::Program { die: units_programmed % dies }]
            } else {
                vec![Operation::Erase { die: any(dies) }]
            }
        }
    }
}

fn calendars(geometry: &Geometry, times: &NandTimes, depth: u32, mut next: impl FnMut() -> Request) -> Figures {
    let mut clockwork = Clockwork::new(geometry, times);
    closed_loop::run(depth, REQUESTS, |arrival| {
        clockwork.advance(arrival);
        next().into_iter().fold(arrival, |clock, operation| match operation {
            Operation::Read { die, row, pages } => clockwork.read(DieId(die), row, pages, clock),
            Operation::Program { die } => clockwork.program(DieId(die), clock),
            Operation::Erase { die } => clockwork.erase(DieId(die), clock),
        })
    })
}

/// Asserts that the mean latency and the throughput of the calendars are within `error_percent_max` of the reference.
fn compare(geometry: &Geometry, times: &NandTimes, load: Load, depth: u32, error_percent_max: f64) {
    let found = calendars(geometry, times, depth, load.requests(geometry, SEED));
    let expected = reference::run(geometry, times, depth, REQUESTS, load.requests(geometry, SEED));
    let error_percent = |found: f64, expected: f64| (found / expected - 1.0) * 100.0;
    let latency = error_percent(found.latency_mean_ns, expected.latency_mean_ns);
    let throughput = error_percent(found.requests_per_s, expected.requests_per_s);
    let outcome = format!(
        "{} x {} dies, {load}, depth {depth}: {:.1} us ({latency:+.2} %), {:.1} K/s ({throughput:+.2} %)",
        geometry.channels,
        geometry.dies_per_channel,
        expected.latency_mean_ns / 1e3,
        expected.requests_per_s / 1e3
    );
    println!("{outcome}");
    assert!(latency.abs() <= error_percent_max && throughput.abs() <= error_percent_max, "{outcome}");
}

fn sweep(profile_name: &str, load: Load, error_percent_max: f64) {
    let profile = Profile::load(profile_name, &[]).unwrap();
    for depth in (0..=8).map(|exponent| 1 << exponent) {
        compare(&profile.geometry, &profile.nand, load, depth, error_percent_max);
    }
}

#[test]
fn random_4k_reads() {
    for profile in SMALL_PAGES {
        sweep(profile, READS, 3.0);
    }
}

/// What MQSim says of random 4K reads of 8 channels with two dies each, with the times of `kvvirt` (docs/TIMING.md).
#[test]
fn random_4k_reads_are_those_of_mqsim() {
    let profile = Profile::load("kvvirt", &[]).unwrap();
    let geometry = Geometry { dies_per_channel: 2, ..profile.geometry };
    let mqsim_us = [(1, 41.0), (2, 43.0), (4, 46.0), (8, 52.0), (16, 69.0), (32, 106.0), (64, 186.0), (128, 349.0)];
    for (depth, expected) in mqsim_us {
        let found = calendars(&geometry, &profile.nand, depth, READS.requests(&geometry, SEED)).latency_mean_ns / 1e3;
        assert!((found / expected - 1.0).abs() < 0.025, "depth {depth}: {found:.1} us, MQSim {expected} us");
    }
}

#[test]
fn reads_among_programs() {
    for profile in SMALL_PAGES {
        sweep(profile, Load { reads_percent: 70, programs_percent: 30, ..READS }, 3.0);
        sweep(profile, Load { reads_percent: 95, programs_percent: 5, ..READS }, 3.0);
    }
}

#[test]
fn reads_among_programs_and_erases() {
    for profile in SMALL_PAGES {
        sweep(profile, Load { reads_percent: 69, programs_percent: 30, ..READS }, 3.0);
    }
}

/// What the calendars are worst at by nature: a chain reserves ahead of requests that are handled later and read earlier.
#[test]
fn chains_of_reads_as_of_an_index_and_its_records() {
    for profile in SMALL_PAGES {
        for reads_in_a_row in [2, 4] {
            sweep(profile, Load { reads_in_a_row, ..READS }, 5.0);
            sweep(profile, Load { reads_in_a_row, reads_percent: 70, programs_percent: 30, ..READS }, 7.0);
        }
    }
}

/// Reads of whole units take the channel as long as the die. With two dies a channel, which then must take turns exactly,
/// what one die is promised far ahead keeps the other from its turn: an error of up to 10 % at depths of 64 and more. With
/// more dies a channel it goes away.
#[test]
fn reads_of_whole_units() {
    sweep("970pro", Load { pages_per_read: 8, ..READS }, 11.0);
    sweep("kvvirt", Load { pages_per_read: 8, ..READS }, 4.0);
    // Its page is a unit of 32 KiB.
    sweep("kvemu", READS, 11.0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, rng_seed: RngSeed::Fixed(SEED), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn small_drives_of_any_shape(
        channels in 1u32..=4,
        dies_per_channel in 1u32..=6,
        pages_per_program in prop::sample::select(vec![1u32, 2, 4, 8]),
        depth in 1u32..=64,
        reads_percent in 50u64..=100,
    ) {
        let profile = Profile::load("kvvirt", &[]).unwrap();
        let geometry = Geometry { channels, dies_per_channel, pages_per_program, ..profile.geometry };
        let load = Load { reads_percent, programs_percent: 100 - reads_percent, ..READS };
        compare(&geometry, &profile.nand, load, depth, 3.0);
    }
}
