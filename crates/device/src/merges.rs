//! The state of iterators over all partitions between two commands.

use kvssd_types::{IteratedPair, IteratorId, NamespaceId, OwnedKey, VALUE_BYTES_MAX, Value};
use std::collections::{BTreeMap, VecDeque};

/// The iterators of a drive in partitions, by the number of their part in the first one.
#[derive(Debug, Default)]
pub(crate) struct Merges {
    pub(crate) all: BTreeMap<(NamespaceId, IteratorId), Merge>,
}

/// An iterator over all partitions.
#[derive(Debug)]
pub(crate) struct Merge {
    pub(crate) descending: bool,
    pub(crate) runs: Vec<Run>,
}

/// The pairs that come from one partition.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) iterator: IteratorId,
    pub(crate) coming: VecDeque<IteratedPair>,
    /// The key of the next pair, if pairs that had come were dropped again.
    pub(crate) next: Option<OwnedKey>,
    pub(crate) has_ended: bool,
}

impl Merge {
    /// Between two commands, drops pairs beyond what one answer may have. They are read again.
    pub(crate) fn give_up(&mut self) {
        let kept: usize = self.runs.iter().flat_map(|run| &run.coming).map(bytes_of).sum();
        if kept > VALUE_BYTES_MAX {
            for run in &mut self.runs {
                run.next = run.coming.front().map(|(key, _)| key.clone()).or(run.next.take());
                run.coming.clear();
            }
        }
    }

    /// The run with the next pair; `None` at the end. Each run that has not ended must have a pair.
    pub(crate) fn first(&self) -> Option<usize> {
        let key = |number: &usize| self.runs[*number].coming.front().map(|(key, _)| key);
        let with_pairs = (0..self.runs.len()).filter(|number| key(number).is_some());
        if self.descending { with_pairs.max_by_key(key) } else { with_pairs.min_by_key(key) }
    }
}

impl Merges {
    /// Forgets the iterators of a namespace that was deleted.
    pub(crate) fn forget_namespace(&mut self, namespace: NamespaceId) {
        self.all.retain(|(of, _), _| *of != namespace);
    }
}

/// Bytes of a key and its value.
pub(crate) fn bytes_of((key, value): &IteratedPair) -> usize {
    key.len() + value.as_ref().map_or(0, Value::len)
}
