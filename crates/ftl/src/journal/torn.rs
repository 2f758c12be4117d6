//! Batches that a power cut tore, and shares of batches that nobody decided.

use super::batch_sequence::BatchSequence;
use super::change::{BatchNote, Change};

/// A batch that a mount has skipped and that no earlier mount has marked as abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Torn {
    /// There is none.
    Nothing,
    /// The power went in its middle.
    Cut,
    /// It is a share of a batch over several drives that was not decided.
    Undecided,
}

/// Leaves out the changes of batches that a power cut tore, and of shares of batches later than `decided`. Changes of superblocks stay: they
/// happened, whoever wrote there.
///
/// # Errors
/// If changes follow a share that does not count: whoever made them knew that the batch was decided.
pub(crate) fn without_torn_batches(
    changes: Vec<Change>,
    decided: BatchSequence,
) -> Result<(Vec<Change>, Torn), &'static str> {
    let mut all = Vec::with_capacity(changes.len());
    // Where the open batch began, and where a share began that no change has followed yet.
    let (mut begun, mut share) = (None, None);
    let mut is_undecided = false;
    for change in changes {
        if is_undecided && !stays(&change) && change != Change::Batch(BatchNote::Abandoned) {
            return Err(
                "its journal goes on behind a batch over several drives of which nobody knows that it was decided",
            );
        }
        if let Change::Batch(BatchNote::Abandoned) = change {
            // A mount has abandoned the share, even if a later batch was decided since.
            is_undecided = false;
            tear(&mut all, begun.take().or(share.take()));
            continue;
        }
        if !stays(&change) {
            share = None;
        }
        match change {
            Change::Batch(BatchNote::Begun) => begun = Some(all.len()),
            Change::Batch(BatchNote::Committed) => begun = None,
            Change::Batch(BatchNote::CommittedIf(sequence)) if sequence <= decided => share = begun.take(),
            Change::Batch(BatchNote::CommittedIf(_)) => {
                is_undecided = true;
                tear(&mut all, begun.take());
            }
            Change::Batch(BatchNote::Decided(_)) => {
                begun = None;
                all.push(change);
            }
            _ => all.push(change),
        }
    }
    tear(&mut all, begun);
    let torn = match begun {
        _ if is_undecided => Torn::Undecided,
        Some(_) => Torn::Cut,
        None => Torn::Nothing,
    };
    Ok((all, torn))
}

fn tear(all: &mut Vec<Change>, begun: Option<usize>) {
    let torn = all.split_off(begun.unwrap_or(all.len()));
    all.extend(torn.into_iter().filter(stays));
}

/// Whether a change stays even if its batch is left out.
fn stays(change: &Change) -> bool {
    let of_superblock = matches!(change, Change::Opened { .. } | Change::Closed { .. } | Change::Skipped { .. });
    of_superblock || matches!(change, Change::In { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_flash::SuperblockId;

    #[test]
    fn a_share_counts_when_its_batch_was_decided() {
        let gone = |number| Change::Removed { namespace: number };
        let note = Change::Batch;
        let sequence = BatchSequence;
        let share = |first, count: BatchNote| [note(BatchNote::Begun), gone(first), gone(first + 1), note(count)];
        let closed = Change::Closed { superblock: SuperblockId(3) };
        let of = |changes: &[Change], decided| without_torn_batches(changes.to_vec(), sequence(decided));
        let sixth = share(0, BatchNote::CommittedIf(sequence(6)));
        let seventh = share(2, BatchNote::CommittedIf(sequence(7)));
        let both = [&sixth[..], &seventh].concat();
        assert_eq!(of(&both, 7), Ok(([0, 1, 2, 3].map(gone).to_vec(), Torn::Nothing)));
        assert_eq!(of(&both, 8), of(&both, 7), "the last one was none of this drive");
        assert_eq!(of(&both, 6), Ok(([0, 1].map(gone).to_vec(), Torn::Undecided)));
        assert!(of(&both, 5).is_err(), "the seventh came behind the sixth");
        let told = [&both[..], &[closed.clone(), note(BatchNote::Abandoned), gone(9)]].concat();
        assert_eq!(of(&told, 6), Ok((vec![gone(0), gone(1), closed, gone(9)], Torn::Nothing)));
        assert_eq!(of(&told, 7), of(&told, 6), "the seventh that was decided is another one");
        let own = [&share(0, BatchNote::Decided(sequence(4)))[..], &[note(BatchNote::Decided(sequence(5)))]].concat();
        let decided = [gone(0), gone(1), note(BatchNote::Decided(sequence(4))), note(BatchNote::Decided(sequence(5)))];
        assert_eq!(of(&own, 0), Ok((decided.to_vec(), Torn::Nothing)));
        assert_eq!(of(&own[..3], 9), Ok((vec![], Torn::Cut)), "its own share counts with the decision");
    }
}
