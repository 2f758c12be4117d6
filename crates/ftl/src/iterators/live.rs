//! An iterator that lives: how far it is, and what it has read ahead.

use super::degree::{IteratorPlan, Pace};
use super::habit::Habit;
use super::prefetch::{Ahead, Prefetch, PrefetchPool, Sharers};
use super::range::Range;
use super::spot::OwnSpot;
use crate::index::RangeIndex;
use crate::io::Io;
use crate::io::spent::SpentOn;
use crate::io::value::{ValuePart, by_page, parts_of, value_of};
use crate::journal::PairPlace;
use crate::layout::address::Grain;
use crate::layout::record::RecordHead;
use kvssd_flash::Cause;
use kvssd_types::{IteratedPair, IteratorId, IteratorOptions, Key, KvError, OwnedKey, VALUE_BYTES_MAX};

/// The room for pairs before they are found. An estimate: what most hosts ask for at a time.
pub(super) const CHOSEN_ROOM: u32 = 64;

#[derive(Clone, Debug)]
pub(super) struct Live {
    /// Its creation number, counted together with deaths and moves.
    pub(super) made: u64,
    pub(super) range: Range,
    pub(super) keys_only: bool,
    pub(super) prefetch: Prefetch,
    pub(super) pace: Pace,
    /// Whether its last command was a Seek.
    pub(super) sought_last: bool,
    /// Where it stands.
    pub(super) spot: OwnSpot,
}

impl Live {
    /// An iterator with the creation number `made`, which was not sent anywhere yet.
    pub(super) fn new(options: &IteratorOptions<'_>, made: u64, pace: Pace) -> Self {
        let (range, keys_only, prefetch) = (Range::of(options), options.keys_only, Prefetch::default());
        Live { made, range, keys_only, prefetch, pace, sought_last: false, spot: OwnSpot::default() }
    }

    /// Notes that a command comes. If it is the first behind a Seek, `is_followed` says whether it is a Next.
    pub(super) fn ends_seek(&mut self, habit: &mut Habit, is_followed: bool) {
        if std::mem::take(&mut self.sought_last) {
            habit.ended(is_followed);
        }
    }

