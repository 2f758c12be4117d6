//! The lock manager: strong strict two-phase locking (KAML, section III-D; Bernstein, Hadzilacos and Goodman, chapter 3).
//!
//! ```text
//!   request(T1, a, Exclusive)   Granted
//!   request(T2, b, Exclusive)   Granted
//!   request(T1, b, Shared)      Waits                        T1 -> T2
//!   request(T2, a, Shared)      Deadlock { victims: [T2] }   T1 -> T2 -> T1 would be a ring
//!   release_all(T2)             [T1]                         holds b now
//! ```
//!
//! - *Queues* are first come, first served: a request that would go with the holders still waits behind one that does not, so
//!   that nobody waits for ever. An upgrade goes before all that are none: they can not be granted before it ends anyway.
//! - *Deadlocks* are looked for whenever a request would wait, in the graph of who waits for whom, which has no ring before.
//! - *The victim* is the youngest of the ring, the one with the greatest id: it has done the least, as far as that can be told,
//!   and the oldest of all is never one, so somebody always gets on. (A transaction that is tried again as a new one is young
//!   again; it may be a victim again.)
//!
//! All locks of a transaction are released together, at its end: there is no way to release one, which is the point of it.
//!
//! What it does not do: know what a lock protects, abort anybody, escalate, or lock intentions.

use crate::lock::Lock;
use crate::{LockMode, LockName, TransactionId};
use std::collections::{BTreeMap, BTreeSet};

/// Freed memory of locks and transactions that is kept for the next ones.
const SPARES_MAX: usize = 1024;

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockReply {
    /// The transaction holds the lock so.
    Granted,
    /// It is in the queue, and holds the lock when [`LockManager::release_all`] of others names it.
    Waits,
    /// Somebody waited for somebody who waits for him. These must end: [`LockManager::release_all`] is to be called for each of
    /// them before anything else. The transaction that asked is among them, alone, and is not in the queue; or it is not, and
    /// waits.
    Deadlock {
        /// The youngest of each ring.
        victims: Vec<TransactionId>,
    },
}

/// Who holds and who waits for which locks.
#[derive(Debug, Default)]
pub struct LockManager {
    locks: BTreeMap<LockName, Lock>,
    owners: BTreeMap<TransactionId, Owner>,
    spare_locks: Vec<Lock>,
    spare_owners: Vec<Owner>,
    counters: LockCounters,
}

/// What a lock manager did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockCounters {
    /// Requests, those for locks that are held already not among them.
    pub requests: u64,
    /// Requests that waited.
    pub waits: u64,
    /// Transactions that were to end because of a deadlock.
    pub victims: u64,
}

/// What a transaction has.
#[derive(Debug, Default)]
struct Owner {
    held: Vec<LockName>,
    waits_for: Option<LockName>,
}

impl LockManager {
    /// Nobody holds anything.
    #[must_use]
    pub fn new() -> Self {
        LockManager::default()
    }

    /// Asks for a lock, or for a stronger hold on one.
    ///
    /// # Panics
    /// When the transaction waits for a lock already.
    pub fn request(&mut self, transaction: TransactionId, name: LockName, mode: LockMode) -> LockReply {
        let owner = self.owners.entry(transaction).or_insert_with(|| self.spare_owners.pop().unwrap_or_default());
        assert!(owner.waits_for.is_none(), "transaction {transaction} waits, and asks for another lock");
        let lock = self.locks.entry(name).or_insert_with(|| self.spare_locks.pop().unwrap_or_default());
        let held = lock.mode_of(transaction);
        if held >= Some(mode) {
            return LockReply::Granted;
        }
        self.counters.requests += 1;
        if lock.grants((transaction, mode)) {
            if lock.grant((transaction, mode)) {
                owner.held.push(name);
            }
            return LockReply::Granted;
        }
        lock.enqueue((transaction, mode));
        owner.waits_for = Some(name);
        self.counters.waits += 1;
        self.resolve(transaction)
    }

