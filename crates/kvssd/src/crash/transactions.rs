//! `kvssd crash --transactions`: power cuts in the middle of TPC-B and TPC-C.

use super::{Reports, each, set_of, text_of_losses};
use crate::arguments::{CrashOptions, Experiment};
use crate::fail::Failure;
use kvssd_designs::{BLOCK, DESIGNS};
use kvssd_ftl::Design;
use kvssd_papers::crash::{TransactionCampaign, TransactionCrashReport};
use serde_json::json;

/// Runs the campaigns on drives of keys and the block drive.
pub fn of_transactions(options: &CrashOptions) -> Result<Reports, Failure> {
    let CrashOptions { experiment: Experiment { seed, .. }, cuts, .. } = *options;
    let designs: Vec<Design> = DESIGNS.into_iter().chain([BLOCK]).collect();
    let reports = each(options, &designs, |design, power_loss, progress| {
        TransactionCampaign { design, power_loss, seed, cuts }.run(progress)
    })?;
    let losses = reports.iter().map(|report| report.losses.len()).sum();
    Ok((reports.iter().map(|report| text_of(report, options)).collect(), json!(reports), losses))
}

fn text_of(report: &TransactionCrashReport, options: &CrashOptions) -> String {
    let TransactionCrashReport { design, semantics, cuts, committed, losses, .. } = report;
    let text = format!(
        "{design}, {semantics}: {cuts} cuts of {} drives, {committed} commits answered, {} attempts refused, {} conditions \
         verified: {} losses\n  found behind cuts: {} commits that were not answered, {} batches cut in two, {} transactions undone\n",
        report.drives,
        report.refused,
        report.conditions,
        losses.len(),
        report.committed_unanswered,
        report.batches_torn,
        report.losers_undone
    );
    let campaign = format!("--transactions --design {design} --semantics {semantics}");
    text + &text_of_losses(losses, &campaign, &set_of(design, options))
}
