//! Least recently used.

use super::{Eviction, LINK_BYTES};
use crate::pair::PairId;
use crate::queue::Queue;
use kvssd_types::Nanos;

#[derive(Debug, Default)]
pub(super) struct Lru(Queue);

impl Eviction for Lru {
    fn insert(&mut self, pair: PairId, _bytes: u64, _expires: Nanos) {
        self.0.push(pair);
    }

    fn put_back(&mut self, pair: PairId, _bytes: u64, _expires: Nanos) {
        self.0.put_back(pair);
    }

    fn hit(&mut self, pair: PairId) {
        self.0.push(pair);
    }

    fn remove(&mut self, pair: PairId) {
        self.0.remove(pair);
    }

    fn evict(&mut self) -> Option<PairId> {
        self.0.pop()
    }

    fn kept_bytes(&self) -> u64 {
        2 * LINK_BYTES * self.0.len() as u64
    }
}
