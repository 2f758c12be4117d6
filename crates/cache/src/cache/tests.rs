//! Every policy against a plain list that does what its paper says, pair by pair.

use super::*;
use crate::eviction::EvictionPolicy;
use kvssd_types::Random;
use std::collections::VecDeque;

const BUDGET_BYTES: u64 = 40_000;

fn plan(eviction: EvictionPolicy) -> CachePlan {
    CachePlan { budget_bytes: BUDGET_BYTES, eviction, admission: Vec::new() }
}

/// A pair in a plain list.
#[derive(Clone, Copy)]
struct Plain {
    pair: u64,
    bytes: u64,
    expires: u64,
    hits: u8,
}

/// Lists from the first to leave to the last; one for most policies, two and a ghost for S3-FIFO.
struct Reference {
    kind: EvictionPolicy,
    small: VecDeque<Plain>,
    main: VecDeque<Plain>,
    ghost: VecDeque<u64>,
}

impl Reference {
    fn bytes(list: &VecDeque<Plain>) -> u64 {
        list.iter().map(|plain| plain.bytes).sum()
    }

    fn find(&mut self, pair: u64) -> Option<&mut Plain> {
        self.small.iter_mut().chain(&mut self.main).find(|plain| plain.pair == pair)
    }

    fn look(&mut self, pair: u64) -> bool {
        let Some(plain) = self.find(pair) else { return false };
        plain.hits = (plain.hits + 1).min(3);
        if self.kind == EvictionPolicy::LRU {
            let at = self.main.iter().position(|plain| plain.pair == pair).unwrap();
            let plain = self.main.remove(at).unwrap();
            self.main.push_back(plain);
        }
        true
    }

    fn remove(&mut self, pair: u64) {
        self.small.retain(|plain| plain.pair != pair);
        self.main.retain(|plain| plain.pair != pair);
    }

    fn insert(&mut self, pair: u64, bytes: u64, expires: u64) {
        self.remove(pair);
        while Self::bytes(&self.small) + Self::bytes(&self.main) + bytes > BUDGET_BYTES {
            self.evict();
        }
        let plain = Plain { pair, bytes, expires, hits: 0 };
        let is_back = self.ghost.contains(&pair);
        self.ghost.retain(|other| *other != pair);
        match self.kind {
            policy if policy == EvictionPolicy::S3_FIFO && !is_back => self.small.push_back(plain),
            policy if policy == EvictionPolicy::TIME_TO_LIVE => {
                let at = self.main.iter().position(|other| other.expires > expires).unwrap_or(self.main.len());
                self.main.insert(at, plain);
            }
            _ => self.main.push_back(plain),
        }
    }

    fn evict(&mut self) {
        if self.kind != EvictionPolicy::S3_FIFO {
            self.main.pop_front().unwrap();
            return;
        }
        loop {
            let held_bytes = Self::bytes(&self.small) + Self::bytes(&self.main);
            if self.main.is_empty() || (!self.small.is_empty() && Self::bytes(&self.small) >= held_bytes / 10) {
                let plain = self.small.pop_front().unwrap();
                if plain.hits < 2 {
                    self.ghost.push_back(plain.pair);
                    let held = self.small.len() + self.main.len();
                    while self.ghost.len() > (held - held / 10).max(1) {
                        self.ghost.pop_front();
                    }
                    return;
                }
                self.main.push_back(Plain { hits: 0, ..plain });
            } else {
                let plain = self.main.pop_front().unwrap();
                if plain.hits == 0 {
                    return;
                }
                self.main.push_back(Plain { hits: plain.hits - 1, ..plain });
            }
        }
    }
}

/// Keys as caches see them: a few often, most once.
fn skewed(random: &mut Random) -> u64 {
    let bits = 1 + random.below(12);
    random.below(1 << bits)
}

