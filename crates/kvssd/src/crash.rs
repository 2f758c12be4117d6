//! `kvssd crash`: power cuts until something is lost.

use crate::Outcome;
use crate::arguments::{CrashOptions, Semantics};
use crate::fail::Failure;
use crate::output::{JsonFile, print};
use crate::progress::Progress;
use kvssd_flash::PowerLoss;
use kvssd_ftl::{DESIGNS, Design};
use kvssd_lab::LabError;
use kvssd_lab::crash::{Campaign, CrashReport};
use serde_json::json;

/// Runs the campaigns: each design under each semantics.
pub fn run(options: &CrashOptions) -> Outcome {
    let json_file = JsonFile::open(options.json.as_deref())?;
    let designs = match options.design.as_str() {
        "all" => DESIGNS.to_vec(),
        name => vec![Design::named(name)?],
    };
    let semantics = match options.semantics {
        None => vec![PowerLoss::Protected, PowerLoss::Volatile],
        Some(Semantics::Protected) => vec![PowerLoss::Protected],
        Some(Semantics::Volatile) => vec![PowerLoss::Volatile],
    };
    let mut progress = Progress::new();
    let mut reports = Vec::new();
    for design in designs {
        for &power_loss in &semantics {
            let CrashOptions { seed, cuts, media_faults, .. } = *options;
            let campaign = Campaign { design: design.clone(), power_loss, seed, cuts, media_faults };
            reports.push(silently(|| campaign.run(&mut progress))?);
        }
    }
    drop(progress);
    if !json_file.takes_stdout() {
        print(&reports.iter().map(text_of).collect::<String>())?;
    }
    json_file.write(&json!({ "campaigns": reports }))?;
    match reports.iter().map(|report| report.losses.len() as u64).sum() {
        0 => Ok(()),
        losses => Err(LabError::Losses(losses).into()),
    }
}

/// A panic of the firmware is a line of the report, and need not be printed as well.
fn silently<T>(work: impl FnOnce() -> Result<T, LabError>) -> Result<T, Failure> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = work();
    std::panic::set_hook(hook);
    Ok(result?)
}

fn text_of(report: &CrashReport) -> String {
    let CrashReport { design, semantics, cuts, mounts, mounts_cut, operations, losses, .. } = report;
    let mut text = format!(
        "{design}, {semantics}: {cuts} cuts, {mounts} mounts and {mounts_cut} cut short, {operations} operations, {} pairs \
         moved by garbage collection, {} operations of flash broken: {} losses\n",
        report.pairs_moved,
        report.operations_broken,
        losses.len()
    );
    text += &format!(
        "  made again by mounts: {} changes, {} of them splits of sections, {} pages of invalid mappings\n",
        report.changes_redone, report.splits_redone, report.spills_redone
    );
    if report.media_faults {
        text += &format!(
            "  {} reads with flipped bits caught, {} lost pages rebuilt, {} blocks retired, a block read {} times between \
             two erases\n",
            report.flips_caught, report.pages_rebuilt, report.blocks_retired, report.block_reads_max
        );
    }
    let faults = if report.media_faults { " --media-faults" } else { "" };
    for loss in losses {
        text += &format!(
            "  {}\n  again: kvssd crash --design {design} --semantics {semantics} --seed {} --cuts {}{faults}\n",
            loss.what, loss.seed, loss.cut
        );
    }
    text
}
