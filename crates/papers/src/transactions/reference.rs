//! An engine in memory that is right by being simple, and some that are wrong on purpose: what the terminals, the workloads and the
//! history checker are tested with.

use super::engine::{RecordId, Request, Step, TransactionEngine};
use kvssd_device::Device;
use kvssd_flash::RopeBacking;
use kvssd_sim::SimError;
use kvssd_transactions::TransactionId;
use kvssd_types::{NamespaceId, Nanos, OwnedKey, Value};
use std::collections::{BTreeMap, BTreeSet};

type Name = (NamespaceId, OwnedKey);

/// What an engine does wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    Nothing,
    /// Shared locks are given back when the record is read.
    ReadLocksReleasedEarly,
    /// What is written is there for others, unlocked, before the commit.
    WritesSeenEarly,
    /// What is read for an update is not locked.
    ReadsForUpdateUnlocked,
    /// A commit forgets its last write.
    LastWriteLost,
}

/// How long requests take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) read: Nanos,
    pub(super) write: Nanos,
    pub(super) commit: Nanos,
}

#[derive(Default)]
struct Locks {
    shared: BTreeSet<TransactionId>,
    exclusive: Option<TransactionId>,
    /// In the order of their coming: who came first goes first, so that nobody starves.
    waiting: Vec<TransactionId>,
}

#[derive(Default)]
struct State {
    writes: Vec<(Name, Value)>,
    locked: BTreeSet<Name>,
    /// What it waits for, and whether to write it.
    waits_for: Option<(Name, bool)>,
    is_woken: bool,
    /// The commit was asked for before.
    is_committing: bool,
}

/// Strict two-phase locking over a map; who would close a cycle of waiting is aborted.
pub(super) struct Reference {
    times: Times,
    planted: Planted,
    records: BTreeMap<Name, Value>,
    locks: BTreeMap<Name, Locks>,
    transactions: BTreeMap<TransactionId, State>,
    begun: u64,
    woken: Vec<(TransactionId, Nanos)>,
    device: Device,
}

impl Reference {
    pub(super) fn new(times: Times, planted: Planted) -> Self {
        let design = kvssd_designs::named("block").unwrap();
        let profile = design.tiny_profile(&[]).unwrap();
        let backing = Box::new(RopeBacking::new(profile.geometry));
        Reference {
            times,
            planted,
            records: BTreeMap::new(),
            locks: BTreeMap::new(),
            transactions: BTreeMap::new(),
            begun: 0,
            woken: Vec::new(),
            device: Device::new(&design, &profile, backing).unwrap(),
        }
    }

    /// With times of a few microseconds, the commit's the longest.
    pub(super) fn quick(planted: Planted) -> Self {
        Reference::new(Times { read: Nanos(700), write: Nanos(300), commit: Nanos(5_000) }, planted)
    }

    /// Everything that is committed: what a drive would hold after a power cut.
    pub(super) fn record(&self, record: RecordId<'_>) -> Option<Value> {
        self.records.get(&name(record)).cloned()
    }

    /// Who keeps a transaction from taking a lock: who holds it, and who came before to take it alone, unless it holds it too.
    fn holders(&self, id: TransactionId, name: &Name, exclusive: bool) -> BTreeSet<TransactionId> {
        let Some(locks) = self.locks.get(name) else { return BTreeSet::new() };
        let shared = locks.shared.iter().filter(|_| exclusive);
        let is_holder = locks.shared.contains(&id) || locks.exclusive == Some(id);
        let before = locks.waiting.iter().take_while(|waiting| **waiting != id && !is_holder);
        let alone = before.filter(|waiting| matches!(self.transactions[waiting].waits_for, Some((_, true))));
        shared.chain(&locks.exclusive).chain(alone).copied().filter(|holder| *holder != id).collect()
    }

    /// Takes a lock; gives whether it could.
    fn lock(&mut self, id: TransactionId, name: &Name, exclusive: bool) -> bool {
        let is_free = self.holders(id, name, exclusive).is_empty();
        let locks = self.locks.entry(name.clone()).or_default();
        let state = self.transactions.get_mut(&id).expect("it has begun");
        state.is_woken = false;
        if !is_free {
            if !locks.waiting.contains(&id) {
                locks.waiting.push(id);
            }
            state.waits_for = Some((name.clone(), exclusive));
            return false;
        }
        locks.waiting.retain(|waiting| *waiting != id);
        if exclusive {
            locks.exclusive = Some(id);
        } else {
            locks.shared.insert(id);
        }
        state.waits_for = None;
        state.locked.insert(name.clone());
        true
    }

    /// Whether a transaction waits for others that wait for it, in the end.
    fn is_in_a_circle(&self, id: TransactionId) -> bool {
        let (mut seen, mut next) = (BTreeSet::new(), BTreeSet::from([id]));
        while let Some(waiting) = next.pop_first() {
            let Some((name, exclusive)) = &self.transactions[&waiting].waits_for else { continue };
            for holder in self.holders(waiting, name, *exclusive) {
                if holder == id {
                    return true;
                }
                if seen.insert(holder) {
                    next.insert(holder);
                }
            }
        }
        false
    }

