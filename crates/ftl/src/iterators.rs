//! Iterators: ranges of keys, seen as the drive was when the iterator was made (IterKVSSD, section 4).
//!
//! ```text
//!   Create -> cursor over a version of the index, number among deaths and moves (`controller/held.rs`)
//!   Seek   -> cursor -> key, place -> value
//!   Next   -> [ key, place, value on its way | ... | ... ] <- cursor       the values ahead are read while the host has the last one
//!   Destroy                    degree of them
//! ```

mod degree;
mod glance;
mod habit;
mod prefetch;

pub use self::degree::{IteratorPlan, PrefetchDegree};

use self::degree::Pace;
use self::glance::OwnSpot;
use self::habit::Habit;
use self::prefetch::{Ahead, Prefetch, PrefetchPool, Sharers};
use crate::index::{CursorPlan, Index, RangeIndex};
use crate::io::media::Media;
use crate::io::spent::SpentOn;
use crate::io::value::{ValuePart, by_page, parts_of, value_of};
use crate::io::{Io, readable};
use crate::journal::PairPlace;
use crate::layout::address::Grain;
use crate::layout::oob::Stream;
use crate::layout::record::RecordHead;
use crate::shared::Shared;
use kvssd_flash::{Cause, SuperblockId};
use kvssd_types::{IteratedPair, IteratorId, IteratorOptions, Key, KvError, Nanos, OwnedKey, Reply, VALUE_BYTES_MAX};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The room for pairs before they are found. An estimate: what most hosts ask for at a time.
const CHOSEN_ROOM: u32 = 64;

/// All iterators of a drive.
#[derive(Debug)]
pub(crate) struct Iterators {
    plan: IteratorPlan,
    live: Shared<BTreeMap<IteratorId, Arc<Live>>>,
    /// Iterators that the drive ended before the host did.
    expired: BTreeSet<IteratorId>,
    pool: PrefetchPool,
    habit: Habit,
}

/// In a snapshot each iterator keeps its position, and goes on independently.
impl Clone for Iterators {
    fn clone(&self) -> Self {
        let Iterators { plan, live, expired, pool, habit } = self;
        let live = live.look().iter().map(|(&id, live)| (id, Arc::new(Live::clone(live)))).collect();
        Iterators { plan: *plan, live: Shared::new(live), expired: expired.clone(), pool: pool.clone(), habit: *habit }
    }
}

#[derive(Clone, Debug)]
struct Live {
    /// Its creation number, counted together with deaths and moves.
    made: u64,
    range: Range,
    keys_only: bool,
    prefetch: Prefetch,
    pace: Pace,
    /// Whether no command has followed its last Seek.
    has_sought: bool,
    /// Where it stands.
    spot: OwnSpot,
}

/// The keys that an iterator goes along.
#[derive(Clone, Debug)]
struct Range {
    prefix: OwnedKey,
    first: OwnedKey,
    end: Option<OwnedKey>,
    descending: bool,
}

impl Range {
    fn of(options: &IteratorOptions<'_>) -> Self {
        let IteratorOptions { prefix, first, end, descending, .. } = *options;
        Range { prefix: prefix.into(), first: first.into(), end: end.map(Into::into), descending }
    }

    fn has(&self, key: &[u8]) -> bool {
        // Comparing zero bytes is slow on some processors: they look for the page of a masked load at the address of nothing.
        (self.prefix.is_empty() || key.starts_with(&self.prefix))
            && (self.first.is_empty() || *key >= *self.first)
            && self.end.as_ref().is_none_or(|end| *key < **end)
    }

    /// The key to seek to for the first pair from `key` on; none for the end of all keys.
    fn begin(&self, key: Option<&[u8]>) -> Option<Vec<u8>> {
        let least: &[u8] = (&*self.prefix).max(&*self.first);
        if !self.descending {
            return Some(key.map_or(least, |key| key.max(least)).to_vec());
        }
        // The first key behind all keys with the prefix: its last byte below 0xff is incremented, and those behind it are cut off.
        let behind = self.prefix.iter().rposition(|&byte| byte < u8::MAX).map(|last| {
            let mut behind = self.prefix[..=last].to_vec();
            behind[last] += 1;
            behind
        });
        [key.map(<[u8]>::to_vec), behind, self.end.as_ref().map(|end| end.to_vec())].into_iter().flatten().min()
    }

    /// Whether a key outside of the range lies before it, in the cursor's direction.
    fn is_before(&self, key: &[u8]) -> bool {
        self.descending
            && (self.end.as_ref().is_some_and(|end| *key >= **end)
                || *key > *self.prefix && !key.starts_with(&self.prefix))
    }
}

