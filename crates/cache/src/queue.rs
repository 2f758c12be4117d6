//! Pairs one behind the other.

use crate::pair::PairId;
use std::collections::BTreeMap;

/// Pairs in the order in which they came, each once.
#[derive(Debug, Default)]
pub struct PairQueue {
    order: BTreeMap<i64, PairId>,
    places: BTreeMap<PairId, i64>,
    /// The places behind the last, and of the first that was put back.
    next: i64,
    first: i64,
}

impl PairQueue {
    /// Puts a pair at the end, wherever it was.
    pub fn push(&mut self, pair: PairId) {
        self.put(pair, self.next);
        self.next += 1;
    }

    /// Puts a pair at the beginning, wherever it was.
    pub fn put_back(&mut self, pair: PairId) {
        self.first -= 1;
        self.put(pair, self.first);
    }

    fn put(&mut self, pair: PairId, place: i64) {
        if let Some(before) = self.places.insert(pair, place) {
            self.order.remove(&before);
        }
        self.order.insert(place, pair);
    }

    /// Takes the first.
    pub fn pop(&mut self) -> Option<PairId> {
        let (_, pair) = self.order.pop_first()?;
        self.places.remove(&pair);
        Some(pair)
    }

    /// Takes a pair out. Gives whether it was there.
    pub fn remove(&mut self, pair: PairId) -> bool {
        let place = self.places.remove(&pair);
        place.is_some_and(|place| self.order.remove(&place).is_some())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}