    fn release(&mut self, id: TransactionId, name: &Name, at: Nanos) {
        let locks = self.locks.get_mut(name).unwrap();
        locks.shared.remove(&id);
        locks.exclusive = locks.exclusive.filter(|holder| *holder != id);
        locks.waiting.retain(|waiting| *waiting != id);
        // They keep their place until they have the lock.
        for waiting in &locks.waiting {
            let state = self.transactions.get_mut(waiting).expect("who waits is there");
            if !std::mem::replace(&mut state.is_woken, true) {
                self.woken.push((*waiting, at));
            }
        }
        if locks.shared.is_empty() && locks.exclusive.is_none() && locks.waiting.is_empty() {
            self.locks.remove(name);
        }
    }

    fn end(&mut self, id: TransactionId, at: Nanos) {
        let state = self.transactions.remove(&id).unwrap();
        for name in state.locked {
            if self.locks.contains_key(&name) {
                self.release(id, &name, at);
            }
        }
    }

    fn access(&mut self, id: TransactionId, record: RecordId<'_>, exclusive: bool, at: Nanos) -> Option<Step> {
        if self.lock(id, &name(record), exclusive) {
            return None;
        }
        if !self.is_in_a_circle(id) {
            return Some(Step::Wait);
        }
        // Who came behind it waits no longer for it, even where it holds nothing.
        self.transactions.get_mut(&id).expect("it has begun").locked.insert(name(record));
        self.end(id, at);
        Some(Step::Aborted(at + self.times.write))
    }

    fn read(&mut self, id: TransactionId, record: RecordId<'_>, for_update: bool, at: Nanos) -> Step {
        let name = name(record);
        let unlocked = self.planted == Planted::ReadsForUpdateUnlocked && for_update;
        if !unlocked && let Some(step) = self.access(id, record, for_update, at) {
            return step;
        }
        let own = self.transactions[&id].writes.iter().rev().find(|(written, _)| *written == name);
        let value = own.map(|(_, value)| value).or_else(|| self.records.get(&name)).cloned();
        let is_shared = self.locks.get(&name).is_some_and(|locks| locks.exclusive != Some(id));
        if self.planted == Planted::ReadLocksReleasedEarly && is_shared {
            self.release(id, &name, at + self.times.read);
        }
        Step::Done(at + self.times.read, value)
    }

    fn commit(&mut self, id: TransactionId, at: Nanos) -> Step {
        let state = self.transactions.get_mut(&id).unwrap();
        if !std::mem::replace(&mut state.is_committing, true) {
            return Step::Again(at + self.times.commit);
        }
        let mut writes = std::mem::take(&mut state.writes);
        if self.planted == Planted::LastWriteLost {
            writes.pop();
        }
        self.records.extend(writes);
        self.end(id, at);
        Step::Done(at, None)
    }
}

fn name(record: RecordId<'_>) -> Name {
    (record.table, record.key.bytes().into())
}

impl TransactionEngine for Reference {
    fn name(&self) -> &str {
        "reference"
    }

    fn load(&mut self, record: RecordId<'_>, value: Value, at: Nanos) -> Result<Nanos, SimError> {
        assert!(self.records.insert(name(record), value).is_none(), "{record:?} is loaded twice");
        Ok(at + self.times.write)
    }

    fn end_load(&mut self, at: Nanos) -> Result<Nanos, SimError> {
        Ok(at)
    }

    fn begin(&mut self, _at: Nanos) -> TransactionId {
        self.begun += 1;
        self.transactions.insert(TransactionId(self.begun), State::default());
        TransactionId(self.begun)
    }

    fn step(&mut self, id: TransactionId, request: &Request<'_>, at: Nanos) -> Result<Step, SimError> {
        Ok(match request {
            Request::Read { record, for_update } => self.read(id, *record, *for_update, at),
            Request::Write { record, value } => match self.access(id, *record, true, at) {
                Some(step) => step,
                None if self.planted == Planted::WritesSeenEarly => {
                    self.records.insert(name(*record), value.clone());
                    self.release(id, &name(*record), at);
                    Step::Done(at + self.times.write, None)
                }
                None => {
                    let state = self.transactions.get_mut(&id).unwrap();
                    state.writes.push((name(*record), value.clone()));
                    Step::Done(at + self.times.write, None)
                }
            },
            Request::Delete { .. } => unreachable!("no workload deletes"),
            Request::Commit => self.commit(id, at),
            Request::Abort => {
                self.end(id, at);
                Step::Done(at + self.times.write, None)
            }
        })
    }

    fn woken(&mut self) -> Vec<(TransactionId, Nanos)> {
        std::mem::take(&mut self.woken)
    }

    fn device(&self) -> &Device {
        &self.device
    }
}
