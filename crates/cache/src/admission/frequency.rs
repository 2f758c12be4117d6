//! By how often a pair was offered, which a sketch remembers (Cormode, Muthukrishnan, 2005; halved as TinyLFU's: Einziger, Friedman,
//! Manes, 2017).

use super::Admission;
use crate::pair::PairId;
use kvssd_types::{Nanos, mix64};

const ROWS: usize = 4;
/// Counters of a row: a mebibyte each.
const COLUMNS: usize = 1 << 20;
/// Offers behind which all counts are halved. An estimate: as many as a row has counters.
const WINDOW: u64 = COLUMNS as u64;

#[derive(Debug)]
pub(super) struct Frequency {
    times: u8,
    counts: Vec<u8>,
    offers: u64,
}

impl Frequency {
    pub(super) fn new(times: u8) -> Self {
        Frequency { times, counts: vec![0; ROWS * COLUMNS], offers: 0 }
    }

    /// Counts an offer. Gives how often the pair was offered of late, or more.
    fn count(&mut self, pair: PairId) -> u8 {
        self.offers += 1;
        if self.offers.is_multiple_of(WINDOW) {
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
        let places = (0..ROWS).map(|row| row * COLUMNS + mix64(pair.0 ^ row as u64) as usize % COLUMNS);
        let mut least = u8::MAX;
        for place in places {
            self.counts[place] = self.counts[place].saturating_add(1);
            least = least.min(self.counts[place]);
        }
        least
    }
}

impl Admission for Frequency {
    fn admits(&mut self, pair: PairId, _bytes: u64, _now: Nanos) -> bool {
        self.count(pair) >= self.times
    }

    fn missed(&mut self, pair: PairId) {
        self.count(pair);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_offered_often_enough_of_late_comes_in() {
        let mut frequency = Frequency::new(3);
        let mut offer = |pair| frequency.admits(PairId(pair), 1, Nanos::ZERO);
        assert_eq!([offer(7), offer(7), offer(7), offer(8), offer(7)], [false, false, true, false, true]);
        for other in 0..2 * WINDOW {
            offer(1 << 32 | other);
        }
        assert!(!offer(7), "what was long ago is forgotten");
    }
}
