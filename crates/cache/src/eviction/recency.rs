//! One queue: first in, first out, and least recently used.

use super::{Eviction, LINK_BYTES};
use crate::pair::PairId;
use crate::queue::PairQueue;
use kvssd_types::Nanos;

#[derive(Debug)]
pub(super) struct Recency {
    queue: PairQueue,
    /// Whether who was asked for goes to the end of the queue again.
    counts_hits: bool,
}

impl Recency {
    pub(super) fn new(counts_hits: bool) -> Self {
        Recency { queue: PairQueue::default(), counts_hits }
    }
}

impl Eviction for Recency {
    fn insert(&mut self, pair: PairId, _bytes: u64, _expires: Nanos) {
        self.queue.push(pair);
    }

    fn put_back(&mut self, pair: PairId, _bytes: u64, _expires: Nanos) {
        self.queue.put_back(pair);
    }

    fn hit(&mut self, pair: PairId) {
        if self.counts_hits {
            self.queue.push(pair);
        }
    }

    fn remove(&mut self, pair: PairId) {
        self.queue.remove(pair);
    }

    fn evict(&mut self) -> Option<PairId> {
        self.queue.pop()
    }

    fn kept_bytes(&self) -> u64 {
        2 * LINK_BYTES * self.queue.len() as u64
    }
}
