//! Each call of a scripted life is struck in each way, and nothing is lost that was answered.

use crate::of_each_design;
use kvssd_world::lives::{Report, sweep};

/// In the tests every so manieth call is struck.
const STRIDE: usize = 311;
/// More than the script has calls, for each of the three kinds of drives.
const CALLS_MAX: u64 = 1700;

#[test]
fn no_call_that_is_struck_loses_anything() {
    of_each_design(|design| {
        let mut report = Report::default();
        for seed in (design.name.len() as u64..3 * CALLS_MAX).step_by(STRIDE) {
            if let Err(loss) = sweep::run(design, seed, &mut report) {
                panic!("{}: {loss:#?}", design.name);
            }
        }
        assert!(report.kills > 10 && report.failures > 3, "{}: {report:?}", design.name);
    });
}
