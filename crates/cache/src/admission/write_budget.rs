//! By a budget of writes a day: a bucket that fills as time goes by. One that is full lets in whatever is larger than it, and is in debt then.

use super::Admission;
use crate::pair::PairId;
use kvssd_types::Nanos;

const DAY_NS: u128 = 24 * 3600 * 1_000_000_000;
/// The part of a day's bytes that the bucket holds: what was not written in the last hour is not written later. An estimate.
const BUCKET_SHARE: u64 = 24;

#[derive(Clone, Debug)]
pub(super) struct WriteBudget {
    a_day_bytes: u64,
    left_bytes: i128,
    /// When the bucket was filled last; what was too little for a byte then comes with the next.
    filled: Option<Nanos>,
}

impl WriteBudget {
    pub(super) fn new(a_day_bytes: u64) -> Self {
        WriteBudget { a_day_bytes, left_bytes: WriteBudget::most(a_day_bytes), filled: None }
    }

    fn most(a_day_bytes: u64) -> i128 {
        i128::from(a_day_bytes / BUCKET_SHARE).max(1)
    }

    fn fill(&mut self, now: Nanos) {
        let filled = *self.filled.get_or_insert(now);
        let since_ns = u128::from(now.0.saturating_sub(filled.0));
        let more = since_ns * u128::from(self.a_day_bytes) / DAY_NS;
        let most = WriteBudget::most(self.a_day_bytes);
        if more > 0 {
            let took_ns = (more * DAY_NS / u128::from(self.a_day_bytes)) as u64;
            self.filled = Some(Nanos(filled.0 + took_ns));
            self.left_bytes = most.min(self.left_bytes.saturating_add_unsigned(more));
        }
    }
}

impl Admission for WriteBudget {
    fn admits(&mut self, _pair: PairId, bytes: u64, now: Nanos) -> bool {
        self.fill(now);
        i128::from(bytes) <= self.left_bytes || self.left_bytes == WriteBudget::most(self.a_day_bytes)
    }

    fn would_admit(&self, pair: PairId, bytes: u64, now: Nanos) -> bool {
        self.clone().admits(pair, bytes, now)
    }

    fn wrote(&mut self, bytes: u64) {
        self.left_bytes -= i128::from(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_written_a_day_than_was_said() {
        let mut budget = WriteBudget::new(24_000);
        let minute = Nanos(60_000_000_000);
        let mut written = 0;
        for number in 0..10 * 24 * 60 {
            if budget.admits(PairId(0), 100, Nanos(minute.0 * number)) {
                budget.wrote(100);
                written += 100;
            }
        }
        assert!((239_000..=241_000).contains(&written), "{written} in ten days");
        // Larger than an hour's: it is let in when there is most, and so many hours pass before the next.
        let later = |hours: u64| Nanos((20 * 24 + hours) * 60 * minute.0);
        assert!(budget.admits(PairId(0), 5000, later(0)));
        budget.wrote(5000);
        assert!(!budget.admits(PairId(0), 100, later(4)) && budget.admits(PairId(0), 100, later(5)));
    }
}
