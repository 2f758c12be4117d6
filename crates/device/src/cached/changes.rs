//! Stores and batches in caches: which pairs are admitted, and what the policies learn of them.

use super::known::look_at;
use super::room::{PendingChange, with_record};
use super::{Caches, OneCache, STAMP_BYTES};
use crate::records::{Origin, Records};
use kvssd_cache::LeavingPair;
use kvssd_types::{
    BatchChange, Command, Key, KvError, NamespaceId, Nanos, Pattern, Reply, RequestId, StoreCondition, Value,
};
use std::collections::BTreeMap;

impl Caches {
    /// Stores a pair, if it is worth a write. A pair that is not is answered like one that is, and the key's old pair goes: for the host, the new
    /// one was stored and evicted. A pair larger than the budget is refused, and changes nothing.
    pub(super) fn store(
        &mut self,
        records: &mut dyn Records,
        (request, namespace): Origin,
        (key, value, condition): (Key<'_>, &Value, StoreCondition),
    ) -> Result<Reply, KvError> {
        self.check_value(value)?;
        let bytes = pair_bytes(key, value);
        self.check_budget(namespace, bytes)?;
        let now = self.clock.now();
        let held = self.held(namespace);
        let is_there = held.contains(key.bytes()) && !held.is_old(key.bytes(), now);
        match condition {
            StoreCondition::IfExists if !is_there => return Err(KvError::KeyNotFound),
            StoreCondition::IfAbsent if is_there => return Err(KvError::KeyExists),
            _ => {}
        }
        if !held.admits(key.bytes(), bytes, now) {
            self.keep_out(records, (request, namespace), key)?;
            return Ok(Reply::Stored);
        }
        self.check_drive(records, (namespace, key), bytes)?;
        let keys = [(namespace, key)];
        let mut pending = PendingChange::new(self, &keys);
        self.take_in(records, namespace, key, bytes)?;
        let value = self.stamped(namespace, value);
        let mut store = |records: &mut dyn Records| {
            let (value, condition) = (value.clone(), StoreCondition::Always);
            records.execute_as((request, namespace), Command::Store { key, value, condition })
        };
        match self.with_room(records, &mut pending, &mut store) {
            Ok(reply) => self.came(records, pending).map(|()| reply),
            Err(error) => self.failed(records, pending, error),
        }
    }

    /// Whether the cache would admit a pair: it fits the budget, and no rule keeps it out. If not, a store of it must evict nobody.
    pub(crate) fn would_take(
        &mut self,
        records: &mut dyn Records,
        (namespace, key): (NamespaceId, Key<'_>),
        value_bytes: u64,
    ) -> Result<bool, KvError> {
        if self.is_read_only || !self.all.contains_key(&namespace) {
            return Ok(true);
        }
        self.know(records, namespace)?;
        let (bytes, now) = (key.bytes().len() as u64 + value_bytes, self.clock.now());
        let fits = self.check_budget(namespace, bytes).is_ok();
        Ok(fits && self.held(namespace).would_admit(key.bytes(), bytes, now))
    }

    /// Handles a pair that is not worth a write, once, as a store would be.
    fn keep_out(
        &mut self,
        records: &mut dyn Records,
        (request, namespace): Origin,
        key: Key<'_>,
    ) -> Result<(), KvError> {
        if self.held(namespace).pair_bytes(key.bytes()) > 0 || request.is_some() {
            let changes = [BatchChange { namespace, key, value: None }];
            let mut delete = |records: &mut dyn Records| match request {
                None => records.execute(namespace, Command::Delete { key }),
                Some(_) => records.execute_as((request, namespace), Command::Batch { changes: &changes }),
            };
            let keys = [(namespace, key)];
            let mut pending = PendingChange::new(self, &keys);
            match self.with_room(records, &mut pending, &mut delete) {
                Ok(_) | Err(KvError::KeyNotFound) => drop(self.held(namespace).remove(key.bytes())),
                Err(error) => return self.failed(records, pending, error),
            }
        }
        self.left.iter_mut().for_each(|left| left.push(key.bytes().into()));
        Ok(())
    }

    /// Admits a pair to the policy, and evicts those that must leave for it.
    fn take_in(
        &mut self,
        records: &mut dyn Records,
        namespace: NamespaceId,
        key: Key<'_>,
        bytes: u64,
    ) -> Result<(), KvError> {
        let expires = self.stamp(namespace);
        let leaving = self.held(namespace).insert(key.bytes(), bytes, expires);
        self.leave(records, namespace, leaving)
    }

    /// Makes a batch. Pairs that are not worth a write are deleted. Others are evicted for the batch only after it, or when it finds no room: a
    /// refused batch evicts none.
    pub(super) fn batch(
        &mut self,
        records: &mut dyn Records,
        request: Option<RequestId>,
        changes: &[BatchChange<'_>],
    ) -> Result<Reply, KvError> {
        self.check_size(records, changes)?;
        let is_cached = |change: &&BatchChange<'_>| self.all.contains_key(&change.namespace);
        let cached: Vec<&BatchChange<'_>> = changes.iter().filter(is_cached).collect();
        let keys: Vec<(NamespaceId, Key<'_>)> = cached.iter().map(|change| (change.namespace, change.key)).collect();
        self.prepare_batch(records, &cached)?;
        let mut pending = PendingChange::new(self, &keys);
        for BatchChange { namespace, key, value } in cached {
            let mut leaving = self.change(*namespace, *key, value.as_ref());
            // The batch itself says what becomes of its own keys.
            leaving.retain(|pair| !pending.is_own(*namespace, pair));
            if !leaving.is_empty() {
                pending.leaving.entry(*namespace).or_default().extend(leaving);
            }
        }
        let stamped: Vec<BatchChange<'_>> = changes.iter().map(|change| self.stamped_change(change)).collect();
        let mut put = |records: &mut dyn Records| {
            records.execute_as((request, NamespaceId::FIRST), Command::Batch { changes: &stamped })
        };
        match self.with_room(records, &mut pending, &mut put) {
            Ok(reply) => {
                let is_out = |(now, before): &(&BatchChange<'_>, &BatchChange<'_>)| {
                    now.value.is_none() && before.value.is_some()
                };
                for (change, _) in stamped.iter().zip(changes).filter(is_out) {
                    self.left.iter_mut().for_each(|left| left.push(change.key.bytes().into()));
                }
                self.came(records, pending).map(|()| reply)
            }
            Err(error) => self.failed(records, pending, error),
        }
    }

    /// Checks that the drive takes a batch of that size with its stamps, including values that will be kept out.
    pub(crate) fn check_size(&self, records: &dyn Records, changes: &[BatchChange<'_>]) -> Result<(), KvError> {
        let with_stamp = |change: &BatchChange<'_>| {
            let stamp_bytes = if self.all.contains_key(&change.namespace) { STAMP_BYTES } else { 0 };
            // Only their lengths matter.
            change.value.as_ref().map(|value| (value.len() as u32).saturating_add(stamp_bytes))
        };
        let described = |length| Value::Pattern(Pattern { seed: 0, offset: 0, length });
        let sized = |change| BatchChange { value: with_stamp(change).map(described), ..*change };
        records.check_batch(&changes.iter().map(sized).collect::<Vec<_>>())
    }

    /// Before a batch: looks up the caches that it changes, and checks that its pairs fit.
    fn prepare_batch(&mut self, records: &mut dyn Records, cached: &[&BatchChange<'_>]) -> Result<(), KvError> {
        let mut sums: BTreeMap<NamespaceId, u64> = BTreeMap::new();
        for change in cached {
            self.prepare(records, change.namespace, Some(change.key))?;
            if let Some(value) = &change.value {
                self.check_value(value)?;
                *sums.entry(change.namespace).or_default() += pair_bytes(change.key, value);
            }
        }
        sums.into_iter().try_for_each(|(namespace, bytes)| self.check_budget(namespace, bytes))
    }

    /// A change as the drive makes it: without a value if the pair was kept out of its cache, or evicted for another pair of the batch.
    fn stamped_change<'c>(&self, change: &BatchChange<'c>) -> BatchChange<'c> {
        let Some(cache) = self.all.get(&change.namespace) else { return change.clone() };
        let is_in = cache.held.as_ref().is_some_and(|held| held.contains(change.key.bytes()));
        let value = change.value.as_ref().filter(|_| is_in).map(|value| self.stamped(change.namespace, value));
        BatchChange { value, ..*change }
    }

    /// Tells the policy of a batch's change. Returns the pairs that must leave for it.
    fn change(&mut self, namespace: NamespaceId, key: Key<'_>, value: Option<&Value>) -> Vec<LeavingPair> {
        let (expires, now) = (self.stamp(namespace), self.clock.now());
        let held = self.held(namespace);
        match value {
            Some(value) if held.admits(key.bytes(), pair_bytes(key, value), now) => {
                held.insert(key.bytes(), pair_bytes(key, value), expires)
            }
            _ => {
                held.remove(key.bytes());
                Vec::new()
            }
        }
    }

    /// After a refused change: the pairs that would have left for it are the next to leave, and the policy learns what its own keys hold.
    fn failed<T>(
        &mut self,
        records: &mut dyn Records,
        pending: PendingChange<'_>,
        error: KvError,
    ) -> Result<T, KvError> {
        if error.is_fatal() {
            return Err(error);
        }
        for (namespace, key) in pending.keys {
            self.held(*namespace).remove(key.bytes());
        }
        for (namespace, leaving) in pending.leaving {
            self.held(namespace).put_back(leaving);
        }
        for &(namespace, key) in pending.keys {
            match records.execute(namespace, Command::Exist { key }) {
                Err(KvError::KeyNotFound) => {}
                Err(error) if error.is_fatal() => return Err(error),
                // If a pair cannot be read, at least its key is known.
                _ => {
                    let (stamp, _, bytes) = look_at(records, namespace, key)?;
                    let stamp = if self.is_measured { self.all[&namespace].stamp } else { Nanos(stamp) };
                    let expires = self.expires_of(namespace, stamp);
                    let leaving = self.held(namespace).insert(key.bytes(), bytes, expires);
                    self.leave(records, namespace, leaving)?;
                }
            }
        }
        Err(error)
    }

    /// A batch was made and undone, since other partitions had no room for their shares.
    pub(crate) fn taken_back(
        &mut self,
        records: &mut dyn Records,
        changes: &[BatchChange<'_>],
        why: &KvError,
    ) -> Result<(), KvError> {
        let is_cached = |change: &&BatchChange<'_>| self.all.contains_key(&change.namespace);
        let keys: Vec<(NamespaceId, Key<'_>)> =
            changes.iter().filter(is_cached).map(|change| (change.namespace, change.key)).collect();
        let pending = PendingChange::new(self, &keys);
        match self.failed::<()>(records, pending, why.clone()) {
            Err(error) if error != *why => Err(error),
            _ => Ok(()),
        }
    }

    fn check_value(&self, value: &Value) -> Result<(), KvError> {
        let (value_bytes, value_bytes_max) = (value.len() as u64, self.value_bytes_max - u64::from(STAMP_BYTES));
        if value_bytes > value_bytes_max {
            return Err(KvError::InvalidValueSize { value_bytes, value_bytes_max });
        }
        Ok(())
    }

    fn check_budget(&self, namespace: NamespaceId, bytes: u64) -> Result<(), KvError> {
        let OneCache { attributes, quota_bytes, .. } = &self.all[&namespace];
        // Includes what records take beside keys and values: no pair is to leave for one that no quota lets in.
        let fits = bytes <= attributes.plan.budget_bytes && quota_bytes.is_none_or(|quota| with_record(bytes) <= quota);
        if fits { Ok(()) } else { Err(KvError::CapacityExceeded) }
    }
}

/// Bytes of a pair, as a budget counts them.
fn pair_bytes(key: Key<'_>, value: &Value) -> u64 {
    key.bytes().len() as u64 + value.len() as u64
}
