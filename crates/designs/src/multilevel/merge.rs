//! How what gathered in the local index comes into the levels and the buckets of the iterators.

use super::iterator::News;
use super::local::LocalChange;
use super::{Buckets, Multilevel};
use crate::record_table::Signature;
use kvssd_ftl::index::SectionIndex;
use kvssd_ftl::{Grain, Io, readable};
use kvssd_types::KvError;

impl Multilevel {
    /// Puts a record into a bucket, if it has room. Returns whether it has.
    fn insert(
        &self,
        buckets: &mut Buckets<'_, '_>,
        bucket: u64,
        tag: Signature,
        place: Grain,
    ) -> Result<bool, KvError> {
        buckets.edit(bucket, |form, bucket| {
            form.has_room_near(bucket, tag).then(|| form.insert(bucket.to_mut(), tag, place)).map(|_| 0)
        })
    }

    /// Has the record of a change say in a bucket what the change says. Returns whether it was there.
    fn change_in(
        &self,
        buckets: &mut Buckets<'_, '_>,
        bucket: u64,
        tag: Signature,
        change: &LocalChange,
    ) -> Result<bool, KvError> {
        buckets.look_up_directory();
        if buckets.is_nowhere(bucket) {
            return Ok(false);
        }
        let ticket = buckets.load(bucket)?;
        buckets.compare(self.form.comparisons(buckets.bytes(ticket), tag).into());
        buckets.edit(bucket, |form, bucket| {
            let is_it = |place| change.was.contains(&place) || change.place == Some(place);
            let slot = form.find(bucket, tag).find(|&slot| is_it(form.place_at(bucket, slot)))?;
            match change.place {
                Some(place) => form.set_place(bucket.to_mut(), slot, place),
                None => form.remove(bucket.to_mut(), slot),
            }
            Some(0)
        })
    }

    fn open_level(&mut self, buckets: &mut Buckets<'_, '_>) {
        self.levels += 1;
        buckets.resize(self.sections(), self.cache_bytes_max(self.budget_bytes));
    }

    /// Has the levels say what `count` changes of the local index say. Those that are new to them go to the first level
    /// with room; `all_may_be_there` when nobody knows which are new.
    pub(super) fn merge(
        &mut self,
        buckets: &mut Buckets<'_, '_>,
        count: usize,
        all_may_be_there: bool,
    ) -> Result<(), KvError> {
        let signatures = self.local.first(count);
        self.compare_all(buckets, &signatures)?;
        let mut pending = self.local.take(&signatures);
        for place in pending.iter().filter_map(|(_, change)| change.place) {
            self.local.forget_key(place);
        }
        self.tell_iterators(buckets.io, &pending, all_may_be_there)?;
        for level in 0..self.levels {
            let numbers: Vec<u64> = pending.iter().map(|(tag, _)| self.section_at(*tag, level)).collect();
            buckets.load_all(&numbers)?;
            let mut left = Vec::with_capacity(pending.len());
            for ((tag, change), bucket) in pending.into_iter().zip(numbers) {
                let is_new = change.was.is_empty() && !all_may_be_there;
                let done = match change.place.filter(|_| is_new) {
                    Some(place) => self.insert(buckets, bucket, tag, place),
                    None => self.change_in(buckets, bucket, tag, &change),
                };
                // What is in a bucket that cannot be read is as good as gone.
                if readable(done)? != Some(true) {
                    left.push((tag, change));
                }
            }
            pending = left;
        }
        for (tag, place) in pending.into_iter().filter_map(|(tag, change)| Some((tag, change.place?))) {
            let mut level = 0;
            while readable(self.insert(buckets, self.section_at(tag, level), tag, place))? != Some(true) {
                level += 1;
                if level == self.levels {
                    self.open_level(buckets);
                }
            }
        }
        Ok(())
    }

    /// Tells the iterators which keys came and went.
    fn tell_iterators(
        &mut self,
        io: &mut Io<'_>,
        changes: &[(Signature, LocalChange)],
        all_may_be_there: bool,
    ) -> Result<(), KvError> {
        if !self.plan.iterators {
            return Ok(());
        }
        let news = changes.iter().filter_map(|(tag, change)| {
            let comes = change.place.is_some();
            let is_news = !comes || change.was.is_empty() || all_may_be_there;
            let bucket = change.bucket().filter(|_| is_news)?;
            Some(News { bucket, signature: *tag, comes })
        });
        if all_may_be_there {
            news.for_each(|news| self.iterators.tell_again(news));
            return Ok(());
        }
        let news: Vec<News> = news.collect();
        self.iterators.tell(io, &news)
    }
}
