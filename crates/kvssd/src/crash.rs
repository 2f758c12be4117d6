//! `kvssd crash`: power cuts until something is lost.

#[cfg(feature = "papers")]
mod transactions;

use crate::Outcome;
use crate::arguments::{CrashOptions, Experiment, Semantics};
use crate::fail::Failure;
use crate::output::{JsonFile, print};
use crate::progress::Progress;
use kvssd_conformance::power_cuts::{Campaign, CrashReport, Loss};
use kvssd_designs::DESIGNS;
use kvssd_flash::PowerLoss;
use kvssd_ftl::Design;
use kvssd_sim::bench::{Assignment, designs};
use serde_json::json;

/// Runs the campaigns: each design under each semantics.
pub fn run(options: &CrashOptions) -> Outcome {
    let json_file = JsonFile::open(options.experiment.json.as_deref())?;
    let (text, campaigns, losses) = if options.transactions { of_transactions(options)? } else { of_drives(options)? };
    if !json_file.takes_stdout() {
        print(&text)?;
    }
    json_file.write(&json!({ "campaigns": campaigns }))?;
    if losses == 0 { Ok(()) } else { Err(Failure::Losses(losses as u64)) }
}

/// What campaigns came to: text, the reports, and losses.
pub type Reports = (String, serde_json::Value, usize);

fn of_drives(options: &CrashOptions) -> Result<Reports, Failure> {
    let CrashOptions { experiment: Experiment { seed, .. }, cuts, media_faults, .. } = *options;
    let reports = each(options, &DESIGNS, |design, power_loss, progress| {
        Campaign { design, power_loss, seed, cuts, media_faults }.run(progress)
    })?;
    let losses = reports.iter().map(|report| report.losses.len()).sum();
    Ok((reports.iter().map(|report| text_of(report, options)).collect(), json!(reports), losses))
}

#[cfg(feature = "papers")]
use transactions::of_transactions;

#[cfg(not(feature = "papers"))]
fn of_transactions(_: &CrashOptions) -> Result<Reports, Failure> {
    Err(Failure::without("--transactions", "papers"))
}

/// Runs a campaign for each design that is meant, and each semantics.
pub fn each<R, E: Into<Failure>>(
    options: &CrashOptions,
    all: &[Design],
    campaign: impl Fn(Design, PowerLoss, &mut Progress) -> Result<R, E>,
) -> Result<Vec<R>, Failure> {
    let names = match options.design.as_str() {
        "all" => all.iter().map(|design| design.name.to_owned()).collect(),
        name => vec![name.to_owned()],
    };
    let semantics = match options.semantics {
        None => vec![PowerLoss::Protected, PowerLoss::Volatile],
        Some(Semantics::Protected) => vec![PowerLoss::Protected],
        Some(Semantics::Volatile) => vec![PowerLoss::Volatile],
    };
    let mut progress = Progress::new();
    let mut reports = Vec::new();
    for design in designs(&names, &options.set)? {
        for &power_loss in &semantics {
            reports.push(silently(|| campaign(design.clone(), power_loss, &mut progress))?);
        }
    }
    Ok(reports)
}

/// A panic of the firmware is a line of the report, and need not be printed as well.
fn silently<T, E: Into<Failure>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, Failure> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = work();
    std::panic::set_hook(hook);
    result.map_err(Into::into)
}

/// The options that set what this design has.
fn set_of(design: &str, options: &CrashOptions) -> String {
    let has = |set: &&Assignment| designs(&[design.to_owned()], std::slice::from_ref(set)).is_ok();
    options.set.iter().filter(has).map(|(name, value)| format!(" --set design.{name}={value}")).collect()
}

/// What was lost, and the `campaign` that shows each loss again, with what else is `set` in it.
fn text_of_losses(losses: &[Loss], campaign: &str, set: &str) -> String {
    let again = |loss: &Loss| {
        let Loss { seed, cut, what } = loss;
        format!("  {what}\n  again: kvssd crash {campaign} --seed {seed} --cuts {cut}{set}\n")
    };
    losses.iter().map(again).collect()
}

fn text_of(report: &CrashReport, options: &CrashOptions) -> String {
    let CrashReport { design, semantics, cuts, mounts, mounts_cut, operations, losses, .. } = report;
    let mut text = format!(
        "{design}, {semantics}: {cuts} cuts, {mounts} mounts and {mounts_cut} cut short, {operations} operations, {} pairs \
         moved by garbage collection, {} operations of flash broken: {} losses\n",
        report.pairs_moved,
        report.operations_broken,
        losses.len()
    );
    text += &format!(
        "  made again by mounts: {} changes, {} of them splits of sections, {} pages of invalid mappings; {} batches cut in \
         two\n",
        report.changes_redone, report.splits_redone, report.spills_redone, report.batches_torn
    );
    if report.media_faults {
        text += &format!(
            "  {} reads with flipped bits caught, {} lost pages rebuilt, {} blocks retired, a block read {} times between \
             two erases\n",
            report.flips_caught, report.pages_rebuilt, report.blocks_retired, report.block_reads_max
        );
    }
    let faults = if report.media_faults { " --media-faults" } else { "" };
    let set = faults.to_owned() + &set_of(design, options);
    text + &text_of_losses(losses, &format!("--design {design} --semantics {semantics}"), &set)
}
