//! One scenario on one design, seed after seed, until something is lost or the time is over: how a mutant is found, and a loss seen again.
//!
//! ```text
//!   SCENARIO=solo DESIGN=plus WORLD_SEED=1 WORLD_SECONDS=600 cargo test -p kvssd-world --test campaign -- --ignored --nocapture
//! ```

use kvssd_designs::DESIGNS;
use kvssd_world::lives::{Report, SCENARIOS};
use std::time::{Duration, Instant};

fn variable(name: &str, otherwise: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| otherwise.to_owned())
}

#[test]
#[ignore = "as long as is said"]
fn campaign() {
    let (name, design) = (variable("SCENARIO", "solo"), variable("DESIGN", "plus"));
    let first: u64 = variable("WORLD_SEED", "1").parse().expect("a seed");
    let seconds: u64 = variable("WORLD_SECONDS", "60").parse().expect("seconds");
    let design = DESIGNS.into_iter().find(|known| known.name == design).expect("a design");
    let (begin, mut report) = (Instant::now(), Report::default());
    let until = begin + Duration::from_secs(seconds);
    let mut lost = Ok(());
    let scenario = SCENARIOS.iter().find(|known| known.name == name).expect("a scenario");
    let mut seed = first;
    while lost.is_ok() && Instant::now() < until {
        lost = (scenario.run)(&design, seed, &mut report);
        seed += 1;
    }
    let took = begin.elapsed().as_secs_f64();
    match lost {
        Ok(()) => println!("NOTHING {name} {} from {first}: {} lives in {took:.1} s", design.name, report.lives),
        Err(loss) => {
            let what = loss.what.lines().next().unwrap_or_default();
            println!("LOSS {name} {} {} {} lives {took:.1} s: {what}", design.name, loss.seed, report.lives);
            panic!("{}\n  {}", loss.what, loss.history.join("\n  "));
        }
    }
}
