//! Who would expire first.

use super::{Eviction, LINK_BYTES};
use crate::pair::PairId;
use kvssd_types::Nanos;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct TimeToLive {
    /// When each ends, and its number: of two that end together the first goes first.
    order: BTreeSet<(Nanos, u64, PairId)>,
    ends: BTreeMap<PairId, (Nanos, u64)>,
    next: u64,
}

impl Eviction for TimeToLive {
    fn insert(&mut self, pair: PairId, _bytes: u64, expires: Nanos) {
        self.remove(pair);
        self.order.insert((expires, self.next, pair));
        self.ends.insert(pair, (expires, self.next));
        self.next += 1;
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
