//! The versions of one row: their order, and who depends on whom because of it.

use super::graph::{DependencyKind, Graph};
use super::verdict::{Anomaly, Verdict};
use super::{Fate, History, Touch, Version};
use crate::transactions::row::Stamp;

/// Adds to the graph what the committed touches of a row, ordered by transaction, make of each other.
pub(super) fn connect(touches: &[Touch], history: &History, graph: &mut Graph, verdict: &mut Verdict) {
    let row = touches[0].row;
    let mut written: Vec<(Stamp, u32)> =
        touches.iter().filter_map(|touch| touch.wrote.map(|stamp| (stamp, touch.transaction))).collect();
    written.sort();
    let beginning = touches.iter().filter_map(|touch| touch.saw).find(|saw| is_beginning(*saw));
    for touch in touches {
        match origin(touch, beginning, &written, history) {
            Ok(Some(writer)) => graph.add(writer, touch.transaction, DependencyKind::WriteRead, row),
            Ok(None) => {}
            Err(anomaly) => verdict.add(anomaly),
        }
    }
    let followers = Followers::of(touches, beginning, verdict);
    let attempt = |transaction: u32| history.committed[transaction as usize];
    for pair in followers.0.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        verdict.add(Anomaly::LostUpdate { row, first: attempt(pair[0].1), second: attempt(pair[1].1) });
    }
    for &(stamp, writer) in &written {
        for next in followers.after(Some(stamp)) {
            graph.add(writer, next, DependencyKind::WriteWrite, row);
        }
    }
    for touch in touches {
        for next in touch.saw.into_iter().flat_map(|saw| followers.after(saw)) {
            graph.add(touch.transaction, next, DependencyKind::ReadWrite, row);
        }
    }
}

fn is_beginning(version: Version) -> bool {
    version.is_none_or(|stamp| stamp.attempt().is_none())
}

/// Who wrote what was read: none when nobody did or nothing was read. `written` is ordered.
fn origin(
    touch: &Touch,
    beginning: Option<Version>,
    written: &[(Stamp, u32)],
    history: &History,
) -> Result<Option<u32>, Anomaly> {
    let Touch { row, saw: Some(saw), transaction, .. } = *touch else { return Ok(None) };
    let reader = history.committed[transaction as usize];
    let wrong = Anomaly::WrongRow { row, transaction: reader };
    let Some((stamp, writer)) = saw.and_then(|stamp| Some((stamp, stamp.attempt()?))) else {
        let is_right = saw.is_none_or(|stamp| stamp == Stamp::loaded(row)) && Some(saw) == beginning;
        return if is_right { Ok(None) } else { Err(wrong) };
    };
    if let Ok(at) = written.binary_search_by_key(&stamp, |version| version.0) {
        return Ok(Some(written[at].1));
    }
    Err(match history.fate(writer) {
        Fate::Aborted => Anomaly::AbortedRead { row, reader, writer },
        Fate::Unknown => Anomaly::DirtyRead { row, reader, writer },
        Fate::Committed(other) if written.iter().any(|version| version.1 == other) => {
            Anomaly::IntermediateRead { row, reader, writer }
        }
        Fate::Committed(_) => wrong,
    })
}

/// Versions and who wrote the next one, ordered by version.
struct Followers(Vec<(Version, u32)>);

impl Followers {
    /// Who wrote without having read comes behind all others when nobody else did; else nobody knows, and they are counted.
    fn of(touches: &[Touch], beginning: Option<Version>, verdict: &mut Verdict) -> Followers {
        let writers = touches.iter().filter(|touch| touch.wrote.is_some());
        let (seeing, blind): (Vec<&Touch>, Vec<&Touch>) = writers.partition(|touch| touch.saw.is_some());
        let mut followers =
            Followers(seeing.iter().filter_map(|touch| Some((touch.saw?, touch.transaction))).collect());
        followers.0.sort();
        let [only] = blind[..] else {
            verdict.versions_unordered += blind.len() as u64;
            return followers;
        };
        // Where nobody saw the beginning, nothing depends on what follows it.
        let Some(mut last) = beginning else { return followers };
        let version_of = |writer| {
            let at = touches.binary_search_by_key(&writer, |touch| touch.transaction).ok()?;
            touches[at].wrote
        };
        for _ in 0..seeing.len() {
            let Some(next) = followers.after(last).next().and_then(version_of) else { break };
            last = Some(next);
        }
        followers.0.push((last, only.transaction));
        followers.0.sort();
        followers
    }

    fn after(&self, version: Version) -> impl Iterator<Item = u32> {
        let from = self.0.partition_point(|(before, _)| *before < version);
        self.0[from..].iter().take_while(move |(before, _)| *before == version).map(|(_, writer)| *writer)
    }
}
