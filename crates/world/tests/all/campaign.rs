//! One scenario on one design, seed after seed, until something is lost or the time is over: how a mutant is found, and a loss seen again.
//!
//! ```text
//!   SCENARIO=solo DESIGN=plus WORLD_SEED=1 WORLD_SECONDS=600 cargo test -p kvssd-world --test all campaign -- --ignored --nocapture
//! ```

use crate::{number, scenario, variable};
use kvssd_world::lives::Report;
use std::time::{Duration, Instant};

#[test]
#[ignore = "as long as is said"]
fn campaign() {
    let name = variable("SCENARIO").unwrap_or_else(|| "solo".to_owned());
    let design = kvssd_designs::named(variable("DESIGN").as_deref().unwrap_or("plus")).unwrap();
    let first = number("WORLD_SEED").unwrap_or(1);
    let seconds = number("WORLD_SECONDS").unwrap_or(60);
    let scenario = scenario(&name);
    let (begin, mut report) = (Instant::now(), Report::default());
    let until = begin + Duration::from_secs(seconds);
    let mut lost = Ok(());
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
