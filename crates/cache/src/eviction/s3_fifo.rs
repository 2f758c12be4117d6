//! S3-FIFO: three queues (Yang, Zhang, Qiu, Yue, Vigfusson: "FIFO Queues are All You Need for Cache Eviction", SOSP 2023, section 4
//! and algorithm 1).
//!
//! ```text
//!   new pair ------> small, a tenth of the bytes --- asked for more than once ---> main --- not asked for ---> gone
//!                         |                                                         ^  ^--- asked for: once more, one less
//!                         +--- else: gone, remembered in ghost ---- comes back -----+
//! ```

use super::{Eviction, LINK_BYTES};
use crate::pair::PairId;
use crate::queue::PairQueue;
use kvssd_types::Nanos;
use std::collections::BTreeMap;

/// The share of the bytes that new pairs have (section 4.1); main has the others.
const SMALL_SHARE: u64 = 10;
/// Hits that are counted (two bits).
const HITS_MAX: u8 = 3;
/// Hits of a new pair that stays.
const HITS_TO_STAY: u8 = 2;

#[derive(Debug, Default)]
pub(super) struct S3Fifo {
    small: PairQueue,
    small_bytes: u64,
    main: PairQueue,
    main_bytes: u64,
    /// Those that left as new ones, as many as main has room for.
    ghost: PairQueue,
    pairs: BTreeMap<PairId, Pair>,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    bytes: u64,
    hits: u8,
    is_new: bool,
}

impl S3Fifo {
    /// Has the first new pair stay or leave. Gives who left.
    fn pass_new(&mut self) -> Option<PairId> {
        let pair = self.small.pop()?;
        let known = self.pairs.get_mut(&pair).expect("a queue has known pairs");
        self.small_bytes -= known.bytes;
        if known.hits >= HITS_TO_STAY {
            (known.hits, known.is_new) = (0, false);
            self.main_bytes += known.bytes;
            self.main.push(pair);
            return None;
        }
        self.pairs.remove(&pair);
        self.ghost.push(pair);
        while self.ghost.len() > self.ghosts_max() {
            self.ghost.pop();
        }
        Some(pair)
    }

    /// Has the first of main come again or leave. Gives who left.
    fn pass_main(&mut self) -> Option<PairId> {
        let pair = self.main.pop()?;
        let known = self.pairs.get_mut(&pair).expect("a queue has known pairs");
        if known.hits > 0 {
            known.hits -= 1;
            self.main.push(pair);
            return None;
        }
        self.main_bytes -= known.bytes;
        self.pairs.remove(&pair);
        Some(pair)
    }

    /// As many as would fill main, by the pairs that are there.
    fn ghosts_max(&self) -> usize {
        let pairs = self.pairs.len();
        (pairs - pairs / SMALL_SHARE as usize).max(1)
    }

    /// Whether new pairs have more than their share of what is held: of a cache that is full, as one is that lets pairs go.
    fn is_small_full(&self) -> bool {
        self.small_bytes >= (self.small_bytes + self.main_bytes) / SMALL_SHARE
    }
}

impl Eviction for S3Fifo {
    fn insert(&mut self, pair: PairId, bytes: u64, _expires: Nanos) {
        let is_new = !self.ghost.remove(pair);
        self.pairs.insert(pair, Pair { bytes, hits: 0, is_new });
        if is_new {
            self.small.push(pair);
            self.small_bytes += bytes;
        } else {
            self.main.push(pair);
            self.main_bytes += bytes;
        }
    }

    /// Among the new ones, if it had left as one.
    fn put_back(&mut self, pair: PairId, bytes: u64, _expires: Nanos) {
        let is_new = self.ghost.remove(pair);
        self.pairs.insert(pair, Pair { bytes, hits: 0, is_new });
        let (queue, queue_bytes) =
            if is_new { (&mut self.small, &mut self.small_bytes) } else { (&mut self.main, &mut self.main_bytes) };
        queue.put_back(pair);
        *queue_bytes += bytes;
    }

    /// It stays where it is, and was asked for.
    fn replace(&mut self, pair: PairId, bytes: u64, _expires: Nanos) {
        self.hit(pair);
        let known = self.pairs.get_mut(&pair).expect("it is there");
        let queue_bytes = if known.is_new { &mut self.small_bytes } else { &mut self.main_bytes };
        *queue_bytes = *queue_bytes - known.bytes + bytes;
        known.bytes = bytes;
    }

    fn hit(&mut self, pair: PairId) {
        if let Some(known) = self.pairs.get_mut(&pair) {
            known.hits = (known.hits + 1).min(HITS_MAX);
        }
    }

    fn remove(&mut self, pair: PairId) {
        match self.pairs.remove(&pair) {
            Some(Pair { bytes, is_new: true, .. }) => {
                self.small.remove(pair);
                self.small_bytes -= bytes;
            }
            Some(Pair { bytes, .. }) => {
                self.main.remove(pair);
                self.main_bytes -= bytes;
            }
            None => {}
        }
    }

    fn evict(&mut self) -> Option<PairId> {
        while !self.small.is_empty() || !self.main.is_empty() {
            let of_small = self.main.is_empty() || (!self.small.is_empty() && self.is_small_full());
            let left = if of_small { self.pass_new() } else { self.pass_main() };
            if left.is_some() {
                return left;
            }
        }
        None
    }

    /// Links both ways, since pairs leave in the middle as well, and two bits of hits; of one that left also what it is known by.
    fn kept_bytes(&self) -> u64 {
        (2 * LINK_BYTES + 1) * self.pairs.len() as u64 + (8 + 2 * LINK_BYTES) * self.ghost.len() as u64
    }
}