#[test]
fn every_policy_does_what_a_plain_list_does() {
    for kind in EvictionPolicy::ALL {
        let mut cache = Cache::new(&plan(kind));
        let mut reference = Reference { kind, small: VecDeque::new(), main: VecDeque::new(), ghost: VecDeque::new() };
        let mut random = Random::new(17);
        let mut hits = 0;
        for step in 0..30_000u64 {
            let pair = skewed(&mut random);
            if random.below(50) == 0 {
                assert_eq!(cache.remove(PairId(pair)), reference.find(pair).is_some(), "{kind:?}, step {step}");
                reference.remove(pair);
                continue;
            }
            let is_hit = cache.look(PairId(pair), Nanos(step));
            assert_eq!(is_hit, reference.look(pair), "{kind:?}, step {step}");
            hits += u64::from(is_hit);
            if !is_hit {
                let (bytes, expires) = (1 + random.below(1000), 1_000_000 + random.below(1_000_000));
                assert!(cache.admits(PairId(pair), bytes, Nanos(step)));
                cache.insert(PairId(pair), bytes, Nanos(expires));
                reference.insert(pair, bytes, expires);
            }
            assert!(cache.held_bytes() <= BUDGET_BYTES);
            assert_eq!(
                cache.held_bytes(),
                Reference::bytes(&reference.small) + Reference::bytes(&reference.main),
                "{kind:?}, step {step}"
            );
        }
        assert!(hits > 5_000 && cache.counts().evicted > 1_000, "{kind:?}: {hits} hits, {:?}", cache.counts());
    }
}

#[test]
fn who_leaves_is_told_and_gone_and_a_value_that_is_replaced_does_not_leave_first() {
    for kind in EvictionPolicy::ALL {
        let mut cache = Cache::new(&plan(kind));
        let mut random = Random::new(3);
        let mut there: BTreeMap<u64, u64> = BTreeMap::new();
        for _ in 0..20_000 {
            let (pair, bytes) = (random.below(200), 1 + random.below(4000));
            let leaving = cache.insert(PairId(pair), bytes, Nanos(random.below(1000)));
            assert!(leaving.iter().all(|left| left.0 != pair && there.remove(&left.0).is_some()), "{kind:?}");
            there.insert(pair, bytes);
            assert_eq!(cache.held_bytes(), there.values().sum::<u64>(), "{kind:?}");
            assert!(cache.held_bytes() <= BUDGET_BYTES);
        }
    }
}

/// Asks for pairs of 100 bytes, which are stored on a miss, on a drive with room for the budget of [`plan`]. Gives the share of hits.
fn hit_ratio(cache: &mut Cache, pairs: impl Iterator<Item = u64>) -> f64 {
    let (mut hits, mut all) = (0.0, 0.0);
    for pair in pairs {
        let is_hit = cache.look(PairId(pair), Nanos::ZERO);
        if !is_hit {
            cache.insert(PairId(pair), 100, Nanos::MAX);
            while cache.held_bytes() > BUDGET_BYTES {
                cache.shrink();
            }
        }
        (hits, all) = (hits + f64::from(u8::from(is_hit)), all + 1.0);
    }
    hits / all
}

#[test]
fn s3_fifo_keeps_a_part_of_a_loop_that_is_larger_than_it() {
    // What the algorithm of the paper makes of loops through 600, and through 280 between others that nobody asks for again.
    let loop_alone = (0..60_000).map(|step| step % 600);
    let loop_among_others = (0..60_000).map(|step| if step % 2 == 0 { 1_000 + step } else { step / 2 % 280 });
    assert!(hit_ratio(&mut Cache::new(&plan(EvictionPolicy::S3_FIFO)), loop_alone) > 0.4);
    assert!(hit_ratio(&mut Cache::new(&plan(EvictionPolicy::S3_FIFO)), loop_among_others) > 0.4);
}

#[test]
fn s3_fifo_tells_new_ones_from_others_also_where_the_drive_is_much_smaller_than_the_plan() {
    let mut wide = Cache::new(&CachePlan { budget_bytes: 100 * BUDGET_BYTES, ..plan(EvictionPolicy::S3_FIFO) });
    (0..400u64).for_each(|pair| drop(wide.insert(PairId(1 << 40 | pair), 100, Nanos::MAX)));
    wide.shrink();
    let mut random = Random::new(5);
    let requests: Vec<u64> = (0..20_000).map(|_| skewed(&mut random)).collect();
    let [narrow, wide] = [&mut Cache::new(&plan(EvictionPolicy::S3_FIFO)), &mut wide]
        .map(|cache| hit_ratio(cache, requests.iter().copied()));
    assert!((narrow - wide).abs() < 0.02, "{narrow} and {wide}");
}

