//! Which pairs leave: for a new pair, for a drive that is full anyway, and for the memory.
//!
//! ```text
//!   refused for want of room -> what would have to go, at the least?     a quota, a place in an index: of that namespace
//!     all caches have less of it, or none: they keep what they have      the drive: of that which has the largest part of its budget
//! ```

use super::{Caches, OneCache};
use crate::records::Records;
use kvssd_cache::LeavingPair;
use kvssd_ftl::Lack;
use kvssd_types::{Command, Key, KvError, NamespaceId, Reply};
use std::collections::BTreeMap;

/// The most that records take of flash beside keys and values: a share of those, and some bytes. Estimates.
const RECORDS_SHARE: u64 = 8;
const RECORDS_BYTES: u64 = 4096;

/// What is about to be changed.
pub(super) struct PendingChange<'k> {
    pub(super) keys: &'k [(NamespaceId, Key<'k>)],
    /// Pairs that the policies have evicted for it, but that stay until there is need.
    pub(super) leaving: BTreeMap<NamespaceId, Vec<LeavingPair>>,
    /// Its own pairs that were evicted before they were there.
    left_early: Vec<(NamespaceId, LeavingPair)>,
    /// Bytes of the present pairs of its keys.
    own_bytes: u64,
}

impl<'k> PendingChange<'k> {
    /// To be made before a policy learns of the change.
    pub(super) fn new(caches: &Caches, keys: &'k [(NamespaceId, Key<'k>)]) -> Self {
        let own = |(of, key): &(NamespaceId, Key<'_>)| {
            caches.all.get(of).and_then(|cache| cache.held.as_ref()).map_or(0, |held| held.pair_bytes(key.bytes()))
        };
        let own_bytes = keys.iter().map(own).sum();
        PendingChange { keys, leaving: BTreeMap::new(), left_early: Vec::new(), own_bytes }
    }

    /// Whether a pair is one of its own.
    pub(super) fn is_own(&self, namespace: NamespaceId, pair: &LeavingPair) -> bool {
        self.keys.iter().any(|(of, key)| *of == namespace && key.bytes() == &*pair.key)
    }
}

impl Caches {
    /// Deletes pairs that the policy has evicted. If one cannot be deleted now, the others are deleted all the same.
    pub(super) fn leave(
        &mut self,
        records: &mut dyn Records,
        namespace: NamespaceId,
        leaving: Vec<LeavingPair>,
    ) -> Result<(), KvError> {
        for stays in self.delete_each(records, namespace, leaving)? {
            self.overdue.push((namespace, stays.clone()));
            self.held(namespace).keep(stays);
        }
        Ok(())
    }

    /// Deletes the pairs that the last command could not, because a batch over several partitions was not decided yet.
    pub(crate) fn leave_overdue(&mut self, records: &mut dyn Records) -> Result<(), KvError> {
        for (namespace, pair) in std::mem::take(&mut self.overdue) {
            if self.held(namespace).remove(&pair.key) {
                self.leave(records, namespace, vec![pair])?;
            }
        }
        records.keep_beside(self.dram_bytes());
        Ok(())
    }

    /// Deletes pairs that the policy has evicted. Returns those that are still there.
    fn delete_each(
        &mut self,
        records: &mut dyn Records,
        namespace: NamespaceId,
        leaving: Vec<LeavingPair>,
    ) -> Result<Vec<LeavingPair>, KvError> {
        let mut stay = Vec::new();
        for pair in leaving {
            match records.execute(namespace, Command::Delete { key: Key::new(&pair.key)? }) {
                Err(error) if error.is_fatal() => return Err(error),
                Ok(_) | Err(KvError::KeyNotFound) => {
                    self.pairs_left += 1;
                    self.left.iter_mut().for_each(|left| left.push(pair.key.clone()));
                }
                Err(_) => stay.push(pair),
            }
        }
        Ok(stay)
    }

    /// Does something that may find the drive full: then pairs are evicted, and it is tried again.
    pub(super) fn with_room(
        &mut self,
        records: &mut dyn Records,
        pending: &mut PendingChange<'_>,
        act: &mut dyn FnMut(&mut dyn Records) -> Result<Reply, KvError>,
    ) -> Result<Reply, KvError> {
        loop {
            match act(records) {
                Err(KvError::CapacityExceeded) if self.make_room(records, pending)? => records.then(),
                answer => return answer,
            }
        }
    }

