//! Claims as people read them: a text for the terminal, a document for a folder.

use kvssd_papers::claims::{Claim, Verdict};
use std::fmt::Write;

/// All verdicts, the best first.
const VERDICTS: [Verdict; 5] =
    [Verdict::Reproduced, Verdict::Proven, Verdict::ByConstruction, Verdict::Direction, Verdict::NotReproduced];

/// For the terminal.
pub fn text(claims: &[Claim]) -> String {
    let mut text = String::new();
    for claim in claims {
        let Claim { id, claim: what, paper, ours, verdict, scale, cause, lost_with, ablation } = claim;
        let _ = writeln!(text, "{id:<8} {what}");
        let _ = writeln!(text, "{:<10} paper {paper}; ours {ours} (scale {scale}): {}", "", verdict.name());
        for row in ablation {
            let _ = writeln!(text, "{:<10} with {}: {} ({})", "", row.assumed, row.ours, row.verdict.name());
        }
        if let Some(cause) = cause {
            let _ = writeln!(text, "{:<10} what it takes: {cause}", "");
        }
        if let Some(facts) = lost_with {
            let _ = writeln!(text, "{:<10} it does not come out with what is known of the testbed: {facts}", "");
        }
    }
    text + &format!("{}\n", summary(claims))
}

/// How many claims there are of each verdict.
fn summary(claims: &[Claim]) -> String {
    let of = |verdict: Verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let counts = VERDICTS.into_iter().map(|verdict| format!("{} {}", of(verdict), verdict.name()));
    let claims = if claims.len() == 1 { "1 claim".to_owned() } else { format!("{} claims", claims.len()) };
    format!("{claims}: {}", counts.collect::<Vec<_>>().join(", "))
}

/// How a document for a folder begins.
pub const HEADING: &str = "# What of the papers comes out\n";

/// For a folder, with how many seconds each experiment took.
pub fn markdown(claims: &[Claim], times: &[(Vec<String>, f64)]) -> String {
    let mut text = format!("{HEADING}\n{}.\n\n", summary(claims));
    text += "| id | claim | paper | ours | testbed | verdict | cause | seconds |\n|---|---|---|---|---|---|---|---|\n";
    for claim in claims {
        let Claim { id, claim: what, paper, ours, verdict, scale, cause, lost_with, .. } = claim;
        let seconds =
            times.iter().find(|(ids, _)| ids[0] == *id).map_or(String::new(), |(_, seconds)| format!("{seconds:.0}"));
        let cause = cause.as_deref().unwrap_or_default();
        let lost = lost_with.as_ref().map_or(String::new(), |facts| format!(", but not with {facts}"));
        let verdict = format!("{}{lost}", verdict.name());
        let _ = writeln!(text, "| {id} | {what} | {paper} | {ours} | {scale} | {verdict} | {cause} | {seconds} |");
    }
    for claim in claims.iter().filter(|claim| !claim.ablation.is_empty()) {
        let _ = write!(
            text,
            "\n## {}\n\n{}; paper {}.\n\n| assumed | ours | verdict |\n|---|---|---|\n",
            claim.id, claim.claim, claim.paper
        );
        let _ = writeln!(text, "| nothing | {} | |", claim.ours);
        for row in &claim.ablation {
            let _ = writeln!(text, "| {} | {} | {} |", row.assumed, row.ours, row.verdict.name());
        }
    }
    text
}
