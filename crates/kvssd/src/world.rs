//! `kvssd world`: the whole program under one seed, until something is lost.

use crate::Outcome;
use crate::arguments::world::WorldOptions;
use crate::fail::Failure;
use crate::output::{JsonFile, print};
use crate::progress::Progress;
use kvssd_designs::DESIGNS;
use kvssd_ftl::{Design, DesignError};
use kvssd_measure::{Observer, columns, grouped};
use kvssd_sim::SimError;
use kvssd_world::lives::{Campaign, Loss, Row, SCENARIOS, Scenario};
use serde_json::json;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// Runs the scenarios and says what they came to.
pub fn run(options: &WorldOptions) -> Outcome {
    let json_file = JsonFile::open(options.json.as_deref())?;
    let jobs = options.jobs.or(available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let seeds = options.seed..options.seed.saturating_add(options.drives);
    let campaign =
        Campaign { scenarios: scenarios(&options.scenario)?, designs: designs(&options.design)?, seeds, jobs };
    let mut progress = Progress::new();
    progress.begin("drives", campaign.drives());
    let until = options
        .minutes
        .and_then(|minutes| Instant::now().checked_add(Duration::from_secs(minutes.get().saturating_mul(60))));
    let hook = std::panic::take_hook();
    // A panic is a line of the report.
    std::panic::set_hook(Box::new(|_| {}));
    let rows = campaign.run(|done| {
        progress.progress(done);
        !progress.is_interrupted() && until.is_none_or(|until| Instant::now() < until)
    });
    std::panic::set_hook(hook);
    let is_interrupted = progress.is_interrupted();
    drop(progress);
    let losses: usize = rows.iter().map(|row| row.losses.len()).sum();
    if is_interrupted && losses == 0 {
        // A report would look like one of all drives.
        return Err(SimError::Interrupted.into());
    }
    if !json_file.takes_stdout() {
        print(&text_of(&rows))?;
    }
    json_file.write(&json!({ "rows": rows }))?;
    if rows.iter().all(|row| row.report.lives == 0) && losses == 0 {
        let why = format!("--seed {}: no drive lived: there is nothing behind the last call of a sweep", options.seed);
        return Err(SimError::Setup(why).into());
    }
    if losses > 0 { Err(Failure::Losses(losses as u64)) } else { Ok(()) }
}

fn scenarios(name: &str) -> Result<Vec<Scenario>, Failure> {
    let found: Vec<Scenario> = SCENARIOS.into_iter().filter(|one| name == "all" || one.name == name).collect();
    if found.is_empty() {
        let names = SCENARIOS.map(|one| one.name).join(", ");
        return Err(SimError::Setup(format!("--scenario {name}: there are all, {names}")).into());
    }
    Ok(found)
}

fn designs(name: &str) -> Result<Vec<Design>, Failure> {
    match name {
        "all" => Ok(DESIGNS.to_vec()),
        name => {
            let design = kvssd_designs::named(name).map_err(|error: DesignError| SimError::Setup(error.to_string()))?;
            if design.takes_keys() {
                Ok(vec![design])
            } else {
                Err(SimError::Setup(format!("--design {name}: a world stores keys, and it takes blocks")).into())
            }
        }
    }
}

fn text_of(rows: &[Row]) -> String {
    let heads = [
        "scenario",
        "design",
        "drives",
        "lives",
        "kills",
        "stops",
        "failed calls",
        "calls",
        "lives/s a core",
        "losses",
    ];
    let mut cells = vec![heads.map(str::to_owned).to_vec()];
    for Row { scenario, design, report, seconds, losses } in rows {
        let rate = (report.lives as f64 / seconds.max(0.001)) as u64;
        let numbers =
            [report.drives, report.lives, report.kills, report.power_losses, report.failures, report.calls, rate];
        let names = [(*scenario).to_owned(), design.clone()];
        cells.push(names.into_iter().chain(numbers.map(grouped)).chain([losses.len().to_string()]).collect());
    }
    let lives: u64 = rows.iter().map(|row| row.report.lives).sum();
    let mut text = columns(&cells) + &format!("{} lives in all\n", grouped(lives));
    for Row { scenario, design, losses, .. } in rows {
        for Loss { seed, life, what, history } in losses {
            text += &format!("\n{scenario}, {design}, drive {seed}, life {life}: {what}\n");
            history.iter().for_each(|step| text += &format!("    {step}\n"));
            text += &format!("  again: kvssd world --scenario {scenario} --design {design} --seed {seed} --drives 1\n");
        }
    }
    text
}
