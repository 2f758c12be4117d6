//! Batches and iterators on a drive of large values: tags are put on and taken off, and what is large is fetched.

use super::ledger::{Ledger, TAG_BYTES, Tagged};
use super::{LargeValues, Records, unexpected};
use kvssd_types::{
    BatchChange, Command, IteratedPair, IteratorId, KvError, NamespaceId, Reply, VALUE_BYTES_MAX, Value,
};
use std::collections::{BTreeMap, VecDeque};

impl LargeValues {
    /// Makes all changes or none. Keys may have had large values; they get none.
    pub(super) fn batch(&mut self, records: &mut dyn Records, changes: &[BatchChange<'_>]) -> Result<Reply, KvError> {
        if let Some(change) = changes.iter().find(|change| self.is_shadow(change.namespace)) {
            return Err(KvError::NoSuchNamespace(change.namespace));
        }
        let sizes = || changes.iter().filter_map(|change| change.value.as_ref()).map(Value::len);
        if sizes().any(|bytes| bytes > self.inline_bytes_max() as usize) {
            let (bytes, bytes_max) = (sizes().sum::<usize>() as u64, self.inline_bytes_max().into());
            return Err(KvError::BatchTooLarge {
                changes: changes.len(),
                changes_max: changes.len(),
                bytes,
                bytes_max,
            });
        }
        let mut ledgers: BTreeMap<NamespaceId, Ledger> = BTreeMap::new();
        let mut tagged = Vec::with_capacity(changes.len() + 1);
        for change in changes {
            if let Some(old) = self.manifest(records, change.namespace, change.key)? {
                let ledger = &self.shadow_mut(change.namespace)?.ledger;
                ledgers.entry(change.namespace).or_insert_with(|| ledger.clone()).replace(Some(&old), None);
            }
            tagged.push(BatchChange { value: change.value.as_ref().map(Tagged::inline), ..*change });
        }
        for (namespace, ledger) in &ledgers {
            let shadow = self.shadow_mut(*namespace)?.id;
            tagged.push(BatchChange { namespace: shadow, key: Ledger::key(), value: Some(ledger.encode()) });
        }
        let reply = records.execute(NamespaceId::FIRST, Command::Batch { changes: &tagged })?;
        for (namespace, ledger) in ledgers {
            self.shadow_mut(namespace)?.ledger = ledger;
            self.sweep(records, namespace)?;
        }
        Ok(reply)
    }

    /// The pairs that follow: first those that there was no room for.
    pub(super) fn next(
        &mut self,
        records: &mut dyn Records,
        namespace: NamespaceId,
        iterator: IteratorId,
        pairs_max: u32,
    ) -> Result<Reply, KvError> {
        let reply = match self.left.remove(&iterator) {
            Some(mut left) => {
                let rest = left.split_off(left.len().min(pairs_max as usize));
                self.leave(iterator, rest);
                Reply::Pairs(left.into())
            }
            None => records.execute(namespace, Command::Next { iterator, pairs_max })?,
        };
        self.show(records, namespace, iterator, reply)
    }

    fn leave(&mut self, iterator: IteratorId, pairs: VecDeque<IteratedPair>) {
        if !pairs.is_empty() {
            self.left.entry(iterator).or_default().extend(pairs);
        }
    }

    /// What a host is shown of pairs that an iterator gave: as many whole values as an answer holds, and one at least. The others are
    /// for the next answer.
    pub(super) fn show(
        &mut self,
        records: &mut dyn Records,
        namespace: NamespaceId,
        iterator: IteratorId,
        reply: Reply,
    ) -> Result<Reply, KvError> {
        let Reply::Pairs(pairs) = reply else { return Err(unexpected(&reply)) };
        let (mut shown, mut bytes) = (Vec::with_capacity(pairs.len()), 0);
        let mut pairs = VecDeque::from(pairs);
        while let Some((key, value)) = pairs.pop_front() {
            let Some(value) = value else {
                shown.push((key, None));
                continue;
            };
            let whole = match Tagged::read(&value)? {
                Tagged::Inline => value.slice(TAG_BYTES as usize..value.len()),
                Tagged::Large(manifest)
                    if !shown.is_empty() && bytes + manifest.value_bytes as usize > VALUE_BYTES_MAX =>
                {
                    pairs.push_front((key, Some(value)));
                    break;
                }
                Tagged::Large(manifest) => {
                    let part = (0, manifest.value_bytes);
                    // What an iterator of the drive has shown is kept while it lives.
                    self.read_segments(records, namespace, &manifest, part).map_err(|error| match error {
                        KvError::Unrecovered(_) if records.iterators() == 0 => KvError::IteratorExpired(iterator),
                        other => other,
                    })?
                }
            };
            bytes += whole.len();
            shown.push((key, Some(whole)));
        }
        // Behind these come those that were left before.
        let before = self.left.remove(&iterator).unwrap_or_default();
        self.leave(iterator, pairs);
        self.leave(iterator, before);
        Ok(Reply::Pairs(shown))
    }
}