    /// Makes room after a refusal. Returns whether a pair that took some was evicted.
    fn make_room(&mut self, records: &mut dyn Records, pending: &mut PendingChange<'_>) -> Result<bool, KvError> {
        let lacks = records.lacks();
        if lacks.iter().any(|lack| matches!(lack, Lack::OnDrive { .. })) {
            let ids: Vec<NamespaceId> = self.all.keys().copied().collect();
            ids.into_iter().try_for_each(|id| self.know(records, id))?;
        }
        // Nothing is evicted for a change that is refused anyway.
        let [lack, ..] = lacks[..] else { return Ok(false) };
        if lacks.iter().any(|lack| self.who_gives(records, pending, *lack).is_none()) {
            return Ok(false);
        }
        let mut stuck: Vec<(NamespaceId, Vec<LeavingPair>)> = Vec::new();
        let mut has_left = false;
        while !has_left && let Some(id) = self.who_gives(records, pending, lack) {
            // First the pairs that leave anyway.
            let leaving = match pending.leaving.remove(&id) {
                Some(leaving) => leaving,
                None => {
                    let leaving = self.held(id).shrink().into_iter();
                    // The change's own pairs are not there yet.
                    let (own, leaving) = leaving.partition::<Vec<_>, _>(|pair| pending.is_own(id, pair));
                    pending.left_early.extend(own.into_iter().map(|pair| (id, pair)));
                    leaving
                }
            };
            let before = leaving.len();
            let stay = self.delete_each(records, id, leaving)?;
            has_left = stay.len() < before;
            stuck.push((id, stay));
        }
        for (id, stay) in stuck {
            stay.into_iter().for_each(|pair| self.held(id).keep(pair));
        }
        Ok(has_left)
    }

    /// The cache from which pairs are evicted, if that helps. It holds pairs other than those of the change, or has evicted some already. Of
    /// several, it is the one that uses the largest part of its budget: so budgets that together exceed the drive are served in proportion.
    fn who_gives(&self, records: &dyn Records, pending: &PendingChange<'_>, lack: Lack) -> Option<NamespaceId> {
        let comes = |id: NamespaceId| pending.keys.iter().filter(move |(of, _)| *of == id);
        let part = |(id, cache): (&NamespaceId, &OneCache)| {
            let held = cache.held.as_ref()?;
            let own = comes(*id).filter(|(_, key)| held.contains(key.bytes())).count() as u64;
            let leaves = pending.leaving.contains_key(id);
            let part = (u128::from(held.held_bytes()) << 64) / u128::from(cache.attributes.plan.budget_bytes);
            (leaves || held.pairs() > own).then_some((leaves, part, *id))
        };
        match lack {
            Lack::OnDrive { bytes } if bytes <= self.others_bytes(records, pending) => {
                self.all.iter().filter_map(part).max().map(|(.., id)| id)
            }
            Lack::InNamespace(id) => self.all.get_key_value(&id).and_then(part).map(|(.., id)| id),
            Lack::OnDrive { .. } | Lack::Elsewhere => None,
        }
    }

    /// The most bytes of flash that all caches take beside the pairs that the change replaces.
    fn others_bytes(&self, records: &dyn Records, pending: &PendingChange<'_>) -> u64 {
        self.all.keys().map(|id| records.record_bytes(*id)).sum::<u64>().saturating_sub(pending.own_bytes)
    }

    /// Checks that a pair, with what its record takes, would have room once all other pairs of caches were evicted.
    pub(super) fn check_drive(
        &mut self,
        records: &dyn Records,
        (namespace, key): (NamespaceId, Key<'_>),
        bytes: u64,
    ) -> Result<(), KvError> {
        if !self.held(namespace).is_full_for(key.bytes(), bytes) {
            return Ok(());
        }
        let all: u64 = self.all.keys().map(|id| records.record_bytes(*id)).sum();
        if with_record(bytes) <= records.free_bytes() + all { Ok(()) } else { Err(KvError::CapacityExceeded) }
    }

    /// Evicts some pairs of a cache. Returns whether there were any.
    pub(crate) fn let_go(&mut self, records: &mut dyn Records, id: NamespaceId) -> Result<bool, KvError> {
        if self.is_read_only || !self.all.contains_key(&id) {
            return Ok(false);
        }
        self.know(records, id)?;
        let mut stuck = Vec::new();
        let mut has_left = false;
        while !has_left {
            let leaving = self.held(id).evict_some();
            if leaving.is_empty() {
                break;
            }
            let before = leaving.len();
            let stay = self.delete_each(records, id, leaving)?;
            has_left = stay.len() < before;
            stuck.extend(stay);
        }
        stuck.into_iter().for_each(|pair| self.held(id).keep(pair));
        Ok(has_left)
    }

    /// After a change was made: deletes the pairs that still have to leave for it, and those of its own that were evicted before they were there.
    pub(super) fn came(&mut self, records: &mut dyn Records, pending: PendingChange<'_>) -> Result<(), KvError> {
        for (namespace, leaving) in pending.leaving {
            self.leave(records, namespace, leaving)?;
        }
        for (namespace, pair) in pending.left_early {
            self.leave(records, namespace, vec![pair])?;
        }
        Ok(())
    }

    /// Gives each cache its part of the memory; surplus pairs leave.
    pub(crate) fn share_dram(&mut self, records: &mut dyn Records) -> Result<(), KvError> {
        let share = self.dram_share();
        let known: Vec<NamespaceId> = self.all.keys().copied().filter(|id| self.all[id].held.is_some()).collect();
        for id in known {
            let leaving = self.held(id).set_kept_bytes_max(share);
            self.leave(records, id, leaving)?;
        }
        Ok(())
    }

    /// The part of the memory that a cache may keep.
    pub(super) fn dram_share(&self) -> u64 {
        self.dram_bytes_max / (self.all.len() as u64).max(1)
    }
}

/// Bytes of flash that pairs of so many bytes take at the most. An estimate.
pub(super) fn with_record(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / RECORDS_SHARE).saturating_add(RECORDS_BYTES)
}
