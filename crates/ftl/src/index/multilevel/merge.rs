//! How what gathered in the local index comes into the levels and the buckets of the iterators.

use super::iterator::News;
use super::local::LocalChange;
use super::{Multilevel, first_of_level};
use crate::address::Grain;
use crate::index::record_table::Signature;
use crate::io::{Io, readable};
use kvssd_types::KvError;

impl Multilevel {
    /// Puts a record into a bucket, if it has room. Gives whether it has.
    fn insert(&mut self, io: &mut Io<'_>, bucket: u64, tag: Signature, place: Grain) -> Result<bool, KvError> {
        let ticket = self.buckets.load(io, bucket)?;
        let has_room = self.form().has_room_near(self.buckets.bytes(ticket), tag);
        if has_room {
            self.buckets.change(io, bucket, |form, bytes| form.insert(bytes, tag, place))?;
            self.buckets.keep_to_budget(io)?;
        }
        Ok(has_room)
    }

    pub(super) fn open_level(&mut self) {
        self.levels += 1;
        self.buckets.grow(first_of_level(self.first_bits, self.levels));
        self.share_budget();
    }

    /// Has the levels say what `count` changes of the local index say. Those that are new to them go to the first level with room;
    /// `all_may_be_there` when nobody knows which are new.
    pub(super) fn merge(&mut self, io: &mut Io<'_>, count: usize, all_may_be_there: bool) -> Result<(), KvError> {
        let mut pending = self.local.take(count);
        self.tell_iterators(io, &pending, all_may_be_there)?;
        for level in 0..self.levels {
            let buckets: Vec<u64> = pending.iter().map(|(tag, _)| self.bucket(*tag, level)).collect();
            self.buckets.load_all(io, &buckets)?;
            let mut left = Vec::with_capacity(pending.len());
            for ((tag, change), bucket) in pending.into_iter().zip(buckets) {
                let is_new = change.was.is_empty() && !all_may_be_there;
                let is_done = match change.place.filter(|_| is_new) {
                    Some(place) => readable(self.insert(io, bucket, tag, place))? == Some(true),
                    None => {
                        let places: Vec<Grain> = change.was.iter().copied().chain(change.place).collect();
                        // What is in a bucket that cannot be read is as good as gone.
                        let slot = readable(self.slot_in(io, bucket, tag, &places))?.flatten();
                        slot.map(|slot| self.change_record(io, (bucket, slot), change.place)).transpose()?.is_some()
                    }
                };
                if !is_done {
                    left.push((tag, change));
                }
            }
            pending = left;
        }
        for (tag, place) in pending.into_iter().filter_map(|(tag, change)| Some((tag, change.place?))) {
            let mut level = 0;
            while readable(self.insert(io, self.bucket(tag, level), tag, place))? != Some(true) {
                level += 1;
                if level == self.levels {
                    self.open_level();
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
            let bucket = change.bucket.filter(|_| is_news)?;
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
