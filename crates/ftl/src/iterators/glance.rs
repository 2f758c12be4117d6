//! Returns pairs straight from where they lie, without changing the drive, so that several threads can use iterators side by side. For
//! drives that nobody times.
//!
//! ```text
//!   spot -> keys, places -> pages that are gathered, or on a medium that shows them -> pairs -> spot behind the last
//!                             one of them is not to be seen: nothing is returned, and the drive executes the command
//! ```

use super::live::{CHOSEN_ROOM, Live};
use super::prefetch::PrefetchPool;
use super::spot::Spot;
use super::{IteratorPlan, Iterators, user_frontier};
use crate::index::look::REST_PAGES_MAX;
use crate::index::{CursorPlan, EntryPlace, RangeIndex};
use crate::io::Io;
use crate::io::media::Media;
use crate::journal::PairPlace;
use crate::layout::address::Grain;
use kvssd_types::{IteratorId, IteratorOptions, Key, KvError, OwnedKey, Reply, VALUE_BYTES_MAX, Value};
use std::ops::Bound;
use std::sync::Arc;

/// A pair that is returned next.
struct Chosen {
    key: OwnedKey,
    pair: PairPlace,
    /// The index entry that names the pair, if that is on flash.
    entry: Option<EntryPlace>,
}

/// Where an iterator goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Go<'k> {
    /// A Seek: to the key, or to the beginning of its range.
    To(Option<Key<'k>>),
    /// A Next: to the pairs that follow.
    On,
}

/// Where the values of a glance came from.
pub(crate) struct Sources {
    /// Pages that were looked at.
    pub(crate) pages: usize,
    /// Values that were kept from before.
    pub(crate) kept: usize,
}

impl Iterators {
    /// Begins an iterator, if that only has to be remembered. `None` otherwise: the command begins it.
    pub(crate) fn create_beside(
        &self,
        media: &Media,
        ranges: &dyn RangeIndex,
        options: &IteratorOptions<'_>,
    ) -> Option<Reply> {
        if self.plan != IteratorPlan::NONE {
            return None;
        }
        let mut held = media.held.change();
        let id = IteratorId(held.number_next());
        ranges.open_beside(id, CursorPlan { descending: options.descending, reads_ahead: false })?;
        let made = held.make(user_frontier(media));
        drop(held);
        self.live.change().insert(id, Arc::new(Live::new(options, made, self.pool.pace)));
        Some(Reply::IteratorCreated(id))
    }

    /// Ends an iterator, if no record is given up with it. `None` otherwise: the command ends it.
    pub(crate) fn destroy_beside(&self, media: &Media, ranges: &dyn RangeIndex, id: IteratorId) -> Option<Reply> {
        let is_alone = |live: &&Arc<Live>| self.plan == IteratorPlan::NONE && live.prefetch.len() == 0;
        let made = self.live.look().get(&id).filter(is_alone)?.made;
        if !media.held.look().is_empty() {
            return None;
        }
        ranges.close_beside(id)?;
        media.held.change().end(made);
        self.live.change().remove(&id);
        Some(Reply::IteratorDestroyed)
    }

    /// The pairs that a command returns, and where their values came from. `None` if not all of them can be seen: then the drive executes it.
    pub(crate) fn glance(
        &self,
        media: &Media,
        ranges: &dyn RangeIndex,
        id: IteratorId,
        go: Go<'_>,
        pairs_max: u32,
    ) -> Option<(Reply, Sources)> {
        let live = self.live.look().get(&id).filter(|_| self.plan == IteratorPlan::NONE).map(Arc::clone)?;
        let mut spot = live.spot.try_lock()?;
        let sought = match go {
            Go::To(key) => Some(live.range.begin(key.map(|key| key.bytes()))),
            Go::On => None,
        };
        let (from, given) = match &sought {
            Some(from) => (from, &None),
            None if spot.has_sought => (&spot.from, &spot.given),
            None => return None,
        };
        let chosen = live.glance_along(media, ranges, id, from.as_deref(), given.as_deref(), pairs_max)?;
        let (values, sources) = live.values_of(media, &chosen)?;
        if let Some(from) = sought {
            *spot = Spot { has_sought: true, from, given: None, is_ahead: true };
        }
        if let Some(last) = chosen.last() {
            (spot.given, spot.is_ahead) = (Some(last.key.clone()), true);
        }
        let pairs = chosen.into_iter().map(|chosen| chosen.key).zip(values);
        Some((Reply::Pairs(pairs.collect()), sources))
    }
}

