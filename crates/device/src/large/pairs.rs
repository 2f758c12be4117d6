//! Batches and iterators on a drive of large values: they add and remove tags, and fetch large values.

use super::ledger::{Ledger, TAG_BYTES, Tagged};
use super::{LargeValues, Records, unexpected};
use kvssd_types::{
    BatchChange, Command, IteratedPair, IteratorId, KvError, NamespaceId, Pattern, Reply, RequestId, VALUE_BYTES_MAX,
    Value,
};
use std::collections::{BTreeMap, VecDeque};

impl LargeValues {
    /// Checks that the drive takes a batch of that size with its tags, and that each key occurs once.
    pub(crate) fn check_batch(&self, records: &dyn Records, changes: &[BatchChange<'_>]) -> Result<(), KvError> {
        self.check_inline(changes)?;
        // Only their lengths matter.
        let tagged = |value: &Value| Pattern { seed: 0, offset: 0, length: value.len() as u32 + TAG_BYTES };
        let tagged = |change: &BatchChange<'_>| change.value.as_ref().map(|value| Value::Pattern(tagged(value)));
        let tagged = changes.iter().map(|change| BatchChange { value: tagged(change), ..*change });
        records.check_batch(&tagged.collect::<Vec<_>>())
    }

    /// Checks that all values of a batch stay in their records.
    fn check_inline(&self, changes: &[BatchChange<'_>]) -> Result<(), KvError> {
        let largest = changes.iter().filter_map(|change| change.value.as_ref()).map(Value::len).max().unwrap_or(0);
        let (value_bytes, value_bytes_max) = (largest as u64, self.inline_bytes_max().into());
        match value_bytes <= value_bytes_max {
            true => Ok(()),
            false => Err(KvError::BatchValueTooLarge { value_bytes, value_bytes_max }),
        }
    }

    /// Makes all changes or none. Keys may have had large values; their new values are not large.
    pub(super) fn batch(
        &mut self,
        records: &mut dyn Records,
        request: Option<RequestId>,
        changes: &[BatchChange<'_>],
    ) -> Result<Reply, KvError> {
        if let Some(change) = changes.iter().find(|change| self.is_shadow(change.namespace)) {
            return Err(KvError::NoSuchNamespace(change.namespace));
        }
        self.check_inline(changes)?;
        let mut ledgers: BTreeMap<NamespaceId, Ledger> = BTreeMap::new();
        let mut tagged = Vec::with_capacity(changes.len() + 1);
        let mut growths: BTreeMap<NamespaceId, u64> = BTreeMap::new();
        for change in changes {
            if let Some(old) = self.manifest(records, change.namespace, change.key)? {
                let ledger = &self.shadow_mut(change.namespace)?.ledger;
                ledgers.entry(change.namespace).or_insert_with(|| ledger.clone()).replace(Some(&old), None);
            }
            if let Some(value) = &change.value {
                *growths.entry(change.namespace).or_default() +=
                    self.growth(records, change.namespace, change.key, value)?;
            }
            tagged.push(BatchChange { value: change.value.as_ref().map(Tagged::inline), ..*change });
        }
        records.then();
        // A refused batch reports everything that it lacks together.
        let fits = |(namespace, growth)| self.check_quota(records, namespace, growth).is_ok();
        if growths.into_iter().map(fits).filter(|fits| !fits).count() > 0 {
            return Err(KvError::CapacityExceeded);
        }
        for (namespace, ledger) in &ledgers {
            let shadow = self.shadow_mut(*namespace)?.id;
            tagged.push(BatchChange { namespace: shadow, key: Ledger::key(), value: Some(ledger.encode()) });
        }
        let reply = records.execute_as((request, NamespaceId::FIRST), Command::Batch { changes: &tagged })?;
        for (namespace, ledger) in ledgers {
            let youngest = self.youngest;
            self.shadow_mut(namespace)?.changed(ledger, youngest);
            self.sweep(records, namespace)?;
        }
        Ok(reply)
    }

    /// The next pairs: first those that the last answer had no room for.
    pub(super) fn next(
        &mut self,
        records: &mut dyn Records,
        namespace: NamespaceId,
        iterator: IteratorId,
        pairs_max: u32,
    ) -> Result<Reply, KvError> {
        let reply = match self.left.remove(&(namespace, iterator)) {
            Some(mut left) => {
                let rest = left.split_off(left.len().min(pairs_max as usize));
                self.leave((namespace, iterator), rest);
                Reply::Pairs(left.into())
            }
            None => records.execute(namespace, Command::Next { iterator, pairs_max })?,
        };
        self.show(records, namespace, iterator, reply)
    }

    fn leave(&mut self, iterator: (NamespaceId, IteratorId), pairs: VecDeque<IteratedPair>) {
        if !pairs.is_empty() {
            self.left.entry(iterator).or_default().extend(pairs);
        }
    }

    /// The answer to a host with pairs that an iterator returned: as many whole values as an answer holds, and at least one. The
    /// others are kept for the next answer.
    pub(super) fn show(
        &mut self,
        records: &mut dyn Records,
        namespace: NamespaceId,
        iterator: IteratorId,
        reply: Reply,
    ) -> Result<Reply, KvError> {
        let Reply::Pairs(pairs) = reply else { return Err(unexpected(&reply)) };
        // Large ones are read behind the answer that says where they are.
        records.then();
        let (mut shown, mut bytes, mut failed) = (Vec::with_capacity(pairs.len()), 0, None);
        let mut pairs = VecDeque::from(pairs);
        while let Some((key, value)) = pairs.pop_front() {
            let Some(value) = value else {
                shown.push((key, None));
                continue;
            };
            let room_bytes = (!shown.is_empty()).then(|| VALUE_BYTES_MAX.saturating_sub(bytes));
            match self.whole(records, (namespace, iterator), &value, room_bytes) {
                Ok(Some(whole)) => {
                    bytes += whole.len();
                    shown.push((key, Some(whole)));
                }
                other => {
                    failed = other.err();
                    pairs.push_front((key, Some(value)));
                    break;
                }
            }
        }
        // Behind these come those that were left before.
        let before = self.left.remove(&(namespace, iterator)).unwrap_or_default();
        self.leave((namespace, iterator), pairs);
        self.leave((namespace, iterator), before);
        // A fault of a pair is reported when that pair is the first.
        match failed {
            Some(error) if shown.is_empty() => Err(error),
            _ => Ok(Reply::Pairs(shown)),
        }
    }

    /// The whole value of a pair that an iterator returned; `None` for a large one of more than `room_bytes`.
    fn whole(
        &self,
        records: &mut dyn Records,
        (namespace, iterator): (NamespaceId, IteratorId),
        value: &Value,
        room_bytes: Option<usize>,
    ) -> Result<Option<Value>, KvError> {
        let manifest = match Tagged::read(value)? {
            Tagged::Inline => return Ok(Some(value.slice(TAG_BYTES as usize..value.len()))),
            Tagged::Large(manifest) => manifest,
        };
        if room_bytes.is_some_and(|room_bytes| manifest.value_bytes as usize > room_bytes) {
            return Ok(None);
        }
        // A value that an iterator of the drive has shown is kept while the iterator lives.
        let has_ended = records.oldest_iterator().is_none_or(|oldest| oldest > iterator);
        let whole = self.read_segments(records, namespace, &manifest, (0, manifest.value_bytes));
        whole.map(Some).map_err(|error| match error {
            KvError::KeyNotFound if has_ended => KvError::IteratorExpired(iterator),
            KvError::KeyNotFound => KvError::Unrecovered("a segment of a large value is missing".to_owned()),
            other => other,
        })
    }
}
