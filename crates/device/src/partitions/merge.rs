//! Ordered lists and iterators over all partitions: each partition returns its pairs in order, and the first of all is the next.
//!
//! ```text
//!   partition 0   b e k ...   coming: b e
//!   partition 1   a c   end   coming: a c        next(3) -> a b c, when each that has not ended has a pair
//!   partition 2   g h i ...   coming: g
//! ```
//!
//! They are made under exclusive access to all partitions, and so see the drive at one moment.

use super::{Partitions, unexpected};
use crate::drive::Drive;
use crate::merges::{Merge, Run, bytes_of};
use kvssd_types::{
    Command, IteratedPair, IteratorId, IteratorOptions, Key, KvError, NamespaceId, Reply, VALUE_BYTES_MAX,
};
use std::collections::{BTreeMap, VecDeque};

impl Run {
    /// Fetches the next pairs of this partition.
    fn ask_next(&mut self, part: &mut Drive, namespace: NamespaceId, pairs_max: u32) -> Result<(), KvError> {
        let iterator = self.iterator;
        let Some(next) = self.next.take() else {
            return self.ask(part, namespace, Command::Next { iterator, pairs_max });
        };
        let sought = Key::new(&next)
            .and_then(|key| self.ask(part, namespace, Command::Seek { iterator, key: Some(key), pairs_max }));
        if sought.is_err() {
            self.next = Some(next);
        }
        sought
    }

    /// Fetches the pairs that the partition returns for `command`.
    fn ask(&mut self, part: &mut Drive, namespace: NamespaceId, command: Command<'_>) -> Result<(), KvError> {
        let is_asked = !matches!(command, Command::Seek { pairs_max: 0, .. } | Command::Next { pairs_max: 0, .. });
        match part.execute_in(namespace, command)? {
            Reply::Pairs(pairs) => {
                self.has_ended = pairs.is_empty() && is_asked;
                self.coming.extend(pairs);
                Ok(())
            }
            other => Err(unexpected(&other)),
        }
    }
}

