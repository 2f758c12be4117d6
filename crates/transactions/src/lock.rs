//! One lock: who holds it, and who waits for it, in the order of asking.
//!
//! ```text
//!   holders   T1 shared, T2 shared
//!   waiters   T1 exclusive (upgrade) | T3 exclusive | T4 shared      T4 waits behind T3, or T3 might wait for ever
//! ```

use crate::TransactionId;
use std::collections::VecDeque;

/// How a lock is held. The greater one covers the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// With others that hold it shared: to read.
    Shared,
    /// Alone: to write.
    Exclusive,
}

impl LockMode {
    fn goes_with(self, other: LockMode) -> bool {
        self == LockMode::Shared && other == LockMode::Shared
    }
}

/// A transaction, and the mode it has or wants.
pub(crate) type Claim = (TransactionId, LockMode);

/// A lock that somebody holds.
#[derive(Debug, Default)]
pub(crate) struct Lock {
    holders: Vec<Claim>,
    waiters: VecDeque<Claim>,
}

impl Lock {
    /// How the transaction holds it.
    pub(crate) fn mode_of(&self, transaction: TransactionId) -> Option<LockMode> {
        self.holders.iter().find(|holder| holder.0 == transaction).map(|holder| holder.1)
    }

    /// Whether the claim can be granted before anybody who waits: it is an upgrade that nobody else's hold forbids, or nobody
    /// waits.
    pub(crate) fn grants(&self, claim: Claim) -> bool {
        (self.waiters.is_empty() || self.mode_of(claim.0).is_some()) && self.goes_with_holders(claim)
    }

    /// Makes the transaction a holder (true), or upgrades it (false).
    pub(crate) fn grant(&mut self, claim: Claim) -> bool {
        match self.holders.iter_mut().find(|holder| holder.0 == claim.0) {
            Some(holder) => {
                holder.1 = claim.1;
                false
            }
            None => {
                self.holders.push(claim);
                true
            }
        }
    }

    /// Puts the claim into the queue: an upgrade before all that are none, for they can not be granted before it ends.
    pub(crate) fn enqueue(&mut self, claim: Claim) {
        let place = if self.mode_of(claim.0).is_some() {
            self.waiters.iter().take_while(|waiter| self.mode_of(waiter.0).is_some()).count()
        } else {
            self.waiters.len()
        };
        self.waiters.insert(place, claim);
    }

    /// Takes the transaction out of the queue.
    pub(crate) fn withdraw(&mut self, transaction: TransactionId) {
        self.waiters.retain(|waiter| waiter.0 != transaction);
    }

    /// Takes the transaction out of holders and waiters.
    pub(crate) fn remove(&mut self, transaction: TransactionId) {
        self.holders.retain(|holder| holder.0 != transaction);
        self.withdraw(transaction);
    }

    /// Grants what waits at the head of the queue, if it can be: to whom, and whether it is a new holder.
    pub(crate) fn grant_next(&mut self) -> Option<(TransactionId, bool)> {
        let claim = *self.waiters.front()?;
        if !self.goes_with_holders(claim) {
            return None;
        }
        self.waiters.pop_front();
        Some((claim.0, self.grant(claim)))
    }

    /// Whom a waiting transaction waits for: holders and earlier waiters that its mode does not go with.
    pub(crate) fn blockers(&self, transaction: TransactionId) -> impl Iterator<Item = TransactionId> {
        let place = self.waiters.iter().position(|waiter| waiter.0 == transaction).expect("it waits for this lock");
        let mode = self.waiters[place].1;
        let before = self.holders.iter().chain(self.waiters.range(..place));
        before.filter(move |other| other.0 != transaction && !mode.goes_with(other.1)).map(|other| other.0)
    }

    /// Whether nobody has to do with it.
    pub(crate) fn is_idle(&self) -> bool {
        assert!(!self.holders.is_empty() || self.waiters.is_empty(), "somebody waits for a lock that nobody holds");
        self.holders.is_empty()
    }

    fn goes_with_holders(&self, claim: Claim) -> bool {
        self.holders.iter().all(|holder| holder.0 == claim.0 || claim.1.goes_with(holder.1))
    }
}