impl Iterators {
    /// None yet; values that are read ahead take `prefetch_bytes` at the most.
    pub(crate) fn new(plan: IteratorPlan, prefetch_bytes: u64, sector_bytes: u32) -> Self {
        let bytes_max = if plan.prefetch_degree.is_none() { 0 } else { prefetch_bytes };
        let pool = PrefetchPool::new(bytes_max, sector_bytes);
        Iterators { plan, live: Shared::default(), expired: BTreeSet::new(), pool, habit: Habit::default() }
    }

    /// See [`Engine::set_iterator_plan`](crate::Engine::set_iterator_plan).
    pub(crate) fn set_plan(&mut self, plan: IteratorPlan) {
        self.plan = plan;
        // The adaptive degree learns anew.
        (self.pool.pace, self.habit) = (Pace::default(), Habit::default());
    }

    /// See [`Engine::iterator_times`](crate::Engine::iterator_times).
    pub(crate) fn times(&self) -> (Nanos, Nanos) {
        self.pool.pace.times()
    }

    /// The creation number of the oldest iterator.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.live.look().first_key_value().map(|(_, live)| live.made)
    }

    pub(crate) fn oldest_id(&self) -> Option<IteratorId> {
        self.live.look().first_key_value().map(|(&id, _)| id)
    }

    /// Those that live.
    pub(crate) fn count(&self) -> usize {
        self.live.look().len()
    }

    /// DRAM of the values that are read ahead, and of the keys that are known ahead with them.
    pub(crate) fn dram_bytes(&self) -> u64 {
        self.pool.bytes_max()
    }

    pub(crate) fn create(
        &mut self,
        io: &mut Io<'_>,
        index: &mut dyn Index,
        options: &IteratorOptions<'_>,
    ) -> Result<Reply, KvError> {
        // An id is unique on the whole drive, since a namespace may be given the number of a deleted one.
        let id = IteratorId(io.media.held.get_mut().number_next());
        let plan = CursorPlan { descending: options.descending, reads_ahead: self.plan.index_prefetch };
        ranges(index)?.open(io, id, plan)?;
        let frontier = user_frontier(io.media);
        let made = io.media.held.get_mut().make(frontier);
        self.live.get_mut().insert(id, Arc::new(Live::new(options, made, self.pool.pace)));
        Ok(Reply::IteratorCreated(id))
    }

    /// Seeks, and returns the first pairs.
    pub(crate) fn seek(
        &mut self,
        io: &mut Io<'_>,
        index: &mut dyn Index,
        id: IteratorId,
        (key, pairs_max): (Option<Key<'_>>, u32),
    ) -> Result<Reply, KvError> {
        let ranges = ranges(index)?;
        let live = find(self.live.get_mut(), &self.expired, id)?;
        live.prefetch.clear(&mut self.pool);
        live.pace.stop();
        live.ends_seek(&mut self.habit, false);
        live.has_sought = true;
        let begin = live.range.begin(key.map(|key| key.bytes()));
        // Before the seek: if that fails, the cursor has lost its old position.
        live.spot.sought(begin.clone());
        ranges.seek(io, id, begin.as_deref())?;
        let goes_on = !self.plan.prefetch_degree.heeds_habit() || self.habit.is_to_go_on();
        self.give(io, index, id, pairs_max, goes_on)
    }

    /// The pairs that follow.
    pub(crate) fn next(
        &mut self,
        io: &mut Io<'_>,
        index: &mut dyn Index,
        id: IteratorId,
        pairs_max: u32,
    ) -> Result<Reply, KvError> {
        if let Some(live) = self.live.get_mut().get_mut(&id) {
            Arc::make_mut(live).ends_seek(&mut self.habit, true);
        }
        self.give(io, index, id, pairs_max, true)
    }

    /// Returns the next pairs. If the host `goes_on`, those behind them are read ahead.
    fn give(
        &mut self,
        io: &mut Io<'_>,
        index: &mut dyn Index,
        id: IteratorId,
        pairs_max: u32,
        goes_on: bool,
    ) -> Result<Reply, KvError> {
        let ranges = ranges(index)?;
        let now = io.clock;
        let all = self.live.get_mut();
        let flying = all.values().filter(|live| live.prefetch.is_flying(now)).count() as u32;
        let holding = all.values().filter(|live| live.prefetch.len() > 0).count() as u32;
        let live = find(all, &self.expired, id)?;
        let arrived = io.clock;
        live.catch_up(io, ranges, id, &mut self.pool)?;
        let chosen = live.choose(io, ranges, id, pairs_max)?;
        let found = io.settle();
        let pairs = match live.bring(io, &chosen) {
            Ok(pairs) => pairs,
            Err(error) => {
                live.prefetch.put_back(chosen);
                return Err(error);
            }
        };
        // While the pairs cross the link, the core asks for the next (section 4.5).
        live.pace.gave((arrived, found, io.answer()), chosen.len() as u64);
        if self.plan.index_prefetch && goes_on {
            ranges.read_ahead(io, id);
        }
        if !live.keys_only && goes_on {
            // A pair that cannot be read is reported when it is its turn.
            readable(live.read_ahead(io, ranges, id, (&self.plan, &mut self.pool, Sharers { flying, holding })))?;
        }
        for ahead in &chosen {
            live.prefetch.took(ahead).into_iter().for_each(|took_ns| live.pace.read(took_ns));
            live.prefetch.let_go(ahead, &mut self.pool);
        }
        self.pool.pace = live.pace;
        if let Some(last) = chosen.last() {
            live.spot.gave(&last.key);
        }
        Ok(Reply::Pairs(pairs))
    }

    pub(crate) fn destroy(&mut self, io: &mut Io<'_>, index: &mut dyn Index, id: IteratorId) -> Result<Reply, KvError> {
        let ranges = ranges(index)?;
        if !self.expired.remove(&id) {
            let mut live = self.live.get_mut().remove(&id).ok_or(KvError::NoSuchIterator(id))?;
            let live = Arc::make_mut(&mut live);
            live.prefetch.clear(&mut self.pool);
            live.ends_seek(&mut self.habit, false);
            end(io, ranges, id, live)?;
        }
        Ok(Reply::IteratorDestroyed)
    }

    /// Ends the oldest iterator; its next command is refused for that reason. Returns whether there was one.
    pub(crate) fn expire(&mut self, io: &mut Io<'_>, index: &mut dyn Index) -> Result<bool, KvError> {
        let Some((id, mut live)) = self.live.get_mut().pop_first() else { return Ok(false) };
        Arc::make_mut(&mut live).prefetch.clear(&mut self.pool);
        end(io, ranges(index)?, id, &live)?;
        self.expired.insert(id);
        Ok(true)
    }
}

