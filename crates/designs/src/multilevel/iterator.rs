//! Iterator buckets: which keys there are, by their first four bytes (Study, section II).
//!
//! ```text
//!   first 4 bytes -> bucket --+
//!   key -> signature ---------+-> low bits: bucket, high bits: signature -> table of a rhik, which splits as its bucket grows
//! ```
//!
//! The real drive keeps keys there; here it is their signatures, from which the levels know the pairs. Keys are listed
//! bucket by bucket. Of keys with one signature, which are one pair of keys in 2^64, lists may say too much or too
//! little: in two buckets both are listed in each, and in one bucket none when one was deleted. A list that comes to a
//! table that can never be read ends with an error there.

use crate::record_table::Signature;
use crate::rhik::{Rhik, RhikPlan};
use kvssd_ftl::index::{
    Growth, Index, IndexPlan, PairChange, Room, Sectioned, SplitDirectory, SplitIndex, pairs_in_split_order,
};
use kvssd_ftl::{DramUse, Grain, Io, PairPlace, readable};
use kvssd_types::{Key, KvError};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a key that name its bucket.
const PREFIX_BYTES: usize = 4;
/// log2 of the buckets. An estimate: how many the real drive has is not published.
const BUCKET_BITS: u32 = 4;

const PLAN: RhikPlan =
    RhikPlan { signature_bits: 64, directory_bits: BUCKET_BITS, occupancy_percent: 80, incremental: true };

/// DRAM of news: a signature, a bucket, and what they hang on.
const NEWS_BYTES: u64 = 16;
/// News that a step tells. As many as the levels merge.
const TOLD_PER_STEP: usize = 32;

/// Where a record stands in the order of all.
pub(super) type SortKey = (u64, Grain);

pub(super) type Bucket = u32;

/// That a key came, or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct News {
    pub(super) bucket: Bucket,
    pub(super) signature: Signature,
    pub(super) comes: bool,
}

#[derive(Clone)]
pub(super) struct IteratorBuckets {
    records: Sectioned<Rhik>,
    pending: VecDeque<News>,
}

/// What a checkpoint holds of them.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedIterators {
    records: Vec<u8>,
    pending: VecDeque<News>,
}

/// A signature in a bucket: what the tables are divided by, and the signature's bits that this has no room for, above
/// 0.
fn record(bucket: Bucket, signature: Signature) -> (Signature, Grain) {
    // Flash may say anything of a bucket.
    let bucket = u64::from(bucket) & ((1 << BUCKET_BITS) - 1);
    (signature << BUCKET_BITS | bucket, Grain(1 + (signature >> (Signature::BITS - BUCKET_BITS))))
}

/// The signature that a record stands for.
fn signature_of((divided, rest): (Signature, Grain)) -> Signature {
    divided >> BUCKET_BITS | (rest.0 - 1) << (Signature::BITS - BUCKET_BITS)
}

impl IteratorBuckets {
    pub(super) fn new(page_bytes: u32) -> Self {
        IteratorBuckets {
            records: Sectioned::new(Rhik::new(PLAN, page_bytes), page_bytes).numbered_second(),
            pending: VecDeque::new(),
        }
    }

    /// Charges the directory of so many keys, at most: when they are all in one bucket, each of whose tables has an
    /// entry for every bucket.
    pub(super) fn charge(room: &Room, keys: u64, dram: &mut DramUse) {
        PLAN.charge(&Room { grains: keys << BUCKET_BITS, ..*room }, dram);
    }

    pub(super) fn bucket_of(key: Key<'_>) -> Bucket {
        let prefix = &key.bytes()[..key.bytes().len().min(PREFIX_BYTES)];
        (xxh3_64(prefix) & ((1 << BUCKET_BITS) - 1)) as Bucket
    }

    /// Keys came and went. More is told than came, so that what a mount has left comes to its end.
    pub(super) fn tell(&mut self, io: &mut Io<'_>, news: &[News]) -> Result<(), KvError> {
        self.pending.extend(news);
        self.tell_pending(io, 2 * news.len())
    }

    /// As [`IteratorBuckets::tell`], of what may have been told before the power went. A mount writes nothing, so that
    /// a table cannot be split: it is done as growth, later.
    pub(super) fn tell_again(&mut self, news: News) {
        self.pending.push_back(news);
    }

    /// Tells the first of what is pending. What is in a table that cannot be read is not listed any more.
    fn tell_pending(&mut self, io: &mut Io<'_>, count: usize) -> Result<(), KvError> {
        let mut left = self.pending.len().min(count);
        while left > 0 {
            let tags = self.pending.iter().take(left).map(|news| record(news.bucket, news.signature).0);
            let tags: Vec<Signature> = tags.collect();
            let (rhik, mut tables) = self.records.parts(io);
            let loaded = rhik.load_some(&mut tables, &tags)?;
            for news in self.pending.drain(..loaded).collect::<Vec<_>>() {
                let (divided, rest) = record(news.bucket, news.signature);
                let is_there = readable(self.records.is_bound(io, divided, rest))?;
                let change = match (news.comes, is_there) {
                    (true, Some(false)) => {
                        let pair = PairPlace { place: rest, key_bytes: 0, value_bytes: 0 };
                        PairChange::Insert { tag: divided, note: 0, key: None, pair }
                    }
                    (false, Some(true)) => PairChange::Remove { tag: divided, note: 0, from: rest },
                    _ => continue,
                };
                let (rhik, mut tables) = self.records.parts(io);
                readable(rhik.reserve_and_change(&mut tables, &change))?;
            }
            left -= loaded;
        }
        Ok(())
    }