#[test]
fn what_is_too_old_is_a_miss() {
    let mut cache = Cache::new(&plan(EvictionPolicy::FIFO));
    cache.insert(PairId(1), 100, Nanos(50));
    assert!(cache.look(PairId(1), Nanos(49)) && !cache.look(PairId(1), Nanos(50)));
    assert!(!cache.expire(PairId(1), Nanos(49)) && cache.expire(PairId(1), Nanos(50)));
    assert_eq!((cache.held_bytes(), cache.counts().expired), (0, 1));
}

#[test]
fn a_drive_that_is_full_makes_the_cache_smaller_and_it_grows_again_by_and_by() {
    let mut cache = Cache::new(&plan(EvictionPolicy::LRU));
    (0..40).for_each(|pair| drop(cache.insert(PairId(pair), 1000, Nanos::MAX)));
    assert_eq!(cache.shrink(), [PairId(0)]);
    assert_eq!((cache.budget_bytes(), cache.held_bytes()), (39_000, 39_000));
    assert_eq!(cache.insert(PairId(40), 1000, Nanos::MAX), [PairId(1)]);
    while !cache.shrink().is_empty() {}
    assert_eq!((cache.budget_bytes(), cache.held_bytes()), (0, 0));
    assert!(cache.admits(PairId(1), 1000, Nanos::ZERO) && !cache.admits(PairId(1), 40_001, Nanos::ZERO));
    let grown = (0..100_000).position(|pair| {
        cache.insert(PairId(pair), 1000, Nanos::MAX);
        cache.budget_bytes() == BUDGET_BYTES
    });
    // Once the drive has taken a little more, ever larger parts are tried.
    assert!(grown.is_some_and(|stores| (50..1_000).contains(&stores)), "{grown:?}");
}

#[test]
fn who_leaves_for_a_quota_leaves_the_budget_as_it_is() {
    let mut cache = Cache::new(&plan(EvictionPolicy::LRU));
    (0..40).for_each(|pair| drop(cache.insert(PairId(pair), 1000, Nanos::MAX)));
    while !cache.evict_some().is_empty() {}
    assert_eq!((cache.budget_bytes(), cache.held_bytes()), (BUDGET_BYTES, 0));
}

/// Of each rule, asked about random pairs.
#[test]
fn what_would_be_admitted_is_and_nothing_else() {
    let mut random = Random::new(3);
    for rule in ["asked=2", "asked=3", "at-most=700", "a-day=240000"] {
        let admission = vec![rule.parse().unwrap()];
        let mut cache = Cache::within(&CachePlan { admission, ..plan(EvictionPolicy::FIFO) }, 0);
        let (mut now, mut admitted) = (Nanos::ZERO, 0);
        for _ in 0..10_000 {
            let (pair, bytes) = (PairId(random.below(3000)), random.below(1000));
            now += Nanos(random.below(60_000_000_000));
            let would = cache.would_admit(pair, bytes, now);
            assert_eq!(cache.admits(pair, bytes, now), would, "{rule}");
            admitted += u32::from(would);
        }
        assert!((100..9_900).contains(&admitted), "{rule}: {admitted}");
    }
}

#[test]
fn every_rule_must_agree_and_only_what_is_written_counts_as_written() {
    let admission = vec!["a-day=2400".parse().unwrap(), "at-most=100".parse().unwrap()];
    let mut cache = Cache::new(&CachePlan { admission, ..plan(EvictionPolicy::FIFO) });
    assert!(!cache.admits(PairId(1), 101, Nanos::ZERO));
    assert!(cache.admits(PairId(1), 100, Nanos::ZERO));
    assert!(!cache.admits(PairId(2), 1, Nanos::ZERO), "the hour's bytes are written");
    assert_eq!((cache.counts().admitted, cache.counts().kept_out), (1, 2));
}