    /// Takes up to `pairs_max` next pairs, together no larger than the largest value.
    pub(super) fn choose(
        &mut self,
        io: &mut Io<'_>,
        ranges: &mut dyn RangeIndex,
        id: IteratorId,
        pairs_max: u32,
    ) -> Result<Vec<Ahead>, KvError> {
        let (mut chosen, mut bytes) = (Vec::with_capacity(pairs_max.min(CHOSEN_ROOM) as usize), 0);
        while chosen.len() < pairs_max as usize && bytes < VALUE_BYTES_MAX {
            match self.pull(io, ranges, id) {
                Ok(Some(ahead)) => {
                    bytes += ahead.key.len() + ahead.pair.value_bytes as usize;
                    chosen.push(ahead);
                }
                Ok(None) => break,
                // Reported when it is its turn.
                Err(KvError::Unrecovered(_)) if !chosen.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(chosen)
    }

    /// The next pair: the first that was read ahead, or the one that the cursor stands at.
    fn pull(&mut self, io: &mut Io<'_>, ranges: &mut dyn RangeIndex, id: IteratorId) -> Result<Option<Ahead>, KvError> {
        match self.prefetch.pop() {
            Some(ahead) => Ok(Some(ahead)),
            None => Ok(self.step(io, ranges, id)?.map(|(key, pair)| Ahead::new(key, pair))),
        }
    }

    /// The cursor's next pair, if it is of the range.
    fn step(
        &mut self,
        io: &mut Io<'_>,
        ranges: &mut dyn RangeIndex,
        id: IteratorId,
    ) -> Result<Option<(OwnedKey, PairPlace)>, KvError> {
        if self.prefetch.is_at_end {
            return Ok(None);
        }
        loop {
            let found = ranges.next(io, id)?;
            match found {
                Some((key, _)) if self.range.is_before(&key) => {}
                found => {
                    let found = found.filter(|(key, _)| self.range.has(key));
                    self.prefetch.is_at_end = found.is_none();
                    return Ok(found);
                }
            }
        }
    }

    /// Fetches the values of pairs: waits for those in flight, and reads the others side by side.
    pub(super) fn bring(&mut self, io: &mut Io<'_>, chosen: &[Ahead]) -> Result<Vec<IteratedPair>, KvError> {
        if self.keys_only {
            return Ok(chosen.iter().map(|ahead| (ahead.key.clone(), None)).collect());
        }
        let places: Vec<Grain> = chosen.iter().map(|ahead| self.record(io, ahead).0).collect();
        io.warm(&places);
        let parts: Vec<(Vec<ValuePart>, &Ahead)> =
            chosen.iter().map(|ahead| (self.record_parts(io, ahead), ahead)).collect();
        let unread = parts.iter().filter(|(_, ahead)| !ahead.is_on_its_way());
        let mut unread = by_page(unread.flat_map(|(parts, _)| parts.clone()));
        unread.retain(|part| !self.prefetch.is_at_hand(part));
        io.read_parts(&unread, Cause::User);
        if let Some(last) = parts.last().and_then(|(parts, _)| parts.last()) {
            self.prefetch.brought(last, io.media.space.geometry.sector_bytes());
        }
        for (_, ahead) in &parts {
            io.wait_for_flash(self.prefetch.ready(ahead), SpentOn::Record);
        }
        parts.into_iter().map(|(parts, ahead)| self.pair(io, ahead, parts)).collect()
    }

    /// Where the head of a record and its value lie now.
    fn record_parts(&self, io: &Io<'_>, ahead: &Ahead) -> Vec<ValuePart> {
        let (place, head) = self.record(io, ahead);
        let mut parts = parts_of(&io.media.space, place, &head, 0..head.value_bytes as usize);
        let (page, start) = io.packing().start_of(place);
        match parts.first_mut().filter(|(first, _)| *first == page) {
            Some((_, bytes)) => bytes.start = start,
            None => parts.insert(0, (page, start..start + head.bytes())),
        }
        parts
    }

    fn record(&self, io: &Io<'_>, ahead: &Ahead) -> (Grain, RecordHead) {
        (io.media.held.look().place_of(ahead.pair.place, self.made), ahead.pair.head())
    }

    /// A pair whose record is in the controller, in those parts.
    fn pair(&self, io: &mut Io<'_>, ahead: &Ahead, mut parts: Vec<ValuePart>) -> Result<IteratedPair, KvError> {
        let (place, head) = self.record(io, ahead);
        io.cpu(io.costs().key_compare_ns);
        let packing = io.packing();
        let (page, start) = packing.start_of(place);
        let found = RecordHead::matching(io.data(page)?, start, packing.page_bytes() as usize, Key::new(&ahead.key)?);
        if found != Some(head) {
            return Err(KvError::Unrecovered("a page holds another record than the index says".to_owned()));
        }
        parts[0].1.start += head.bytes();
        Ok((ahead.key.clone(), Some(value_of(io, place, &parts)?)))
    }

    /// Reads ahead the next values, as many as the degree says and the buffer takes.
    pub(super) fn read_ahead(
        &mut self,
        io: &mut Io<'_>,
        ranges: &mut dyn RangeIndex,
        id: IteratorId,
        plan: &IteratorPlan,
        pool: &mut PrefetchPool,
        sharers: Sharers,
    ) -> Result<(), KvError> {
        if self.prefetch.len() >= self.pace.degree(plan.prefetch_degree) as usize {
            return Ok(());
        }
        let degree = self.pace.degree_high(plan.prefetch_degree);
        let mut fresh = Vec::new();
        while self.prefetch.len() < degree as usize && self.prefetch.has_room(io, plan, pool, sharers) {
            let Some((key, pair)) = self.step(io, ranges, id)? else { break };
            let mut ahead = Ahead::new(key, pair);
            let parts = self.record_parts(io, &ahead);
            fresh.extend(self.prefetch.expect(&mut ahead, &parts, pool));
            self.prefetch.push(ahead);
        }
        self.prefetch.read(io, fresh);
        Ok(())
    }
}
