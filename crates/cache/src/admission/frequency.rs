//! By how often a pair was offered, which a sketch remembers (Cormode, Muthukrishnan, 2005; halved as TinyLFU's: Einziger, Friedman,
//! Manes, 2017).

use super::Admission;
use crate::pair::PairId;
use kvssd_types::{Nanos, mix64};
use std::array;

const ROWS: usize = 4;
/// Counters of a row, a byte each: where there is room for them, and the fewest.
const COLUMNS_MAX: u64 = 1 << 20;
const COLUMNS_MIN: u64 = 1 << 10;
/// The part of the memory that all rows may take. An estimate.
const MEMORY_SHARE: u64 = 8;

#[derive(Debug)]
pub(super) struct Frequency {
    times: u8,
    columns: usize,
    counts: Vec<u8>,
    offers: u64,
}

impl Frequency {
    pub(super) fn within(times: u8, kept_bytes_max: u64) -> Self {
        let columns = Frequency::columns(kept_bytes_max);
        Frequency { times, columns, counts: vec![0; ROWS * columns], offers: 0 }
    }

    fn columns(kept_bytes_max: u64) -> usize {
        let columns = kept_bytes_max / MEMORY_SHARE / ROWS as u64;
        columns.clamp(COLUMNS_MIN, COLUMNS_MAX) as usize
    }

    /// Counts an offer. Gives how often the pair was offered of late, or more. All counts are halved behind as many offers as a row has
    /// counters: an estimate.
    fn count(&mut self, pair: PairId) -> u8 {
        self.offers += 1;
        if self.offers.is_multiple_of(self.columns as u64) {
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
        let mut least = u8::MAX;
        for place in self.places(pair) {
            self.counts[place] = self.counts[place].saturating_add(1);
            least = least.min(self.counts[place]);
        }
        least
    }

    /// The counters of a pair.
    fn places(&self, pair: PairId) -> [usize; ROWS] {
        array::from_fn(|row| row * self.columns + mix64(pair.0 ^ row as u64) as usize % self.columns)
    }
}

impl Admission for Frequency {
    fn admits(&mut self, pair: PairId, _bytes: u64, _now: Nanos) -> bool {
        self.count(pair) >= self.times
    }

    fn would_admit(&self, pair: PairId, _bytes: u64, _now: Nanos) -> bool {
        let share = if (self.offers + 1).is_multiple_of(self.columns as u64) { 2 } else { 1 };
        self.places(pair).iter().all(|&place| (self.counts[place] / share).saturating_add(1) >= self.times)
    }

    fn missed(&mut self, pair: PairId) {
        self.count(pair);
    }

    /// A smaller sketch remembers nothing yet; there is none that grows.
    fn keep_within(&mut self, kept_bytes_max: u64) {
        if Frequency::columns(kept_bytes_max) < self.columns {
            *self = Frequency::within(self.times, kept_bytes_max);
        }
    }

    fn kept_bytes(&self) -> u64 {
        self.counts.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_offered_often_enough_of_late_comes_in() {
        let mut frequency = Frequency::within(3, u64::MAX);
        let mut offer = |pair| frequency.admits(PairId(pair), 1, Nanos::ZERO);
        assert_eq!([offer(7), offer(7), offer(7), offer(8), offer(7)], [false, false, true, false, true]);
        for other in 0..2 * COLUMNS_MAX {
            offer(1 << 32 | other);
        }
        assert!(!offer(7), "what was long ago is forgotten");
    }
}
