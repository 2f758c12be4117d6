//! Each call of a scripted life is struck in each way, and nothing is lost that was answered.

use kvssd_ftl::DESIGNS;
use kvssd_world::lives::Hardware;
use kvssd_world::lives::sweep::{Sweep, SweepReport};

/// In the tests every so manieth strike is made.
const STRIDE: usize = 97;

#[test]
fn no_call_that_is_struck_loses_anything() {
    let stride = std::env::var("SWEEP_STRIDE").ok().and_then(|text| text.parse().ok()).unwrap_or(STRIDE);
    let only = std::env::var("DESIGN").ok();
    let mut losses = Vec::new();
    for design in DESIGNS.iter().filter(|design| only.as_deref().is_none_or(|only| only == design.name)) {
        for (sync, is_large) in [(false, true), (true, false)] {
            let sweep = Sweep::new(Hardware::tiny(design, sync, is_large, sync).unwrap()).unwrap();
            let mut report = SweepReport { calls: sweep.calls(), ..SweepReport::default() };
            let strikes =
                (0..sweep.calls()).flat_map(|call| sweep.strikes(call).into_iter().map(move |strike| (call, strike)));
            for (call, strike) in strikes.skip(design.name.len() % stride).step_by(stride) {
                if let Err(loss) = sweep.strike(call, strike, &mut report) {
                    losses.push(format!("{} sync {sync}: {loss:?}", design.name));
                }
            }
            println!("{} sync {sync}: {report:?}", design.name);
            assert!(report.calls > 500 && report.killed > 20 && report.told > 5, "{report:?}");
        }
    }
    assert!(
        losses.is_empty(),
        "{} losses\n{}",
        losses.len(),
        losses.iter().take(12).cloned().collect::<Vec<_>>().join("\n")
    );
}
