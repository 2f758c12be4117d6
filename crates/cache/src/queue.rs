//! Pairs one behind the other.

use crate::pair::PairId;
use std::collections::BTreeMap;

/// Pairs in the order in which they came, each once.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    order: BTreeMap<u64, PairId>,
    places: BTreeMap<PairId, u64>,
    next: u64,
}

impl Queue {
    /// Puts a pair at the end, wherever it was.
    pub(crate) fn push(&mut self, pair: PairId) {
        if let Some(before) = self.places.insert(pair, self.next) {
            self.order.remove(&before);
        }
        self.order.insert(self.next, pair);
        self.next += 1;
    }

    /// Takes the first.
    pub(crate) fn pop(&mut self) -> Option<PairId> {
        let (_, pair) = self.order.pop_first()?;
        self.places.remove(&pair);
        Some(pair)
    }

    /// Takes a pair out. Gives whether it was there.
    pub(crate) fn remove(&mut self, pair: PairId) -> bool {
        let place = self.places.remove(&pair);
        place.is_some_and(|place| self.order.remove(&place).is_some())
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }
}
