//! Stores and batches in caches: who comes in, who leaves, and what is done when the drive is full all the same.

use super::known::look_at;
use super::{Caches, OneCache, STAMP_BYTES};
use crate::records::Records;
use kvssd_types::{
    BatchChange, Command, Key, KvError, NamespaceId, Nanos, OwnedKey, Reply, RequestId, StoreCondition, Value,
};
use std::collections::BTreeMap;

/// What records take of flash beside keys and values, at the most: a part of those, and some bytes. Estimates.
const RECORDS_SHARE: u64 = 8;
const RECORDS_BYTES: u64 = 4096;

impl Caches {
    /// Stores a pair, if it is worth a write. One that is not is answered as one that is, and what was there of it goes: to the host it came
    /// and left. What is larger than the budget is refused, and changes nothing.
    pub(super) fn store(
        &mut self,
        records: &mut dyn Records,
        (request, namespace): (Option<RequestId>, NamespaceId),
        (key, value, condition): (Key<'_>, &Value, StoreCondition),
    ) -> Result<Reply, KvError> {
        self.check_value(value)?;
        let bytes = pair_bytes(key, value);
        self.check_budget(namespace, bytes)?;
        let now = self.now;
        let held = self.held(namespace);
        match condition {
            StoreCondition::IfExists if !held.contains(key.bytes()) => return Err(KvError::KeyNotFound),
            StoreCondition::IfAbsent if held.contains(key.bytes()) => return Err(KvError::KeyExists),
            _ => {}
        }
        if !held.admits(key.bytes(), bytes, now) {
            self.keep_out(records, (request, namespace), key)?;
            return Ok(Reply::Stored);
        }
        self.take_in(records, namespace, key, bytes)?;
        let value = self.stamped(value);
        let mut store = |records: &mut dyn Records| {
            let (value, condition) = (value.clone(), StoreCondition::Always);
            records.execute_as(request, namespace, Command::Store { key, value, condition })
        };
        let stored = self.with_room(records, &[(namespace, key)], &mut store);
        match stored {
            Ok(reply) => {
                self.drop_left(records, &[(namespace, key)])?;
                Ok(reply)
            }
            Err(error) => self.failed(records, &[(namespace, key)], error),
        }
    }

    /// A pair is not worth a write. That is done once, as a store would be.
    fn keep_out(
        &mut self,
        records: &mut dyn Records,
        (request, namespace): (Option<RequestId>, NamespaceId),
        key: Key<'_>,
    ) -> Result<(), KvError> {
        self.left.iter_mut().for_each(|left| left.push(key.bytes().into()));
        if !self.held(namespace).remove(key.bytes()) && request.is_none() {
            return Ok(());
        }
        let changes = [BatchChange { namespace, key, value: None }];
        let mut delete = |records: &mut dyn Records| match request {
            None => records.execute(namespace, Command::Delete { key }),
            Some(_) => records.execute_as(request, namespace, Command::Batch { changes: &changes }),
        };
        match self.with_room(records, &[(namespace, key)], &mut delete) {
            Ok(_) | Err(KvError::KeyNotFound) => Ok(()),
            Err(error) => self.failed(records, &[(namespace, key)], error),
        }
    }

    /// The policy takes a pair in, and those go that must leave for it.
    fn take_in(
        &mut self,
        records: &mut dyn Records,
        namespace: NamespaceId,
        key: Key<'_>,
        bytes: u64,
    ) -> Result<(), KvError> {
        self.now.0 += 1;
        let expires = self.all[&namespace].attributes.expires(self.now);
        let leaving = self.held(namespace).insert(key.bytes(), bytes, expires);
        self.leave(records, namespace, leaving)
    }

    /// Makes a batch. What is not worth a write of it goes, and so does what leaves for the others.
    pub(super) fn batch(
        &mut self,
        records: &mut dyn Records,
        request: Option<RequestId>,
        changes: &[BatchChange<'_>],
    ) -> Result<Reply, KvError> {
        // Nobody leaves for what no drive takes.
        records.check_batch(changes)?;
        let is_cached = |change: &&BatchChange<'_>| self.all.contains_key(&change.namespace);
        let cached: Vec<&BatchChange<'_>> = changes.iter().filter(is_cached).collect();
        let keys: Vec<(NamespaceId, Key<'_>)> = cached.iter().map(|change| (change.namespace, change.key)).collect();
        self.prepare_batch(records, &cached)?;
        let mut leaving: BTreeMap<NamespaceId, Vec<OwnedKey>> = BTreeMap::new();
        for BatchChange { namespace, key, value } in cached {
            leaving.entry(*namespace).or_default().extend(self.change(*namespace, *key, value.as_ref()));
        }
        for (namespace, mut leaving) in leaving {
            // Of its own keys the batch says what becomes of them.
            leaving.retain(|gone| !keys.iter().any(|(of, key)| *of == namespace && key.bytes() == &**gone));
            self.leave(records, namespace, leaving)?;
        }
        let stamped: Vec<BatchChange<'_>> = changes.iter().map(|change| self.stamped_change(change)).collect();
        for change in stamped.iter().zip(changes).filter(|(now, before)| now.value.is_none() && before.value.is_some())
        {
            self.left.iter_mut().for_each(|left| left.push(change.0.key.bytes().into()));
        }
        let mut put = |records: &mut dyn Records| {
            records.execute_as(request, NamespaceId::FIRST, Command::Batch { changes: &stamped })
        };
        match self.with_room(records, &keys, &mut put) {
            Ok(reply) => {
                self.drop_left(records, &keys)?;
                Ok(reply)
            }
            Err(error) => self.failed(records, &keys, error),
        }
    }

    /// Before a batch: what it is on is known, and fits.
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

    /// A change as the drive makes it: without a value where the pair of a cache was kept out, or left for another of the batch.
    fn stamped_change<'c>(&self, change: &BatchChange<'c>) -> BatchChange<'c> {
        let Some(cache) = self.all.get(&change.namespace) else { return change.clone() };
        let is_in = cache.held.as_ref().is_some_and(|held| held.contains(change.key.bytes()));
        let value = change.value.as_ref().filter(|_| is_in).map(|value| self.stamped(value));
        BatchChange { value, ..*change }
    }

    /// The policy learns of a change of a batch; gives who must leave for it.
    fn change(&mut self, namespace: NamespaceId, key: Key<'_>, value: Option<&Value>) -> Vec<OwnedKey> {
        self.now.0 += 1;
        let now = self.now;
        let expires = self.all[&namespace].attributes.expires(now);
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

    /// Does something that may find the drive full: then pairs leave, and it is tried again.
    fn with_room(
        &mut self,
        records: &mut dyn Records,
        coming: &[(NamespaceId, Key<'_>)],
        act: &mut dyn FnMut(&mut dyn Records) -> Result<Reply, KvError>,
    ) -> Result<Reply, KvError> {
        loop {
            match act(records) {
                Err(KvError::CapacityExceeded) if self.make_room(records, coming)? => records.then(),
                answer => return answer,
            }
        }
    }

    /// The drive is full. Pairs of the cache leave that holds the largest part of its budget, so that budgets of more than the drive has are
    /// served in proportion; where it may be a quota that is full, pairs of that cache. Gives whether some did.
    fn make_room(&mut self, records: &mut dyn Records, coming: &[(NamespaceId, Key<'_>)]) -> Result<bool, KvError> {
        let ids: Vec<NamespaceId> = self.all.keys().copied().collect();
        for id in ids {
            self.know(records, id)?;
        }
        let Some(id) = self.who_gives(coming) else { return Ok(false) };
        let mut leaving = self.held(id).shrink();
        // Those that come are not there yet.
        leaving.retain(|gone| !coming.iter().any(|(of, key)| *of == id && key.bytes() == &**gone));
        self.leave(records, id, leaving)?;
        Ok(true)
    }

    /// Some pairs leave a cache. Gives whether there were any.
    pub(crate) fn let_go(&mut self, records: &mut dyn Records, id: NamespaceId) -> Result<bool, KvError> {
        if self.is_read_only || !self.all.contains_key(&id) {
            return Ok(false);
        }
        self.know(records, id)?;
        let leaving = self.held(id).shrink();
        let some = !leaving.is_empty();
        self.leave(records, id, leaving)?;
        Ok(some)
    }

    /// The cache that pairs are to leave, of those that hold others than what comes.
    fn who_gives(&self, coming: &[(NamespaceId, Key<'_>)]) -> Option<NamespaceId> {
        let part = |(id, cache): (&NamespaceId, &OneCache)| {
            let held = cache.held.as_ref()?;
            let comes = coming.iter().filter(|(of, key)| of == id && held.contains(key.bytes())).count() as u64;
            let is_bounded = cache.quota_bytes.is_some() && coming.iter().any(|(of, _)| of == id);
            let parts = u128::from(held.held_bytes()) << 64;
            let part = parts / u128::from(cache.attributes.plan.budget_bytes);
            (held.pairs() > comes).then_some(((is_bounded, part), *id))
        };
        self.all.iter().filter_map(part).max().map(|(_, id)| id)
    }

    /// What came may have had to leave again before it was there.
    fn drop_left(&mut self, records: &mut dyn Records, keys: &[(NamespaceId, Key<'_>)]) -> Result<(), KvError> {
        for &(namespace, key) in keys {
            if !self.held(namespace).contains(key.bytes()) {
                self.leave(records, namespace, vec![key.bytes().into()])?;
            }
        }
        Ok(())
    }

    /// A change was refused: the policy learns what there is of its keys.
    fn failed<T>(
        &mut self,
        records: &mut dyn Records,
        keys: &[(NamespaceId, Key<'_>)],
        error: KvError,
    ) -> Result<T, KvError> {
        for &(namespace, key) in keys.iter().filter(|_| !error.is_fatal()) {
            match records.execute(namespace, Command::Exist { key }) {
                Ok(_) => {
                    let (stamp, _, bytes) = look_at(records, namespace, key)?;
                    let stored = if self.is_measured { self.now } else { Nanos(stamp) };
                    let expires = self.all[&namespace].attributes.expires(stored);
                    let leaving = self.held(namespace).insert(key.bytes(), bytes, expires);
                    self.leave(records, namespace, leaving)?;
                }
                Err(KvError::KeyNotFound) => drop(self.held(namespace).remove(key.bytes())),
                _ => {}
            }
        }
        Err(error)
    }

    /// A batch was made and taken back, since others had no room for theirs.
    pub(crate) fn taken_back(
        &mut self,
        records: &mut dyn Records,
        changes: &[BatchChange<'_>],
        why: &KvError,
    ) -> Result<(), KvError> {
        let is_cached = |change: &&BatchChange<'_>| self.all.contains_key(&change.namespace);
        let keys: Vec<(NamespaceId, Key<'_>)> =
            changes.iter().filter(is_cached).map(|change| (change.namespace, change.key)).collect();
        match self.failed::<()>(records, &keys, why.clone()) {
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
        // With what records take beside keys and values: nobody is to leave for what no quota lets in.
        let with_records = bytes.saturating_add(bytes / RECORDS_SHARE).saturating_add(RECORDS_BYTES);
        let fits = bytes <= attributes.plan.budget_bytes && quota_bytes.is_none_or(|quota| with_records <= quota);
        if fits { Ok(()) } else { Err(KvError::CapacityExceeded) }
    }
}

/// Bytes of a pair, as a budget counts them.
fn pair_bytes(key: Key<'_>, value: &Value) -> u64 {
    key.bytes().len() as u64 + value.len() as u64
}