    /// Releases all that the transaction holds, and its place in a queue; gives those that hold now what they waited for, each
    /// once.
    pub fn release_all(&mut self, transaction: TransactionId) -> Vec<TransactionId> {
        let mut woken = Vec::new();
        let Some(mut owner) = self.owners.remove(&transaction) else { return woken };
        // An upgrade is among the locks that are held.
        let waited = owner.waits_for.take().filter(|name| self.locks[name].mode_of(transaction).is_none());
        for name in owner.held.drain(..).chain(waited) {
            self.leave(transaction, name, &mut woken);
        }
        if self.spare_owners.len() < SPARES_MAX {
            self.spare_owners.push(owner);
        }
        woken
    }

    /// How the transaction holds the lock.
    #[must_use]
    pub fn mode_of(&self, transaction: TransactionId, name: LockName) -> Option<LockMode> {
        self.locks.get(&name)?.mode_of(transaction)
    }

    /// The lock that the transaction waits for.
    #[must_use]
    pub fn waits_for(&self, transaction: TransactionId) -> Option<LockName> {
        self.owners.get(&transaction)?.waits_for
    }

    /// What it did since it was made.
    #[must_use]
    pub fn counters(&self) -> LockCounters {
        self.counters
    }

    /// Breaks the rings that a wait closed.
    fn resolve(&mut self, transaction: TransactionId) -> LockReply {
        let mut victims = Vec::new();
        while let Some(ring) = self.ring(transaction, &victims) {
            let youngest = ring.into_iter().max().expect("a ring has members");
            if youngest == transaction {
                // All rings go through it.
                victims = vec![transaction];
                self.withdraw(transaction);
                break;
            }
            victims.push(youngest);
        }
        self.counters.victims += victims.len() as u64;
        if victims.is_empty() { LockReply::Waits } else { LockReply::Deadlock { victims } }
    }

    /// Transactions from `start` on of which each waits for the next and the last for the first, without those in `gone`.
    fn ring(&self, start: TransactionId, gone: &[TransactionId]) -> Option<Vec<TransactionId>> {
        let mut seen: BTreeSet<TransactionId> = gone.iter().copied().collect();
        let mut path = vec![(start, self.blockers(start))];
        while let Some((_, blockers)) = path.last_mut() {
            match blockers.next() {
                Some(blocker) if blocker == start => return Some(path.iter().map(|step| step.0).collect()),
                Some(blocker) if seen.insert(blocker) => path.push((blocker, self.blockers(blocker))),
                Some(_) => {}
                None => {
                    path.pop();
                }
            }
        }
        None
    }

    /// Whom the transaction waits for.
    fn blockers(&self, transaction: TransactionId) -> impl Iterator<Item = TransactionId> {
        let name = self.waits_for(transaction);
        name.into_iter().flat_map(move |name| self.locks[&name].blockers(transaction))
    }

    /// Takes a request that was put into a queue just now out again: nobody can have come to wait behind it but as he did before.
    fn withdraw(&mut self, transaction: TransactionId) {
        let owner = self.owners.get_mut(&transaction).expect("it waits");
        let name = owner.waits_for.take().expect("it waits");
        self.locks.get_mut(&name).expect("a lock with a queue is there").withdraw(transaction);
    }

    fn leave(&mut self, transaction: TransactionId, name: LockName, woken: &mut Vec<TransactionId>) {
        let lock = self.locks.get_mut(&name).expect("a lock that is held is there");
        lock.remove(transaction);
        while let Some((granted, is_new)) = lock.grant_next() {
            let owner = self.owners.get_mut(&granted).expect("who waits is known");
            owner.waits_for = None;
            if is_new {
                owner.held.push(name);
            }
            woken.push(granted);
        }
        if lock.is_idle() {
            let lock = self.locks.remove(&name).expect("it was there");
            if self.spare_locks.len() < SPARES_MAX {
                self.spare_locks.push(lock);
            }
        }
    }
}

#[cfg(test)]
mod tests;
