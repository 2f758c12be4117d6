//! What a cache holds, and what is to be done so that it holds no more than it may.

use crate::admission::Admission;
use crate::eviction::Eviction;
use crate::pair::PairId;
use crate::plan::CachePlan;
use kvssd_types::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Of so many bytes one leaves a drive that was fuller than it was thought, and is tried again later. An estimate.
const SHRINK_SHARE: u64 = 128;

/// What a drive keeps of a pair, beside its key and what the policy keeps: 64 bits that it is known by, its length, when it is too old, its place in
/// a table that is three quarters full. An estimate.
const PAIR_BYTES: u64 = 8 + 4 + 8 + 6;

/// What it keeps of a pair that will be too old, to find it then: two links and when. An estimate.
const AGEING_BYTES: u64 = 2 * 4 + 8;

/// A cache on a drive, without the drive.
#[derive(Debug)]
pub struct Cache {
    budget_bytes_max: u64,
    budget_bytes: u64,
    /// Bytes that came since the budget was changed.
    came_bytes: u64,
    /// How often more was tried since the drive was full.
    tries: u32,
    held_bytes: u64,
    held: BTreeMap<PairId, Held>,
    /// Those that will be too old, by when.
    ageing: BTreeSet<(Nanos, PairId)>,
    /// What it may keep of all this, and bytes of keys that are kept beside it.
    kept_bytes_max: u64,
    key_bytes: u64,
    eviction: Box<dyn Eviction>,
    admission: Vec<Box<dyn Admission>>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) bytes: u64,
    pub(crate) expires: Nanos,
    pub(crate) key_bytes: u8,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pairs that came in, and those that did not.
    pub admitted: u64,
    /// Pairs that a rule, or their size, kept out.
    pub kept_out: u64,
    /// Pairs that left so that others had room.
    pub evicted: u64,
    /// Pairs that were found behind their time to live.
    pub expired: u64,
}

impl Counts {
    /// The sums of both.
    #[must_use]
    pub fn plus(self, other: Counts) -> Counts {
        Counts {
            admitted: self.admitted + other.admitted,
            kept_out: self.kept_out + other.kept_out,
            evicted: self.evicted + other.evicted,
            expired: self.expired + other.expired,
        }
    }
}

impl Cache {
    /// An empty one, with the memory that it needs.
    #[must_use]
    pub fn new(plan: &CachePlan) -> Self {
        Cache::within(plan, u64::MAX)
    }

    /// An empty one that keeps no more than so many bytes: pairs leave for that, too.
    #[must_use]
    pub fn within(plan: &CachePlan, kept_bytes_max: u64) -> Self {
        Cache {
            budget_bytes_max: plan.budget_bytes,
            budget_bytes: plan.budget_bytes,
            came_bytes: 0,
            tries: 0,
            held_bytes: 0,
            held: BTreeMap::new(),
            ageing: BTreeSet::new(),
            kept_bytes_max,
            key_bytes: 0,
            eviction: (plan.eviction.build)(),
            admission: plan.admission.iter().map(|rule| rule.build(kept_bytes_max)).collect(),
            counts: Counts::default(),
        }
    }

