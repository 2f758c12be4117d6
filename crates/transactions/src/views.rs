//! Who makes a view of the drive for a snapshot, and who waits for that.
//!
//! ```text
//!   Puts under way  =====|                 views wait for Puts that are under way,
//!   view                 |  makes  |       commits for views that wait or are made
//!   Puts                           |=====
//! ```
//!
//! Snapshots that come while commits are held take turns with these: they begin when the commits have been let go, so that no number of
//! them holds commits for ever.
//!
//! The gate says which commits a view has: one whose Put is under way could be in it or not.

use crate::TransactionId;
use std::collections::BTreeSet;

/// The gate between commits and views.
#[derive(Debug, Default)]
pub(crate) struct Views {
    waiting: BTreeSet<TransactionId>,
    making: BTreeSet<TransactionId>,
    held_commits: BTreeSet<TransactionId>,
    /// They came behind held commits.
    held_snapshots: BTreeSet<TransactionId>,
}

impl Views {
    /// Whether a commit must not begin now; it is told when it may.
    pub(crate) fn holds_commits(&mut self, commit: TransactionId) -> bool {
        let holds = !self.waiting.is_empty() || !self.making.is_empty();
        if holds {
            self.held_commits.insert(commit);
        }
        holds
    }

    /// Whether a snapshot must not ask for its view now, since commits are held for those before it; it is told when it may.
    pub(crate) fn holds_snapshot(&mut self, snapshot: TransactionId) -> bool {
        let holds = !self.held_commits.is_empty() && !self.waiting.contains(&snapshot);
        if holds {
            self.held_snapshots.insert(snapshot);
        }
        holds
    }

    /// A snapshot waits for commits that are under way.
    pub(crate) fn wait(&mut self, snapshot: TransactionId) {
        self.waiting.insert(snapshot);
    }

    /// A snapshot makes its view.
    pub(crate) fn make(&mut self, snapshot: TransactionId) {
        self.waiting.remove(&snapshot);
        self.making.insert(snapshot);
    }

    /// No commit is under way any more; gives those that may make their views.
    pub(crate) fn may_be_made(&self) -> Vec<TransactionId> {
        self.waiting.iter().copied().collect()
    }

    /// The transaction has its view, or has ended; gives commits that may go on, and the snapshots that came behind them.
    pub(crate) fn end(&mut self, transaction: TransactionId) -> Vec<TransactionId> {
        self.held_commits.remove(&transaction);
        self.held_snapshots.remove(&transaction);
        let was_there = self.waiting.remove(&transaction) || self.making.remove(&transaction);
        if was_there && self.waiting.is_empty() && self.making.is_empty() {
            let commits = std::mem::take(&mut self.held_commits);
            return commits.into_iter().chain(std::mem::take(&mut self.held_snapshots)).collect();
        }
        Vec::new()
    }
}
