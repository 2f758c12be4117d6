//! How large a cache of the least recently used must be.
//!
//! The stack distance of an access is the number of different records since the last access to the same one, itself included: a cache
//! of at least so many records has it (Mattson et al., "Evaluation Techniques for Storage Hierarchies", IBM Systems Journal, 1970). One
//! pass gives the hit ratio of every size; a tree of sums over the accesses takes log n each.

use std::collections::BTreeMap;

/// How many accesses have which stack distance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackDistances {
    counts: BTreeMap<u64, u64>,
    accesses: u64,
}

impl StackDistances {
    /// Those of the accesses that count: not those by which the cache fills beforehand, nor writes, which bring a record into it too. Of
    /// what is accessed for the first time no cache has anything.
    #[must_use]
    pub fn of<R: Ord>(accesses: impl Iterator<Item = (R, bool)>) -> Self {
        // 1 where the last access to a record is, summed up as a Fenwick tree.
        let mut tree = Sums::default();
        let mut last: BTreeMap<R, usize> = BTreeMap::new();
        let mut found = StackDistances::default();
        for (at, (record, counts)) in accesses.enumerate() {
            tree.push_one();
            found.accesses += u64::from(counts);
            if let Some(before) = last.insert(record, at) {
                let distance = tree.sum_before(at) - tree.sum_before(before);
                tree.take_one(before);
                *found.counts.entry(distance).or_default() += u64::from(counts);
            }
        }
        found
    }

    /// The least number of records for that share of the accesses; as many as there are when no cache reaches it.
    #[must_use]
    pub fn records_for(&self, hit_ratio: f64) -> u64 {
        let wanted = hit_ratio * self.accesses as f64;
        let mut hits = 0;
        let mut records = 0;
        for (distance, count) in &self.counts {
            if hits as f64 >= wanted {
                break;
            }
            hits += count;
            records = *distance;
        }
        records
    }
}

/// Sums over numbers of a list that grows (a Fenwick tree). Positions are counted from 0 on.
#[derive(Default)]
struct Sums(Vec<u64>);

impl Sums {
    fn push_one(&mut self) {
        let at = self.0.len() + 1;
        let lowest = at & at.wrapping_neg();
        // The sum over the `lowest` numbers that end here.
        let before = self.sum_before(at - 1) - self.sum_before(at - lowest);
        self.0.push(before + 1);
    }

    fn take_one(&mut self, position: usize) {
        let mut at = position + 1;
        while at <= self.0.len() {
            self.0[at - 1] -= 1;
            at += at & at.wrapping_neg();
        }
    }

    /// The sum over the first `end` numbers.
    fn sum_before(&self, mut end: usize) -> u64 {
        let mut sum = 0;
        while end > 0 {
            sum += self.0[end - 1];
            end &= end - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// The hits of a cache of `size` records in the second half.
    fn hits(accesses: &[u8], size: usize) -> u64 {
        let (mut cache, mut hits) = (VecDeque::new(), 0);
        for (at, record) in accesses.iter().enumerate() {
            let known = cache.iter().position(|cached| cached == record);
            if let Some(known) = known {
                cache.remove(known);
            }
            cache.push_front(*record);
            cache.truncate(size);
            hits += u64::from(known.is_some() && at >= accesses.len() / 2);
        }
        hits
    }

    proptest! {
        #[test]
        fn the_size_for_a_ratio_is_the_least_that_reaches_it(accesses in prop::collection::vec(0u8..20, 2..300), ratio in 0.0..1.0) {
            let counted = accesses.iter().enumerate().map(|(at, record)| (record, at >= accesses.len() / 2));
            let records = StackDistances::of(counted).records_for(ratio) as usize;
            let wanted = ratio * (accesses.len() - accesses.len() / 2) as f64;
            let reached = hits(&accesses, records) as f64;
            prop_assert!(reached >= wanted || hits(&accesses, 20) as f64 == reached);
            prop_assert!(records == 0 || (hits(&accesses, records - 1) as f64) < wanted);
        }
    }
}
