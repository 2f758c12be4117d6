//! Drives live through kills, stops and failures at every call of the disk, and lose nothing.

use kvssd_designs::DESIGNS;
use kvssd_world::lives::Report;
use kvssd_world::lives::solo::run;

/// Drives of each design. WORLD_DRIVES and WORLD_SEED say others.
const DRIVES: u64 = 6;

fn variable(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn one_program_loses_nothing() {
    let (drives, first) = (variable("WORLD_DRIVES", DRIVES), variable("WORLD_SEED", 1));
    let only = std::env::var("DESIGN").ok();
    let mut losses = Vec::new();
    for design in DESIGNS.iter().filter(|design| only.as_deref().is_none_or(|only| only == design.name)) {
        let mut report = Report::default();
        for seed in first..first + drives {
            if let Err(loss) = run(design, seed, &mut report) {
                losses.push(format!(
                    "{} {}/{}: {}\n  {}",
                    design.name,
                    loss.seed,
                    loss.life,
                    loss.what,
                    loss.history.join("\n  ")
                ));
            }
        }
        println!("{}: {report:?}", design.name);
    }
    assert!(
        losses.is_empty(),
        "{} losses\n{}",
        losses.len(),
        losses.iter().take(3).cloned().collect::<Vec<_>>().join("\n")
    );
}
