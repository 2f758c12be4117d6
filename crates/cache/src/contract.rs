//! What every policy of eviction must keep, whatever it chooses.

use crate::eviction::EvictionPolicy;
use crate::pair::PairId;
use kvssd_types::{Nanos, Random};
use std::collections::BTreeSet;

const STEPS: u64 = 50_000;

/// Tells a policy of all that can happen to the pairs of a cache, in an order that follows from `seed`: who leaves was there, and nobody is
/// forgotten.
///
/// # Errors
/// What it did, and at which step.
pub fn check_eviction(policy: EvictionPolicy, seed: u64) -> Result<(), String> {
    let mut eviction = (policy.build)();
    let (mut random, mut there) = (Random::new(seed), BTreeSet::new());
    for step in 0..STEPS {
        let pair = PairId(random.below(200));
        let (bytes, expires) = (1 + random.below(5000), Nanos(random.below(1000)));
        match random.below(8) {
            0..3 if !there.insert(pair) => eviction.replace(pair, bytes, expires),
            0..3 => eviction.insert(pair, bytes, expires),
            3 if there.remove(&pair) => eviction.remove(pair),
            4..6 if there.contains(&pair) => eviction.hit(pair),
            // Two leave, and one of them could not.
            6 => {
                let leaving = [eviction.evict(), eviction.evict()];
                leave(&mut there, leaving[0]).and_then(|()| leave(&mut there, leaving[1])).map_err(at(policy, step))?;
                if let Some(pair) = leaving[1] {
                    eviction.put_back(pair, bytes, expires);
                    there.insert(pair);
                }
            }
            _ => {}
        }
        // Now and then all leave.
        while step % 500 == 499 && !there.is_empty() {
            leave(&mut there, eviction.evict()).map_err(at(policy, step))?;
        }
    }
    Ok(())
}

fn leave(there: &mut BTreeSet<PairId>, left: Option<PairId>) -> Result<(), String> {
    match left {
        Some(pair) if !there.remove(&pair) => Err(format!("{pair:?} leaves, and was not there")),
        None if !there.is_empty() => Err(format!("nobody leaves, and {} are there", there.len())),
        _ => Ok(()),
    }
}

fn at(policy: EvictionPolicy, step: u64) -> impl Fn(String) -> String {
    move |what| format!("{policy}, step {step}: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Eviction, PairQueue};

    #[test]
    fn policies_that_come_along_keep_it() {
        for policy in EvictionPolicy::ALL {
            assert_eq!((0..3).try_for_each(|seed| check_eviction(policy, seed)), Ok(()));
        }
    }

    /// First in, first out, with a mistake.
    #[derive(Debug)]
    struct Mistaken<const FORGETS: bool>(PairQueue);

    impl<const FORGETS: bool> Eviction for Mistaken<FORGETS> {
        fn insert(&mut self, pair: PairId, bytes: u64, _expires: Nanos) {
            if !FORGETS || bytes < 4900 {
                self.0.push(pair);
            }
        }

        fn hit(&mut self, _pair: PairId) {}

        fn put_back(&mut self, pair: PairId, _bytes: u64, _expires: Nanos) {
            self.0.put_back(pair);
        }

        fn remove(&mut self, pair: PairId) {
            if FORGETS {
                self.0.remove(pair);
            }
        }

        fn evict(&mut self) -> Option<PairId> {
            self.0.pop()
        }

        fn kept_bytes(&self) -> u64 {
            0
        }
    }

    #[test]
    fn who_forgets_a_pair_or_keeps_one_that_went_is_told() {
        let check = |build| check_eviction(EvictionPolicy { name: "mine", counts_hits: false, build }, 1).unwrap_err();
        let told = [
            check(|| Box::new(Mistaken::<true>(PairQueue::default()))),
            check(|| Box::new(Mistaken::<false>(PairQueue::default()))),
        ];
        assert!(told[0].starts_with("mine, step ") && told[0].contains("nobody leaves, and "), "{told:?}");
        assert!(told[1].ends_with(" leaves, and was not there"), "{told:?}");
    }
}
