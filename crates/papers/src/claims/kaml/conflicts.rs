//! Updates that meet under locks of pages (section V-D2; kaml.12): balls into bins.

use crate::claims::{Claim, Verdict};
use kvssd_transactions::{LockManager, LockMode, LockName, TransactionId};
use kvssd_types::{NamespaceId, Random};

/// Keys, and how many of them a lock protects.
const KEYS: u64 = 100_000;
const KEYS_PER_LOCK: [u64; 5] = [1, 4, 16, 64, 256];
/// Updates that come at about the same time.
const UPDATES: [u64; 3] = [64, 512, 4096];
/// Rounds of which the mean is taken.
const ROUNDS: u64 = 200;
/// How near they must be.
const NEAR: f64 = 0.1;
/// Fewer conflicts than so many in all rounds tell nothing.
const CONFLICTS_MIN: f64 = 400.0;

/// Updates that find the lock taken, on average: the paper's formula for keys that are equally likely. It is printed with 1/K for
/// the chance that an update meets a lock, which for locks of `l` keys is `l`/K.
fn expected(updates: u64, keys_per_lock: u64) -> f64 {
    let locks = KEYS as f64 / keys_per_lock as f64;
    updates as f64 - locks * (1.0 - (1.0 - 1.0 / locks).powf(updates as f64))
}

/// The same, as the lock manager counts it.
fn counted(updates: u64, keys_per_lock: u64, random: &mut Random) -> f64 {
    let mut waits = 0;
    for _ in 0..ROUNDS {
        let mut locks = LockManager::new();
        for update in 0..updates {
            let name = LockName { namespace: NamespaceId::FIRST, number: random.below(KEYS) / keys_per_lock };
            locks.request(TransactionId(update), name, LockMode::Exclusive);
        }
        waits += locks.counters().waits;
    }
    waits as f64 / ROUNDS as f64
}

pub(super) fn under_page_locks(seed: u64) -> Claim {
    let mut random = Random::new(seed);
    let (mut worst, mut shown) = (0.0f64, Vec::new());
    for updates in UPDATES {
        for keys_per_lock in KEYS_PER_LOCK {
            let (formula, ours) = (expected(updates, keys_per_lock), counted(updates, keys_per_lock, &mut random));
            if formula * ROUNDS as f64 >= CONFLICTS_MIN {
                worst = worst.max((ours / formula - 1.0).abs());
                shown.push(format!("{updates} updates, {keys_per_lock} keys a lock: {ours:.1} / {formula:.1}"));
            }
        }
    }
    Claim::new(
        "kaml.12",
        format!("{:.1} % apart at most ({})", worst * 100.0, shown.join("; ")), // Locks that nobody gives back are the formula's bins.
        Verdict::if_true(worst <= NEAR).by_construction(),
        "the lock manager alone",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_all_keys_let_one_update_through() {
        assert!((expected(100, KEYS) - 99.0).abs() < 1e-9);
        assert!((counted(100, KEYS, &mut Random::new(1)) - 99.0).abs() < 1e-9);
        assert_eq!(under_page_locks(1).verdict, Verdict::ByConstruction);
    }
}
