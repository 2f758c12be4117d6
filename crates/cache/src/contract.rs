//! What every policy of eviction must keep, whatever it chooses.

use crate::eviction::{Eviction, EvictionPolicy};
use crate::pair::PairId;
use kvssd_types::{Nanos, Random};
use std::collections::BTreeMap;

const STEPS: u64 = 50_000;
/// After so many steps all leave, and those that come then are others.
const STEPS_OF_PAIRS: u64 = 500;

/// Tells a policy of all that can happen to the pairs of a cache, in an order that follows from `seed`: who leaves was there, nobody is
/// forgotten, who was put back is the first to leave again, and nothing is kept for those who went.
///
/// # Errors
/// What it did, and at which step.
pub fn check_eviction(policy: EvictionPolicy, seed: u64) -> Result<(), String> {
    let mut crowd = Crowd { eviction: (policy.build)(), there: BTreeMap::new() };
    let (mut random, mut kept_bytes_max) = (Random::new(seed), 0);
    for step in 0..STEPS {
        let pair = PairId(step / STEPS_OF_PAIRS * STEPS_OF_PAIRS + random.below(200));
        crowd.step(pair, &mut random).map_err(at(policy, step))?;
        if step < STEPS / 10 {
            kept_bytes_max = crowd.eviction.kept_bytes().max(kept_bytes_max);
        }
        // Now and then all leave.
        while step % STEPS_OF_PAIRS == STEPS_OF_PAIRS - 1 && !crowd.there.is_empty() {
            crowd.leave().map_err(at(policy, step))?;
        }
    }
    let kept_bytes = crowd.eviction.kept_bytes();
    if kept_bytes > kept_bytes_max {
        let why = format!("it keeps {kept_bytes} bytes when all left, and kept {kept_bytes_max} when they were there");
        return Err(at(policy, STEPS)(why));
    }
    Ok(())
}

/// A policy, and who must be known to it: bytes, and when each expires.
struct Crowd {
    eviction: Box<dyn Eviction>,
    there: BTreeMap<PairId, (u64, Nanos)>,
}

impl Crowd {
    /// Something happens to a pair, or some leave.
    fn step(&mut self, pair: PairId, random: &mut Random) -> Result<(), String> {
        let (bytes, expires) = (1 + random.below(5000), Nanos(random.below(1000)));
        match random.below(8) {
            0..3 if self.there.insert(pair, (bytes, expires)).is_some() => self.eviction.replace(pair, bytes, expires),
            0..3 => self.eviction.insert(pair, bytes, expires),
            3 if self.there.remove(&pair).is_some() => self.eviction.remove(pair),
            4..6 if self.there.contains_key(&pair) => self.eviction.hit(pair),
            // Some leave, and some of them could not: the last ones first.
            6 => {
                let leaving = (0..1 + random.below(4)).map(|_| self.leave()).collect::<Result<Vec<_>, _>>()?;
                let stay = random.below(1 + leaving.len() as u64) as usize;
                leaving.into_iter().flatten().rev().take(stay).for_each(|left| self.put_back(left));
            }
            7 => {
                if let Some(left) = self.leave()? {
                    self.put_back(left);
                    let again = self.leave()?;
                    if again.is_some_and(|again| again != left) {
                        return Err(format!("{:?} was put back, and another one leaves before it", left.0));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn leave(&mut self) -> Result<Option<Left>, String> {
        match self.eviction.evict() {
            Some(pair) => match self.there.remove(&pair) {
                Some(of) => Ok(Some((pair, of))),
                None => Err(format!("{pair:?} leaves, and was not there")),
            },
            None if self.there.is_empty() => Ok(None),
            None => Err(format!("nobody leaves, and {} are there", self.there.len())),
        }
    }

    fn put_back(&mut self, (pair, (bytes, expires)): Left) {
        self.eviction.put_back(pair, bytes, expires);
        self.there.insert(pair, (bytes, expires));
    }
}

/// Who left, with its bytes and when it expires.
type Left = (PairId, (u64, Nanos));

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

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Mistake {
        ForgetsLarge,
        KeepsWhoWent,
        PutsBackBehind,
        PutsBackInOnePlace,
        RemembersAll,
    }

    /// First in, first out, with a mistake.
    #[derive(Debug)]
    struct Mistaken {
        queue: PairQueue,
        last_back: Option<PairId>,
        came: u64,
        mistake: Mistake,
    }

    impl Eviction for Mistaken {
        fn insert(&mut self, pair: PairId, bytes: u64, _expires: Nanos) {
            self.came += 1;
            if self.mistake != Mistake::ForgetsLarge || bytes < 4900 {
                self.queue.push(pair);
            }
        }

        fn hit(&mut self, _pair: PairId) {}

        fn put_back(&mut self, pair: PairId, _bytes: u64, _expires: Nanos) {
            match self.mistake {
                Mistake::PutsBackBehind => return self.queue.push(pair),
                Mistake::PutsBackInOnePlace => drop(self.last_back.replace(pair).map(|last| self.queue.remove(last))),
                _ => {}
            }
            self.queue.put_back(pair);
        }

        fn remove(&mut self, pair: PairId) {
            if self.mistake != Mistake::KeepsWhoWent {
                self.queue.remove(pair);
            }
        }

        fn evict(&mut self) -> Option<PairId> {
            self.queue.pop()
        }

        fn kept_bytes(&self) -> u64 {
            if self.mistake == Mistake::RemembersAll { self.came } else { 0 }
        }
    }

    #[test]
    fn a_mistake_is_told_in_one_line() {
        macro_rules! told {
            ($mistake:ident) => {{
                let build = || -> Box<dyn Eviction> {
                    let mistake = Mistake::$mistake;
                    Box::new(Mistaken { queue: PairQueue::default(), last_back: None, came: 0, mistake })
                };
                check_eviction(EvictionPolicy { name: "mine", counts_hits: false, build }, 1).unwrap_err()
            }};
        }
        let told = [
            (told!(ForgetsLarge), "nobody leaves, and "),
            (told!(KeepsWhoWent), " leaves, and was not there"),
            (told!(PutsBackBehind), " was put back, and another one leaves before it"),
            (told!(PutsBackInOnePlace), "nobody leaves, and "),
            (told!(RemembersAll), " bytes when all left, and kept "),
        ];
        assert!(told.iter().all(|(told, what)| told.starts_with("mine, step ") && told.contains(what)), "{told:#?}");
    }
}
