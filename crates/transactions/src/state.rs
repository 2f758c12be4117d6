//! The states of a transaction, and what leads from one to the other (KAML, figure 2 and table II).
//!
//! ```text
//!              begin             commit
//!        IDLE -------> ACTIVE ----------> COMMITTED
//!         ^            ^ |  | abort           |
//!         |      read, +-+  +------> ABORTED  | free
//!         |      update,                | free|
//!         |      insert, delete         v     v
//!         +-------------------------------------
//! ```

/// Where a transaction is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransactionState {
    /// It has not yet begun.
    #[default]
    Idle,
    /// It is in progress, until its Put is done or it is given up.
    Active,
    /// All that it wrote is on the drive.
    Committed,
    /// Nothing that it wrote is there, if it is not in doubt.
    Aborted,
}

/// What leads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// TransactionBegin.
    Begin,
    /// TransactionRead, TransactionUpdate, TransactionInsert, and the removal of a record.
    Access,
    /// TransactionCommit.
    Commit,
    /// TransactionAbort.
    Abort,
    /// TransactionFree.
    Free,
}

impl TransactionState {
    /// The next state, if there is one.
    #[must_use]
    pub fn after(self, transition: Transition) -> Option<TransactionState> {
        match (self, transition) {
            (TransactionState::Idle, Transition::Begin) | (TransactionState::Active, Transition::Access) => {
                Some(TransactionState::Active)
            }
            (TransactionState::Active, Transition::Commit) => Some(TransactionState::Committed),
            (TransactionState::Active, Transition::Abort) => Some(TransactionState::Aborted),
            (TransactionState::Committed | TransactionState::Aborted, Transition::Free) => Some(TransactionState::Idle),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_other_ways_than_those_of_the_paper() {
        use TransactionState::{Aborted, Active, Committed, Idle};
        use Transition::{Abort, Access, Begin, Commit, Free};
        let ways: Vec<_> = [Idle, Active, Committed, Aborted]
            .into_iter()
            .flat_map(|from| [Begin, Access, Commit, Abort, Free].map(|transition| (from, from.after(transition))))
            .filter_map(|(from, to)| Some((from, to?)))
            .collect();
        let expected = [
            (Idle, Active),
            (Active, Active),
            (Active, Committed),
            (Active, Aborted),
            (Committed, Idle),
            (Aborted, Idle),
        ];
        assert_eq!(ways, expected);
    }
}
