//! How transactions come to their locks, and end when they can not.

use super::TransactionManager;
use crate::planted::PlantedBug;
use crate::{AbortReason, Access, LockMode, LockName, LockReply, TransactionId};

/// What became of a lock that was asked for.
pub(super) enum Locked {
    Granted,
    Waits,
    Aborted(AbortReason),
}

impl TransactionManager {
    /// How two-phase locking locks a record for an access.
    pub(super) fn mode_of(&self, access: &Access) -> Option<LockMode> {
        match access {
            Access::Read if self.planted == Some(PlantedBug::UnlockedRead) => None,
            Access::Read => Some(LockMode::Shared),
            _ => Some(LockMode::Exclusive),
        }
    }

    /// Asks for a lock. Those that must end because of a deadlock are ended.
    pub(super) fn lock(&mut self, transaction: TransactionId, name: LockName, mode: LockMode) -> Locked {
        if self.locks.waits_for(transaction).is_some() {
            return Locked::Waits;
        }
        match self.locks.request(transaction, name, mode) {
            LockReply::Granted => Locked::Granted,
            LockReply::Waits => Locked::Waits,
            LockReply::Deadlock { victims } if victims == [transaction] => {
                self.give_up(transaction, AbortReason::Deadlock);
                Locked::Aborted(AbortReason::Deadlock)
            }
            LockReply::Deadlock { victims } => {
                for victim in victims {
                    self.give_up(victim, AbortReason::Deadlock);
                    self.woken.push(victim);
                }
                if self.locks.waits_for(transaction).is_some() {
                    return Locked::Waits;
                }
                self.woken.retain(|&woken| woken != transaction);
                Locked::Granted
            }
        }
    }

    /// Locks what an optimistic transaction writes, in the order of locks, so that two of them never wait for each other.
    pub(super) fn lock_writes(&mut self, transaction: TransactionId) -> Locked {
        let granularity = self.granularity;
        let writes = &self.block(transaction).writes;
        let mut names: Vec<LockName> = writes.iter().map(|(record, _)| granularity.lock_of(record)).collect();
        names.sort_unstable();
        for name in names {
            match self.lock(transaction, name, LockMode::Exclusive) {
                Locked::Granted => {}
                other => return other,
            }
        }
        Locked::Granted
    }
}
