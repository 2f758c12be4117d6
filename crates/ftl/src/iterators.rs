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
mod live;
mod prefetch;
mod range;
mod spot;

pub use self::degree::{IteratorPlan, PrefetchDegree};
pub(crate) use self::glance::Go;

use self::degree::Pace;
use self::habit::Habit;
use self::live::Live;
use self::prefetch::{PrefetchPool, Sharers};
use crate::index::{CursorPlan, Index, RangeIndex};
use crate::io::media::Media;
use crate::io::{Io, readable};
use crate::layout::address::Grain;
use crate::layout::oob::Stream;
use crate::shared::Shared;
use kvssd_flash::SuperblockId;
use kvssd_types::{IteratorId, IteratorOptions, Key, KvError, Nanos, Reply};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
        key: Option<Key<'_>>,
        pairs_max: u32,
    ) -> Result<Reply, KvError> {
        let ranges = ranges(index)?;
        let live = find(self.live.get_mut(), &self.expired, id)?;
        live.prefetch.clear(&mut self.pool);
        live.pace.stop();
        live.ends_seek(&mut self.habit, false);
        live.sought_last = true;
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
        let arrived = io.clock;
        let all = self.live.get_mut();
        let flying = all.values().filter(|live| live.prefetch.is_flying(arrived)).count() as u32;
        let holding = all.values().filter(|live| live.prefetch.len() > 0).count() as u32;
        let live = find(all, &self.expired, id)?;
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
        live.pace.gave(arrived, found, io.answer(), chosen.len() as u64);
        if self.plan.index_prefetch && goes_on {
            ranges.read_ahead(io, id);
        }
        if !live.keys_only && goes_on {
            // A pair that cannot be read is reported when it is its turn.
            let sharers = Sharers { flying, holding };
            readable(live.read_ahead(io, ranges, id, &self.plan, &mut self.pool, sharers))?;
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
