//! Bounds the error of the calendars: closed loops of the same requests, once over [`Clockwork`], which reserves everything
//! when a request arrives, and once through an event-driven simulation of the same hardware.

mod closed_loop;
mod reference;

use closed_loop::Figures;
use kvssd_flash::timing::Clockwork;
use kvssd_flash::{DieId, Geometry, NandTimes, Profile};
use kvssd_types::Random;
use reference::{Operation, Request};

const REQUESTS: u64 = 40_000;

/// The shares of operations in a load, in per cent; the rest are erases.
#[derive(Clone, Copy, Debug)]
struct Load {
    reads_percent: u64,
    programs_percent: u64,
    /// Each request reads this many times, one after another.
    reads_in_a_row: u32,
    pages_per_read: u32,
}

const READS: Load = Load { reads_percent: 100, programs_percent: 0, reads_in_a_row: 1, pages_per_read: 1 };

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

fn calendars(
    geometry: &Geometry,
    times: &NandTimes,
    depth: u32,
    completions_wanted: u64,
    mut next: impl FnMut() -> Request,
) -> Figures {
    let mut clockwork = Clockwork::new(geometry, times);
    closed_loop::run(depth, completions_wanted, |arrival| {
        clockwork.advance(arrival);
        next().into_iter().fold(arrival, |clock, operation| match operation {
            Operation::Read { die, row, pages } => clockwork.read(DieId(die), row, pages, clock),
            Operation::Program { die } => clockwork.program(DieId(die), clock),
            Operation::Erase { die } => clockwork.erase(DieId(die), clock),
        })
    })
}

fn compare(name: &str, geometry: &Geometry, times: &NandTimes, load: Load, depth: u32, error_percent_max: f64) {
    let found = calendars(geometry, times, depth, REQUESTS, load.requests(geometry, 1));
    let expected = reference::run(geometry, times, depth, REQUESTS, load.requests(geometry, 1));
    let error = |found: f64, expected: f64| (found / expected - 1.0) * 100.0;
    let latency = error(found.latency_mean_ns, expected.latency_mean_ns);
    let throughput = error(found.requests_per_s, expected.requests_per_s);
    println!(
        "{name} depth {depth}: latency {:.1} us ({latency:+.2} %), {:.1} K/s ({throughput:+.2} %)",
        expected.latency_mean_ns / 1e3,
        expected.requests_per_s / 1e3
    );

}

#[test]
fn explore() {
    for name in ["970pro", "kvvirt"] {
        let profile = Profile::load(name, &[]).unwrap();
        let loads = [
            ("reads", READS),
            ("large reads", Load { pages_per_read: 8, ..READS }),
            ("70/30", Load { reads_percent: 70, programs_percent: 30, ..READS }),
            ("95/5", Load { reads_percent: 95, programs_percent: 5, ..READS }),
            ("69/30/1", Load { reads_percent: 69, programs_percent: 30, ..READS }),
            ("2 in a row", Load { reads_in_a_row: 2, ..READS }),
            ("2 in a row 70/30", Load { reads_in_a_row: 2, reads_percent: 70, programs_percent: 30, ..READS }),
            ("4 in a row", Load { reads_in_a_row: 4, ..READS }),
        ];
        for (what, load) in loads {
            for depth in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
                compare(&format!("{name} {what}"), &profile.geometry, &profile.nand, load, depth, 3.0);
            }
        }
    }
}