impl Live {
    /// Moves the index's cursor behind the pairs that glances have returned meanwhile.
    pub(super) fn catch_up(
        &mut self,
        io: &mut Io<'_>,
        ranges: &mut dyn RangeIndex,
        id: IteratorId,
        pool: &mut PrefetchPool,
    ) -> Result<(), KvError> {
        let Spot { from, given, is_ahead, .. } = self.spot.get_mut();
        if *is_ahead {
            ranges.seek(io, id, given.as_deref().or(from.as_deref()))?;
            if given.is_some() {
                ranges.next(io, id)?;
            }
            *is_ahead = false;
            self.prefetch.clear(pool);
        }
        Ok(())
    }

    /// Up to `pairs_max` keys of the range, from `from` on or behind `given`, as [`Live::choose`] finds them.
    fn glance_along(
        &self,
        media: &Media,
        ranges: &dyn RangeIndex,
        id: IteratorId,
        from: Option<&[u8]>,
        given: Option<&[u8]>,
        pairs_max: u32,
    ) -> Option<Vec<Chosen>> {
        let (mut chosen, mut bytes) = (Vec::with_capacity(pairs_max.min(CHOSEN_ROOM) as usize), 0);
        if pairs_max == 0 {
            return Some(chosen);
        }
        let start = given.map_or_else(|| from.map_or(Bound::Unbounded, Bound::Included), Bound::Excluded);
        ranges.look_along(id, start, media, &mut |key, pair, entry| {
            if self.range.is_before(&key) {
                return true;
            }
            if !self.range.has(&key) {
                return false;
            }
            bytes += key.len() + pair.value_bytes as usize;
            chosen.push(Chosen { key, pair, entry });
            chosen.len() < pairs_max as usize && bytes < VALUE_BYTES_MAX
        })?;
        Some(chosen)
    }

    /// The values of pairs, each `None` if only keys are asked for, and where they came from. `None` if not all can be seen.
    fn values_of(&self, media: &Media, chosen: &[Chosen]) -> Option<(Vec<Option<Value>>, Sources)> {
        if self.keys_only {
            return Some((vec![None; chosen.len()], Sources { pages: 0, kept: 0 }));
        }
        let mut values = media.kept_values(chosen.iter().map(|Chosen { key, pair, entry }| (*entry, &**key, *pair)));
        let missing: Vec<usize> = (0..chosen.len()).filter(|&number| values[number].is_none()).collect();
        let held = media.held.look();
        let places: Vec<Grain> =
            missing.iter().map(|&number| held.place_of(chosen[number].pair.place, self.made)).collect();
        drop(held);
        media.warm(&places);
        let mut pages = 0;
        let mut see = |(&number, place): (&usize, Grain)| {
            let Chosen { key, pair, .. } = &chosen[number];
            let head = pair.head();
            media.bring(place, &head)?;
            let seen = media.record_at(place, Key::new(key).ok()?, Some((0, u32::MAX)))??;
            if seen.head != head || seen.rest.len() > REST_PAGES_MAX {
                return None;
            }
            pages += 1 + seen.rest.len();
            values[number] = Some(media.value_of(seen)?);
            Some(())
        };
        let are_all_seen = missing.iter().zip(places).try_for_each(&mut see);
        // This also keeps the values before one that could not be seen: the command will not keep them.
        let of_entry = |&number: &usize| Some((chosen[number].entry?, &*chosen[number].key, values[number].as_ref()?));
        media.keep_values(missing.iter().filter_map(of_entry));
        are_all_seen?;
        Some((values, Sources { pages, kept: chosen.len() - missing.len() }))
    }
}
