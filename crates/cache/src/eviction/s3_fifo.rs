//! S3-FIFO: three queues (Yang, Zhang, Qiu, Yue, Vigfusson: "FIFO Queues are All You Need for Cache Eviction", SOSP 2023, section 4
//! and algorithm 1).
//!
//! ```text
//!   new pair ------> small, a tenth of the bytes --- asked for more than once ---> main --- not asked for ---> gone
//!                         |                                                         ^  ^--- asked for: once more, one less
//!                         +--- else: gone, remembered in ghost ---- comes back -----+
//! ```

use super::Eviction;
use crate::pair::PairId;
use crate::queue::Queue;
use kvssd_types::Nanos;
use std::collections::BTreeMap;

/// The share of the bytes that new pairs have (section 4.1).
const SMALL_SHARE: u64 = 10;
/// Hits that are counted (two bits).
const HITS_MAX: u8 = 3;
/// Hits of a new pair that stays.
const HITS_TO_STAY: u8 = 2;

#[derive(Debug)]
pub(super) struct S3Fifo {
    small_bytes_max: u64,
    small: Queue,
    small_bytes: u64,
    main: Queue,
    /// Those that left as new ones, as many as main has.
    ghost: Queue,
    pairs: BTreeMap<PairId, Pair>,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    bytes: u64,
    hits: u8,
    is_new: bool,
}

impl S3Fifo {
    pub(super) fn new(budget_bytes: u64) -> Self {
        S3Fifo {
            small_bytes_max: budget_bytes / SMALL_SHARE,
            small: Queue::default(),
            small_bytes: 0,
            main: Queue::default(),
            ghost: Queue::default(),
            pairs: BTreeMap::new(),
        }
    }

    /// Has the first new pair stay or leave. Gives who left.
    fn pass_new(&mut self) -> Option<PairId> {
        let pair = self.small.pop()?;
        let known = self.pairs.get_mut(&pair).expect("a queue has known pairs");
        self.small_bytes -= known.bytes;
        if known.hits >= HITS_TO_STAY {
            (known.hits, known.is_new) = (0, false);
            self.main.push(pair);
            return None;
        }
        self.pairs.remove(&pair);
        self.ghost.push(pair);
        while self.ghost.len() > self.main.len().max(1) {
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
        self.pairs.remove(&pair);
        Some(pair)
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
        }
    }

    /// It stays where it is, and was asked for.
    fn replace(&mut self, pair: PairId, bytes: u64, _expires: Nanos) {
        self.hit(pair);
        let known = self.pairs.get_mut(&pair).expect("it is there");
        self.small_bytes = if known.is_new { self.small_bytes - known.bytes + bytes } else { self.small_bytes };
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
            Some(_) => drop(self.main.remove(pair)),
            None => {}
        }
    }

    fn evict(&mut self) -> Option<PairId> {
        while self.small.len() + self.main.len() > 0 {
            let of_small = self.main.len() == 0 || (self.small.len() > 0 && self.small_bytes >= self.small_bytes_max);
            let left = if of_small { self.pass_new() } else { self.pass_main() };
            if left.is_some() {
                return left;
            }
        }
        None
    }
}
