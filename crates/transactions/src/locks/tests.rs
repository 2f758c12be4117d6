use super::*;
use crate::LockMode::{Exclusive, Shared};
use kvssd_types::NamespaceId;
use proptest::prelude::*;

fn name(number: u64) -> LockName {
    LockName { namespace: NamespaceId::FIRST, number }
}

fn ids(numbers: &[u64]) -> Vec<TransactionId> {
    numbers.iter().map(|&number| TransactionId(number)).collect()
}

struct Desk(LockManager);

impl Desk {
    fn ask(&mut self, transaction: u64, lock: u64, mode: LockMode) -> LockReply {
        self.0.request(TransactionId(transaction), name(lock), mode)
    }

    fn end(&mut self, transaction: u64) -> Vec<TransactionId> {
        self.0.release_all(TransactionId(transaction))
    }
}

#[test]
fn readers_share_and_a_writer_is_alone() {
    let mut desk = Desk(LockManager::new());
    assert_eq!(desk.ask(1, 7, Shared), LockReply::Granted);
    assert_eq!(desk.ask(2, 7, Shared), LockReply::Granted);
    assert_eq!(desk.ask(3, 7, Exclusive), LockReply::Waits);
    assert_eq!(desk.ask(4, 7, Shared), LockReply::Waits, "it would overtake the writer");
    assert_eq!(desk.ask(2, 7, Shared), LockReply::Granted, "it has the lock already");
    assert_eq!(desk.end(1), []);
    assert_eq!(desk.end(2), ids(&[3]));
    assert_eq!(desk.end(3), ids(&[4]));
    assert_eq!(desk.end(4), []);
    assert_eq!(desk.0.locks.len(), 0);
}

#[test]
fn an_upgrade_goes_first_and_two_are_a_deadlock() {
    let mut desk = Desk(LockManager::new());
    for transaction in [1, 2] {
        assert_eq!(desk.ask(transaction, 7, Shared), LockReply::Granted);
    }
    assert_eq!(desk.ask(3, 7, Exclusive), LockReply::Waits);
    assert_eq!(desk.ask(1, 7, Exclusive), LockReply::Waits);
    assert_eq!(desk.ask(2, 7, Exclusive), LockReply::Deadlock { victims: ids(&[2]) });
    assert_eq!(desk.end(2), ids(&[1]));
    assert_eq!(desk.0.mode_of(TransactionId(1), name(7)), Some(Exclusive));
    assert_eq!(desk.end(1), ids(&[3]));
}

#[test]
fn one_request_may_close_several_rings() {
    let mut desk = Desk(LockManager::new());
    assert_eq!(desk.ask(1, 0, Exclusive), LockReply::Granted);
    for transaction in [2, 3] {
        assert_eq!(desk.ask(transaction, 1, Shared), LockReply::Granted);
        assert_eq!(desk.ask(transaction, 0, Shared), LockReply::Waits);
    }
    let victims = LockReply::Deadlock { victims: ids(&[2, 3]) };
    assert_eq!(desk.ask(1, 1, Exclusive), victims);
    assert_eq!(desk.end(2), []);
    assert_eq!(desk.end(3), ids(&[1]), "the one that asked waits, and gets the lock");
    assert_eq!(desk.0.counters().victims, 2);
}

#[test]
fn a_wait_that_ends_lets_those_behind_it_go_on() {
    let mut desk = Desk(LockManager::new());
    assert_eq!(desk.ask(1, 7, Shared), LockReply::Granted);
    assert_eq!(desk.ask(2, 7, Exclusive), LockReply::Waits);
    assert_eq!(desk.ask(3, 7, Shared), LockReply::Waits);
    assert_eq!(desk.end(2), ids(&[3]));
}

/// The rules, checked the slow way.
struct Model {
    manager: LockManager,
    waits: BTreeMap<u64, (u64, LockMode)>,
    locks: u64,
    grants: u64,
    victims: u64,
}

impl Model {
    fn holders(&self, lock: u64, transactions: u64) -> Vec<(u64, LockMode)> {
        let mode = |transaction| self.manager.mode_of(TransactionId(transaction), name(lock));
        (0..transactions).filter_map(|transaction| Some((transaction, mode(transaction)?))).collect()
    }

    fn ask(&mut self, transaction: u64, lock: u64, mode: LockMode) {
        match self.manager.request(TransactionId(transaction), name(lock), mode) {
            LockReply::Granted => self.grants += 1,
            LockReply::Waits => {
                self.waits.insert(transaction, (lock, mode));
            }
            LockReply::Deadlock { victims } => {
                assert!(victims.iter().all(|victim| victim.0 >= transaction), "one ends that is older than who asked");
                if victims != [TransactionId(transaction)] {
                    self.waits.insert(transaction, (lock, mode));
                }
                for victim in victims {
                    self.victims += 1;
                    self.end(victim.0);
                }
            }
        }
    }

    fn end(&mut self, transaction: u64) {
        self.waits.remove(&transaction);
        for woken in self.manager.release_all(TransactionId(transaction)) {
            let (lock, mode) = self.waits.remove(&woken.0).expect("who did not wait is not woken");
            assert!(self.manager.mode_of(woken, name(lock)) >= Some(mode));
            self.grants += 1;
        }
    }

    fn check(&self, transactions: u64) {
        for lock in 0..self.locks {
            let holders = self.holders(lock, transactions);
            assert!(holders.len() < 2 || holders.iter().all(|holder| holder.1 == Shared), "{holders:?}");
        }
        for (&transaction, &(lock, _)) in &self.waits {
            assert_eq!(self.manager.waits_for(TransactionId(transaction)), Some(name(lock)));
        }
        self.check_rings(transactions);
    }

    /// Who waits for somebody that waits for nobody gets on: taking these out one after the other must leave nobody.
    fn check_rings(&self, transactions: u64) {
        let mut waiting: Vec<u64> = self.waits.keys().copied().collect();
        loop {
            let before = waiting.len();
            let still: Vec<u64> = waiting.clone();
            waiting.retain(|&transaction| {
                let (lock, mode) = self.waits[&transaction];
                let holders = self.holders(lock, transactions);
                holders.iter().any(|&(holder, held)| {
                    holder != transaction && (mode, held) != (Shared, Shared) && still.contains(&holder)
                })
            });
            if waiting.len() == before {
                break;
            }
        }
        assert_eq!(waiting, [], "these wait for each other");
    }
}

proptest! {
    #[test]
    fn nobody_holds_what_does_not_go_together_or_waits_in_a_ring(
        steps in prop::collection::vec((0u64..8, 0u64..4, 0u8..5), 1..300),
    ) {
        let mut model = Model { manager: LockManager::new(), waits: BTreeMap::new(), locks: 4, grants: 0, victims: 0 };
        for (transaction, lock, what) in steps {
            match what {
                0 => model.end(transaction),
                _ if model.waits.contains_key(&transaction) => {}
                1 | 2 => model.ask(transaction, lock, Exclusive),
                _ => model.ask(transaction, lock, Shared),
            }
            model.check(8);
        }
        for transaction in 0..8 {
            model.end(transaction);
        }
        prop_assert!(model.waits.is_empty());
        prop_assert_eq!(model.manager.locks.len(), 0);
        prop_assert_eq!(model.manager.counters().victims, model.victims);
    }
}
