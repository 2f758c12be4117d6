//! Pairs that are given from where they lie, without a flash operation for each: for drives that nobody times.
//!
//! ```text
//!   cursor -> keys, places -> pages that are gathered, or on a medium that shows them -> pairs
//!                               one that is not to be seen: the pairs come next again, and the command reads them
//! ```

use super::prefetch::Ahead;
use super::{Iterators, Live};
use crate::address::Grain;
use crate::index::Index;
use crate::io::Io;
use crate::iterators::IteratorPlan;
use crate::look::REST_PAGES_MAX;
use crate::record::RecordHead;
use kvssd_types::{IteratorId, Key, KvError, Reply, Value};

impl Iterators {
    /// As [`Iterators::seek`], where `sought` says to which key, or [`Iterators::next`], if nothing is read ahead and all pairs are to be
    /// seen; and how many pages were looked at. None else: then the command gives them.
    pub(crate) fn at_hand(
        &mut self,
        io: &mut Io<'_>,
        index: &mut dyn Index,
        id: IteratorId,
        (sought, pairs_max): (Option<Option<Key<'_>>>, u32),
    ) -> Option<Result<(Reply, usize), KvError>> {
        if self.plan != IteratorPlan::NONE {
            return None;
        }
        let (ranges, live) = (index.ranges()?, self.live.get_mut(&id)?);
        if let Some(key) = sought {
            live.prefetch.clear(&mut self.pool);
            let begin = live.range.begin(key.map(|key| key.bytes()));
            if let Err(error) = ranges.seek(io, id, begin.as_deref()) {
                return Some(Err(error));
            }
        }
        let chosen = match live.choose(io, ranges, id, pairs_max) {
            Ok(chosen) => chosen,
            Err(error) => return Some(Err(error)),
        };
        let Some((values, pages)) = live.see(io, &chosen) else {
            live.prefetch.put_back(chosen);
            return None;
        };
        let pairs = chosen.into_iter().map(|ahead| ahead.key).zip(values);
        Some(Ok((Reply::Pairs(pairs.collect()), pages)))
    }
}

impl Live {
    /// The values of pairs, none where keys alone are asked for, if all are to be seen, and how many pages were looked at.
    fn see(&self, io: &mut Io<'_>, chosen: &[Ahead]) -> Option<(Vec<Option<Value>>, usize)> {
        if self.keys_only {
            return Some((vec![None; chosen.len()], 0));
        }
        let records: Vec<(Grain, RecordHead)> = chosen.iter().map(|ahead| self.record(io, ahead)).collect();
        io.warm(&records.iter().map(|(place, _)| *place).collect::<Vec<_>>());
        let (mut values, mut pages) = (Vec::with_capacity(chosen.len()), 0);
        for (ahead, (place, head)) in chosen.iter().zip(records) {
            fetch_rest(io, place, &head)?;
            let seen = io.media.record(place, Key::new(&ahead.key).ok()?)??;
            if seen.head != head {
                return None;
            }
            pages += 1 + seen.rest.len();
            values.push(Some(io.value_of(seen)?));
        }
        Some((values, pages))
    }
}

/// Has the medium get a record's two pages at once, where it has so many; none of a record of more, which a command reads side by side.
fn fetch_rest(io: &mut Io<'_>, place: Grain, head: &RecordHead) -> Option<()> {
    let (packing, geometry) = (io.packing(), io.media.space.geometry);
    let (page, page_bytes) = (packing.page_of(place), packing.page_bytes() as usize);
    let rest_bytes = (packing.byte_in_page(place) + head.record_bytes()).saturating_sub(page_bytes);
    if rest_bytes > REST_PAGES_MAX * page_bytes {
        return None;
    }
    if rest_bytes > 0 && io.media.flash.is_programmed(page) {
        let pages_left = geometry.pages_per_program - page.0 % geometry.pages_per_program;
        io.media.flash.backing_mut().fetch(page, pages_left.min(1 + REST_PAGES_MAX as u32));
    }
    Some(())
}