    /// After a mount: there are so many keys, with those that the tables have not been told of.
    pub(super) fn recount(&mut self, keys: u64) {
        let pending = self.newcomers().count() as u64;
        self.records.index_mut().directory_mut().recount(keys.saturating_sub(pending));
    }

    /// DRAM of what the tables have not been told.
    pub(super) fn pending_bytes(&self) -> u64 {
        self.pending.len() as u64 * NEWS_BYTES
    }

    /// The keys that the tables have not been told of.
    pub(super) fn newcomers(&self) -> impl Iterator<Item = (Bucket, Signature)> {
        self.pending.iter().filter(|news| news.comes).map(|news| (news.bucket, news.signature))
    }

    /// What says where a signature stands in the order of all.
    pub(super) fn order(bucket: Bucket, signature: Signature) -> SortKey {
        let (divided, rest) = record(bucket, signature);
        SplitDirectory::order(divided, rest)
    }

    /// Up to `count` signatures and where they stand, from `first` on.
    pub(super) fn list(
        &mut self,
        io: &mut Io<'_>,
        first: SortKey,
        count: usize,
    ) -> Result<Vec<(SortKey, Signature)>, KvError> {
        let (rhik, mut tables) = self.records.parts(io);
        let listed = pairs_in_split_order(rhik, &mut tables, first, count)?;
        Ok(listed.into_iter().map(|order| (order, signature_of((order.0.reverse_bits(), order.1)))).collect())
    }

    /// The index that they are.
    pub(super) fn records(&self) -> &Sectioned<Rhik> {
        &self.records
    }

    /// The same, to be changed.
    pub(super) fn records_mut(&mut self) -> &mut Sectioned<Rhik> {
        &mut self.records
    }

    /// A command begins: as [`Sectioned::begin_command`].
    pub(super) fn begin_command(&mut self) {
        self.records.begin_command();
    }

    pub(super) fn growth(&self) -> Growth {
        if self.pending.is_empty() { self.records.growth() } else { Growth::Background }
    }

    pub(super) fn grow(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        if self.pending.is_empty() { self.records.grow(io) } else { self.tell_pending(io, TOLD_PER_STEP) }
    }

    pub(super) fn set_dram_budget(&mut self, bytes: u64) {
        self.records.set_dram_budget(bytes);
    }

    pub(super) fn save(&self) -> SavedIterators {
        SavedIterators { records: self.records.save(), pending: self.pending.clone() }
    }

    pub(super) fn restore(&mut self, saved: SavedIterators) -> Option<()> {
        let is_ours = saved.pending.iter().all(|news| news.bucket < 1 << BUCKET_BITS);
        self.pending = Some(saved.pending).filter(|_| is_ours)?;
        self.records.restore(&saved.records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_ftl::Testbed;
    use kvssd_types::{Nanos, Random};

    #[test]
    fn a_record_is_the_signature_and_lies_with_those_of_its_bucket() {
        let mut random = Random::new(3);
        let mut orders: Vec<((u64, Grain), Bucket)> = (0..1000)
            .map(|_| {
                let (bucket, signature) = (random.below(16) as Bucket, random.below(u64::MAX));
                assert_eq!(signature_of(record(bucket, signature)), signature);
                (IteratorBuckets::order(bucket, signature), bucket)
            })
            .collect();
        orders.sort_unstable();
        let changes = orders.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
        assert_eq!(changes, 15, "each bucket is met once");
    }

    /// Tables are split in time by how many records there are.
    #[test]
    fn what_the_tables_are_told_is_counted() {
        let profile = crate::MULTILEVEL.tiny_profile(&[]).unwrap();
        let mut bed = Testbed::new(&crate::MULTILEVEL, &profile);
        let mut buckets = IteratorBuckets::new(profile.geometry.page_bytes);
        buckets.set_dram_budget(profile.memory.dram_bytes);
        let mut io = bed.io(Nanos::ZERO, false);
        let news = |signature, comes| News { bucket: 3, signature, comes };
        let comes: Vec<News> = (1..=500).map(|signature| news(signature, true)).collect();
        buckets.tell(&mut io, &comes).unwrap();
        buckets.tell(&mut io, &[news(7, false), news(9, false)]).unwrap();
        assert_eq!((buckets.pending.len(), buckets.records.index().directory().pairs()), (0, 498));
    }

    /// On a testbed as on a drive: for commands there is room for it.
    #[test]
    fn tables_that_are_nearly_full_are_to_be_split() {
        let profile = crate::MULTILEVEL.tiny_profile(&[]).unwrap();
        for (in_background, growth) in [(true, Growth::None), (false, Growth::Background)] {
            let mut bed = Testbed::new(&crate::MULTILEVEL, &profile);
            let mut buckets = IteratorBuckets::new(profile.geometry.page_bytes);
            buckets.set_dram_budget(1 << 20);
            let mut random = Random::new(3);
            let comes = |_| News { bucket: random.below(16) as Bucket, signature: random.bits(), comes: true };
            let comes: Vec<News> = (0..4300).map(comes).collect();
            buckets.tell(&mut bed.io(Nanos::ZERO, in_background), &comes).unwrap();
            assert_eq!((buckets.pending.len(), buckets.growth()), (0, growth));
        }
    }

    #[test]
    fn the_first_four_bytes_name_the_bucket() {
        let bucket = |key: &[u8]| IteratorBuckets::bucket_of(Key::new(key).unwrap());
        assert_eq!(bucket(b"user1"), bucket(b"user2345"));
        assert!(
            (0..100u8).map(|first| bucket(&[first, 0, 0, 0, 9])).collect::<std::collections::BTreeSet<_>>().len() > 8
        );
        let _ = bucket(b"a");
    }
}