    /// Bytes of memory that a drive would keep for it, keys that are kept beside it with it.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        let pairs = self.held.len() as u64;
        let admission = self.admission.iter().map(|rule| rule.kept_bytes()).sum::<u64>();
        pairs * PAIR_BYTES
            + self.ageing.len() as u64 * AGEING_BYTES
            + self.key_bytes
            + self.eviction.kept_bytes()
            + admission
    }

    /// The most of them, from here on. What a rule remembers that takes too much is forgotten; gives the pairs that must leave.
    pub(crate) fn set_kept_bytes_max(&mut self, bytes: u64) -> Vec<(PairId, Held)> {
        self.kept_bytes_max = bytes;
        self.admission.iter_mut().for_each(|rule| rule.keep_within(bytes));
        let mut leaving = Vec::new();
        while self.kept_bytes() > bytes
            && let Some(victim) = self.evict()
        {
            leaving.push(victim);
        }
        leaving
    }

    /// Whether it holds a pair, and how many bytes of it. That is no hit.
    #[must_use]
    pub fn held(&self, pair: PairId) -> Option<u64> {
        self.held.get(&pair).map(|held| held.bytes)
    }

    /// Whether a pair is there and too old.
    #[must_use]
    pub fn is_old(&self, pair: PairId, now: Nanos) -> bool {
        self.held.get(&pair).is_some_and(|held| held.expires <= now)
    }

    /// The plan's budget, whatever the drive has.
    #[must_use]
    pub fn budget_bytes_max(&self) -> u64 {
        self.budget_bytes_max
    }

    /// Bytes of keys and values that it may hold: the plan's, or about what a drive that was full took.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// Bytes of keys and values that it holds.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether a pair is there, and not too old: a hit. One that is too old stays until it [expires](Self::expire).
    pub fn look(&mut self, pair: PairId, now: Nanos) -> bool {
        let is_hit = self.held.get(&pair).is_some_and(|held| now < held.expires);
        if is_hit {
            self.eviction.hit(pair);
        }
        is_hit
    }

    /// Whether a pair of so many bytes is to be stored. When it is not, what the cache has of it is old, and is to be removed.
    pub fn admits(&mut self, pair: PairId, bytes: u64, now: Nanos) -> bool {
        let mut is_in = bytes <= self.budget_bytes_max;
        for rule in &mut self.admission {
            // All are asked: they remember.
            is_in &= rule.admits(pair, bytes, now);
        }
        if is_in {
            self.admission.iter_mut().for_each(|rule| rule.wrote(bytes));
        }
        *(if is_in { &mut self.counts.admitted } else { &mut self.counts.kept_out }) += 1;
        is_in
    }

    /// What [`Cache::admits`] would say now, which no rule remembers.
    #[must_use]
    pub fn would_admit(&self, pair: PairId, bytes: u64, now: Nanos) -> bool {
        bytes <= self.budget_bytes_max && self.admission.iter().all(|rule| rule.would_admit(pair, bytes, now))
    }

    /// A pair was missed once more while it is about to be stored: it will be offered once for all of these.
    pub fn missed(&mut self, pair: PairId) {
        self.admission.iter_mut().for_each(|rule| rule.missed(pair));
    }

    /// Takes a pair in, until it expires. Gives those that must leave before it is stored.
    pub fn insert(&mut self, pair: PairId, bytes: u64, expires: Nanos) -> Vec<PairId> {
        self.insert_with(pair, bytes, expires, 0).into_iter().map(|(pair, _)| pair).collect()
    }

    /// As [`Cache::insert`], of a pair whose key is kept beside it.
    pub(crate) fn insert_with(
        &mut self,
        pair: PairId,
        bytes: u64,
        expires: Nanos,
        key_bytes: u8,
    ) -> Vec<(PairId, Held)> {
        let mut leaving = Vec::new();
        let before = |cache: &Cache| cache.held.get(&pair).map_or(0, |held| held.bytes);
        let more_kept = PAIR_BYTES + u64::from(key_bytes);
        while (self.held_bytes - before(self) + bytes > self.budget_bytes
            || self.kept_bytes() + more_kept > self.kept_bytes_max)
            && let Some(victim) = self.evict()
        {
            // What is to be replaced need not leave first.
            leaving.extend(Some(victim).filter(|(victim, _)| *victim != pair));
        }
        self.held_bytes = self.held_bytes - before(self) + bytes;
        self.key_bytes += u64::from(key_bytes);
        match self.held.insert(pair, Held { bytes, expires, key_bytes }) {
            Some(before) => {
                self.key_bytes -= u64::from(before.key_bytes);
                self.ageing.remove(&(before.expires, pair));
                self.eviction.replace(pair, bytes, expires);
            }
            None => self.eviction.insert(pair, bytes, expires),
        }
        if expires < Nanos::MAX {
            self.ageing.insert((expires, pair));
        }
        self.try_again(bytes);
        leaving
    }

    /// Pairs that left are there all the same, since what they left for did not come: they are the first to leave again, in that order.
    pub(crate) fn put_back(&mut self, left: impl DoubleEndedIterator<Item = (PairId, Held)>) {
        for (pair, held) in left.rev() {
            self.counts.evicted -= 1;
            self.eviction.put_back(pair, held.bytes, held.expires);
            if held.expires < Nanos::MAX {
                self.ageing.insert((held.expires, pair));
            }
            self.hold(pair, held);
        }
    }

    /// A pair that left is there all the same, since it could not be removed: that is tried again when its turn to leave comes once more, and not
    /// for its age.
    pub(crate) fn keep(&mut self, pair: PairId, held: Held) {
        self.eviction.insert(pair, held.bytes, held.expires);
        self.hold(pair, held);
    }

    fn hold(&mut self, pair: PairId, held: Held) {
        let before = self.held.insert(pair, held);
        assert!(before.is_none(), "who left is not in");
        self.held_bytes += held.bytes;
        self.key_bytes += u64::from(held.key_bytes);
        self.budget_bytes = self.budget_bytes.max(self.held_bytes.min(self.budget_bytes_max));
    }

    /// A pair went. Gives whether it was there.
    pub fn remove(&mut self, pair: PairId) -> bool {
        self.take(pair).is_some()
    }

    pub(crate) fn take(&mut self, pair: PairId) -> Option<Held> {
        let held = self.held.remove(&pair)?;
        self.held_bytes -= held.bytes;
        self.key_bytes -= u64::from(held.key_bytes);
        self.ageing.remove(&(held.expires, pair));
        self.eviction.remove(pair);
        Some(held)
    }

    /// Lets a pair go that is too old. Gives whether it is there and was.
    pub fn expire(&mut self, pair: PairId, now: Nanos) -> bool {
        self.take_old(pair, now).is_some()
    }

    /// As [`Cache::expire`], with what was held.
    pub(crate) fn take_old(&mut self, pair: PairId, now: Nanos) -> Option<Held> {
        if !self.is_old(pair, now) {
            return None;
        }
        self.counts.expired += 1;
        self.take(pair)
    }

    /// Lets the pair go that is too old the longest, if one is.
    pub fn expire_one(&mut self, now: Nanos) -> Option<PairId> {
        self.take_oldest(now).map(|(pair, _)| pair)
    }

    /// As [`Cache::expire_one`], with what was held.
    pub(crate) fn take_oldest(&mut self, now: Nanos) -> Option<(PairId, Held)> {
        let (_, pair) = self.ageing.first().copied().filter(|(expires, _)| *expires <= now)?;
        self.take_old(pair, now).map(|held| (pair, held))
    }

    /// The drive is full: no more than what is there without these fits on it now. They leave; none when nobody is left.
    pub fn shrink(&mut self) -> Vec<PairId> {
        self.take_some().into_iter().map(|(pair, _)| pair).collect()
    }

    /// As [`Cache::shrink`], with what was held.
    pub(crate) fn take_some(&mut self) -> Vec<(PairId, Held)> {
        let leaving = self.evict_some();
        (self.budget_bytes, self.came_bytes, self.tries) = (self.held_bytes, 0, 0);
        leaving
    }

    /// Some leave for somebody who may have no more, whatever the drive takes; none when nobody is left.
    pub(crate) fn evict_some(&mut self) -> Vec<(PairId, Held)> {
        let wanted = self.held_bytes - self.held_bytes.div_ceil(SHRINK_SHARE).min(self.held_bytes);
        let mut leaving = Vec::new();
        while self.held_bytes > wanted
            && let Some(victim) = self.evict()
        {
            leaving.push(victim);
        }
        leaving
    }

    /// When as many bytes came as a cache that had to shrink holds, a few more are tried, and each time that goes well twice as many: what filled
    /// the drive may have gone.
    fn try_again(&mut self, came_bytes: u64) {
        self.budget_bytes = self.budget_bytes.max(self.held_bytes);
        self.came_bytes += came_bytes;
        if self.came_bytes >= self.budget_bytes {
            self.came_bytes = 0;
            let more = self.budget_bytes.div_ceil((SHRINK_SHARE >> self.tries).max(1));
            self.budget_bytes = self.budget_bytes_max.min(self.budget_bytes + more);
            self.tries = (self.tries + 1).min(SHRINK_SHARE.ilog2());
        }
    }

    fn evict(&mut self) -> Option<(PairId, Held)> {
        let Some(victim) = self.eviction.evict() else {
            assert!(self.held.is_empty(), "the policy of eviction knows of no pair, and there are some");
            return None;
        };
        let held = self.held.remove(&victim).expect("the policy chooses pairs that are there");
        self.held_bytes -= held.bytes;
        self.key_bytes -= u64::from(held.key_bytes);
        self.ageing.remove(&(held.expires, victim));
        self.counts.evicted += 1;
        Some((victim, held))
    }
}

#[cfg(test)]
mod tests;