/// Ends an iterator, and gives up the records that only it kept.
fn end(io: &mut Io<'_>, ranges: &mut dyn RangeIndex, id: IteratorId, live: &Live) -> Result<(), KvError> {
    ranges.close(io, id);
    let free = io.media.held.get_mut().end(live.made);
    io.cpu(free.len() as u64 * io.costs().gc_record_ns);
    for dead in free {
        io.vacate(dead.place, dead.grains);
    }
    Ok(())
}

fn ranges(index: &mut dyn Index) -> Result<&mut dyn RangeIndex, KvError> {
    index.ranges().ok_or(KvError::InvalidCommand("it keeps keys in no order"))
}

fn find<'l>(
    live: &'l mut BTreeMap<IteratorId, Arc<Live>>,
    expired: &BTreeSet<IteratorId>,
    id: IteratorId,
) -> Result<&'l mut Live, KvError> {
    if expired.contains(&id) {
        return Err(KvError::IteratorExpired(id));
    }
    live.get_mut(&id).map(Arc::make_mut).ok_or(KvError::NoSuchIterator(id))
}

/// The superblocks that are open for hosts' records, and the earliest place of the next record in each.
fn user_frontier(media: &Media) -> Vec<(SuperblockId, Grain)> {
    let packing = &media.space.packing;
    let frontier = |log| {
        let open = media.log.get(log);
        let index = open.data.len() / packing.grain_bytes as usize;
        Some((open.superblock?, Grain(packing.grain(open.page, 0).0 + index as u64)))
    };
    media.log.of(Stream::User).filter_map(frontier).collect()
}

impl Live {
    /// An iterator with the creation number `made`, which was not sent anywhere yet.
    fn new(options: &IteratorOptions<'_>, made: u64, pace: Pace) -> Self {
        let (range, keys_only, prefetch) = (Range::of(options), options.keys_only, Prefetch::default());
        Live { made, range, keys_only, prefetch, pace, has_sought: false, spot: OwnSpot::default() }
    }

    /// Notes that a command follows its last Seek, if it is the first to do so; `is_followed` for a Next.
    fn ends_seek(&mut self, habit: &mut Habit, is_followed: bool) {
        if std::mem::take(&mut self.has_sought) {
            habit.ended(is_followed);
        }
    }

    /// Takes up to `pairs_max` next pairs, together no larger than the largest value.
    fn choose(
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
    fn bring(&mut self, io: &mut Io<'_>, chosen: &[Ahead]) -> Result<Vec<IteratedPair>, KvError> {
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
    fn read_ahead(
        &mut self,
        io: &mut Io<'_>,
        ranges: &mut dyn RangeIndex,
        id: IteratorId,
        (plan, pool, sharers): (&IteratorPlan, &mut PrefetchPool, Sharers),
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
