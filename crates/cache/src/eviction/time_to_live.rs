//! Who would expire first.

use super::{Eviction, LINK_BYTES};
use crate::pair::PairId;
use kvssd_types::Nanos;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct TimeToLive {
    /// When each ends, and its number: of two that end together the first goes first.
    order: BTreeSet<(Nanos, i64, PairId)>,
    ends: BTreeMap<PairId, (Nanos, i64)>,
    next: i64,
    first: i64,
}

impl TimeToLive {
    fn put(&mut self, pair: PairId, expires: Nanos, number: i64) {
        self.remove(pair);
        self.order.insert((expires, number, pair));
        self.ends.insert(pair, (expires, number));
    }
}

impl Eviction for TimeToLive {
    fn insert(&mut self, pair: PairId, _bytes: u64, expires: Nanos) {
        self.put(pair, expires, self.next);
        self.next += 1;
    }

    fn put_back(&mut self, pair: PairId, _bytes: u64, expires: Nanos) {
        self.first -= 1;
        self.put(pair, expires, self.first);
    }

    fn hit(&mut self, _pair: PairId) {}

    fn remove(&mut self, pair: PairId) {
        if let Some((expires, number)) = self.ends.remove(&pair) {
            self.order.remove(&(expires, number, pair));
        }
    }

    fn evict(&mut self) -> Option<PairId> {
        let (.., pair) = self.order.pop_first()?;
        self.ends.remove(&pair);
        Some(pair)
    }

    /// A tree: two links and what it is ordered by.
    fn kept_bytes(&self) -> u64 {
        (2 * LINK_BYTES + 8) * self.ends.len() as u64
    }
}
