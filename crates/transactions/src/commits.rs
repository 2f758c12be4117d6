//! Commits under way, and those that optimistic transactions overlap.
//!
//! ```text
//!   number        4 done   5 done   6 on its way   7 done     8 ...
//!   writes        a b      c        a              d
//!                          ^ as of 5: who reads `a` now reads what 6 may have changed already
//! ```
//!
//! A commit gets its number when nothing can stop it but the drive. Numbers are the serial order of all that conflict.

use crate::cache::Cached;
use crate::{Record, RecordMap, TransactionId, WriteSet};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The last commits, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    last: u64,
    kept: VecDeque<Commit>,
    under_way: usize,
    /// Who will ask what was changed since.
    observers: BTreeMap<TransactionId, u64>,
}

#[derive(Debug)]
struct Commit {
    number: u64,
    writes: Arc<WriteSet>,
    is_done: bool,
}

impl Commits {
    /// Gives a commit its number.
    pub(crate) fn enter(&mut self, writes: Arc<WriteSet>) -> u64 {
        self.last += 1;
        self.under_way += 1;
        self.kept.push_back(Commit { number: self.last, writes, is_done: false });
        self.last
    }

    /// The drive has done with a commit; gives what it wrote.
    pub(crate) fn finish(&mut self, number: u64) -> Arc<WriteSet> {
        let place = self.kept.partition_point(|commit| commit.number < number);
        let commit = self.kept.get_mut(place).filter(|commit| commit.number == number && !commit.is_done);
        let commit = commit.expect("it is under way");
        commit.is_done = true;
        self.under_way -= 1;
        let writes = commit.writes.clone();
        self.prune();
        writes
    }

    /// Commits that the drive has not done with.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way
    }

    /// The last commit that had a number.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The last commit that surely is in what is read of the record now.
    pub(crate) fn as_of(&self, record: Record<'_>) -> u64 {
        let is_changing = |commit: &&Commit| !commit.is_done && commit.writes.get(record).is_some();
        self.kept.iter().find(is_changing).map_or(self.last, |commit| commit.number - 1)
    }

    /// Whether a commit after this one changes the record. None is missed for one who observed since then.
    pub(crate) fn changed_since(&self, record: Record<'_>, number: u64) -> bool {
        self.kept
            .iter()
            .rev()
            .take_while(|commit| commit.number > number)
            .any(|commit| commit.writes.get(record).is_some())
    }

    /// Whether a commit after this one changes what was read before it. Each commit is asked, so that who remembers
    /// the last one that was asked pays for each one once, however much it reads.
    pub(crate) fn changed_any(&self, reads: &RecordMap<Cached>, number: u64) -> bool {
        self.kept.iter().rev().take_while(|commit| commit.number > number).any(|commit| {
            let is_later = |read: Option<&Cached>| read.is_some_and(|read| commit.number > read.as_of);
            if commit.writes.len() < reads.len() {
                commit.writes.iter().any(|(record, _)| is_later(reads.get(record)))
            } else {
                reads.iter().any(|(record, read)| commit.writes.get(record).is_some() && is_later(Some(read)))
            }
        })
    }

    /// Keeps what comes, and what is under way, until the transaction ends.
    pub(crate) fn observe(&mut self, transaction: TransactionId) {
        let first = self.kept.iter().find(|commit| !commit.is_done);
        self.observers.insert(transaction, first.map_or(self.last, |commit| commit.number - 1));
    }

    /// The transaction has ended.
    pub(crate) fn forget(&mut self, transaction: TransactionId) {
        if self.observers.remove(&transaction).is_some() {
            self.prune();
        }
    }

    /// Drops what nobody asks for. A later transaction observes since a later commit.
    fn prune(&mut self) {
        let needed = self.observers.first_key_value().map_or(u64::MAX, |(_, &since)| since);
        while self.kept.front().is_some_and(|commit| commit.is_done && commit.number <= needed) {
            self.kept.pop_front();
        }
    }
}
