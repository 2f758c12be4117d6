//! `kvssd estimate`: what a bench will show, reckoned and not run; and beside the reports of a sweep, how far off that is.

mod against;

use crate::Outcome;
use crate::arguments::estimate::EstimateOptions;
use crate::bench;
use crate::output::{JsonFile, print};
use kvssd_measure::columns;
use kvssd_model::Estimate;
use kvssd_sim::{Experiment, SimError};
use kvssd_types::Nanos;
use serde_json::{Value, json};

/// Prints an estimate for each design, or against each report.
pub fn run(options: &EstimateOptions) -> Outcome {
    let file = JsonFile::open(options.bench.experiment.json.as_deref())?;
    if let Some(folder) = &options.against {
        return against::run(folder, &file);
    }
    let bench = &options.bench;
    if bench.store.store.is_some() || bench.html.is_some() || bench.drive.trace_out.is_some() {
        return Err(SimError::Setup(
            "--store, --html and --trace-out are of what runs: an estimate has none of them".to_owned(),
        )
        .into());
    }
    let experiments = match &bench.from {
        Some(path) => crate::report::experiments_of(path)?,
        None => bench::experiments(bench, Experiment::check_on_paper)?,
    };
    let mut estimates: Vec<Result<Estimate, SimError>> = experiments.iter().map(Experiment::estimate).collect();
    if estimates.iter().all(Result::is_err)
        && let Some(Err(why)) = estimates.pop()
    {
        return Err(why.into());
    }
    let named = || experiments.iter().map(|experiment| experiment.design_name().to_owned()).zip(&estimates);
    if !file.takes_stdout() {
        print(&table(&named().collect::<Vec<_>>()))?;
    }
    let of = |(design, estimate): (String, &Result<Estimate, SimError>)| match estimate {
        Ok(estimate) => json!({ "design": design, "estimate": estimate }),
        Err(why) => json!({ "design": design, "impossible": why.to_string() }),
    };
    file.write(&Value::Array(named().map(of).collect()))
}

type Figure = (&'static str, fn(&Estimate) -> String);

const FIGURES: [Figure; 9] = [
    ("throughput, ops/s", |estimate| format!("{:.0}", estimate.throughput_ops_s)),
    ("  limit, if nobody waited", |estimate| format!("{:.0}", estimate.limit_ops_s)),
    ("  held back by", |estimate| json!(estimate.held_back_by).as_str().unwrap_or("").to_owned()),
    ("retrieve p50", |estimate| time(estimate.retrieve_p50_ns)),
    ("store p50", |estimate| time(estimate.store_p50_ns)),
    ("flash reads an operation", |estimate| format!("{:.2}", estimate.flash_reads)),
    ("flash programs an operation, pages", |estimate| format!("{:.3}", estimate.flash_programs)),
    ("write amplification", |estimate| {
        estimate.write_amplification.map_or("-".to_owned(), |times| format!("{times:.2}"))
    }),
    ("dies at work", |estimate| format!("{:.0} %", 100.0 * estimate.dies)),
];

fn time(time_ns: Option<f64>) -> String {
    time_ns.map_or("-".to_owned(), |time_ns| Nanos(time_ns as u64).to_string())
}

fn table(estimates: &[(String, &Result<Estimate, SimError>)]) -> String {
    let possible: Vec<(&String, &Estimate)> =
        estimates.iter().filter_map(|(name, estimate)| Some((name, estimate.as_ref().ok()?))).collect();
    let heading = std::iter::once("on paper".to_owned()).chain(possible.iter().map(|(name, _)| (*name).clone()));
    let line = |(name, figure): &Figure| {
        std::iter::once((*name).to_owned()).chain(possible.iter().map(|(_, estimate)| figure(estimate))).collect()
    };
    let lines: Vec<Vec<String>> = std::iter::once(heading.collect()).chain(FIGURES.iter().map(line)).collect();
    let refused =
        estimates.iter().filter_map(|(name, estimate)| Some(format!("{name}: {}\n", estimate.as_ref().err()?)));
    format!("{}{}", columns(&lines), refused.collect::<String>())
}