impl Partitions<'_> {
    /// The keys of an ordered list. Each partition is asked for all of them, since they may all be in one.
    pub(super) fn list_in_order(
        &mut self,
        namespace: NamespaceId,
        from: Option<Key<'_>>,
        keys_max: usize,
    ) -> Result<Reply, KvError> {
        let mut keys = Vec::new();
        for part in &mut self.all {
            match part.execute_in(namespace, Command::List { from, keys_max })? {
                Reply::Listed(more) => keys.extend(more),
                other => return Err(unexpected(&other)),
            }
        }
        keys.sort_unstable();
        keys.truncate(keys_max);
        Ok(Reply::Listed(keys))
    }

    pub(super) fn create_iterator(
        &mut self,
        namespace: NamespaceId,
        options: &IteratorOptions<'_>,
    ) -> Result<Reply, KvError> {
        let mut runs: Vec<Run> = Vec::with_capacity(self.all.len());
        for number in 0..self.all.len() {
            match self.all[number].execute_in(namespace, Command::CreateIterator { options: *options }) {
                Ok(Reply::IteratorCreated(iterator)) => {
                    runs.push(Run { iterator, coming: VecDeque::new(), next: None, has_ended: false });
                }
                refused => {
                    self.end_runs(namespace, &runs);
                    return Err(refused.map_or_else(|error| error, |reply| unexpected(&reply)));
                }
            }
        }
        let iterator = runs[0].iterator;
        let merge = Merge { descending: options.descending, runs };
        self.all[0].merges.all.insert((namespace, iterator), merge);
        Ok(Reply::IteratorCreated(iterator))
    }

    /// Creates an iterator in each namespace whose keys have an order, or in none: together they see the drive at one moment.
    ///
    /// # Errors
    /// As the command [`Command::CreateIterator`].
    pub fn create_iterators(&mut self) -> Result<BTreeMap<NamespaceId, IteratorId>, KvError> {
        let mut made = BTreeMap::new();
        for info in self.namespaces().into_iter().filter(|info| info.is_ordered) {
            match self.execute_in(info.id, Command::CreateIterator { options: IteratorOptions::default() }) {
                Ok(Reply::IteratorCreated(iterator)) => _ = made.insert(info.id, iterator),
                refused => {
                    for (namespace, iterator) in made {
                        let _ = self.execute_in(namespace, Command::DestroyIterator { iterator });
                    }
                    return Err(refused.map_or_else(|error| error, |reply| unexpected(&reply)));
                }
            }
        }
        Ok(made)
    }

    /// Ends the iterators of all partitions. One that does not exist any more keeps nothing.
    fn end_runs(&mut self, namespace: NamespaceId, runs: &[Run]) {
        for (part, run) in self.all.iter_mut().zip(runs) {
            let _ = part.execute_in(namespace, Command::DestroyIterator { iterator: run.iterator });
        }
    }

    pub(super) fn destroy_iterator(&mut self, namespace: NamespaceId, iterator: IteratorId) -> Result<Reply, KvError> {
        let merge = self.all[0].merges.all.remove(&(namespace, iterator));
        let destroyed = self.all[0].execute_in(namespace, Command::DestroyIterator { iterator });
        if let Some(Merge { runs, .. }) = merge {
            for (part, run) in self.all.iter_mut().zip(&runs).skip(1) {
                let _ = part.execute_in(namespace, Command::DestroyIterator { iterator: run.iterator });
            }
        }
        destroyed
    }

    pub(super) fn seek(
        &mut self,
        namespace: NamespaceId,
        iterator: IteratorId,
        key: Option<Key<'_>>,
        pairs_max: u32,
    ) -> Result<Reply, KvError> {
        let pairs_each = pairs_each(self.all.len(), pairs_max);
        self.with_merge(namespace, iterator, |parts, merge| {
            let mut sought = Ok(());
            for (part, run) in parts.iter_mut().zip(&mut merge.runs) {
                *run = Run { iterator: run.iterator, coming: VecDeque::new(), next: None, has_ended: false };
                let command = Command::Seek { iterator: run.iterator, key, pairs_max: pairs_each };
                // Also where one fails, the others are at one place.
                sought = sought.and(run.ask(part, namespace, command));
            }
            sought?;
            take(parts, merge, namespace, pairs_max)
        })
    }

    pub(super) fn next(
        &mut self,
        namespace: NamespaceId,
        iterator: IteratorId,
        pairs_max: u32,
    ) -> Result<Reply, KvError> {
        self.with_merge(namespace, iterator, |parts, merge| take(parts, merge, namespace, pairs_max))
    }

    fn with_merge(
        &mut self,
        namespace: NamespaceId,
        iterator: IteratorId,
        act: impl FnOnce(&mut [&mut Drive], &mut Merge) -> Result<Vec<IteratedPair>, KvError>,
    ) -> Result<Reply, KvError> {
        let Some(mut merge) = self.all[0].merges.all.remove(&(namespace, iterator)) else {
            // The first partition knows why there is no such iterator.
            return self.all[0].execute_in(namespace, Command::Next { iterator, pairs_max: 1 });
        };
        let pairs = act(&mut self.all, &mut merge);
        if let Err(KvError::IteratorExpired(_)) = pairs {
            // No pair is shown any more; those partitions that still have the iterator end it when the host does.
            merge.runs.iter_mut().for_each(|run| run.coming = VecDeque::new());
        }
        self.all[0].merges.all.insert((namespace, iterator), merge);
        pairs.map(Reply::Pairs).map_err(|error| match error {
            KvError::IteratorExpired(_) => KvError::IteratorExpired(iterator),
            KvError::NoSuchIterator(_) => KvError::NoSuchIterator(iterator),
            other => other,
        })
    }
}

/// How many pairs each partition is asked for when `pairs_max` are wanted: its share and one more.
fn pairs_each(partitions: usize, pairs_max: u32) -> u32 {
    (pairs_max / partitions as u32).saturating_add(1).min(pairs_max)
}

/// The next pairs of all partitions, as many as a single partition would return.
fn take(
    parts: &mut [&mut Drive],
    merge: &mut Merge,
    namespace: NamespaceId,
    pairs_max: u32,
) -> Result<Vec<IteratedPair>, KvError> {
    let (mut pairs, mut bytes) = (Vec::new(), 0);
    while pairs.len() < pairs_max as usize && bytes < VALUE_BYTES_MAX {
        let left = pairs_max - pairs.len() as u32;
        let pairs_each = pairs_each(parts.len(), left);
        for (part, run) in parts.iter_mut().zip(&mut merge.runs) {
            if run.coming.is_empty() && !run.has_ended {
                match run.ask_next(part, namespace, pairs_each) {
                    // Reported when it is its turn.
                    Err(KvError::Unrecovered(_)) if !pairs.is_empty() => return Ok(pairs),
                    asked => asked?,
                }
            }
        }
        let Some(first) = merge.first() else { break };
        let pair = merge.runs[first].coming.pop_front().expect("it has the first pair");
        bytes += bytes_of(&pair);
        pairs.push(pair);
    }
    merge.give_up();
    Ok(pairs)
}
